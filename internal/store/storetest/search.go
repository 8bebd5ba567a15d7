package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func searchTests() []test {
	return []test{
		{"what is found", searchFinds},
		{"rank", searchRanks},
		{"odd queries", oddQueries},
		{"a save changes what is found", searchFollowsSaves},
		{"pages", searchPages},
		{"archived skills", searchArchived},
	}
}

func described(tb testing.TB, slug, name, description, instructions string, paths ...string) registry.RevisionSave {
	tb.Helper()
	components := []sallyport.Component{component("SKILL.md", sallyport.KindDocument, "# "+slug)}
	for _, path := range paths {
		components = append(components, component(path, sallyport.KindReference, slug))
	}
	s := create(tb, slug, components...)
	s.Skill.Name, s.Skill.Description, s.Instructions = name, description, instructions
	return s
}

func query(t *trial, b Backend, text string) registry.SkillPage {
	t.Helper()
	page, err := b.ListSkills(t.Context(), tenant, registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, Query: text})
	must(t, err)
	return page
}

func searchFinds(t *trial, b Backend) {
	save(t, b, described(t, "csv-profile", "CSV profiler", "Profiles columns of tables", "Count the missing values first.", "references/quantiles.md"))
	save(t, b, described(t, "log-triage", "Log triage", "Groups errors of log files", "Café naïveté", "scripts/triage_logs.sh"))
	save(t, b, described(t, "bericht", "Bericht", "Schreibt Übersichten", "数据分析报告 とカタカナ"))
	for text, want := range map[string][]string{
		"profiler":               {"csv-profile"},
		"COLUMNS":                {"csv-profile"},
		"column table":           {"csv-profile"}, // stems
		"missing":                {"csv-profile"}, // instructions
		"quantiles":              {"csv-profile"}, // a path
		"csv-profile":            {"csv-profile"}, // the slug
		"triage_logs.sh":         {"log-triage"},
		"cafe naivete":           {"log-triage"}, // without the marks
		"ubersichten":            {"bericht"},
		"分析":                     {"bericht"}, // inside a sentence without spaces
		"析分":                     {},
		"カタカナ":                   {"bericht"},
		"profiler errors":        {"csv-profile", "log-triage"}, // none has both: either
		"profi":                  {"csv-profile"},               // begins like
		"file":                   {"log-triage"},
		"what is the profiler":   {"csv-profile"}, // common words do not count alone
		"of":                     {"csv-profile", "log-triage"},
		"skill":                  {}, // every skill has one
		"nothing-of-this exists": {},
	} {
		page := query(t, b, text)
		got := slugs(page.Skills)
		slices.Sort(got)
		same(t, "query "+text, got, want)
		same(t, "total of "+text, page.Total, len(want))
	}
}

func searchRanks(t *trial, b Backend) {
	filler := strings.Repeat("other words of a long text ", 50)
	save(t, b, described(t, "aaa", "Some skill", "Does things", filler+"parquet"))
	save(t, b, described(t, "bbb", "Other skill", "Reads parquet", filler))
	save(t, b, described(t, "parquet", "Parquet", "Reads parquet files", filler))
	save(t, b, described(t, "zzz", "Third skill", "Does things", filler))
	same(t, "best first", slugs(query(t, b, "parquet").Skills), []string{"parquet", "bbb", "aaa"})
	// Skills with all the words leave out those with some.
	same(t, "all words", slugs(query(t, b, "third things").Skills), []string{"zzz"})
	for _, slug := range []string{"gnu-b", "gnu-a", "gnu-c"} {
		save(t, b, described(t, slug, "Herd", "a wildebeest", ""))
	}
	same(t, "equal ranks", slugs(query(t, b, "wildebeest").Skills), []string{"gnu-a", "gnu-b", "gnu-c"})
}

