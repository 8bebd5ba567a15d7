package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// A SKILL.md that one strict host refuses costs that host the whole list, so it is left out, and the problem names the mend.
func TestListingFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header string
		want   string // in the one fault; empty means that it is listed
	}{
		"plain":                      {"name: a\ndescription: d", ""},
		"unknown fields":             {"name: a\ndescription: d\nversion: 1\nx: [1, {y: null}]", ""},
		"1024 two-byte letters":      {"name: a\ndescription: " + strings.Repeat("é", 1024), ""},
		"1025 letters":               {"name: a\ndescription: " + strings.Repeat("e", 1025), "1 to 1024 characters"},
		"description is a number":    {"name: a\ndescription: 1", "put it in quotes"},
		"metadata number":            {"name: a\ndescription: d\nmetadata: {version: 1.0}", "metadata.version is not text; put its value in quotes"},
		"metadata text":              {"name: a\ndescription: d\nmetadata: {version: \"1.0\"}", ""},
		"metadata nested":            {"name: a\ndescription: d\nmetadata: {a: {b: c}}", "metadata.a is not text"},
		"metadata list":              {"name: a\ndescription: d\nmetadata: [a]", "metadata is not a mapping"},
		"metadata null":              {"name: a\ndescription: d\nmetadata:", "metadata is not a mapping"},
		"compatibility empty":        {"name: a\ndescription: d\ncompatibility: \"\"", "compatibility"},
		"compatibility 501":          {"name: a\ndescription: d\ncompatibility: " + strings.Repeat("x", 501), "compatibility"},
		"name upper case":            {"name: Pdf Tools\ndescription: d", "write name: pdf-tools"},
		"name double hyphen":         {"name: a--b\ndescription: d", "single hyphens"},
		"name of 65":                 {"name: " + strings.Repeat("a", 65) + "\ndescription: d", "1 to 64"},
		"name of 64":                 {"name: " + strings.Repeat("a", 64) + "\ndescription: d", ""},
		"name is a number":           {"name: 7\ndescription: d", "name is not"},
		"name with blanks around":    {"name: \" a \"\ndescription: d", "name is not"},
		"header that was repaired":   {"name: a\ndescription: use: it", "not YAML as it stands"},
		"quoted over lines":          {"name: a\ndescription: \"one\n  two\"", "continues on the next line"},
		"single-quoted over lines":   {"name: a\ndescription: 'one\n  two'", "continues on the next line"},
		"quotes on one line":         {"name: a\ndescription: \"one \\\" ' # two\" # it''s\nx: 'it''s \"'", ""},
		"plain over lines":           {"name: a\ndescription: one\n  two", ""},
		"folded":                     {"name: a\ndescription: >-\n  one\n  two 3", ""},
		"folded with a number":       {"name: a\ndescription: >2\n  one", "indentation number"},
		"a block that keeps its end": {"name: a\ndescription: |+\n  one\n\n", "keeps the lines at its end"},
		"folded, and keeps its end":  {"name: a\nmetadata:\n  x: d\ndescription: >+ # c\n  one", "keeps the lines at its end"},
		"a block that keeps its end, with a field after": {"name: a\ndescription: |+\n  one\n\nlicense: MIT", ""},
		"a block with a plus in it":                      {"name: a\ndescription: |\n  one + two\n", ""},
		"an anchor":                                      {"name: a\ndescription: &d d\nx: *d", "anchors"},
		"a tag":                                          {"name: a\ndescription: !!str d", "tags"},
		"brackets over lines":                            {"name: a\ndescription: d\nallowed-tools: [a,\n  b]", "one line"},
		"brackets on one line":                           {"name: a\ndescription: d\nx: [a, \"]\", {b: 'it''s}'}, don't] # y", ""},
		"a key without a value":                          {"name: a\ndescription: d\nx: {a}", "without a value"},
		"an empty text as a value":                       {"name: a\ndescription: d\nx: {a: \"\"}", ""},
		"CRLF":                                           {"name: a\r\ndescription: d\r", ""},
		"carriage returns alone":                         {"name: a\rdescription: d", "save the file with LF"},
		"infinity":                                       {"name: a\ndescription: d\nx: -.inf", "number"},
		"a number as a key":                              {"name: a\ndescription: d\n2024: x", "key"},
		"a quoted number as a key":                       {"name: a\ndescription: d\n\"2024\": x", ""},
		"a question as a key":                            {"name: a\ndescription: d\n? x\n: y", "key"},
		"ünïcödé before a quote":                         {"name: a\ndescription: d\nünï: \"x\"", ""},
		"prototype":                                      {"name: a\ndescription: d\n__proto__: {x: y}", "__proto__"},
		"prototype within metadata":                      {"name: a\ndescription: d\nmetadata: {__proto__: y}", "__proto__"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := registry.ListingFaults(registry.ParseSkillMD([]byte("---\n"+test.header+"\n---\n"), ""), nil)
			switch {
			case test.want == "" && len(got) > 0:
				t.Errorf("faults %q, want none", got)
			case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("faults %q, want one with %q", got, test.want)
			}
		})
	}
}

