package store_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/store"
	"github.com/sallyport-dev/sallyport/records"
)

// What a purge frees goes back to the file system, bit by bit, and in a database that was made before that was possible, too.
func TestSpaceIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]string{
		"a database of today": nil,
		"one of before":       {"PRAGMA auto_vacuum = NONE", "VACUUM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "sallyport.db")
			s, err := store.Open(t.Context(), store.Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Shutdown(); err != nil {
				t.Fatal(err)
			}
			if before != nil {
				rawExec(t, path, before...)
			}
			s, err = store.Open(t.Context(), store.Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			at, content := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), make([]byte, 8<<20)
			_, _ = rand.Read(content)
			e := sallyport.Execution{ID: "e", Status: sallyport.StatusQueued, CreatedAt: at}
			if err := s.Open(t.Context(), "acme", e, sallyport.Entry{At: at, Action: sallyport.ActionScriptRun}); err != nil {
				t.Fatal(err)
			}
			e.Status = sallyport.StatusSuccess
			e.Artifacts = []sallyport.Artifact{{Path: "a", Size: int64(len(content)), SHA256: sallyport.DigestOf(content).Hex()}}
			if err := s.Close(t.Context(), "acme", e, []sallyport.ArtifactFile{{Path: "a", Content: content}}, sallyport.Entry{At: at, Action: sallyport.ActionScriptFinished}); err != nil {
				t.Fatal(err)
			}
			for more := true; more; {
				if _, more, err = s.PurgeOld(t.Context(), "acme", records.Bounds{Artifacts: at.Add(time.Hour), At: at.Add(time.Hour)}); err != nil {
					t.Fatal(err)
				}
			}
			rounds := 0
			for more := true; more; rounds++ {
				if more, err = s.Compact(t.Context()); err != nil || rounds > 100 {
					t.Fatalf("round %d: %v", rounds, err)
				}
			}
			if err := s.Shutdown(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Size() > int64(len(content))/4 || rounds < 2 {
				t.Errorf("%d bytes are left after %d rounds, %v", info.Size(), rounds, err)
			}
		})
	}
}
