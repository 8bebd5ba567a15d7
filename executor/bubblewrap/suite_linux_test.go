//go:build amd64 || arm64

package bubblewrap_test

import (
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/executor/executortest"
)

// Not parallel, see TestSuite. The plan for hosts without user namespaces keeps every promise of the other one.
func TestPlanRootSuite(t *testing.T) {
	requireRoot(t)
	h := &host{cfg: bubblewrap.Config{StateDir: filepath.Join(t.TempDir(), "state"), FirstUID: 61180, UIDCount: 16, Plan: bubblewrap.PlanRoot}}
	executortest.Run(t, executortest.Factory{
		New:          func(tb testing.TB) sallyport.Executor { tb.Helper(); return newExecutor(tb, h.cfg) },
		Interpreters: bubblewrap.FindInterpreters(),
		Leftovers:    h.leftovers,
	})
}

// Not parallel: the suite looks at the whole host after every attempt.
func TestSuite(t *testing.T) {
	h := &host{cfg: bubblewrap.Config{StateDir: filepath.Join(t.TempDir(), "state"), FirstUID: 61150, UIDCount: 16}}
	executortest.Run(t, executortest.Factory{
		New:          func(tb testing.TB) sallyport.Executor { tb.Helper(); return newExecutor(tb, h.cfg) },
		Interpreters: bubblewrap.FindInterpreters(),
		Leftovers:    h.leftovers,
	})
}
