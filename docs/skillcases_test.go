package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The numbers of the reports about skills that the table must have a row for.
const skillCases = "2 3 5 6 7 9 11 14 15 16 17 19 20 21 23 24 25 28 29 30 32 33 35 36 37 38 41 42 46 47 48 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 67 " +
	"68 69 70 71 72 73 76 77 78 79 83 86 88 90 91 92 94 96 97 99 100 101 102 104 106 108 109 110 111 112 113 115 116"

var skillCaseRow = regexp.MustCompile(`^\| (F\d+) [^|]*\|[^|]*\|([^|]*)\|$`)

// TestEverySkillCaseIsHeld holds the table of reports against the list of their numbers and against the tests it names: every row is held by one.
func TestEverySkillCaseIsHeld(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("skill-cases.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, attempts, attacks := namesOfTests(t)
	var missing []string
	for n := range strings.FieldsSeq(skillCases) {
		missing = append(missing, "F"+n)
	}
	for line := range strings.Lines(string(text)) {
		row := skillCaseRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		at := slices.Index(missing, row[1])
		if at < 0 {
			t.Errorf("%s is no case of the list, or has two rows", row[1])
			continue
		}
		missing = slices.Delete(missing, at, at+1)
		names := span.FindAllStringSubmatch(row[2], -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", row[1])
		}
		for _, name := range names {
			if !isHeld(name[1], tests, attempts, attacks) {
				t.Errorf("%s names %q, and there is no such test", row[1], name[1])
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("no row for %q", missing)
	}
}
