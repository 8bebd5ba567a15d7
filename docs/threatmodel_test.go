package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The numbers of the cases that the table must have a row for: attacks, and reports of other sandboxes.
const (
	attackCases = "1 2 3 4 5 8 10 11 13 14 15 16 18 19 20 21 22 23 25 27 29 30 31 32 33 35 38 39 41 43 44 46 48 49 50 52 53 55 56 57 59 " +
		"61 62 63 64 65 66 67 68 70 72 74 75 77 78 79 81 82 83 84 85 87 88 89 92 93 94 95 96 97 98 99 106 107 108 111 113 114 115 116 " +
		"118 119 121 124 125"
	reportCases = "3 4 5 6 8 11 12 13 15 16 17 21 22 23 25 27 29 33 35 36 38 39 40 41 42 44 45 46 48 49 50 51 53 55 56 58 59 61 63 64 65 " +
		"68 69 70 71 72 73 74 76 77 79 81 82 83 85 87 88 89 90 94"
)

var (
	caseRow      = regexp.MustCompile(`^\| ([AR]\d+) [^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$`)
	span         = regexp.MustCompile("`([^`]+)`")
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	attemptName  = regexp.MustCompile(`name: (?:fmt\.Sprintf\()?"((?:[^"\\]|\\.)*)"`)
)

// TestEveryCaseIsHeld holds the table of cases against the list of their numbers and against the tests it names.
func TestEveryCaseIsHeld(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, attempts, attacks := namesOfTests(t)
	var missing []string
	for n := range strings.FieldsSeq(attackCases) {
		missing = append(missing, "A"+n)
	}
	for n := range strings.FieldsSeq(reportCases) {
		missing = append(missing, "R"+n)
	}
	for line := range strings.Lines(string(text)) {
		row := caseRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		id, held := row[1], strings.TrimSpace(row[3])
		at := slices.Index(missing, id)
		if at < 0 {
			t.Errorf("%s is no case of the list, or has two rows", id)
			continue
		}
		missing = slices.Delete(missing, at, at+1)
		reason, without := strings.CutPrefix(held, "untried: ")
		if !without {
			reason, without = strings.CutPrefix(held, "elsewhere: ")
		}
		names := span.FindAllStringSubmatch(held, -1)
		if without && len(reason) < 20 || !without && len(names) == 0 {
			t.Errorf("%s names no test and gives no reason: %q", id, held)
		}
		for _, name := range names {
			if !isHeld(name[1], tests, attempts, attacks) {
				t.Errorf("%s names %q, and there is no such test", id, name[1])
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("no row for %q", missing)
	}
}

func isHeld(name string, tests, attempts, attacks []string) bool {
	if attempt, ok := strings.CutPrefix(name, "suite: "); ok {
		return slices.ContainsFunc(attempts, func(pattern string) bool {
			// A row of a family, such as "exit code %d", is named with its number.
			head, _, family := strings.Cut(pattern, "%")
			return attempt == pattern || family && strings.HasPrefix(attempt, head)
		})
	}
	if strings.HasPrefix(name, "attack ") || strings.HasPrefix(name, "report ") {
		return slices.ContainsFunc(attacks, func(attack string) bool { return strings.HasPrefix(attack, name+": ") })
	}
	if strings.HasSuffix(name, ".txtar") {
		_, err := os.Stat(filepath.Join("..", name))
		return err == nil
	}
	return slices.Contains(tests, name)
}

// namesOfTests reads the functions of the whole module, the attempts of executortest and the attacks of bubblewrap.
func namesOfTests(t *testing.T) (tests, attempts, attacks []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && path != "..") {
			return fs.SkipDir
		}
		suite := filepath.Base(filepath.Dir(path)) == "executortest"
		test := strings.HasSuffix(path, "_test.go")
		if entry.IsDir() || !test && (!suite || filepath.Ext(path) != ".go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range testFunction.FindAllSubmatch(source, -1) {
			tests = append(tests, string(m[1]))
		}
		siege := strings.HasPrefix(entry.Name(), "attack_")
		for _, m := range attemptName.FindAllSubmatch(source, -1) {
			if suite {
				attempts = append(attempts, string(m[1]))
			}
			if siege {
				attacks = append(attacks, string(m[1]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests, attempts, attacks
}
