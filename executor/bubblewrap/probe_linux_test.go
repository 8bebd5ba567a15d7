//go:build amd64 || arm64

package bubblewrap_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, bubblewrap.Config{})
	for _, check := range e.Probe(t.Context()) {
		t.Logf("%-20s %-9s %s %s", check.Name, check.Result, check.Detail, check.Remedy)
		if check.Result != bubblewrap.CheckPass {
			t.Errorf("%s: got %s, want pass", check.Name, check.Result)
		}
	}
}
