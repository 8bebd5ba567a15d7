package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/store"
)

// undone returns the statements that take a step back. A step that does more than to create says here how it is undone.
func undone(tb testing.TB, name string) []string {
	tb.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	made := regexp.MustCompile(`(?m)^CREATE (?:UNIQUE )?(TABLE|INDEX) ([a-z_]+)`)
	added := regexp.MustCompile(`^ALTER TABLE ([a-z_]+) ADD COLUMN ([a-z_]+)`)
	var back []string
	tables := map[string]bool{}
	for statement := range strings.SplitSeq(regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(string(content), ""), ";") {
		statement = strings.TrimSpace(statement)
		if statement == "" {
			continue
		}
		if column := added.FindStringSubmatch(statement); column != nil {
			back = append(back, "ALTER TABLE "+column[1]+" DROP COLUMN "+column[2])
			continue
		}
		if into := regexp.MustCompile(`^INSERT INTO ([a-z_]+) `).FindStringSubmatch(statement); into != nil && tables[into[1]] {
			continue // it goes with its table
		}
		match := made.FindStringSubmatch(statement)
		if match == nil {
			tb.Fatalf("%s: say how to undo %q", name, statement)
		}
		if match[1] == "TABLE" {
			tables[match[2]] = true
		} else if on := regexp.MustCompile(` ON ([a-z_]+)`).FindStringSubmatch(statement); on != nil && tables[on[1]] {
			continue // it goes with its table
		}
		back = append(back, "DROP "+match[1]+" "+match[2])
	}
	slices.Reverse(back)
	return back
}

// A data folder of any earlier version is brought forward, and everything in it is found again.
func TestOpenBringsForward(t *testing.T) {
	t.Parallel()
	steps, err := filepath.Glob("migrations/sqlite/*.sql")
	if err != nil || len(steps) < 2 {
		t.Fatal(steps, err)
	}
	for i, step := range steps[:len(steps)-1] {
		t.Run("from "+filepath.Base(step), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "sallyport.db")
			first, err := store.Open(t.Context(), store.Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			want := furnish(t, first)
			if err := first.Shutdown(); err != nil {
				t.Fatal(err)
			}
			for _, later := range slices.Backward(steps[i+1:]) {
				rawExec(t, path, undone(t, later)...)
			}
			var version int
			if _, err := fmt.Sscanf(filepath.Base(step), "%d_", &version); err != nil {
				t.Fatal(err)
			}
			rawExec(t, path, fmt.Sprintf("DELETE FROM goose_db_version WHERE version_id > %d", version))
			again := open(t, path)
			if diff := cmp.Diff(want, everything(t, again), cmp.Comparer(sameDigest)); diff != "" {
				t.Errorf("before, then after (-want +got):\n%s", diff)
			}
			// What the steps made can be dropped again, so it is there.
			for _, later := range slices.Backward(steps[i+1:]) {
				rawExec(t, path, undone(t, later)...)
			}
		})
	}
}
