package registry_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestSaveCreatesAndAdds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.save(t, alice, registry.SaveRequest{Files: []registry.File{
		file("SKILL.md", skillMD("pdf")), {Path: "scripts/a.py", Content: []byte("print(1)"), Mode: 0o755},
	}, Message: "first"})
	if !first.Created || first.Unchanged || first.Skill.Slug != "pdf" || first.Skill.TeamID != sallyport.DefaultTeam || first.Skill.OwnerID != "" {
		t.Fatalf("first save: %+v", first)
	}
	if first.Skill.Name != "pdf" || first.Skill.Description != "Does pdf." || first.Revision.Number != 1 || first.Revision.Author != "alice" {
		t.Errorf("skill %+v revision %+v", first.Skill, first.Revision)
	}
	if got := string(first.Revision.Frontmatter); got != `{"name":"pdf","description":"Does pdf."}` {
		t.Errorf("frontmatter %s", got)
	}
	// F51: the same title again is a new revision of the same skill; omitted files are kept.
	second := b.save(t, bob, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf")+"More.\n")}})
	if second.Created || second.Skill.ID != first.Skill.ID || second.Revision.Number != 2 {
		t.Errorf("second save: %+v", second)
	}
	script, found := second.Revision.Component("scripts/a.py")
	if !found || script.Mode != 0o755 || script.Script == nil || script.Script.Runtime != "python" || script.Script.Input != sallyport.InputStdin {
		t.Errorf("kept script: %+v", script)
	}
	if script.Content != nil {
		t.Error("a result carries content")
	}
	// Equal content makes no new revision.
	third := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Files: []registry.File{file("scripts/a.py", "print(1)")}})
	if !third.Unchanged || third.Revision.ID != second.Revision.ID || b.store.saves != 2 {
		t.Errorf("third save: %+v after %d saves", third, b.store.saves)
	}
	if diff := cmp.Diff([]string{"skill.save pdf", "skill.save pdf"}, b.trail.actions()); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
	if at := b.trail.entries[0].At; at.Nanosecond()%1000 != 0 || at.Location().String() != "UTC" {
		t.Errorf("entry at %v is not in whole microseconds of UTC", at)
	}
}

func TestSavePublishes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	draft := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	if draft.Revision.State != sallyport.RevisionDraft || draft.Skill.PublishedRevisionID != "" {
		t.Errorf("draft: %+v", draft)
	}
	// Unchanged content is published all the same.
	published := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}, Publish: true})
	if !published.Unchanged || published.Skill.PublishedRevisionID != draft.Revision.ID || published.Revision.State != sallyport.RevisionPublished {
		t.Errorf("published: %+v", published)
	}
	next := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf")+"x")}, Publish: true})
	if next.Skill.PublishedRevisionID != next.Revision.ID || next.Revision.State != sallyport.RevisionPublished || next.Revision.PublishedAt == nil {
		t.Errorf("next: %+v", next)
	}
	want := []string{"skill.save pdf", "skill.publish pdf", "skill.save pdf", "skill.publish pdf"}
	if diff := cmp.Diff(want, b.trail.actions()); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
}

