package archtest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// rules reads a text of "name = word word ..." lines; # begins a comment.
func rules(tb testing.TB, file string) map[string][]string {
	tb.Helper()
	found := map[string][]string{}
	for line := range strings.SplitSeq(read(tb, file), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, words, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if _, twice := found[name]; !ok || twice {
			tb.Errorf("%s: the line %q is malformed or the second of its name", file, line)
		}
		found[name] = strings.Fields(words)
	}
	return found
}

// TestImports holds every package to its line in imports.txt.
func TestImports(t *testing.T) {
	t.Parallel()
	allowed, packages := rules(t, "imports.txt"), module(t)
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		line, ok := allowed[dir]
		if !ok {
			t.Errorf("the package %s has no line in internal/archtest/imports.txt; add one that says what it may import", dir)
			continue
		}
		for _, name := range imports(p.files) {
			if target, own := within(name); own && !slices.Contains(line, target) {
				t.Errorf("%s imports %s, and its line in internal/archtest/imports.txt does not allow that", dir, target)
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(allowed)) {
		if packages[dir] == nil {
			t.Errorf("internal/archtest/imports.txt has a line for %s, and there is no such package", dir)
		}
		for _, target := range allowed[dir] {
			if packages[target] == nil {
				t.Errorf("internal/archtest/imports.txt lets %s import %s, and there is no such package", dir, target)
			}
		}
	}
}

// TestVerbsDoNotImportEachOther states the rule that imports.txt could be edited around: who needs another verb declares an
// interface, and server introduces them.
func TestVerbsDoNotImportEachOther(t *testing.T) {
	t.Parallel()
	verbs := []string{"registry", "access", "audit", "run", "records"}
	packages := module(t)
	for _, verb := range verbs {
		for _, name := range imports(packages[verb].files) {
			if target, own := within(name); own && slices.Contains(verbs, target) {
				t.Errorf("%s imports %s", verb, target)
			}
		}
	}
	for dir, p := range packages {
		if strings.HasPrefix(dir, "examples/") {
			continue // an embedder's own program: introducing server and executors to each other is what it is for
		}
		for _, name := range imports(p.files) {
			target, _ := within(name)
			switch {
			case target == "server" && dir != "internal/cli" && dir != "internal/config" && !strings.HasPrefix(dir, "internal/conformance"):
				t.Errorf("%s imports server: only cli and config may, and the conformance server", dir)
			case strings.HasPrefix(target, "internal/store") && dir != "server" && !strings.HasPrefix(dir, "internal/store"):
				t.Errorf("%s imports %s: only server may", dir, target)
			case strings.HasPrefix(target, "executor/") && !strings.HasPrefix(dir, "executor/") && dir != "internal/cli" && dir != "runner":
				t.Errorf("%s imports %s: an embedder must be able to leave an executor out", dir, target)
			}
		}
	}
}

// TestPackageComments demands that every package says what it owns, in exactly one file.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	for dir, p := range module(t) {
		comments := 0
		for _, file := range p.files {
			if file.Doc == nil {
				continue
			}
			comments++
			want := "Package " + p.name + " "
			if p.name == "main" {
				want = "Command "
			}
			if text := file.Doc.Text(); !strings.HasPrefix(text, want) {
				t.Errorf("%s: the package comment begins %.40q, want %q", dir, text, want)
			}
		}
		if len(p.files) > 0 && comments != 1 {
			t.Errorf("%s: %d files have a package comment, want 1", dir, comments)
		}
	}
}
