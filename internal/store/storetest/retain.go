package storetest

import (
	"sync"

	"github.com/sallyport-dev/sallyport"
)

func retainTests() []test {
	return []test{
		{"a draft that nothing names goes", deleteDraft},
		{"what is named stays", deleteRefuses},
		{"content that others hold stays", deleteKeepsSharedContent},
		{"publish and delete have one winner", deleteRace},
		{"nobody else's", deleteCrossesNoTenant},
	}
}

// drafts saves a skill with n drafts and returns it with their ids, oldest first.
func drafts(t *trial, b Backend, slug string, n int) (sallyport.Skill, []sallyport.RevisionID) {
	t.Helper()
	skill, first := save(t, b, create(t, slug))
	ids := []sallyport.RevisionID{first.ID}
	for i := 2; i <= n; i++ {
		id := numbered(slug, i)
		var revision sallyport.Revision
		skill, revision = save(t, b, next(t, skill, id, files(id)))
		ids = append(ids, revision.ID)
	}
	return skill, ids
}

func deleteDraft(t *trial, b Backend) {
	ctx := t.Context()
	skill, ids := drafts(t, b, "alpha", 3)
	must(t, b.DeleteRevision(ctx, tenant, skill.ID, ids[1]))
	_, err := b.Revision(ctx, tenant, skill.ID, ids[1])
	wantCode(t, err, sallyport.CodeRevisionNotFound)
	_, err = b.ComponentContent(ctx, tenant, ids[1], "SKILL.md")
	wantCode(t, err, sallyport.CodeComponentNotFound)
	wantCode(t, b.DeleteRevision(ctx, tenant, skill.ID, ids[1]), sallyport.CodeRevisionNotFound)
	_, err = b.Publish(ctx, tenant, skill.ID, ids[1], day(2), owner)
	wantCode(t, err, sallyport.CodeRevisionNotFound)

	// The others are whole, the numbers go on, and the same content can come again.
	for _, id := range []sallyport.RevisionID{ids[0], ids[2]} {
		revision, err := b.RevisionContent(ctx, tenant, skill.ID, id)
		must(t, err)
		same(t, "components", len(revision.Components), 2)
	}
	_, again := save(t, b, next(t, skill, "alpha-002 again", files("alpha-002")))
	same(t, "number", again.Number, 4)
	revision, err := b.RevisionContent(ctx, tenant, skill.ID, again.ID)
	must(t, err)
	same(t, "components", len(revision.Components), 2)
}

func deleteRefuses(t *trial, b Backend) {
	ctx := t.Context()
	skill, ids := drafts(t, b, "alpha", 7)
	_, err := b.Publish(ctx, tenant, skill.ID, ids[0], day(2), owner)
	must(t, err)
	_, err = b.Publish(ctx, tenant, skill.ID, ids[1], day(3), owner)
	must(t, err)
	named := grant("named", skill.ID, 1)
	named.RevisionID = ids[2]
	pinned := grant("pinned", skill.ID, 1)
	revision, err := b.Revision(ctx, tenant, skill.ID, ids[3])
	must(t, err)
	pinned.RevisionID, pinned.Pin, pinned.RevokedAt, pinned.RevokedBy = "", revision.Digest, pointer(day(2)), owner
	for _, g := range []sallyport.Grant{named, pinned} {
		must(t, b.AddGrant(ctx, tenant, g))
	}
	ran := execution("ran", 1)
	ran.SkillID, ran.RevisionID = skill.ID, ids[4]
	must(t, b.Open(ctx, tenant, ran, entry(sallyport.ActionScriptRun, "ran")))
	for name, id := range map[string]sallyport.RevisionID{
		"published once": ids[0], "published": ids[1], "granted by id": ids[2], "granted by digest, revoked": ids[3], "executed": ids[4], "latest": ids[6],
	} {
		err := b.DeleteRevision(ctx, tenant, skill.ID, id)
		if code := sallyport.CodeOf(err); code != sallyport.CodeRevisionConflict {
			t.Errorf("%s: got %v, want REVISION_CONFLICT", name, err)
		}
		if _, err := b.RevisionContent(ctx, tenant, skill.ID, id); err != nil {
			t.Errorf("%s: it is gone: %v", name, err)
		}
	}
	must(t, b.DeleteRevision(ctx, tenant, skill.ID, ids[5]))
	wantCode(t, b.DeleteRevision(ctx, tenant, skill.ID, "none"), sallyport.CodeRevisionNotFound)
	wantCode(t, b.DeleteRevision(ctx, tenant, "none", ids[0]), sallyport.CodeRevisionNotFound)
}