func TestSaveRefusals(t *testing.T) {
	t.Parallel()
	reader := alice
	reader.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead}
	md := file("SKILL.md", skillMD("new"))
	for name, test := range map[string]struct {
		principal sallyport.Principal
		request   registry.SaveRequest
		code      sallyport.Code
		says      string
	}{
		"no scope":            {reader, registry.SaveRequest{Files: []registry.File{md}}, sallyport.CodeAccessDenied, "memory:write"},
		"no principal":        {sallyport.Principal{}, registry.SaveRequest{Files: []registry.File{md}}, sallyport.CodeAccessDenied, ""},
		"names no skill":      {alice, registry.SaveRequest{Files: []registry.File{file("a.md", "x")}}, sallyport.CodeInvalidArgument, "SKILL.md"},
		"no SKILL.md":         {alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "new"}, Files: []registry.File{file("a.md", "x")}}, sallyport.CodeSkillInvalid, "SKILL.md"},
		"unusable SKILL.md":   {alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", "---\nname: a\n---\n")}}, sallyport.CodeSkillInvalid, "description"},
		"F33 path as name":    {alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("../../evil"))}}, sallyport.CodeSkillInvalid, "path"},
		"F33 path as slug":    {alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "../../evil"}, Files: []registry.File{md}}, sallyport.CodeInvalidArgument, "slug"},
		"upper-case slug":     {alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "New"}, Files: []registry.File{md}}, sallyport.CodeInvalidArgument, `"new"`},
		"F32 parent":          {alice, registry.SaveRequest{Files: []registry.File{md, file("../x", "x")}}, sallyport.CodeUnsafePath, ".."},
		"F32 absolute":        {alice, registry.SaveRequest{Files: []registry.File{md, file("/x", "x")}}, sallyport.CodeUnsafePath, "absolute"},
		"F32 drive":           {alice, registry.SaveRequest{Files: []registry.File{md, file(`C:\x`, "x")}}, sallyport.CodeUnsafePath, ""},
		"F32 backslashes":     {alice, registry.SaveRequest{Files: []registry.File{md, file(`..\x`, "x")}}, sallyport.CodeUnsafePath, "backslash"},
		"F32 in remove":       {alice, registry.SaveRequest{Files: []registry.File{md}, Remove: []string{"../x"}}, sallyport.CodeUnsafePath, ".."},
		"control character":   {alice, registry.SaveRequest{Files: []registry.File{md, file("a\x00b", "x")}}, sallyport.CodeUnsafePath, "control"},
		"case collision":      {alice, registry.SaveRequest{Files: []registry.File{md, file("a.md", "x"), file("A.md", "y")}}, sallyport.CodeUnsafePath, "case"},
		"accent collision":    {alice, registry.SaveRequest{Files: []registry.File{md, file("é.md", "x"), file("e\u0301.md", "y")}}, sallyport.CodeUnsafePath, "accents"},
		"file and directory":  {alice, registry.SaveRequest{Files: []registry.File{md, file("a", "x"), file("A/b", "y")}}, sallyport.CodeUnsafePath, "directory"},
		"a path twice":        {alice, registry.SaveRequest{Files: []registry.File{md, file("a", "x"), file("a", "y")}}, sallyport.CodeInvalidArgument, "twice"},
		"added and removed":   {alice, registry.SaveRequest{Files: []registry.File{md, file("a", "x")}, Remove: []string{"a"}}, sallyport.CodeInvalidArgument, "twice"},
		"removes nothing":     {alice, registry.SaveRequest{Files: []registry.File{md}, Remove: []string{"a"}}, sallyport.CodeComponentNotFound, `"a"`},
		"bad kind":            {alice, registry.SaveRequest{Files: []registry.File{md, {Path: "a", Kind: "tool"}}}, sallyport.CodeInvalidArgument, "kind"},
		"settings, no script": {alice, registry.SaveRequest{Files: []registry.File{md, {Path: "a", Kind: "document", Script: &sallyport.ScriptSettings{}}}}, sallyport.CodeInvalidArgument, "script"},
		"bad media type":      {alice, registry.SaveRequest{Files: []registry.File{md, {Path: "a", MediaType: "x\n"}}}, sallyport.CodeInvalidArgument, "media type"},
		"long message":        {alice, registry.SaveRequest{Files: []registry.File{md}, Message: strings.Repeat("x", 5000)}, sallyport.CodeInvalidArgument, "message"},
		"message not UTF-8":   {alice, registry.SaveRequest{Files: []registry.File{md}, Message: "\xff"}, sallyport.CodeInvalidArgument, "message"},
		"another team":        {carol, registry.SaveRequest{Ref: sallyport.SkillRef{TeamID: "eng"}, Files: []registry.File{md}}, sallyport.CodeAccessDenied, "team"},
		"team and personal":   {alice, registry.SaveRequest{Ref: sallyport.SkillRef{TeamID: "eng"}, Personal: true, Files: []registry.File{md}}, sallyport.CodeInvalidArgument, "personal"},
		"expects a ghost":     {alice, registry.SaveRequest{Files: []registry.File{md}, ExpectedRevisionID: "r1"}, sallyport.CodeSkillNotFound, ""},
		"unknown id":          {alice, registry.SaveRequest{Ref: sallyport.SkillRef{SkillID: "s1"}, Files: []registry.File{md}}, sallyport.CodeAccessDenied, ""},
		"id and create only":  {alice, registry.SaveRequest{Ref: sallyport.SkillRef{SkillID: "s1"}, CreateOnly: true, Files: []registry.File{md}}, sallyport.CodeInvalidArgument, ""},
		"bad settings":        {alice, registry.SaveRequest{Files: []registry.File{md, file("sallyport.yaml", "script: {}")}}, sallyport.CodeSkillInvalid, "sallyport.yaml line 1"},
		"bad schema":          {alice, registry.SaveRequest{Files: []registry.File{md, {Path: "scripts/a.py", Script: &sallyport.ScriptSettings{InputSchema: []byte(`{"type":"nope"}`)}}}}, sallyport.CodeSkillInvalid, "schema"},
		"schema is no JSON":   {alice, registry.SaveRequest{Files: []registry.File{md, {Path: "scripts/a.py", Script: &sallyport.ScriptSettings{InputSchema: []byte(`{"a":1,"a":2}`)}}}}, sallyport.CodeInvalidArgument, "input_schema"},
		"too many files":      {alice, registry.SaveRequest{Files: append([]registry.File{md}, manyFiles(512)...)}, sallyport.CodeSkillTooLarge, "513"},
		"too many bytes":      {alice, registry.SaveRequest{Files: []registry.File{md, file("a", strings.Repeat("x", 16<<20))}}, sallyport.CodeSkillTooLarge, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			_, err := b.Save(t.Context(), test.principal, test.request)
			wantCode(t, err, test.code)
			if public := sallyport.Public(err); public == nil || !strings.Contains(public.Message, test.says) {
				t.Errorf("the message of %v does not say %q", err, test.says)
			}
			if b.store.saves != 0 || len(b.trail.entries) != 0 {
				t.Errorf("%d saves and %d entries after a refusal", b.store.saves, len(b.trail.entries))
			}
		})
	}
}

