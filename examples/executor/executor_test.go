//go:build unix

package executor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/examples/executor"
	"github.com/sallyport-dev/sallyport/executor/executortest"
)

// The suite knows what this executor does not claim, and holds it to all the rest. Not parallel: the suite sets variables.
func TestSuite(t *testing.T) {
	executortest.Run(t, executortest.Factory{
		New:      func(tb testing.TB) sallyport.Executor { tb.Helper(); return executor.New() },
		Provides: []sallyport.Layer{},
		Interpreters: []sallyport.Interpreter{
			{Extension: "py", Runtime: "python", Program: "/usr/bin/python3"},
			{Extension: "sh", Runtime: "bash", Program: "/bin/bash"},
			{Extension: "js", Runtime: "node", Program: "/usr/bin/node"},
		},
		Leftovers: func(tb testing.TB) []string {
			tb.Helper()
			left, err := filepath.Glob(filepath.Join(os.TempDir(), "process-*"))
			if err != nil {
				tb.Fatal(err)
			}
			return left
		},
	})
}
