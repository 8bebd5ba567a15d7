package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	save := func(p sallyport.Principal, name string, team sallyport.TeamID, personal bool) sallyport.Skill {
		return b.save(t, p, registry.SaveRequest{Ref: sallyport.SkillRef{TeamID: team}, Personal: personal, Files: []registry.File{file("SKILL.md", skillMD(name))}}).Skill
	}
	mine := save(alice, "pdf", "", true)
	save(alice, "pdf", "eng", false)
	common := save(alice, "csv", "", false)
	save(bob, "log", "eng", false)
	save(bob, "log", "default", false)
	secret := save(bob, "secret", "", true)
	stranger := principal("eve", "default")
	stranger.TenantID = "other"
	for name, test := range map[string]struct {
		principal sallyport.Principal
		ref       sallyport.SkillRef
		want      sallyport.SkillID
		code      sallyport.Code
		says      string
	}{
		"personal first":            {alice, sallyport.SkillRef{Slug: "pdf"}, mine.ID, "", ""},
		"team when named":           {alice, sallyport.SkillRef{Slug: "pdf", TeamID: "eng"}, "eng", "", ""},
		"team for another":          {bob, sallyport.SkillRef{Slug: "pdf"}, "eng", "", ""},
		"by id":                     {bob, sallyport.SkillRef{SkillID: common.ID}, common.ID, "", ""},
		"id and slug agree":         {bob, sallyport.SkillRef{SkillID: common.ID, Slug: "csv"}, common.ID, "", ""},
		"id and slug disagree":      {bob, sallyport.SkillRef{SkillID: common.ID, Slug: "pdf"}, "", sallyport.CodeInvalidArgument, "another skill"},
		"id and team disagree":      {bob, sallyport.SkillRef{SkillID: common.ID, TeamID: "eng"}, "", sallyport.CodeInvalidArgument, "another skill"},
		"neither":                   {bob, sallyport.SkillRef{}, "", sallyport.CodeInvalidArgument, "slug or skill_id"},
		"team alone":                {bob, sallyport.SkillRef{TeamID: "eng"}, "", sallyport.CodeInvalidArgument, "slug or skill_id"},
		"ambiguous":                 {alice, sallyport.SkillRef{Slug: "log"}, "", sallyport.CodeSkillAmbiguous, "default, eng"},
		"not ambiguous for one":     {carol, sallyport.SkillRef{Slug: "log"}, "default", "", ""},
		"unknown slug":              {alice, sallyport.SkillRef{Slug: "nope"}, "", sallyport.CodeSkillNotFound, "nope"},
		"another's slug":            {alice, sallyport.SkillRef{Slug: "secret"}, "", sallyport.CodeSkillNotFound, ""},
		"slugs are case-sensitive":  {alice, sallyport.SkillRef{Slug: "CSV"}, "", sallyport.CodeSkillNotFound, ""},
		"absent id":                 {alice, sallyport.SkillRef{SkillID: "nope"}, "", sallyport.CodeAccessDenied, ""},
		"another's id":              {alice, sallyport.SkillRef{SkillID: secret.ID}, "", sallyport.CodeAccessDenied, ""},
		"another's id with slug":    {alice, sallyport.SkillRef{SkillID: secret.ID, Slug: "csv"}, "", sallyport.CodeAccessDenied, ""},
		"another tenant's id":       {stranger, sallyport.SkillRef{SkillID: common.ID}, "", sallyport.CodeAccessDenied, ""},
		"another tenant's slug":     {stranger, sallyport.SkillRef{Slug: "csv"}, "", sallyport.CodeSkillNotFound, ""},
		"a team of others":          {carol, sallyport.SkillRef{Slug: "pdf", TeamID: "eng"}, "", sallyport.CodeAccessDenied, ""},
		"the zero principal":        {sallyport.Principal{}, sallyport.SkillRef{Slug: "csv"}, "", sallyport.CodeAccessDenied, ""},
		"a principal without an id": {sallyport.Principal{TenantID: "acme", Teams: []sallyport.TeamID{"default"}}, sallyport.SkillRef{Slug: "csv"}, "", sallyport.CodeAccessDenied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			skill, err := b.Resolve(t.Context(), test.principal, test.ref)
			wantCode(t, err, test.code)
			if err != nil {
				if !strings.Contains(sallyport.Public(err).Message, test.says) {
					t.Errorf("%v does not say %q", err, test.says)
				}
				return
			}
			if skill.ID != test.want && string(skill.TeamID) != string(test.want) {
				t.Errorf("got %+v, want %s", skill, test.want)
			}
		})
	}
	// What is not there and what is not yours answer alike.
	_, absent := b.Resolve(t.Context(), alice, sallyport.SkillRef{SkillID: "nope"})
	_, hidden := b.Resolve(t.Context(), alice, sallyport.SkillRef{SkillID: secret.ID})
	if diff := cmp.Diff(sallyport.Public(absent), sallyport.Public(hidden)); diff != "" {
		t.Errorf("absent and hidden differ (-absent +hidden):\n%s", diff)
	}
}