func TestListingFaultsOfTheWhole(t *testing.T) {
	t.Parallel()
	plain := registry.ParseSkillMD([]byte(skillMD("a")), "")
	many := make([]sallyport.Component, sallyport.MaxSkillFiles+1)
	for name, test := range map[string]struct {
		md         registry.SkillMD
		components []sallyport.Component
		faults     int
	}{
		"512 files":                       {plain, many[1:], 0},
		"513 files":                       {plain, many, 1},
		"16 MiB":                          {plain, []sallyport.Component{{Size: sallyport.MaxSkillBytes}}, 0},
		"a byte more":                     {plain, []sallyport.Component{{Size: sallyport.MaxSkillBytes}, {Size: 1}}, 1},
		"no frontmatter":                  {registry.ParseSkillMD([]byte("# a\n"), ""), nil, 1},
		"a comment before":                {registry.ParseSkillMD([]byte("<!-- x -->\n"+skillMD("a")), ""), nil, 1},
		"not UTF-8":                       {registry.ParseSkillMD([]byte(skillMD("a")+"\xff"), ""), nil, 1},
		"blanks behind the fence":         {registry.ParseSkillMD([]byte(strings.Replace(skillMD("a"), "---\n", "--- \t\n", 1)), ""), nil, 1},
		"blanks behind the closing fence": {registry.ParseSkillMD([]byte("---\nname: a\ndescription: d\n--- \n"), ""), nil, 0},
		"CRLF behind the fence":           {registry.ParseSkillMD([]byte("\ufeff---\r\nname: a\r\ndescription: d\r\n---\r\n"), ""), nil, 0},
		"everything at once":              {registry.ParseSkillMD([]byte("---\nname: A\ndescription: 1\nmetadata: 1\ncompatibility: 1\n---\n\xff"), ""), many, 6},
		"only the list of files":          {plain, nil, 0},
	} {
		if got := registry.ListingFaults(test.md, test.components); len(got) != test.faults {
			t.Errorf("%s: faults %q, want %d", name, got, test.faults)
		}
	}
}

