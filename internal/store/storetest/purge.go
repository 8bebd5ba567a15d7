package storetest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

func purgeTests() []test {
	return []test{
		{"old executions go with what they left", purgeExecutions},
		{"what is open, young or promised stays", purgeKeeps},
		{"artifacts expire and the record remembers them", expireArtifacts},
		{"shared content stays", purgeKeepsSharedContent},
		{"many go in bounded batches", purgeInBatches},
		{"old drafts go", purgeOldDrafts},
		{"nobody else's records", purgeCrossesNoTenant},
		{"purging while others save leaves no orphan", purgeRace},
		{"a skill is purged whole", purgeSkill},
		{"what a grant or an execution names is kept", purgeSkillKeeps},
		{"a skill in use is not purged", purgeSkillRefuses},
		{"a purge that is not recorded is none", purgeSkillIsOneTransaction},
		{"granting and purging have one winner", purgeSkillRace},
	}
}

// ran stores a closed execution of the n-th day with one artifact.
func ran(t *trial, b Backend, id string, n int, content string) {
	t.Helper()
	e := execution(id, n)
	open(t, b, e)
	meta, file := artifact("out.txt", content)
	e.Status, e.ExitCode, e.Artifacts = sallyport.StatusSuccess, pointer(0), []sallyport.Artifact{meta}
	closed(t, b, e, file)
}

// sweep purges until nothing is left, and checks that the plan was the truth.
func sweep(t *trial, b Backend, bounds records.Bounds) records.Counts {
	t.Helper()
	plan, err := b.CountOld(t.Context(), tenant, bounds)
	must(t, err)
	var removed records.Counts
	for {
		batch, more, err := b.PurgeOld(t.Context(), tenant, bounds)
		must(t, err)
		removed.Executions += batch.Executions
		removed.Artifacts += batch.Artifacts
		removed.ArtifactBytes += batch.ArtifactBytes
		removed.ToolCalls += batch.ToolCalls
		removed.Drafts += batch.Drafts
		if !more {
			break
		}
	}
	same(t, "removed as planned", removed, plan)
	orphans, _, err := b.PurgeUnheld(t.Context())
	must(t, err)
	same(t, "content without a holder", orphans, int64(0))
	return removed
}

func purgeExecutions(t *trial, b Backend) {
	ctx := t.Context()
	ran(t, b, "old", 1, "old content")
	ran(t, b, "new", 9, "new content")
	removed := sweep(t, b, records.Bounds{Executions: day(5), Keys: day(8), At: day(9)})
	same(t, "removed", removed, records.Counts{Executions: 1, Artifacts: 1, ArtifactBytes: 11})
	_, err := b.Execution(ctx, tenant, "old")
	wantCode(t, err, sallyport.CodeExecutionNotFound)
	_, _, err = b.ArtifactContent(ctx, tenant, "old", "out.txt")
	wantCode(t, err, sallyport.CodeArtifactNotFound)
	_, content, err := b.ArtifactContent(ctx, tenant, "new", "out.txt")
	must(t, err)
	same(t, "content of the younger one", string(content), "new content")
	list, _, err := b.Executions(ctx, tenant, run.ExecutionFilter{})
	must(t, err)
	same(t, "left", len(list), 1)
	// The trail keeps everything.
	entries, err := b.Entries(ctx, tenant, audit.Filter{ExecutionID: "old"})
	must(t, err)
	same(t, "entries", len(entries), 2)
}

func purgeKeeps(t *trial, b Backend) {
	ctx := t.Context()
	open(t, b, execution("queued", 1))
	open(t, b, execution("running", 1))
	must(t, b.Start(ctx, tenant, "running", day(1)))
	ran(t, b, "exact", 5, "exactly at the bound")
	promised := execution("promised", 1)
	taken, err := b.OpenOnce(ctx, tenant, promised, entry(sallyport.ActionScriptRun, "promised"), run.Once{Key: "k", Request: "r", Since: day(0)})
	must(t, err)
	same(t, "taken", taken, false)
	promised.Status = sallyport.StatusSuccess
	closed(t, b, promised)
	bounds := records.Bounds{Executions: day(5), Artifacts: day(5), Keys: day(0), At: day(9)}
	same(t, "removed", sweep(t, b, bounds), records.Counts{})
	for _, id := range []sallyport.ExecutionID{"queued", "running", "exact", "promised"} {
		_, err := b.Execution(ctx, tenant, id)
		must(t, err)
	}
	// A promise that is over keeps nothing, and what ended goes.
	closing := execution("queued", 1)
	closing.Status = sallyport.StatusLost
	closed(t, b, closing)
	bounds.Keys = day(1)
	same(t, "removed later", sweep(t, b, bounds), records.Counts{Executions: 2})
	same(t, "no bounds", sweep(t, b, records.Bounds{At: day(99)}), records.Counts{})
}

