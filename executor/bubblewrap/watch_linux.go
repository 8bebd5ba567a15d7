//go:build amd64 || arm64

package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watch follows the run until its report ends, its time is over or the caller gives up.
func (a *active) watch(ctx context.Context, o *outcome) error {
	// The caller waits for timeout and grace, counted from before the sandbox was built. Building may take half of the
	// grace before it takes from the script's own time; collecting gets what is left of three quarters, and the rest is
	// for ending and removing.
	bound := a.begin.Add(a.spec.limits.Timeout + a.spec.grace/2)
	wall := time.NewTimer(time.Until(bound))
	defer wall.Stop()
	collecting := func() time.Duration {
		return max(min(a.spec.grace/2, time.Until(bound.Add(a.spec.grace/4))), 0)
	}
	collect := time.NewTimer(time.Hour)
	collect.Stop()
	defer collect.Stop()
	budget := time.NewTimer(time.Hour) // when to look at the CPU time next
	budget.Stop()
	defer budget.Stop()
	for {
		select {
		case ev, open := <-a.report.events:
			if !open {
				return a.ended(o)
			}
			switch ev.kind {
			case frameReady:
				o.ready, o.misplaced = true, ev.value != 0
			case frameStarted:
				o.startedAt = ev.at
				wall.Reset(min(a.spec.limits.Timeout, time.Until(bound)))
				if a.spec.limits.CPUTime > 0 {
					budget.Reset(0)
				}
			case frameStartFailed:
				o.startFailed = &ev.frame
			case frameExited:
				o.exited = &ev.frame
				wall.Stop()
				budget.Stop()
				collect.Reset(collecting())
			}
		case <-wall.C:
			if o.startedAt.IsZero() {
				a.kill()
				return a.drainReport(o, fmt.Errorf("the sandbox was not ready within %s", time.Since(a.begin).Round(time.Millisecond)))
			}
			budget.Stop()
			a.stop(o)
			collect.Reset(collecting())
		case <-budget.C:
			left, ok := a.cpuLeft()
			switch {
			case !ok:
				a.kill()
				return a.drainReport(o, errCPUUnread)
			case left > 0:
				budget.Reset(a.cpuPause(left))
			default:
				wall.Stop()
				o.cpuSpent = true
				a.stop(o)
				collect.Reset(collecting())
			}
		case <-collect.C:
			o.lost = true
			a.kill()
			return a.drainReport(o, nil)
		case <-ctx.Done():
			a.kill()
			return a.drainReport(o, ctx.Err())
		}
	}
}

// stop tells PID 1 to end the script and to collect what it made.
func (a *active) stop(o *outcome) {
	o.timedOut = true
	_, _ = a.control.Write([]byte{commandKill})
}

// drainReport takes what PID 1 said before it was killed, so that "nothing began" is never said of a script that ran.
func (a *active) drainReport(o *outcome, err error) error {
	_ = a.report.pipe.SetReadDeadline(time.Now().Add(a.spec.grace / 8))
	for ev := range a.report.events {
		switch ev.kind {
		case frameReady:
			o.ready, o.misplaced = true, ev.value != 0
		case frameStarted:
			o.startedAt = ev.at
		case frameExited:
			o.exited = &ev.frame
		}
	}
	return err
}

// ended judges a report that is over, complete or not.
func (a *active) ended(o *outcome) error {
	switch {
	case o.startFailed != nil, a.report.complete:
		return nil
	case o.exited != nil || o.timedOut:
		o.lost = true // PID 1 died while it was collecting
		return nil
	case o.ready:
		o.lost = true // the script, or the memory limit, took PID 1 with it; finish looks at the counters
		return nil
	}
	return errNoReport
}

// errNoReport is replaced by what bubblewrap wrote to its standard error, see withMonitorOutput.
var errNoReport = errors.New("the sandbox ended before its first process began")

// awaitMonitor sees the monitor end without reaping it: until release does, its number cannot become another process's.
func (a *active) awaitMonitor() {
	for {
		err := unix.Waitid(unix.P_PID, a.process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			close(a.exited)
			return
		}
	}
}

// kill ends everything at once; PID 1 is not asked. PID 1 goes first, and its whole namespace with it, so that bubblewrap's
// monitor sees that and reaps it: killed together with its parent, it would stay a zombie for as long as the init of the
// host likes, and in a container that can be for ever.
func (a *active) kill() {
	inits := a.killInit()
	select {
	case <-a.exited:
		closeAll(inits)
	case <-time.After(min(a.spec.grace/16, 200*time.Millisecond)):
		_ = a.process.Kill()
		a.e.running.Go(func() { a.adopt(inits) })
	}
	if !a.group.empty() {
		a.group.kill()
	}
}

