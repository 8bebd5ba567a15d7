//go:build amd64 || arm64

package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	limits sallyport.Limits
	grace  time.Duration
}

// outcome is what was seen of one run, not yet judged.
type outcome struct {
	ready       bool // everything was staged: from here on the script may have run
	startedAt   time.Time
	startFailed *frame
	exited      *frame
	timedOut    bool // we told PID 1 to stop, or killed the group, because of the deadline
	lost        bool // the report did not end in time
	clean       bool // every process was seen to end, and everything was given back
	report      *report

	stdout, stderr                   []byte
	stdoutBytes, stderrBytes         int64
	stdoutTruncated, stderrTruncated bool
	usage                            sallyport.Usage
}

// active is a run between its first resource and the release of its last.
type active struct {
	e       *Executor
	spec    spec
	begin   time.Time
	uid     int // -1 when runs share our own
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
	o := &outcome{report: a.report}
	err := a.watch(ctx, o)
	a.finish(o)
	if err != nil && !o.ready {
		err = sallyport.NotStarted(err)
	}
	return o, err
}

// start takes every resource of the run and starts bubblewrap.
func (a *active) start() error {
	encoded, err := a.config().encode()
	if err != nil {
		return err
	}
	if a.e.uids != nil {
		uid, err := a.e.uids.lease()
		if err != nil {
			return err
		}
		a.uid = uid
	}
	name := "run-" + strconv.FormatInt(a.e.counter.Add(1), 10)
	if a.group, err = a.e.groups.make(name, a.spec.limits); err != nil {
		return fmt.Errorf("control group: %w", err)
	}
	revision, err := a.e.state.revision(a.spec.files)
	if err != nil {
		return fmt.Errorf("revision: %w", err)
	}
	a.closers = append(a.closers, revision)

	ours, theirs, err := a.pipes()
	if err != nil {
		return err
	}
	files, err := a.data(append(theirs, revision))
	if err != nil {
		return err
	}
	if err := a.spawn(files); err != nil {
		return err
	}
	a.onFailure = nil
	a.stdout = newDrain(ours[1], a.spec.limits.OutputBytes)
	a.stderr = newDrain(ours[2], a.spec.limits.OutputBytes)
	a.report = newReport(ours[3], a.spec.limits)
	a.control = ours[4]
	// Both writers end when their reader is gone: at the latest when the group was killed.
	go feed(ours[0], a.spec.stdin, true)
	go feed(a.control, encoded, false)
	return nil
}

// pipes makes stdin, stdout, stderr, report and control, in the order of the child's descriptors.
func (a *active) pipes() (ours, theirs []*os.File, err error) {
	for fd := range fdRevision {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		mine, its := read, write
		if fd == 0 || fd == fdControl {
			mine, its = write, read
		}
		ours, theirs = append(ours, mine), append(theirs, its)
		a.onFailure, a.closers = append(a.onFailure, mine), append(a.closers, its)
		if fd <= 2 && a.uid >= 0 {
			// The script must be able to open its own streams again, as /dev/stdout.
			if err := its.Chown(a.uid, a.uid); err != nil {
				return nil, nil, err
			}
		}
	}
	return ours, theirs, nil
}

// feed writes data; the other end may be gone at any time, which is its own affair.
func feed(pipe *os.File, data []byte, end bool) {
	_, _ = pipe.Write(data)
	if end {
		_ = pipe.Close()
	}
}

// data adds what bubblewrap reads by descriptor to files and puts its options in front of them.
func (a *active) data(files []*os.File) ([]*os.File, error) {
	argsFD := len(files)
	files = append(files, nil)
	add := func(f *os.File, err error) (int, error) {
		if err != nil {
			return 0, err
		}
		a.closers = append(a.closers, f)
		files = append(files, f)
		return len(files) - 1, nil
	}
	helperFD, err := add(a.e.static.helper.reopen())
	if err != nil {
		return nil, err
	}
	var etc, inputs []dataFile
	for _, f := range a.e.static.etc {
		fd, err := add(f.content.reopen())
		if err != nil {
			return nil, err
		}
		etc = append(etc, dataFile{fd, f.path})
	}
	for _, in := range a.spec.inputs {
		fd, err := add(memoryFile(in.Content))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, dataFile{fd, path.Join(pathInput, in.Name)})
	}
	args, err := memoryFile([]byte(strings.Join(options(a.sizes(), helperFD, etc, inputs), "\x00") + "\x00"))
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, args)
	files[argsFD] = args
	return files, nil
}

