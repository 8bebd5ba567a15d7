//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

func testDeadline() time.Time { return time.Now().Add(5 * time.Second) }

func newState(t *testing.T, dir string, bound int64) *state {
	t.Helper()
	s, err := openState(dir, bound)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(true); err != nil {
			t.Error(err)
		}
	})
	return s
}

func testFile(path, content string) sallyport.Component {
	return sallyport.Component{Path: path, Content: []byte(content), SHA256: sallyport.DigestOf([]byte(content)).Hex()}
}

func materialised(t *testing.T, s *state) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "revisions"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Ten goroutines of two instances want the same files at once: one folder is made, whole, and nothing else is left.
func TestRevisionIsMadeOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	states := []*state{newState(t, dir, 1<<20), newState(t, dir, 1<<20)}
	files := []sallyport.Component{testFile("a", "1"), testFile("b/c/d", strings.Repeat("x", 10_000))}
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() {
			f, err := states[i%2].revision(files)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = f.Close() }()
			for _, c := range files {
				path := filepath.Join(f.Name(), c.Path)
				content, err := os.ReadFile(path)
				if err != nil || string(content) != string(c.Content) {
					t.Errorf("%s: %d bytes, %v", c.Path, len(content), err)
				}
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o444 {
					t.Errorf("%s: %v, %v", c.Path, info.Mode(), err)
				}
			}
		})
	}
	wait.Wait()
	if names := materialised(t, states[0]); len(names) != 1 {
		t.Errorf("materialised: %q", names)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "building")); err != nil || len(left) != 0 {
		t.Errorf("left in building: %v, %v", left, err)
	}
}

func TestRevisionIsVerified(t *testing.T) {
	t.Parallel()
	s := newState(t, filepath.Join(t.TempDir(), "state"), 1<<20)
	for name, f := range map[string]sallyport.Component{
		"other content":   {Path: "a", Content: []byte("other"), SHA256: testFile("a", "this").SHA256},
		"no digest":       {Path: "a", Content: []byte("x")},
		"leaves":          testFile("../a", "x"),
		"absolute":        testFile("/a", "x"),
		"a control byte":  testFile("a\nb", "x"),
		"content missing": {Path: "a", SHA256: testFile("a", "this").SHA256},
	} {
		if dir, err := s.revision([]sallyport.Component{testFile("first", "1"), f}); err == nil {
			t.Errorf("%s: materialised as %s", name, dir.Name())
		}
	}
	// A file in the place of a folder.
	if _, err := s.revision([]sallyport.Component{testFile("a", "x"), testFile("a/b", "y")}); err == nil {
		t.Error("a file that is a folder as well was materialised")
	}
	if names := materialised(t, s); len(names) != 0 {
		t.Errorf("materialised: %q", names)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, "building")); err != nil || len(left) != 0 {
		t.Errorf("left in building: %v, %v", left, err)
	}
}

// The cache stays within its bound, and what is in use is never evicted.
func TestEviction(t *testing.T) {
	t.Parallel()
	const size = 8 * 4096 // of one revision: seven pages and the overhead of its file
	s := newState(t, filepath.Join(t.TempDir(), "state"), 4*size)
	revision := func(i int) []sallyport.Component {
		return []sallyport.Component{testFile("f", strings.Repeat(fmt.Sprintf("%07d\n", i), 7*4096/8))}
	}
	used, err := s.revision(revision(0))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(used.Name(), old, old); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 20; i++ {
		f, err := s.revision(revision(i))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if names := materialised(t, s); len(names) > 5 {
			t.Fatalf("%d revisions of %d bytes under a bound of %d", len(names), size, s.bound)
		}
	}
	if _, err := os.Stat(filepath.Join(used.Name(), "f")); err != nil {
		t.Errorf("a revision in use was evicted: %v", err)
	}
	name := filepath.Base(used.Name())
	if err := s.discard(name); err == nil {
		t.Error("a revision in use was discarded")
	}
	if err := used.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.discard(name); err != nil {
		t.Errorf("discard after use: %v", err)
	}
	if _, err := s.openRevision(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open after discard: %v", err)
	}
}

// A revision that was renamed into place before the power went out may be whole in name only.
func TestEarlierBootIsForgotten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := newState(t, dir, 1<<20)
	f, err := s.revision([]sallyport.Component{testFile("a", "1")})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if names := materialised(t, newState(t, dir, 1<<20)); len(names) != 1 {
		t.Errorf("the same boot forgot: %q", names)
	}
	if err := os.WriteFile(filepath.Join(dir, "boot"), []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if names := materialised(t, newState(t, dir, 1<<20)); len(names) != 0 {
		t.Errorf("an earlier boot is remembered: %q", names)
	}
}
