package storetest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/registry"
)

func saveTests() []test {
	return []test{
		{"an idempotency key", savedOnce},
		{"revision round trip", revisionRoundTrip},
		{"content round trip", contentRoundTrip},
		{"revisions are numbered", revisionsAreNumbered},
		{"compare and swap", compareAndSwap},
		{"one winner for a slug", oneWinnerForASlug},
		{"one winner for a revision", oneWinnerForARevision},
		{"a failed save leaves nothing", failedSaveLeavesNothing},
		{"what does not fit is refused", saveRefuses},
		{"equal content is stored for several", sharedContent},
		{"paths are byte exact", pathsAreByteExact},
	}
}

// everySetting has each field of a component set.
func everySetting() []sallyport.Component {
	full := component("scripts/full.py", sallyport.KindScript, "print(1)\n")
	full.Mode = 0o4755
	full.Script = &sallyport.ScriptSettings{
		Confirm: true,
		Runtime: "python", Input: sallyport.InputFlags, InputSchema: json.RawMessage("{\n \"const\": 12345678901234567890, \"pattern\": \"<a&b>\" }"),
		Argv:    json.RawMessage(`{ "type": "array" }`),
		Limits:  sallyport.Limits{Timeout: 1500 * time.Millisecond, MemoryBytes: 1, Processes: 2, CPUMillis: 3, ScratchBytes: 4, OutputBytes: 5, ArtifactBytes: 6, ArtifactFiles: 7, CPUTime: 8 * time.Second},
		Secrets: []string{"A", "B"},
	}
	bare := component("scripts/bare", sallyport.KindScript, "")
	bare.Script = &sallyport.ScriptSettings{Input: sallyport.InputNone}
	return []sallyport.Component{
		component("SKILL.md", sallyport.KindDocument, "# all\n"), component("assets/ä ö.bin", sallyport.KindArtifact, "\x00\xff\xfe\r\n"), bare, full,
	}
}

func withoutContent(components []sallyport.Component) []sallyport.Component {
	var bare []sallyport.Component
	for _, c := range components {
		c.Content = nil
		bare = append(bare, c)
	}
	return bare
}

func revisionRoundTrip(t *trial, b Backend) {
	s := create(t, "alpha", everySetting()...)
	s.Publish = true
	s.Revision.PublishedAt = pointer(day(9))
	// Components come in any order and are listed by path bytes.
	slices.Reverse(s.Revision.Components)
	_, saved := save(t, b, s)
	want := s.Revision
	want.TenantID, want.SkillID, want.Number, want.State = tenant, s.Skill.ID, 1, sallyport.RevisionPublished
	want.Components = withoutContent(everySetting())
	same(t, "saved", saved, want)
	read, err := b.Revision(t.Context(), tenant, s.Skill.ID, s.Revision.ID)
	must(t, err)
	same(t, "read", read, want)

	listed, err := b.Revisions(t.Context(), tenant, s.Skill.ID)
	must(t, err)
	want.Components = nil
	same(t, "listed", listed, []sallyport.Revision{want})

	absent := create(t, "beta")
	absent.Revision.Frontmatter, absent.Revision.Message = nil, ""
	save(t, b, absent)
	read, err = b.Revision(t.Context(), tenant, absent.Skill.ID, absent.Revision.ID)
	must(t, err)
	same(t, "absent frontmatter", read.Frontmatter, json.RawMessage(nil))
	same(t, "not published", []any{read.State, read.PublishedAt}, []any{sallyport.RevisionDraft, (*time.Time)(nil)})
}