func oddQueries(t *trial, b Backend) {
	save(t, b, described(t, "alpha", "Alpha", "near and not or", "words"))
	save(t, b, described(t, "beta", "Beta", "other", "words"))
	all := []string{"alpha", "beta"}
	for text, want := range map[string][]string{
		"": all, " \t\n": all, `"`: all, `"""`: all, "*": all, "()": all, "-": all, "^": all, "\x00": all, "\xff\xfe": all, "' ; --": all,
		"NEAR(": {"alpha"}, "NEAR(alpha beta, 5)": all, "AND": {"alpha"}, "NOT alpha": {"alpha"}, "alpha OR": {"alpha"},
		`"alpha`: {"alpha"}, "alpha*": {"alpha"}, "name:alpha": {"alpha"}, "{name description}: beta": {"beta"}, "- alpha": {"alpha"}, "alpha\x00beta": all,
		"'); DROP TABLE skills; --": {}, "%": all, "_": all, "al%": {}, "alp%": {"alpha"}, "\\": all, "zzzz": {}, "Ⅷ": {},
		strings.Repeat("words ", 2000):               all, // 12 KB
		strings.Repeat("x", 10_000):                  {},
		strings.Repeat("( \" ", 3000) + "beta":       {"beta"},
		strings.Repeat("数", 4000):                    {},
		strings.Repeat("distinct ", 40) + " ünïcödé": {},
	} {
		page := query(t, b, text)
		got := slugs(page.Skills)
		slices.Sort(got)
		if text = text[:min(len(text), 40)]; !slices.Equal(got, want) || page.Total != len(want) {
			t.Errorf("query %q: got %v, total %d; want %v", text, got, page.Total, want)
		}
	}
}

func searchFollowsSaves(t *trial, b Backend) {
	skill, _ := save(t, b, described(t, "alpha", "Alpha", "walrus", "walrus", "references/walrus.md"))
	changed := next(t, skill, "alpha:2", files("two"))
	changed.Skill.Name, changed.Skill.Description, changed.Instructions = "Alpha", "penguin", "penguin"
	save(t, b, changed)
	same(t, "old words", slugs(query(t, b, "walrus").Skills), []string{})
	same(t, "new words", slugs(query(t, b, "penguin").Skills), []string{"alpha"})
	same(t, "the slug stays", slugs(query(t, b, "alpha").Skills), []string{"alpha"})
}

func searchPages(t *trial, b Backend) {
	for n := range 7 {
		s := described(t, numbered("skill", n), "Skill", "walrus "+strings.Repeat("filler ", n), "")
		s.Skill.CreatedAt = day(n)
		save(t, b, s)
	}
	for round, text := range []string{"walrus", "walrus unheard"} {
		filter := registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, Query: text, Limit: 3}
		first, err := b.ListSkills(t.Context(), tenant, filter)
		must(t, err)
		// Ranks best of all, but was made after the search began.
		late := described(t, numbered("late", round), "Walrus", "walrus", "walrus")
		late.Skill.CreatedAt = day(100 + round)
		save(t, b, late)
		got := slugs(first.Skills)
		for filter.Cursor = first.NextCursor; filter.Cursor != ""; {
			page, err := b.ListSkills(t.Context(), tenant, filter)
			must(t, err)
			same(t, "total", page.Total, 7+round)
			got = append(got, slugs(page.Skills)...)
			if filter.Cursor = page.NextCursor; len(got) > 20 {
				t.Fatal("the pages do not end")
			}
		}
		if slices.Contains(got, late.Skill.Slug) {
			t.Errorf("%q: a skill made between two pages is on one of them", text)
		}
		slices.Sort(got)
		same(t, "each once", []int{len(got), len(slices.Compact(got))}, []int{7 + round, 7 + round})
	}
	same(t, "a new search finds the new ones", query(t, b, "walrus").Total, 9)
}

func searchArchived(t *trial, b Backend) {
	skill, _ := save(t, b, described(t, "alpha", "Alpha", "walrus", ""))
	_, err := b.SetArchived(t.Context(), tenant, skill.ID, pointer(day(1)))
	must(t, err)
	same(t, "hidden", query(t, b, "walrus").Total, 0)
	page, err := b.ListSkills(t.Context(), tenant, registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, Query: "walrus", IncludeArchived: true})
	must(t, err)
	same(t, "asked for", slugs(page.Skills), []string{"alpha"})
}