func TestNotListedProblemNamesTheLine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	saved := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", "---\nname: a\ndescription: d\nmetadata:\n  version: 1.0\n---\n")}})
	for _, p := range saved.Problems {
		if p.Code != registry.ProblemNotListed {
			continue
		}
		if p.Line != 5 || p.File != "SKILL.md" || p.Severity != registry.SeverityNote || !strings.Contains(p.Message, "metadata.version is not text; put its value in quotes") {
			t.Errorf("problem %+v", p)
		}
		return
	}
	t.Errorf("problems %+v, want %s", saved.Problems, registry.ProblemNotListed)
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	publish := func(p sallyport.Principal, slug, md string, personal bool) registry.SaveResult {
		return b.save(t, p, registry.SaveRequest{
			Ref: sallyport.SkillRef{Slug: slug}, Personal: personal, Publish: true, Files: []registry.File{file("SKILL.md", md)},
		})
	}
	publish(alice, "a", skillMD("a"), false)
	publish(alice, "b", "---\nname: b\ndescription: d\nmetadata: {v: 1}\n---\n", false)
	gone := publish(alice, "c", skillMD("c"), false)
	if _, err := b.Archive(t.Context(), alice, sallyport.SkillRef{SkillID: gone.Skill.ID}); err != nil {
		t.Fatal(err)
	}
	draft := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("d"))}})
	publish(alice, "e", skillMD("e"), true)
	moved := publish(alice, "f", skillMD("f"), false)
	newer := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{SkillID: moved.Skill.ID}, Files: []registry.File{file("SKILL.md", skillMD("f")+"more\n")}})

	walk := func(p sallyport.Principal, limit int) (slugs []string, unlisted int) {
		req := registry.CatalogueRequest{Limit: limit}
		for range 20 {
			page, err := b.Catalogue(t.Context(), p, req)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range page.Entries {
				slugs = append(slugs, entry.Skill.Slug)
				if entry.Revision.ID != entry.Skill.PublishedRevisionID || len(entry.Revision.Components) == 0 {
					t.Errorf("%s is served at %s", entry.Skill.Slug, entry.Revision.ID)
				}
			}
			unlisted += page.Unlisted
			if req.Cursor = page.NextCursor; req.Cursor == "" {
				return slugs, unlisted
			}
		}
		t.Fatal("the pages do not end")
		return nil, 0
	}
	for _, limit := range []int{0, 1, 2} {
		slugs, unlisted := walk(alice, limit)
		if diff := cmp.Diff([]string{"a", "e", "f"}, slugs); diff != "" || unlisted != 1 {
			t.Errorf("limit %d: %d unlisted, slugs (-want +got):\n%s", limit, unlisted, diff)
		}
	}
	if slugs, _ := walk(bob, 0); !cmp.Equal(slugs, []string{"a", "f"}) {
		t.Errorf("bob sees %q", slugs)
	}
	if _, err := b.Catalogue(t.Context(), sallyport.Principal{ID: "x", TenantID: "acme"}, registry.CatalogueRequest{}); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("without a scope: %v", err)
	}

	for name, test := range map[string]struct {
		p    sallyport.Principal
		ref  sallyport.SkillRef
		id   sallyport.RevisionID
		code sallyport.Code
		want sallyport.RevisionID
	}{
		"the published one":            {alice, sallyport.SkillRef{Slug: "f"}, "", "", moved.Revision.ID},
		"a draft by its id":            {alice, sallyport.SkillRef{Slug: "f"}, newer.Revision.ID, "", newer.Revision.ID},
		"an unpublished skill":         {alice, sallyport.SkillRef{Slug: "d"}, "", sallyport.CodeRevisionNotFound, ""},
		"a draft of an unpublished":    {alice, sallyport.SkillRef{Slug: "d"}, draft.Revision.ID, "", draft.Revision.ID},
		"an archived skill":            {alice, sallyport.SkillRef{Slug: "c"}, "", sallyport.CodeRevisionNotFound, ""},
		"a revision of an archived":    {alice, sallyport.SkillRef{Slug: "c"}, gone.Revision.ID, "", gone.Revision.ID},
		"a revision of another skill":  {alice, sallyport.SkillRef{Slug: "a"}, moved.Revision.ID, sallyport.CodeRevisionNotFound, ""},
		"another principal's personal": {bob, sallyport.SkillRef{Slug: "e"}, "", sallyport.CodeSkillNotFound, ""},
	} {
		got, err := b.Served(t.Context(), test.p, test.ref, test.id)
		if sallyport.CodeOf(err) != test.code || got.Revision.ID != test.want {
			t.Errorf("%s: revision %q, %v; want %q, %q", name, got.Revision.ID, err, test.want, test.code)
		}
	}
}