// F53, F56, F57: a named revision is served while a newer one is latest, whole, with its bytes.
func TestResolveRevision(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf")), file("scripts/a.py", "print(1)"), file("empty", "")}, Publish: true})
	two := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Files: []registry.File{file("scripts/a.py", "print(2)")}})
	other := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("csv"))}})
	skill := two.Skill
	for name, test := range map[string]struct {
		id   sallyport.RevisionID
		want sallyport.RevisionID
		code sallyport.Code
	}{
		"published when none is named": {"", one.Revision.ID, ""},
		"the named one":                {two.Revision.ID, two.Revision.ID, ""},
		"another skill's":              {other.Revision.ID, "", sallyport.CodeRevisionNotFound},
		"unknown":                      {"nope", "", sallyport.CodeRevisionNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			revision, err := b.ResolveRevision(t.Context(), alice, skill, test.id)
			wantCode(t, err, test.code)
			if err != nil {
				return
			}
			if revision.ID != test.want {
				t.Errorf("got %s, want %s", revision.ID, test.want)
			}
			if digest, err := registry.Digest(revision.Components); err != nil || digest != revision.Digest {
				t.Errorf("the bytes have the digest %s (%v), the revision says %s", digest, err, revision.Digest)
			}
			for _, c := range revision.Components {
				if c.Content == nil {
					t.Errorf("%s carries no content", c.Path)
				}
			}
		})
	}
	latest, err := b.ResolveRevision(t.Context(), alice, other.Skill, "")
	if err != nil || latest.ID != other.Revision.ID {
		t.Errorf("without a published one: %v, %v", latest.ID, err)
	}
	_, err = b.ResolveRevision(t.Context(), carol, sallyport.Skill{TenantID: "acme", TeamID: "eng", ID: skill.ID, LatestRevisionID: two.Revision.ID}, "")
	wantCode(t, err, sallyport.CodeAccessDenied)
	_, err = b.ResolveRevision(t.Context(), alice, sallyport.Skill{TenantID: "acme", TeamID: "eng"}, "")
	wantCode(t, err, sallyport.CodeRevisionNotFound)
}

// A byte that changed in the store is not handed out.
func TestResolveRevisionChecksBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	saved := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	b.store.revisions[saved.Skill.ID][0].Components[0].Content[0] ^= 1
	_, err := b.ResolveRevision(t.Context(), alice, saved.Skill, "")
	wantCode(t, err, sallyport.CodeInternal)
}