func expireArtifacts(t *trial, b Backend) {
	ctx := t.Context()
	e := execution("e", 1)
	open(t, b, e)
	one, oneFile := artifact("b.txt", "first")
	two, twoFile := artifact("a.txt", "second")
	e.Status, e.Artifacts = sallyport.StatusSuccess, []sallyport.Artifact{one, two}
	closed(t, b, e, oneFile, twoFile)
	running := execution("open", 1)
	open(t, b, running)
	same(t, "removed", sweep(t, b, records.Bounds{Artifacts: day(2), At: day(3)}), records.Counts{Artifacts: 2, ArtifactBytes: 11})

	want := []sallyport.Artifact{one, two}
	want[0].ExpiredAt, want[1].ExpiredAt = pointer(day(3)), pointer(day(3))
	got, err := b.Execution(ctx, tenant, "e")
	must(t, err)
	same(t, "artifacts on record", got.Artifacts, want)
	list, _, err := b.Executions(ctx, tenant, run.ExecutionFilter{Status: sallyport.StatusSuccess})
	must(t, err)
	same(t, "artifacts in the list", list[0].Artifacts, want)
	_, _, err = b.ArtifactContent(ctx, tenant, "e", "a.txt")
	wantCode(t, err, sallyport.CodeArtifactNotFound)
	if message := sallyport.Public(err).Message; !strings.Contains(message, "expired on 2026-03-04") || !strings.Contains(message, two.SHA256) {
		t.Errorf("the refusal does not say that it expired: %s", message)
	}
	_, _, err = b.ArtifactContent(ctx, tenant, "e", "c.txt")
	wantCode(t, err, sallyport.CodeArtifactNotFound)
	if strings.Contains(sallyport.Public(err).Message, "expired") {
		t.Errorf("an artifact that never was has expired: %v", err)
	}
	_, _, err = b.ArtifactContent(ctx, other, "e", "a.txt")
	if strings.Contains(sallyport.Public(err).Message, "expired") {
		t.Errorf("another tenant learns of it: %v", err)
	}
	// The record goes with its memory.
	same(t, "removed", sweep(t, b, records.Bounds{Executions: day(2), Keys: day(9), At: day(9)}), records.Counts{Executions: 1})
}

func purgeKeepsSharedContent(t *trial, b Backend) {
	ctx := t.Context()
	ran(t, b, "old", 1, "held by several")
	ran(t, b, "new", 9, "held by several")
	save(t, b, create(t, "alpha", component("SKILL.md", sallyport.KindDocument, "# a\n"), component("x", sallyport.KindArtifact, "in a skill")))
	ran(t, b, "skill", 1, "in a skill")
	sweep(t, b, records.Bounds{Executions: day(5), Keys: day(9), At: day(9)})
	_, content, err := b.ArtifactContent(ctx, tenant, "new", "out.txt")
	must(t, err)
	same(t, "shared by executions", string(content), "held by several")
	kept, err := b.ComponentContent(ctx, tenant, "r:alpha:1", "x")
	must(t, err)
	same(t, "shared with a skill", string(kept.Content), "in a skill")
}

func purgeInBatches(t *trial, b Backend) {
	const many = 130
	for n := range many {
		ran(t, b, numbered("e", n), 1, numbered("content", n))
	}
	bounds := records.Bounds{Executions: day(5), Keys: day(9), At: day(9)}
	batch, more, err := b.PurgeOld(t.Context(), tenant, bounds)
	must(t, err)
	if batch.Executions == 0 || batch.Executions == many || !more {
		t.Errorf("a batch of %d of %d, more: %v", batch.Executions, many, more)
	}
	same(t, "the rest", sweep(t, b, bounds).Executions, many-batch.Executions)
	for range 1000 {
		more, err := b.Compact(t.Context())
		must(t, err)
		if !more {
			return
		}
	}
	t.Error("giving space back does not end")
}

