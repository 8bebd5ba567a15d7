package registry

import "testing"

func TestMatchPath(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"", "a/b", true},
		{"%", "a/b", true},
		{"a/%", "a/b", true},
		{"a/%", "b/a/", false},
		{"%.md", "a/b.md", true},
		{"%.md", "a.md.txt", false},
		{"a%b%c", "a-b-c", true},
		{"a%b%c", "a-c-b", false},
		{"a%a", "a", false},
		{"%a%a%", "ba", false},
		{"%a%a%", "bab-a", true},
		{"a_b", "a_b", true},
		{"a_b", "axb", false},
		{"a*b", "axb", false},
		{"a", "a/b", false},
		{"%%", "", true},
	} {
		if got := matchPath(test.pattern, test.path); got != test.want {
			t.Errorf("matchPath(%q, %q) is %v", test.pattern, test.path, got)
		}
	}
}

func TestQueryTerms(t *testing.T) {
	t.Parallel()
	long := ""
	for i := range 100 {
		long += string(rune('a'+i%26)) + string(rune('a'+i/26)) + "x "
	}
	for query, want := range map[string]int{"Profile the CSV, profile it!": 2, "how to do it": 4, "": 0, "?": 0, "技能 é": 2, long: maxTerms} {
		if got := queryTerms(query); len(got) != want {
			t.Errorf("%q has the terms %q, want %d", query, got, want)
		}
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		query, heading, text string
		want                 int
	}{
		{"profile", "", "nothing", 0},
		{"profile", "", "Profiles", weightTerm + 1},
		{"profiling files", "", "profile a file", 2*weightTerm + 2},
		{"profile", "Profile", "profile profile profile profile profile", weightTerm + maxCount + weightHeading},
		{"技能", "", "使用技能的方法", weightTerm + 1},
		{"cat", "", "concatenate", 0},
	} {
		if got := score(queryTerms(test.query), test.heading, test.text); got != test.want {
			t.Errorf("score(%q, %q, %q) is %d, want %d", test.query, test.heading, test.text, got, test.want)
		}
	}
}