// F55, F56, F58: publishing moves one pointer over whole revisions, forward and back; nothing else moves.
func TestPublish(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref := sallyport.SkillRef{Slug: "pdf"}
	one := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf")), file("a", "1")}})
	two := b.save(t, alice, registry.SaveRequest{Ref: ref, Files: []registry.File{file("a", "2")}})
	view, err := b.Publish(t.Context(), alice, ref, "")
	if err != nil || view.Published.ID != two.Revision.ID || view.Published.State != sallyport.RevisionPublished {
		t.Fatalf("publish the latest: %+v, %v", view, err)
	}
	view, err = b.Publish(t.Context(), alice, ref, one.Revision.ID)
	if err != nil || view.Published.ID != one.Revision.ID || view.Latest.ID != two.Revision.ID {
		t.Fatalf("roll back: %+v, %v", view, err)
	}
	served, err := b.Component(t.Context(), alice, ref, "", "a")
	if err != nil || string(served.Content) != "1" {
		t.Errorf("served after rollback: %q, %v", served.Content, err)
	}
	if _, err := b.Publish(t.Context(), alice, ref, one.Revision.ID); err != nil { // F52: again is no error
		t.Error(err)
	}
	want := []string{"skill.save pdf", "skill.save pdf", "skill.publish pdf", "skill.publish pdf"}
	if diff := cmp.Diff(want, b.trail.actions()); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
	_, err = b.Publish(t.Context(), alice, ref, "nope")
	wantCode(t, err, sallyport.CodeRevisionNotFound)
	if _, err := b.Archive(t.Context(), alice, ref); err != nil {
		t.Fatal(err)
	}
	_, err = b.Publish(t.Context(), alice, ref, "")
	wantCode(t, err, sallyport.CodeSkillArchived)
	if revisions, err := b.Revisions(t.Context(), alice, ref); err != nil || len(revisions) != 2 || revisions[0].Number != 2 || revisions[0].Components != nil {
		t.Errorf("revisions %+v, %v", revisions, err)
	}
}

func TestArchiveAndRestore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref := sallyport.SkillRef{Slug: "pdf"}
	b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	for range 2 {
		if skill, err := b.Archive(t.Context(), alice, ref); err != nil || !skill.Archived() {
			t.Errorf("archive: %+v, %v", skill, err)
		}
	}
	if list, err := b.List(t.Context(), alice, registry.ListRequest{}); err != nil || len(list.Skills) != 0 {
		t.Errorf("listed although archived: %+v, %v", list, err)
	}
	if list, err := b.List(t.Context(), alice, registry.ListRequest{IncludeArchived: true}); err != nil || len(list.Skills) != 1 {
		t.Errorf("not listed on request: %+v, %v", list, err)
	}
	for range 2 {
		if skill, err := b.Restore(t.Context(), alice, ref); err != nil || skill.Archived() {
			t.Errorf("restore: %+v, %v", skill, err)
		}
	}
	want := []string{"skill.save pdf", "skill.archive pdf", "skill.restore pdf"}
	if diff := cmp.Diff(want, b.trail.actions()); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
}

