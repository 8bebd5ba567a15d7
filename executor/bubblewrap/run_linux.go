//go:build amd64 || arm64

package bubblewrap

import (
	"context"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Bounds that no request can change.
const (
	maxOutputData   = 1 << 20 // SKILL_OUTPUT
	artifactEntries = 10_000
	artifactDepth   = 16
	scriptFiles     = 1024    // open files of one process
	scriptLocked    = 8 << 20 // locked memory of one process
)

// spec is one run, as the sandbox needs it.
type spec struct {
	argv   []string
	env    []string
	stdin  []byte
	files  []sallyport.Component
	inputs []sallyport.InputFile
	root   string // the folder that takes the place of the host's system; empty for the host's
	plan   string // how the sandbox is built
	limits sallyport.Limits
	grace  time.Duration
}

// outcome is what was seen of one run, not yet judged.
type outcome struct {
	ready       bool // everything was staged: from here on the script may have run
	misplaced   bool // the kernel refused the CPUs of the run
	startedAt   time.Time
	startFailed *frame
	exited      *frame
	timedOut    bool // we told PID 1 to stop, or killed the group, because of the deadline or the CPU budget
	cpuSpent    bool // it was the budget
	lost        bool // the report did not end in time
	counted     bool // the kernel counted the CPU time of the whole group
	clean       bool // every process was seen to end, and everything was given back
	report      *report

	stdout, stderr                   []byte
	stdoutBytes, stderrBytes         int64
	stdoutTruncated, stderrTruncated bool
	usage                            sallyport.Usage
	budget                           time.Duration // of CPU time; 0 for none
}

// active is a run between its first resource and the release of its last.
type active struct {
	e       *Executor
	spec    spec
	begin   time.Time
	uid     int // -1 when runs share our own
	cpus    cpuSet
	group   *group
	process *os.Process
	exited  chan struct{} // the monitor was reaped

	control        *os.File
	report         *report
	stdout, stderr *drain
	closers        []*os.File // the child's ends, closed once it has them
	onFailure      []*os.File // our ends, closed when there is no child
}

// run carries out one spec. An error means that the sandbox could not do its work; it is marked as not started when
// nothing of the script began. The outcome is nil when not even bubblewrap was started.
func (e *Executor) run(ctx context.Context, s spec) (*outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, sallyport.NotStarted(err)
	}
	a := &active{e: e, spec: s, begin: time.Now(), uid: -1, exited: make(chan struct{})}
	if err := a.start(); err != nil {
		a.abandon()
		return nil, sallyport.NotStarted(err)
	}
	o := &outcome{report: a.report, budget: s.limits.CPUTime}
	err := a.watch(ctx, o)
	a.finish(o)
	if err != nil && !o.ready {
		err = sallyport.NotStarted(err)
	}
	return o, err
}
