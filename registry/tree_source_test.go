package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// A path is refused with the code that says what is wrong with it, the same as over HTTP.
func TestOpenPathsRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bomb := filepath.Join(dir, "bomb.tar.gz")
	if err := os.WriteFile(bomb, zeroArchive(t, 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]sallyport.Code{
		"":                           sallyport.CodeInvalidArgument,
		filepath.Join(dir, "nobody"): sallyport.CodeInvalidArgument,
		text:                         sallyport.CodeInvalidArgument,
		os.DevNull:                   sallyport.CodeInvalidArgument,
		bomb:                         sallyport.CodeRequestTooLarge,
		// A folder that is not there, and not what is left of the path when .. takes its name away.
		filepath.Join(dir, "nobody#subdir=..") + "/..": sallyport.CodeInvalidArgument,
	} {
		tree, err := registry.OpenPaths(t.Context(), []string{path})
		if err == nil {
			_ = tree.Close()
		}
		if sallyport.CodeOf(err) != want {
			t.Errorf("%q: got %v, want %s", path, err, want)
		}
	}
}

// zeroArchive is a tar.gz of one file of n zero bytes.
func zeroArchive(tb testing.TB, n int) []byte {
	tb.Helper()
	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	writer := tar.NewWriter(packed)
	if err := writer.WriteHeader(&tar.Header{Name: "zero", Size: int64(n), Mode: 0o600}); err != nil {
		tb.Fatal(err)
	}
	if _, err := writer.Write(make([]byte, n)); err != nil {
		tb.Fatal(err)
	}
	for _, closer := range []io.Closer{writer, packed} {
		if err := closer.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return archive.Bytes()
}