// F20: every list says how many it left out.
func TestList(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD(name))}})
	}
	b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{TeamID: "eng"}, Files: []registry.File{file("SKILL.md", skillMD("x"))}})
	b.save(t, bob, registry.SaveRequest{Personal: true, Files: []registry.File{file("SKILL.md", skillMD("y"))}})
	var seen []string
	var left []int
	request := registry.ListRequest{Limit: 2}
	for range 3 {
		page, err := b.List(t.Context(), alice, request)
		if err != nil {
			t.Fatal(err)
		}
		for _, skill := range page.Skills {
			seen = append(seen, skill.Slug)
		}
		left = append(left, page.LeftOut)
		request.Cursor = page.NextCursor
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "x"}, seen); diff != "" || request.Cursor != "" {
		t.Errorf("pages (-want +got):\n%s cursor %q", diff, request.Cursor)
	}
	if diff := cmp.Diff([]int{4, 2, 0}, left); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if page, err := b.List(t.Context(), alice, registry.ListRequest{TeamID: "eng"}); err != nil || len(page.Skills) != 1 {
		t.Errorf("one team: %+v, %v", page, err)
	}
	if page, err := b.List(t.Context(), carol, registry.ListRequest{Query: "nope"}); err != nil || page.Skills == nil {
		t.Errorf("an empty list is a list: %+v, %v", page, err)
	}
	writer := alice
	writer.Scopes = []sallyport.Scope{sallyport.ScopeMemoryWrite}
	for name, test := range map[string]struct {
		principal sallyport.Principal
		request   registry.ListRequest
		code      sallyport.Code
	}{
		"no scope":       {writer, registry.ListRequest{}, sallyport.CodeAccessDenied},
		"another's team": {carol, registry.ListRequest{TeamID: "eng"}, sallyport.CodeAccessDenied},
		"limit 201":      {alice, registry.ListRequest{Limit: 201}, sallyport.CodeInvalidArgument},
		"limit -1":       {alice, registry.ListRequest{Limit: -1}, sallyport.CodeInvalidArgument},
		"cursor":         {alice, registry.ListRequest{Cursor: "!"}, sallyport.CodeInvalidArgument},
		"empty cursor":   {alice, registry.ListRequest{Cursor: "e30"}, sallyport.CodeInvalidArgument},
		"long query":     {alice, registry.ListRequest{Query: strings.Repeat("x", 2000)}, sallyport.CodeInvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := b.List(t.Context(), test.principal, test.request)
			wantCode(t, err, test.code)
		})
	}
}

func TestComponent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	saved := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf")), {Path: "assets/a.png", Content: everyByte}}})
	image, _ := saved.Revision.Component("assets/a.png")
	ref := sallyport.SkillRef{Slug: "pdf"}
	for name, test := range map[string]struct {
		name string
		code sallyport.Code
	}{
		"by path": {"assets/a.png", ""},
		"by id":   {string(image.ID), ""},
		"unknown": {"assets/b.png", sallyport.CodeComponentNotFound},
		"empty":   {"", sallyport.CodeInvalidArgument},
		"unsafe":  {"../a.png", sallyport.CodeUnsafePath},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := b.Component(t.Context(), alice, ref, "", test.name)
			wantCode(t, err, test.code)
			if err == nil && (string(c.Content) != string(everyByte) || c.MediaType != "image/png" || c.Kind != sallyport.KindArtifact) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

// Every reading verb needs memory:read, every writing one memory:write.
func TestScopes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref := sallyport.SkillRef{Slug: "pdf"}
	b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	reader, writer := alice, alice
	reader.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead}
	writer.Scopes = []sallyport.Scope{sallyport.ScopeMemoryWrite}
	ctx := t.Context()
	for name, call := range map[string]func(sallyport.Principal) error{
		"read list":      func(p sallyport.Principal) error { _, err := b.List(ctx, p, registry.ListRequest{}); return err },
		"read show":      func(p sallyport.Principal) error { _, err := b.Show(ctx, p, ref); return err },
		"read revisions": func(p sallyport.Principal) error { _, err := b.Revisions(ctx, p, ref); return err },
		"read revision":  func(p sallyport.Principal) error { _, err := b.Revision(ctx, p, ref, ""); return err },
		"read component": func(p sallyport.Principal) error { _, err := b.Component(ctx, p, ref, "", "SKILL.md"); return err },
		"write publish":  func(p sallyport.Principal) error { _, err := b.Publish(ctx, p, ref, ""); return err },
		"write restore":  func(p sallyport.Principal) error { _, err := b.Restore(ctx, p, ref); return err },
		"write import": func(p sallyport.Principal) error {
			_, err := b.Import(ctx, p, tree{}, registry.ImportOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			allowed, denied := reader, writer
			if strings.HasPrefix(name, "write") {
				allowed, denied = writer, reader
			}
			if err := call(allowed); err != nil {
				t.Errorf("with the scope: %v", err)
			}
			wantCode(t, call(denied), sallyport.CodeAccessDenied)
			wantCode(t, call(sallyport.Principal{}), sallyport.CodeAccessDenied)
		})
	}
}
