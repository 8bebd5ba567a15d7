package executortest_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/executor/executortest"
)

// The test of an own executor is this one function. Leftovers looks for what the executor could leave behind: containers,
// pods, temporary files.
func ExampleRun() {
	_ = func(t *testing.T) {
		executortest.Run(t, executortest.Factory{
			New: func(tb testing.TB) sallyport.Executor {
				tb.Helper()
				e, err := bubblewrap.New(bubblewrap.Config{})
				if err != nil {
					tb.Fatal(err)
				}
				return e
			},
			Interpreters: bubblewrap.FindInterpreters(),
			Leftovers:    func(testing.TB) []string { return nil },
		})
	}
	// Output:
}
