//go:build amd64 || arm64

package bubblewrap_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// newExecutor returns an executor with a state folder of its own, closed when the test ends.
func newExecutor(t testing.TB, cfg bubblewrap.Config) *bubblewrap.Executor {
	t.Helper()
	if cfg.StateDir == "" {
		cfg.StateDir = t.TempDir() + "/state"
	}
	e, err := bubblewrap.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}
