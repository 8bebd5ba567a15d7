package bubblewrap_test

import (
	"os"
	"testing"
)

// playVariable makes the test binary play another program.
const playVariable = "SALLYPORT_TEST_PLAY"

func TestMain(m *testing.M) {
	if play, ok := plays()[os.Getenv(playVariable)]; ok {
		os.Exit(play())
	}
	os.Exit(m.Run())
}

func writeFile(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
}