// adopt reaps a PID 1 whose monitor was too slow on a machine at its limit. A server that is itself PID 1 of its container becomes
// its parent, and nobody else would; for any other the kernel says at once that it is none of its children.
func (a *active) adopt(inits []int) {
	defer closeAll(inits)
	end := time.NewTimer(a.spec.grace)
	defer end.Stop()
	select {
	case <-a.exited: // before that it is still the monitor's
	case <-end.C:
		return
	}
	for _, fd := range inits {
		for {
			var seen unix.Siginfo
			err := unix.Waitid(unix.P_PIDFD, fd, &seen, unix.WEXITED|unix.WNOHANG, nil)
			if err != nil && !errors.Is(err, unix.EINTR) || seen.Signo != 0 {
				break
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-end.C:
				return
			}
		}
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// killInit kills PID 1 of the sandbox, the only child of the monitor, and returns a descriptor of it.
func (a *active) killInit() (inits []int) {
	monitor := strconv.Itoa(a.process.Pid)
	children := "/proc/" + monitor + "/task/" + monitor + "/children"
	for _, child := range readWords(children) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// Still its child, so this descriptor is not that of a later process with the same number.
		if slices.Contains(readWords(children), child) {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			inits = append(inits, fd)
			continue
		}
		_ = unix.Close(fd)
	}
	return inits
}

// finish ends the run for good and reads what it used. Whatever cannot be ended in time is parked.
func (a *active) finish(o *outcome) {
	deadline := time.Now().Add(a.spec.grace / 4)
	_ = a.control.Close()
	// PID 1 is about to end by itself, or was killed; the monitor reaps it and ends too.
	select {
	case <-a.exited:
	case <-time.After(min(a.spec.grace/8, 500*time.Millisecond)):
	}
	a.kill()
	clean := a.waitDead(deadline)
	// The pipes outlive their writers, so this reads to the end; the deadline is for writers that will not die.
	streams := time.Now().Add(max(time.Until(deadline), 100*time.Millisecond))
	o.stdout, o.stdoutBytes, o.stdoutTruncated = a.stdout.finish(streams)
	o.stderr, o.stderrBytes, o.stderrTruncated = a.stderr.finish(streams)
	_ = a.report.pipe.SetReadDeadline(time.Now())
	for range a.report.events {
	}
	_ = a.report.pipe.Close()
	o.usage = a.group.usage()
	_, o.counted = a.group.cpuTime()
	if o.usage.CPUTimeMS == nil && a.report.complete {
		o.usage.CPUTimeMS = new(a.report.cpuTime.Milliseconds())
	}
	if !clean {
		a.e.park(a)
		return
	}
	o.clean = a.release(deadline)
}

// waitDead waits for the monitor and every process of the run.
func (a *active) waitDead(deadline time.Time) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-a.exited:
	case <-timer.C:
		return false
	}
	return a.group.waitEmpty(deadline)
}

// release gives back what only a dead run may give back. The monitor has ended.
func (a *active) release(deadline time.Time) bool {
	_, _ = a.process.Wait()
	err := a.group.remove(deadline)
	if err != nil {
		a.e.log.Warn("control group of a finished run is still there", "error", err.Error())
		a.e.running.Go(a.removeLater)
	}
	if a.uid >= 0 {
		a.e.uids.release(a.uid)
	}
	a.e.cpus.give(a.cpus)
	return err == nil
}

// removeLater removes the groups of a dead run that were still busy at the deadline, as they can be on a machine at its limit.
func (a *active) removeLater() {
	for {
		closing := false
		select {
		case <-a.e.closing:
			closing = true
		case <-time.After(time.Second):
		}
		if a.group.remove(time.Now().Add(2*time.Second)) == nil || closing {
			return
		}
	}
}

// abandon gives back what start took before it failed; nothing was started.
func (a *active) abandon() {
	for _, f := range append(a.closers, a.onFailure...) {
		_ = f.Close()
	}
	if a.group != nil {
		if err := a.group.remove(time.Now().Add(time.Second)); err != nil {
			a.e.log.Warn("control group of a run that did not start is still there", "error", err.Error())
		}
	}
	if a.uid >= 0 {
		a.e.uids.release(a.uid)
	}
	a.e.cpus.give(a.cpus)
}
