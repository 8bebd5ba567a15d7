//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"runtime"
	"time"
)

// A budget of CPU time is kept by looking at the counter of the run's group, which no process of the run can leave, reset or
// hide from. The next look is when the budget can be spent at the earliest, so a run that waits costs few looks and one that
// computes is stopped on time. Building the sandbox counts too: a baseline taken later would forgive what the script used
// while the supervisor was kept waiting.

// Between two looks at the counter. The shortest also bounds by how much a budget is overdrawn, per CPU of the run.
const (
	cpuPauseMin = 5 * time.Millisecond
	cpuPauseMax = time.Second
)

var errCPUUnread = errors.New("the CPU time of the run could not be read, so its budget could not be kept")

// cpuLeft is what is left of the budget; false when the counter cannot be read.
func (a *active) cpuLeft() (time.Duration, bool) {
	used, ok := a.group.cpuTime()
	return a.spec.limits.CPUTime - used, ok
}

// cpuPause is how long left lasts at least.
func (a *active) cpuPause(left time.Duration) time.Duration {
	millis := int64(1000 * runtime.NumCPU())
	if a.e.groups.has(controlCPU) {
		millis = min(millis, a.spec.limits.CPUMillis)
	}
	return min(max(left*1000/time.Duration(max(millis, 1)), cpuPauseMin), cpuPauseMax)
}
