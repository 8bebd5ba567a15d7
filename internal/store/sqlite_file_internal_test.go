package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// A file that was cut off is found without reading it all, unless a write-ahead log may still hold the rest.
func TestCutOffFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sallyport.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if _, err := prepareFile(path); err != nil {
		t.Fatalf("whole: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	if _, err := prepareFile(path); sallyport.CodeOf(err) != sallyport.CodeStoreUnavailable {
		t.Errorf("cut off: got %v, want STORE_UNAVAILABLE", err)
	}
	for content, want := range map[string]sallyport.Code{"": sallyport.CodeStoreUnavailable, "frames": ""} {
		if err := os.WriteFile(path+"-wal", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := prepareFile(path); sallyport.CodeOf(err) != want {
			t.Errorf("with the log %q: got %v, want %q", content, err, want)
		}
	}
}