func contentRoundTrip(t *trial, b Backend) {
	large := make([]byte, 3<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(large)
	components := append(everySetting(), component("zz/large.bin", sallyport.KindArtifact, string(large)))
	s := create(t, "alpha", components...)
	save(t, b, s)
	got, err := b.RevisionContent(t.Context(), tenant, s.Skill.ID, s.Revision.ID)
	must(t, err)
	same(t, "number of components", len(got.Components), len(components))
	for i, c := range got.Components {
		if c.Content == nil || !bytes.Equal(c.Content, components[i].Content) {
			t.Errorf("%s: the content differs", c.Path)
		}
		one, err := b.ComponentContent(t.Context(), tenant, s.Revision.ID, c.Path)
		must(t, err)
		if one.Content == nil || !bytes.Equal(one.Content, c.Content) {
			t.Errorf("%s: the content read alone differs", c.Path)
		}
		one.Content, c.Content = nil, nil
		same(t, "component", one, c)
	}
	digest, err := canonical.RevisionDigest(got.Components)
	must(t, err)
	same(t, "digest of what was read", digest, s.Revision.Digest)

	for _, path := range []string{"", "none", "scripts/full.py/", "scripts/FULL.py"} {
		_, err = b.ComponentContent(t.Context(), tenant, s.Revision.ID, path)
		wantCode(t, err, sallyport.CodeComponentNotFound)
	}
	_, err = b.ComponentContent(t.Context(), tenant, "none", "SKILL.md")
	wantCode(t, err, sallyport.CodeComponentNotFound)
}

func revisionsAreNumbered(t *trial, b Backend) {
	skill, _ := save(t, b, create(t, "alpha"))
	neighbour, _ := save(t, b, create(t, "beta"))
	for n := 2; n <= 4; n++ {
		var saved sallyport.Revision
		skill, saved = save(t, b, next(t, skill, numbered("alpha", n), files(numbered("x", n))))
		same(t, "number", saved.Number, n)
		same(t, "latest", skill.LatestRevisionID, saved.ID)
	}
	_, saved := save(t, b, next(t, neighbour, "beta:2", files("y")))
	same(t, "the neighbour counts alone", saved.Number, 2)
	_, err := b.Revision(t.Context(), tenant, neighbour.ID, skill.LatestRevisionID)
	wantCode(t, err, sallyport.CodeRevisionNotFound)
	_, err = b.RevisionContent(t.Context(), tenant, neighbour.ID, skill.LatestRevisionID)
	wantCode(t, err, sallyport.CodeRevisionNotFound)
}

func compareAndSwap(t *trial, b Backend) {
	ctx := t.Context()
	skill, first := save(t, b, create(t, "alpha"))
	changed := next(t, skill, "alpha:2", files("two"))
	changed.Skill.Name, changed.Skill.Description = "New name", "new words"
	// Where a skill lives cannot be changed by a save.
	changed.Skill.Slug, changed.Skill.TeamID, changed.Skill.OwnerID = "moved", "", "mallory"
	updated, second := save(t, b, changed)
	want := skill
	want.Name, want.Description, want.UpdatedAt, want.LatestRevisionID = "New name", "new words", day(1), second.ID
	same(t, "updated", updated, want)

	for name, expected := range map[string]sallyport.RevisionID{"stale": first.ID, "empty": "", "unknown": "none"} {
		stale := next(t, skill, "alpha:3", files("three"))
		stale.ExpectedLatest = expected
		_, _, err := b.SaveRevision(ctx, tenant, stale)
		if sallyport.CodeOf(err) != sallyport.CodeRevisionConflict {
			t.Errorf("%s: got %v, want REVISION_CONFLICT", name, err)
		}
	}
	after, err := b.Skill(ctx, tenant, skill.ID)
	must(t, err)
	same(t, "after the refusals", after, want)

	publish := next(t, updated, "alpha:3", files("three"))
	publish.Publish = true
	published, third := save(t, b, publish)
	same(t, "published", []any{published.PublishedRevisionID, third.State, third.PublishedAt}, []any{third.ID, sallyport.RevisionPublished, &third.CreatedAt})
	draft, _ := save(t, b, next(t, published, "alpha:4", files("four")))
	same(t, "a draft leaves the pointer", draft.PublishedRevisionID, third.ID)
}

// race runs n saves at once and returns how many won; all others must have the code.
func race(t *trial, b Backend, n int, code sallyport.Code, make func(i int) registry.RevisionSave) int {
	t.Helper()
	saves := []registry.RevisionSave{}
	for i := range n {
		saves = append(saves, make(i))
	}
	var (
		wg   sync.WaitGroup
		errs = [100]error{}
		gate = sync.WaitGroup{}
	)
	gate.Add(1)
	for i, s := range saves {
		wg.Go(func() {
			gate.Wait()
			_, _, errs[i] = b.SaveRevision(t.Context(), tenant, s)
		})
	}
	gate.Done()
	wg.Wait()
	won := 0
	for _, err := range errs[:n] {
		if err == nil {
			won++
			continue
		}
		wantCode(t, err, code)
	}
	return won
}

func oneWinnerForASlug(t *trial, b Backend) {
	won := race(t, b, 16, sallyport.CodeSlugTaken, func(i int) registry.RevisionSave {
		s := create(t, "alpha", files(numbered("x", i))...)
		s.Skill.ID, s.Revision.ID = sallyport.SkillID(numbered("s", i)), sallyport.RevisionID(numbered("r", i))
		return s
	})
	same(t, "winners", won, 1)
	found, err := b.SkillsBySlug(t.Context(), tenant, "alpha")
	must(t, err)
	same(t, "skills", len(found), 1)
}

func oneWinnerForARevision(t *trial, b Backend) {
	skill, _ := save(t, b, create(t, "alpha"))
	won := race(t, b, 16, sallyport.CodeRevisionConflict, func(i int) registry.RevisionSave {
		return next(t, skill, numbered("r", i), files(numbered("x", i)))
	})
	same(t, "winners", won, 1)
	revisions, err := b.Revisions(t.Context(), tenant, skill.ID)
	must(t, err)
	same(t, "revisions", len(revisions), 2)
	after, err := b.Skill(t.Context(), tenant, skill.ID)
	must(t, err)
	same(t, "latest", after.LatestRevisionID, revisions[0].ID)
}

func failedSaveLeavesNothing(t *trial, b Backend) {
	ctx := t.Context()
	skill, first := save(t, b, create(t, "alpha"))
	// The second of two components has an id that the first one has: the save breaks in the middle.
	components := files("broken zebra")
	components[1].ID = components[0].ID
	broken := next(t, skill, "alpha:2", components)
	broken.Skill.Name, broken.Publish, broken.Instructions = "Broken", true, "zebra"
	_, _, err := b.SaveRevision(ctx, tenant, broken)
	wantCode(t, err, sallyport.CodeInternal)
	after, err := b.Skill(ctx, tenant, skill.ID)
	must(t, err)
	same(t, "skill", after, skill)
	_, err = b.Revision(ctx, tenant, skill.ID, broken.Revision.ID)
	wantCode(t, err, sallyport.CodeRevisionNotFound)
	page, err := b.ListSkills(ctx, tenant, registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, Query: "zebra"})
	must(t, err)
	same(t, "search", page.Total, 0)

	fresh := create(t, "beta", components...)
	_, _, err = b.SaveRevision(ctx, tenant, fresh)
	wantCode(t, err, sallyport.CodeInternal)
	_, err = b.Skill(ctx, tenant, fresh.Skill.ID)
	wantCode(t, err, sallyport.CodeSkillNotFound)
	// The slug is free, and the next number is the next number.
	save(t, b, create(t, "beta"))
	_, second := save(t, b, next(t, skill, "alpha:2", files("mended")))
	same(t, "number", second.Number, first.Number+1)
}