func manyFiles(n int) []registry.File {
	var files []registry.File
	for i := range n {
		files = append(files, file("f/"+strings.Repeat("x", i/26)+string(rune('a'+i%26)), "x"))
	}
	return files
}

// A problem of the whole skill names no file, so the sentence begins with the problem.
func TestSaveTooManyFilesSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := append([]registry.File{file("SKILL.md", skillMD("many"))}, manyFiles(512)...)
	_, err := b.Save(t.Context(), alice, registry.SaveRequest{Files: files})
	if message := sallyport.Public(err).Message; !strings.HasPrefix(message, "the skill has 513 files") {
		t.Errorf("got %q", message)
	}
}

func TestSaveProblemsInDetails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.Save(t.Context(), alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", "---\nname: Bad Name\n---\n")}})
	public := sallyport.Public(err)
	problems, ok := public.Details["problems"].([]registry.Problem)
	if !ok || len(problems) != 2 {
		t.Fatalf("details %v", public.Details)
	}
	if diff := cmp.Diff([]string{"warning NAME_CHARACTERS", "error DESCRIPTION_MISSING"}, codes(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestSaveCompareAndSwap(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	second := b.save(t, alice, registry.SaveRequest{
		Ref: sallyport.SkillRef{SkillID: first.Skill.ID}, ExpectedRevisionID: first.Revision.ID, Files: []registry.File{file("a", "1")},
	})
	_, err := b.Save(t.Context(), alice, registry.SaveRequest{
		Ref: sallyport.SkillRef{Slug: "pdf"}, ExpectedRevisionID: first.Revision.ID, Files: []registry.File{file("a", "2")},
	})
	wantCode(t, err, sallyport.CodeRevisionConflict)
	if got := sallyport.Public(err).Details["latest_revision_id"]; got != second.Revision.ID {
		t.Errorf("the conflict names %v, want %v", got, second.Revision.ID)
	}
	_, err = b.Save(t.Context(), alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, CreateOnly: true, Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	wantCode(t, err, sallyport.CodeSlugTaken)
}

// Of many writers racing one slug, and then one revision, one wins each time; the rest get a conflict and leave nothing.
func TestSaveRaces(t *testing.T) {
	t.Parallel()
	const writers = 8
	b := newBench(t)
	var gate sync.WaitGroup
	race := func(request func(i int) registry.SaveRequest) (won int, lost []error) {
		gate.Add(writers)
		b.store.beforeCAS = func() { gate.Done(); gate.Wait() } // everybody has read before anybody writes
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				_, err := b.Save(t.Context(), alice, request(i))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else {
					lost = append(lost, err)
				}
			})
		}
		all.Wait()
		return won, lost
	}
	content := func(i int) string { return skillMD("pdf") + strings.Repeat("x", i) }
	won, lost := race(func(i int) registry.SaveRequest {
		return registry.SaveRequest{Files: []registry.File{file("SKILL.md", content(i))}}
	})
	if won != 1 || b.store.saves != 1 {
		t.Errorf("%d writers won the slug, %d saves", won, b.store.saves)
	}
	for _, err := range lost {
		wantCode(t, err, sallyport.CodeSlugTaken)
	}
	won, lost = race(func(i int) registry.SaveRequest {
		return registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Files: []registry.File{file("a", strings.Repeat("y", i+1))}}
	})
	if won != 1 || b.store.saves != 2 {
		t.Errorf("%d writers won the revision, %d saves", won, b.store.saves)
	}
	for _, err := range lost {
		wantCode(t, err, sallyport.CodeRevisionConflict)
	}
}

