package store_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/store"
)

// A data folder of an earlier version is brought forward, and everything in it is found again.
func TestOpenBringsForward(t *testing.T) {
	t.Parallel()
	for name, back := range map[string][]string{
		"from schema 1": {
			"DROP INDEX components_by_content", "DROP INDEX artifacts_by_content",
			"ALTER TABLE executions DROP COLUMN process_limit_hits", "DELETE FROM goose_db_version WHERE version_id > 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
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
			rawExec(t, path, back...)
			again := open(t, path)
			if diff := cmp.Diff(want, everything(t, again), cmp.Comparer(sameDigest)); diff != "" {
				t.Errorf("before, then after (-want +got):\n%s", diff)
			}
			// They can be dropped again, so they are there. The column was read above.
			rawExec(t, path, "DROP INDEX components_by_content", "DROP INDEX artifacts_by_content")
		})
	}
}