func (a *active) spawn(files []*os.File) error {
	attr := &os.ProcAttr{
		Dir: "/",
		// Not nil: that would mean our own. What bubblewrap is started with can be read inside, in /proc/1.
		Env:   []string{},
		Files: files,
		Sys:   &syscall.SysProcAttr{},
	}
	if a.e.uids != nil && !a.e.uids.owns(a.uid) {
		// As root a run has a uid of the pool, or it does not start: with our own, the host would be open to it.
		return fmt.Errorf("%d is not a uid for runs", a.uid)
	}
	if a.uid >= 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.uid)}
	}
	if a.group.lifeFD != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(a.group.lifeFD.Fd())
	}
	argv := []string{a.e.program, "--args", strconv.Itoa(fdRevision + 1), pathInit}
	process, err := a.e.spawner.start(argv, attr, a.group)
	for _, f := range a.closers {
		_ = f.Close()
	}
	a.closers = nil
	if err != nil {
		return fmt.Errorf("start bubblewrap: %w", err)
	}
	a.process = process
	go func() {
		_, _ = process.Wait()
		close(a.exited)
	}()
	return nil
}

// sizes keeps every writable file system well below the memory limit, because its content counts as memory: a script
// that fills one is told so, instead of being killed, and can fill another.
func (a *active) sizes() sizes {
	l := a.spec.limits
	scratch := min(l.ScratchBytes, l.MemoryBytes/4)
	return sizes{
		skill:   scratch + stagedBytes(a.spec.files),
		scratch: scratch,
		output:  max(scratch, min(l.ArtifactBytes, l.MemoryBytes/4)) + maxOutputData,
	}
}

func (a *active) config() config {
	l := a.spec.limits
	size := a.sizes()
	c := config{
		argv: a.spec.argv, env: a.spec.env, filter: a.e.static.filter,
		artifactFiles: uint32(min(l.ArtifactFiles, artifactEntries)), artifactEntries: artifactEntries, artifactDepth: artifactDepth,
		artifactBytes: uint64(l.ArtifactBytes), outputBytes: maxOutputData,
		nofile: scriptFiles, memlock: scriptLocked,
		// Twice the largest file system: a full one answers with ENOSPC before this ends the process.
		fsize: uint64(2 * max(size.skill, size.scratch, size.output)),
		// PID 1 counts, and so does the monitor where both share a user namespace.
		nproc: uint64(l.Processes + 2),
	}
	if !a.e.groups.has(controlMemory) {
		c.data = uint64(l.MemoryBytes) // weaker: it counts per process
	}
	return c
}

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
	for {
		select {
		case ev, open := <-a.report.events:
			if !open {
				return a.ended(o)
			}
			switch ev.kind {
			case frameReady:
				o.ready = true
			case frameStarted:
				o.startedAt = ev.at
				wall.Reset(min(a.spec.limits.Timeout, time.Until(bound)))
			case frameStartFailed:
				o.startFailed = &ev.frame
			case frameExited:
				o.exited = &ev.frame
				wall.Stop()
				collect.Reset(collecting())
			}
		case <-wall.C:
			if o.startedAt.IsZero() {
				a.kill()
				return a.drainReport(o, fmt.Errorf("the sandbox was not ready within %s", time.Since(a.begin).Round(time.Millisecond)))
			}
			o.timedOut = true
			_, _ = a.control.Write([]byte{commandKill})
			collect.Reset(collecting())
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

// drainReport takes what PID 1 said before it was killed, so that "nothing began" is never said of a script that ran.
func (a *active) drainReport(o *outcome, err error) error {
	_ = a.report.pipe.SetReadDeadline(time.Now().Add(a.spec.grace / 8))
	for ev := range a.report.events {
		switch ev.kind {
		case frameReady:
			o.ready = true
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

// errNoReport is replaced by what bubblewrap wrote to its standard error, see [Executor.setupError].
var errNoReport = errors.New("the sandbox ended before its first process began")

// kill ends everything at once; PID 1 is not asked. PID 1 goes first, and its whole namespace with it, so that bubblewrap's
// monitor sees that and reaps it: killed together with its parent, it would stay a zombie for as long as the init of the
// host likes, and in a container that can be for ever.
func (a *active) kill() {
	a.killInit()
	select {
	case <-a.exited:
	case <-time.After(min(a.spec.grace/16, 200*time.Millisecond)):
		_ = a.process.Kill()
	}
	if !a.group.empty() {
		a.group.kill()
	}
}

// killInit kills PID 1 of the sandbox, the only child of the monitor.
func (a *active) killInit() {
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
		}
		_ = unix.Close(fd)
	}
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

// release gives back what only a dead run may give back.
func (a *active) release(deadline time.Time) bool {
	err := a.group.remove(deadline)
	if err != nil {
		a.e.log.Warn("control group of a finished run is still there", "error", err.Error())
	}
	if a.uid >= 0 {
		a.e.uids.release(a.uid)
	}
	return err == nil
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
}
