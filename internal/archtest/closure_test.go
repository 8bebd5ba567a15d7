package archtest_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestClosures holds what a package links, directly or not, against closures.txt.
//
// The list comes from the go command, which sees third parties too. The cached "ok" of a sub-process is prevented by
// module and the two reads below: this process has read every file that can change the answer.
func TestClosures(t *testing.T) {
	t.Parallel()
	packages := module(t)
	read(t, root+"/go.mod")
	read(t, root+"/go.sum")
	for dir, forbidden := range rules(t, "closures.txt") {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			if packages[dir] == nil {
				t.Fatalf("internal/archtest/closures.txt has a line for %s, and there is no such package", dir)
			}
			linked := goList(t, "-deps", "-f", "{{if not .Standard}}other {{end}}{{.ImportPath}}", importPath(dir))
			for _, word := range forbidden {
				if word == "others" {
					for _, name := range linked {
						if other, found := strings.CutPrefix(name, "other "); found && other != importPath(dir) {
							t.Errorf("%s links %s, and may link the standard library only", dir, other)
						}
					}
					continue
				}
				for _, name := range linked {
					name = strings.TrimPrefix(name, "other ")
					tree, below := strings.CutSuffix(word, "/...")
					if name == tree || below && strings.HasPrefix(name, tree+"/") {
						t.Errorf("%s links %s, which internal/archtest/closures.txt forbids", dir, name)
					}
				}
			}
		})
	}
}

// TestClosuresForbidWhatExists keeps closures.txt from naming what was renamed long ago.
func TestClosuresForbidWhatExists(t *testing.T) {
	t.Parallel()
	var words []string
	for _, forbidden := range rules(t, "closures.txt") {
		words = append(words, forbidden...)
	}
	slices.Sort(words)
	words = slices.DeleteFunc(slices.Compact(words), func(word string) bool { return word == "others" })
	requirements := read(t, root+"/go.mod")
	standard := goList(t, "std")
	for _, word := range words {
		word = strings.TrimSuffix(word, "/...")
		if !slices.Contains(standard, word) && !strings.Contains(requirements, "\t"+word+" ") {
			t.Errorf("internal/archtest/closures.txt forbids %s, which is neither in the standard library nor in go.mod", word)
		}
	}
}

func goList(tb testing.TB, args ...string) []string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("go list: %v", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