func purgeOldDrafts(t *trial, b Backend) {
	ctx := t.Context()
	skill, ids := drafts(t, b, "alpha", 9)
	_, err := b.Publish(ctx, tenant, skill.ID, ids[0], day(2), owner)
	must(t, err)
	_, err = b.Publish(ctx, tenant, skill.ID, ids[1], day(2), owner)
	must(t, err)
	named := grant("named", skill.ID, 1)
	named.RevisionID = ids[2]
	must(t, b.AddGrant(ctx, tenant, named))
	e := execution("ran", 1)
	e.SkillID, e.RevisionID = skill.ID, ids[3]
	open(t, b, e)
	// Old are all nine; published 0 and 1, named 2 and 3, newest 7 and 8.
	same(t, "young", sweep(t, b, records.Bounds{Drafts: day(-1), KeepDrafts: 2, At: day(9)}), records.Counts{})
	same(t, "removed", sweep(t, b, records.Bounds{Drafts: day(5), KeepDrafts: 2, At: day(9)}), records.Counts{Drafts: 3})
	left, err := b.Revisions(ctx, tenant, skill.ID)
	must(t, err)
	numbers := []int{}
	for _, r := range left {
		numbers = append(numbers, r.Number)
	}
	same(t, "left", numbers, []int{9, 8, 4, 3, 2, 1})
	same(t, "again", sweep(t, b, records.Bounds{Drafts: day(5), At: day(9)}), records.Counts{Drafts: 1})
	_, err = b.Revision(ctx, tenant, skill.ID, ids[8])
	must(t, err)
}

func purgeCrossesNoTenant(t *trial, b Backend) {
	ran(t, b, "mine", 1, "mine")
	bounds := records.Bounds{Executions: day(5), Artifacts: day(5), ToolCalls: day(5), Drafts: day(5), Keys: day(9), At: day(9)}
	removed, more, err := b.PurgeOld(t.Context(), other, bounds)
	must(t, err)
	if more || removed != (records.Counts{}) {
		t.Errorf("another tenant removed %+v", removed)
	}
	_, err = b.Execution(t.Context(), tenant, "mine")
	must(t, err)
	ids, err := b.DeletedSkills(t.Context(), other, day(999))
	must(t, err)
	same(t, "deleted skills", len(ids), 0)
}