func deleteKeepsSharedContent(t *trial, b Backend) {
	ctx := t.Context()
	shared := component("shared.txt", sallyport.KindDocument, "held by several\n")
	first := create(t, "alpha", component("SKILL.md", sallyport.KindDocument, "one\n"), shared)
	skill, _ := save(t, b, first)
	skill, _ = save(t, b, next(t, skill, "alpha:2", []sallyport.Component{component("SKILL.md", sallyport.KindDocument, "two\n"), shared}))
	_, _, err := b.SaveRevision(ctx, other, create(t, "beta", component("SKILL.md", sallyport.KindDocument, "one\n")))
	must(t, err)
	must(t, b.DeleteRevision(ctx, tenant, skill.ID, first.Revision.ID))
	kept, err := b.ComponentContent(ctx, tenant, skill.LatestRevisionID, "shared.txt")
	must(t, err)
	same(t, "shared within the skill", string(kept.Content), "held by several\n")
	kept, err = b.ComponentContent(ctx, other, "r:beta:1", "SKILL.md")
	must(t, err)
	same(t, "shared with another tenant", string(kept.Content), "one\n")

	// An artifact holds content, too.
	meta, file := artifact("a", "only in an artifact and a draft")
	draft := create(t, "gamma", component("SKILL.md", sallyport.KindDocument, "g\n"), component("a", sallyport.KindArtifact, "only in an artifact and a draft"))
	gamma, _ := save(t, b, draft)
	save(t, b, next(t, gamma, "gamma:2", files("gamma")))
	e := execution("e", 1)
	e.RevisionID = "r:of another skill"
	must(t, b.Open(ctx, tenant, e, entry(sallyport.ActionScriptRun, "e")))
	e.Status, e.Artifacts = sallyport.StatusSuccess, []sallyport.Artifact{meta}
	must(t, b.Close(ctx, tenant, e, []sallyport.ArtifactFile{file}, entry(sallyport.ActionScriptFinished, "e")))
	must(t, b.DeleteRevision(ctx, tenant, gamma.ID, draft.Revision.ID))
	_, content, err := b.ArtifactContent(ctx, tenant, e.ID, "a")
	must(t, err)
	same(t, "artifact", string(content), "only in an artifact and a draft")
}

func deleteRace(t *trial, b Backend) {
	for i := range 20 {
		skill, ids := drafts(t, b, numbered("race", i), 2)
		var wg sync.WaitGroup
		var published, deleted error
		wg.Go(func() { _, published = b.Publish(t.Context(), tenant, skill.ID, ids[0], day(2), owner) })
		wg.Go(func() { deleted = b.DeleteRevision(t.Context(), tenant, skill.ID, ids[0]) })
		wg.Wait()
		after, err := b.Skill(t.Context(), tenant, skill.ID)
		must(t, err)
		switch {
		case published == nil && sallyport.CodeOf(deleted) == sallyport.CodeRevisionConflict && after.PublishedRevisionID == ids[0]:
		case deleted == nil && sallyport.CodeOf(published) == sallyport.CodeRevisionNotFound && after.PublishedRevisionID == "":
		default:
			t.Fatalf("publish: %v, delete: %v, published is %q", published, deleted, after.PublishedRevisionID)
		}
	}
}

func deleteCrossesNoTenant(t *trial, b Backend) {
	skill, ids := drafts(t, b, "alpha", 2)
	wantCode(t, b.DeleteRevision(t.Context(), other, skill.ID, ids[0]), sallyport.CodeRevisionNotFound)
	stranger, theirs := drafts(t, b, "beta", 2)
	wantCode(t, b.DeleteRevision(t.Context(), tenant, skill.ID, theirs[0]), sallyport.CodeRevisionNotFound)
	_, err := b.Revision(t.Context(), tenant, stranger.ID, theirs[0])
	must(t, err)
}
