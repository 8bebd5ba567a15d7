package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func contextOf(tb testing.TB, b bench, req registry.ContextRequest) registry.ContextResult {
	tb.Helper()
	got, err := b.Context(tb.Context(), bob, req)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func places(passages []registry.ContextPassage) []string {
	out := []string{}
	for _, p := range passages {
		out = append(out, p.File.Path+" "+p.Heading)
	}
	return out
}

// What matches comes best first: a heading counts more than the text, and word endings do not matter.
func TestContextRanks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.save(t, alice, registry.SaveRequest{Publish: true, Files: []registry.File{
		file("SKILL.md", "---\nname: profile\ndescription: d\n---\n# Start\nHello.\n\n# Profiling\nProfiles columns.\n\n# Other\nOne column of a profiled file, columns and columns.\n"),
		file("references/types.md", "# Columns\ntypes\n"), file("references/none.md", "nothing here\n"), file("notes.txt", "a column\n"),
		file("scripts/other.py", "print(1)\n"), file("scripts/profile_columns.py", "print(1)\n"), file("assets/column.bin", "\x00column"),
		file("sallyport.yaml", "kinds: {}\n"),
	}})
	got := contextOf(t, b, registry.ContextRequest{Query: "profile"})
	if len(got.Skills) != 1 || got.LeftOut != 0 {
		t.Fatalf("%+v", got)
	}
	skill := got.Skills[0]
	if diff := cmp.Diff([]string{"SKILL.md Profiling", "SKILL.md Other"}, places(skill.Instructions)); diff != "" {
		t.Errorf("instructions (-want +got):\n%s", diff)
	}
	if p := skill.Instructions[0]; p.StartLine != 8 || p.EndLine != 9 || p.Text != "# Profiling\nProfiles columns." {
		t.Errorf("the best passage is %+v", p)
	}
	if len(skill.Scripts) != 2 || skill.Scripts[0].Path != "scripts/profile_columns.py" {
		t.Errorf("scripts %+v", skill.Scripts)
	}
	// The fake store searches slugs; the text is looked into for every word.
	got = contextOf(t, b, registry.ContextRequest{Query: "profile", Paths: "references/%"})
	if len(got.Skills[0].Scripts) != 0 {
		t.Errorf("scripts %+v outside the paths", got.Skills[0].Scripts)
	}
}

func TestContextReadsPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.save(t, alice, registry.SaveRequest{Publish: true, Files: []registry.File{file("SKILL.md", skillMD("a"))}})
	second := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "a"}, Files: []registry.File{file("SKILL.md", skillMD("a")+"more\n")}})
	if got := contextOf(t, b, registry.ContextRequest{Query: "a"}).Skills[0].Revision.ID; got != first.Revision.ID {
		t.Errorf("read %s, want the published %s and not the latest %s", got, first.Revision.ID, second.Revision.ID)
	}
	// Nothing matches, so the first passage stands for the skill.
	if got := contextOf(t, b, registry.ContextRequest{Query: "a"}).Skills[0].Instructions; len(got) != 1 {
		t.Errorf("instructions %+v", got)
	}
}

func TestContextIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := []registry.File{file("SKILL.md", skillMD("big")+strings.Repeat("big word\n", 60_000)), file("references/large.md", strings.Repeat("big\n", 100_000))}
	for i := range 100 {
		files = append(files, file("references/"+strings.Repeat("r", i+1)+".md", "big\n"))
	}
	b.save(t, alice, registry.SaveRequest{Publish: true, Files: files})
	got := contextOf(t, b, registry.ContextRequest{Query: "big"}).Skills[0]
	// Of SKILL.md the end, the large file, and those beyond the first 64.
	if want := 1 + 1 + 37; got.Unread != want {
		t.Errorf("%d unread, want %d", got.Unread, want)
	}
	if got.Instructions[0].File.Content != nil {
		t.Error("a passage carries the content of its file")
	}
}

func TestContextRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, req := range map[string]registry.ContextRequest{
		"no words":        {Query: " ?! "},
		"a long query":    {Query: strings.Repeat("word ", 4000)},
		"too many skills": {Query: "a", Skills: 21},
		"a negative":      {Query: "a", Skills: -1},
	} {
		_, err := b.Context(t.Context(), bob, req)
		if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.Context(t.Context(), sallyport.Principal{ID: "x", TenantID: "acme"}, registry.ContextRequest{Query: "a"}); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("without a scope: %v", err)
	}
	if _, err := b.Context(t.Context(), carol, registry.ContextRequest{Query: "a", TeamID: "eng"}); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("another team: %v", err)
	}
}