// Saves that take up content which is about to go, again and again, and purges beside them: in the end everything that is named is
// there, and nothing else.
func purgeRace(t *trial, b Backend) {
	ctx := t.Context()
	const rounds = 25
	var wg sync.WaitGroup
	for n := range rounds {
		ran(t, b, numbered("old", n), 1, numbered("shared", n))
	}
	bounds := records.Bounds{Executions: day(5), Keys: day(9), At: day(9)}
	wg.Go(func() {
		for n := range rounds {
			save(t, b, create(t, numbered("skill", n), component("SKILL.md", sallyport.KindDocument, "# s\n"),
				component("x", sallyport.KindArtifact, numbered("shared", n))))
		}
	})
	wg.Go(func() {
		for range rounds {
			_, _, err := b.PurgeOld(ctx, tenant, bounds)
			_, _, unheld := b.PurgeUnheld(ctx)
			if err := errors.Join(err, unheld); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	sweep(t, b, bounds)
	for n := range rounds {
		kept, err := b.ComponentContent(ctx, tenant, sallyport.RevisionID("r:"+numbered("skill", n)+":1"), "x")
		must(t, err)
		same(t, "content", string(kept.Content), numbered("shared", n))
	}
}

// purge is a purge whose entry is plain.
func purge(change ...func(*registry.SkillPurge)) registry.SkillPurge {
	p := registry.SkillPurge{Entry: func(r registry.PurgeReport) (sallyport.Entry, error) {
		return sallyport.Entry{At: day(3), Actor: owner, Action: sallyport.ActionSkillPurge, Entity: r.Skill.Slug}, nil
	}}
	for _, f := range change {
		f(&p)
	}
	return p
}

func purges(t *trial, b Backend) int {
	t.Helper()
	entries, err := b.Entries(t.Context(), tenant, audit.Filter{Action: sallyport.ActionSkillPurge})
	must(t, err)
	return len(entries)
}

func purgeSkill(t *trial, b Backend) {
	ctx := t.Context()
	skill, ids := drafts(t, b, "alpha", 3)
	_, err := b.Publish(ctx, tenant, skill.ID, ids[1], day(2), owner)
	must(t, err)
	deletedSkill, err := b.SetDeleted(ctx, tenant, skill.ID, day(4))
	must(t, err)
	same(t, "archived", deletedSkill.ArchivedAt, pointer(day(4)))
	same(t, "deleted", deletedSkill.DeletedAt, pointer(day(4)))
	listed, err := b.DeletedSkills(ctx, tenant, day(5))
	must(t, err)
	same(t, "waits", listed, []sallyport.SkillID{skill.ID})
	listed, err = b.DeletedSkills(ctx, tenant, day(4))
	must(t, err)
	same(t, "does not wait yet", len(listed), 0)

	rehearsed, err := b.PurgeSkill(ctx, tenant, skill.ID, purge(func(p *registry.SkillPurge) { p.DryRun = true }))
	must(t, err)
	same(t, "a rehearsal removes nothing", []any{rehearsed.DryRun, rehearsed.SkillRemoved, len(rehearsed.Removed), purges(t, b)}, []any{true, true, 3, 0})
	report, err := b.PurgeSkill(ctx, tenant, skill.ID, purge())
	must(t, err)
	same(t, "removed", []any{report.SkillRemoved, len(report.Removed), len(report.Kept), purges(t, b)}, []any{true, 3, 0, 1})
	_, err = b.Skill(ctx, tenant, skill.ID)
	wantCode(t, err, sallyport.CodeSkillNotFound)
	_, err = b.PurgeSkill(ctx, tenant, skill.ID, purge())
	wantCode(t, err, sallyport.CodeSkillNotFound)
	page, err := b.ListSkills(ctx, tenant, registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, Query: "alpha", IncludeArchived: true})
	must(t, err)
	same(t, "found by a search", page.Total, 0)
	sweep(t, b, records.Bounds{At: day(9)})

	// The slug is free, for a skill of its own.
	again := create(t, "alpha")
	again.Skill.ID, again.Revision.ID = "s:alpha:again", "r:alpha:again"
	_, revision := save(t, b, again)
	same(t, "number", revision.Number, 1)
	page, err = b.ListSkills(ctx, tenant, registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, Query: "alpha"})
	must(t, err)
	same(t, "found by a search", page.Total, 1)
}

func purgeSkillKeeps(t *trial, b Backend) {
	ctx := t.Context()
	skill, ids := drafts(t, b, "alpha", 5)
	_, err := b.Publish(ctx, tenant, skill.ID, ids[3], day(2), owner)
	must(t, err)
	revoked := grant("revoked", skill.ID, 1)
	revoked.RevisionID, revoked.RevokedAt, revoked.RevokedBy = ids[1], pointer(day(2)), owner
	must(t, b.AddGrant(ctx, tenant, revoked))
	e := execution("ran", 1)
	e.SkillID, e.RevisionID = skill.ID, ids[2]
	open(t, b, e)
	_, err = b.SetDeleted(ctx, tenant, skill.ID, day(4))
	must(t, err)
	report, err := b.PurgeSkill(ctx, tenant, skill.ID, purge())
	must(t, err)
	same(t, "skill removed", report.SkillRemoved, false)
	kept := map[int][2]int{}
	for _, k := range report.Kept {
		kept[k.Number] = [2]int{k.Grants, k.Executions}
		if k.Reason == "" {
			t.Errorf("revision %d stays without a reason", k.Number)
		}
	}
	same(t, "kept", kept, map[int][2]int{2: {1, 0}, 3: {0, 1}})
	after, err := b.Skill(ctx, tenant, skill.ID)
	must(t, err)
	same(t, "pointers", []sallyport.RevisionID{after.LatestRevisionID, after.PublishedRevisionID}, []sallyport.RevisionID{ids[2], ""})
	for _, id := range []sallyport.RevisionID{ids[1], ids[2]} {
		revision, err := b.RevisionContent(ctx, tenant, skill.ID, id)
		must(t, err)
		same(t, "components", len(revision.Components), 2)
	}
	// Restored, it goes on, and no number comes twice.
	back, err := b.SetArchived(ctx, tenant, skill.ID, nil)
	must(t, err)
	same(t, "deleted", back.DeletedAt == nil, true)
	_, revision := save(t, b, next(t, back, "alpha again", files("again")))
	same(t, "number", revision.Number, 6)
}

func purgeSkillRefuses(t *trial, b Backend) {
	ctx := t.Context()
	skill, _ := drafts(t, b, "alpha", 1)
	for name, p := range map[string]registry.SkillPurge{
		"in use": purge(), "rehearsed": purge(func(p *registry.SkillPurge) { p.DryRun = true }),
	} {
		if _, err := b.PurgeSkill(ctx, tenant, skill.ID, p); sallyport.CodeOf(err) != sallyport.CodeRevisionConflict {
			t.Errorf("%s: got %v, want REVISION_CONFLICT", name, err)
		}
	}
	before := func(at time.Time) registry.SkillPurge {
		return purge(func(p *registry.SkillPurge) { p.DeletedBefore = at })
	}
	archived, err := b.SetArchived(ctx, tenant, skill.ID, pointer(day(1)))
	must(t, err)
	same(t, "archived only", archived.DeletedAt == nil, true)
	_, err = b.PurgeSkill(ctx, tenant, skill.ID, before(day(9)))
	wantCode(t, err, sallyport.CodeRevisionConflict)
	_, err = b.SetDeleted(ctx, tenant, skill.ID, day(5))
	must(t, err)
	_, err = b.SetDeleted(ctx, tenant, skill.ID, day(1))
	must(t, err)
	_, err = b.PurgeSkill(ctx, tenant, skill.ID, before(day(5)))
	wantCode(t, err, sallyport.CodeRevisionConflict)
	_, err = b.PurgeSkill(ctx, other, skill.ID, purge())
	wantCode(t, err, sallyport.CodeSkillNotFound)
	_, err = b.SetDeleted(ctx, other, skill.ID, day(5))
	wantCode(t, err, sallyport.CodeSkillNotFound)
	_, err = b.PurgeSkill(ctx, tenant, skill.ID, before(day(6)))
	must(t, err)
}

func purgeSkillIsOneTransaction(t *trial, b Backend) {
	ctx := t.Context()
	skill, ids := drafts(t, b, "alpha", 2)
	_, err := b.SetDeleted(ctx, tenant, skill.ID, day(4))
	must(t, err)
	_, err = b.PurgeSkill(ctx, tenant, skill.ID, purge(func(p *registry.SkillPurge) {
		p.Entry = func(registry.PurgeReport) (sallyport.Entry, error) { return sallyport.Entry{}, nil }
	}))
	if err == nil {
		t.Fatal("it was purged without an entry")
	}
	for _, id := range ids {
		revision, err := b.RevisionContent(ctx, tenant, skill.ID, id)
		must(t, err)
		same(t, "components", len(revision.Components), 2)
	}
}

// Whoever comes first wins: a grant or a run of a revision that is there keeps it, one of a revision that is gone is refused.
func purgeSkillRace(t *trial, b Backend) {
	ctx := t.Context()
	for i := range 20 {
		slug := numbered("race", i)
		skill, ids := drafts(t, b, slug, 2)
		_, err := b.SetDeleted(ctx, tenant, skill.ID, day(4))
		must(t, err)
		g, e := grant(slug, skill.ID, 1), execution(slug, 1)
		g.RevisionID, e.SkillID, e.RevisionID = ids[0], skill.ID, ids[1]
		var (
			wg                                sync.WaitGroup
			report                            registry.PurgeReport
			granted, began, purged, published error
		)
		wg.Go(func() { granted = b.AddGrant(ctx, tenant, g) })
		wg.Go(func() { began = b.Open(ctx, tenant, e, entry(sallyport.ActionScriptRun, slug)) })
		wg.Go(func() { _, published = b.Publish(ctx, tenant, skill.ID, ids[0], day(5), owner) })
		wg.Go(func() { report, purged = b.PurgeSkill(ctx, tenant, skill.ID, purge()) })
		wg.Wait()
		must(t, purged)
		kept := []sallyport.RevisionID{}
		for _, k := range report.Kept {
			kept = append(kept, k.RevisionID)
		}
		for id, err := range map[sallyport.RevisionID]error{ids[0]: granted, ids[1]: began} {
			switch {
			case err == nil && slices.Contains(kept, id):
			case sallyport.CodeOf(err) == sallyport.CodeRevisionNotFound && !slices.Contains(kept, id):
			default:
				t.Fatalf("%s: %v, kept are %v", id, err, kept)
			}
		}
		if code := sallyport.CodeOf(published); published != nil && code != sallyport.CodeRevisionNotFound && code != sallyport.CodeSkillNotFound {
			t.Fatalf("publish: %v", published)
		}
		if report.SkillRemoved != (granted != nil && began != nil) {
			t.Fatalf("skill removed: %v, grant: %v, run: %v", report.SkillRemoved, granted, began)
		}
		for _, id := range kept {
			revision, err := b.RevisionContent(ctx, tenant, skill.ID, id)
			must(t, err)
			same(t, "components", len(revision.Components), 2)
		}
	}
}
