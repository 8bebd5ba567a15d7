package mcpwire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/mcpwire"
)

func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	lines := mcpwire.NewLines(strings.NewReader("one\n\n  \r\ntwo\r\n"+long+"\nthree\n"+long[:100_000]+"\nlast"), 100_000)
	var got []string
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, mcpwire.ErrLineTooLong):
			got = append(got, "too long")
		case errors.Is(err, io.EOF):
			want := []string{"one", "two", "too long", "three", long[:100_000], "last"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			return
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, string(line))
		}
	}
}

// Lines that many write at once stay whole.
func TestWriter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := mcpwire.NewWriter(&out)
	line := []byte(strings.Repeat("ab", 1000))
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for range 10 {
				if err := w.WriteLine(line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	want := strings.Repeat(string(line)+"\n", 160)
	if got := out.String(); got != want {
		t.Errorf("got %d bytes that are not 160 whole lines", len(got))
	}
}
