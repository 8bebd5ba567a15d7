//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Whoever reads a note wants the reason; the names are the script's.
func TestNotesKeepTheirReason(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a\nb":                         `"a\nb": too deep`,
		strings.Repeat("d/", 50):       `"` + strings.Repeat("d/", 50) + `": too deep`,
		strings.Repeat("d/", 50) + "d": `"` + strings.Repeat("d/", 50) + `"...: too deep`,
		strings.Repeat("\x1b", 1000):   `"...: too deep`,
		strings.Repeat("\xff", 1000):   `"...: too deep`,
		strings.Repeat("\u00fc", 1000): `"...: too deep`,
	} {
		got := about(path, "too deep")
		if !strings.HasSuffix(got, want) || len(got) > 500 || !utf8.ValidString(got) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