// F54: a save that fails leaves the published revision served and nothing half-written.
func TestSaveFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}, Publish: true})
	b.store.failSave = &sallyport.Error{Op: "memory", Code: sallyport.CodeStoreUnavailable, Err: errors.New("disk")}
	_, err := b.Save(t.Context(), alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Files: []registry.File{file("a", "1")}, Publish: true})
	wantCode(t, err, sallyport.CodeStoreUnavailable)
	view, err := b.Show(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"})
	if err != nil || view.Published.ID != first.Revision.ID || view.Latest.ID != first.Revision.ID {
		t.Errorf("after the failure: %+v, %v", view, err)
	}
}

// The trail is best effort here: the save is already stored. It is written although the caller hung up.
func TestTrailIsBestEffort(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.trail.fail = true
	b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	b.trail.fail = false
	ctx, hangUp := context.WithCancel(t.Context())
	b.store.beforeCAS = hangUp
	if _, err := b.Save(ctx, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("csv"))}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"skill.save csv"}, b.trail.actions()); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
}

func TestSaveRemovesAndReplaces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf")), file("a", "1"), file("b", "2")}})
	removed := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Remove: []string{"a"}})
	if diff := cmp.Diff([]string{"SKILL.md", "b"}, paths(removed.Revision)); diff != "" {
		t.Errorf("after remove (-want +got):\n%s", diff)
	}
	replaced := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, ReplaceAll: true, Files: []registry.File{file("skill.md", skillMD("pdf")), file("c", "")}})
	if diff := cmp.Diff([]string{"SKILL.md", "c"}, paths(replaced.Revision)); diff != "" {
		t.Errorf("after replace, skill.md stored as SKILL.md (-want +got):\n%s", diff)
	}
	_, err := b.Save(t.Context(), alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Remove: []string{"SKILL.md"}})
	wantCode(t, err, sallyport.CodeSkillInvalid)
}

func paths(revision sallyport.Revision) []string {
	out := []string{}
	for _, c := range revision.Components {
		out = append(out, c.Path)
	}
	return out
}

// F68: one slug in two teams and personal are three skills.
func TestSavePlaces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := []registry.File{file("SKILL.md", skillMD("pdf"))}
	inDefault := b.save(t, alice, registry.SaveRequest{Files: files})
	inTeam := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{TeamID: "eng"}, Files: files})
	personal := b.save(t, alice, registry.SaveRequest{Personal: true, Files: files})
	bobs := b.save(t, bob, registry.SaveRequest{Personal: true, Files: files})
	ids := map[sallyport.SkillID]bool{inDefault.Skill.ID: true, inTeam.Skill.ID: true, personal.Skill.ID: true, bobs.Skill.ID: true}
	if len(ids) != 4 || personal.Skill.TeamID != "" || personal.Skill.OwnerID != "alice" || inTeam.Skill.TeamID != "eng" {
		t.Errorf("skills %v", ids)
	}
	_, err := b.Save(t.Context(), alice, registry.SaveRequest{Ref: sallyport.SkillRef{SkillID: inTeam.Skill.ID}, Personal: true, Files: files})
	wantCode(t, err, sallyport.CodeInvalidArgument)
}

// A name that is no slug is kept as it is, with a slug derived from it; only what other readers stumble over is a problem.
func TestSaveProblems(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		name, slug, wantSlug string
		codes                []string
	}{
		"plain":        {"pdf", "", "pdf", []string{}},
		"blanks":       {"PDF Tools", "", "pdf-tools", []string{"warning NAME_CHARACTERS", "note NOT_LISTED"}},
		"Chinese":      {"技能", "", registry.Slug("技能"), []string{"warning NAME_NOT_ASCII", "note NOT_LISTED"}},
		"another slug": {"pdf", "other", "other", []string{"warning NAME_NOT_DIRECTORY"}},
		"no name":      {"", "pdf", "pdf", []string{"warning NAME_MISSING", "note NOT_LISTED"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			saved := newBench(t).save(t, alice, registry.SaveRequest{
				Ref: sallyport.SkillRef{Slug: test.slug}, Files: []registry.File{file("SKILL.md", string(registry.ComposeSkillMD(test.name, "d", "")))},
			})
			if saved.Skill.Slug != test.wantSlug {
				t.Errorf("slug %q, want %q", saved.Skill.Slug, test.wantSlug)
			}
			if diff := cmp.Diff(test.codes, codes(saved.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSaveArchived(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	if _, err := b.Archive(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Save(t.Context(), alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Files: []registry.File{file("a", "1")}})
	wantCode(t, err, sallyport.CodeSkillArchived)
}