func saveRefuses(t *trial, b Backend) {
	for name, spoil := range map[string]func(s *registry.RevisionSave){
		"content changed":         func(s *registry.RevisionSave) { s.Revision.Components[0].Content[0] ^= 1 },
		"content missing":         func(s *registry.RevisionSave) { s.Revision.Components[0].Content = nil },
		"digest of another":       func(s *registry.RevisionSave) { s.Revision.Digest = sallyport.DigestOf(nil) },
		"no digest":               func(s *registry.RevisionSave) { s.Revision.Digest = "" },
		"no revision id":          func(s *registry.RevisionSave) { s.Revision.ID = "" },
		"no skill id":             func(s *registry.RevisionSave) { s.Skill.ID = "" },
		"no slug":                 func(s *registry.RevisionSave) { s.Skill.Slug = "" },
		"nobody's":                func(s *registry.RevisionSave) { s.Skill.TeamID = "" },
		"a team's and an owner's": func(s *registry.RevisionSave) { s.Skill.OwnerID = owner },
	} {
		s := create(t, "alpha")
		spoil(&s)
		_, _, err := b.SaveRevision(t.Context(), tenant, s)
		if sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("%s: got %v, want INTERNAL", name, err)
		}
	}
	_, _, err := b.SaveRevision(t.Context(), "", create(t, "alpha"))
	wantCode(t, err, sallyport.CodeInternal)
	save(t, b, create(t, "alpha"))
	reused := create(t, "beta")
	reused.Skill.ID = "s:alpha"
	_, _, err = b.SaveRevision(t.Context(), tenant, reused)
	wantCode(t, err, sallyport.CodeInternal)
	reused = create(t, "beta")
	reused.Revision.ID = "r:alpha:1"
	_, _, err = b.SaveRevision(t.Context(), tenant, reused)
	wantCode(t, err, sallyport.CodeInternal)
}

func sharedContent(t *trial, b Backend) {
	one, two := create(t, "one", files("same")...), create(t, "two", files("same")...)
	save(t, b, one)
	save(t, b, two)
	for _, s := range []registry.RevisionSave{one, two} {
		got, err := b.RevisionContent(t.Context(), tenant, s.Skill.ID, s.Revision.ID)
		must(t, err)
		same(t, "digest", got.Digest, s.Revision.Digest)
		same(t, "content", got.Components[0].Content, s.Revision.Components[0].Content)
	}
}

func pathsAreByteExact(t *trial, b Backend) {
	s := create(t, "alpha", component("a.txt", sallyport.KindDocument, "1"), component("A.txt", sallyport.KindDocument, "2"),
		component("a.txt ", sallyport.KindDocument, "3"), component("Z", sallyport.KindDocument, "4"), component("é", sallyport.KindDocument, "5"))
	_, saved := save(t, b, s)
	var paths []string
	for _, c := range saved.Components {
		paths = append(paths, c.Path)
	}
	same(t, "byte order", paths, []string{"A.txt", "Z", "a.txt", "a.txt ", "é"})
	for _, c := range s.Revision.Components {
		got, err := b.ComponentContent(t.Context(), tenant, s.Revision.ID, c.Path)
		must(t, err)
		same(t, c.Path, got.Content, c.Content)
	}
}
