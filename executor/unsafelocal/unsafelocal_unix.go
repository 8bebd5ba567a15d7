//go:build unix

package unsafelocal

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Executor runs scripts as ordinary processes. It is safe for concurrent use.
type Executor struct{}

// New returns the executor, or INVALID_ARGUMENT for a Config that does not accept by name what it does.
func New(cfg Config) (*Executor, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	seal()
	return &Executor{}, nil
}

// Kind returns "unsafelocal".
func (*Executor) Kind() string { return Kind }

// Capabilities claims no layer at all.
func (*Executor) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{
		Available: true, Layers: []sallyport.Layer{}, Missing: missing(), Features: features(),
		Reason: "unsafelocal isolates nothing", Remedy: "use the executor bubblewrap or remote",
	}
}

// Execute runs one approved script, without isolation.
func (*Executor) Execute(ctx context.Context, req sallyport.ExecRequest) (result sallyport.Result, err error) {
	if err := ctx.Err(); err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	if fault := requestFault(req); fault != "" {
		return sallyport.Result{}, sallyport.NotStarted(&sallyport.Error{Op: "unsafelocal.request", Code: sallyport.CodeInvalidArgument, Message: fault})
	}
	p, err := newPlace(req)
	if err != nil {
		return sallyport.Result{}, sallyport.NotStarted(&sallyport.Error{Op: "unsafelocal.stage", Code: sallyport.CodeInternal, Err: err})
	}
	defer p.remove()
	r := &running{req: req, place: p}
	if err := r.start(); err != nil {
		if sentence := startFault(err, filepath.Base(req.Interpreter.Program)); sentence != "" {
			return sallyport.Result{StartError: sentence, Isolation: isolation()}, nil
		}
		return sallyport.Result{}, sallyport.NotStarted(&sallyport.Error{Op: "unsafelocal.start", Code: sallyport.CodeInternal, Err: err})
	}
	canceled, timedOut := r.wait(ctx)
	result = r.result(timedOut)
	if canceled && result.ExitCode == nil {
		return sallyport.Result{}, ctx.Err()
	}
	p.collect(&result, req.Limits)
	return result, nil
}

// features are what can be done without a sandbox: nothing here counts what processes use that the script let go of, and a
// runtime's own files need a sandbox.
func features() []sallyport.Feature {
	return []sallyport.Feature{sallyport.FeatureArgv, sallyport.FeatureRevision, sallyport.FeatureFiles, sallyport.FeatureArtifacts}
}

func isolation() sallyport.Isolation {
	return sallyport.Isolation{Executor: Kind, Layers: []sallyport.Layer{}, Missing: missing()}
}

// running is one process and its streams.
type running struct {
	req            sallyport.ExecRequest
	place          *place
	cmd            *exec.Cmd
	startedAt      time.Time
	exited         chan struct{}
	stdout, stderr *drain
}

// start starts the interpreter in a session of its own, so that it has no terminal and its group can be killed.
func (r *running) start() (err error) {
	var ours, theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			for _, f := range ours {
				_ = f.Close()
			}
		}
	}()
	for range 3 {
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		ours, theirs = append(ours, read), append(theirs, write)
	}
	ours[0], theirs[0] = theirs[0], ours[0] // it reads standard input
	r.cmd = &exec.Cmd{
		Path: r.req.Interpreter.Program,
		Args: append([]string{r.req.Interpreter.Program, r.place.script(r.req.ScriptPath)}, r.req.Argv...),
		Dir:  r.place.skill, Env: r.place.environment(r.req), Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2],
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := r.cmd.Start(); err != nil {
		return err
	}
	r.startedAt, r.exited = time.Now(), make(chan struct{})
	narrow(r.cmd.Process.Pid)
	r.stdout, r.stderr = newDrain(ours[1], r.req.Limits.OutputBytes), newDrain(ours[2], r.req.Limits.OutputBytes)
	go func() {
		// A script may close its input at any time; that is its own affair.
		_, _ = ours[0].Write(r.req.Stdin)
		_ = ours[0].Close()
	}()
	go func() {
		_ = r.cmd.Wait() // the state says what happened
		close(r.exited)
	}()
	return nil
}

// wait waits for the leader, stops it at its timeout or when the caller gives up, and then kills what it left.
func (r *running) wait(ctx context.Context) (canceled, timedOut bool) {
	timer := time.NewTimer(r.req.Limits.Timeout)
	defer timer.Stop()
	select {
	case <-r.exited:
	case <-timer.C:
		timedOut = true
	case <-ctx.Done():
		canceled = true
	}
	r.kill()
	deadline := time.Now().Add(r.req.Grace / 2)
	select {
	case <-r.exited:
	case <-time.After(time.Until(deadline)):
	}
	r.stdout.finish(deadline)
	r.stderr.finish(deadline)
	return canceled, timedOut
}

// kill ends the group of the leader, and on Linux whatever else carries the run's variables.
func (r *running) kill() {
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	// The folder's name is this host's own and used once; the name of the execution was given by somebody else.
	killByVariable("SKILL_ROOT=" + r.place.skill)
}

// result tells what was seen. A leader that ended before our signal reached it has ended by itself.
func (r *running) result(timedOut bool) sallyport.Result {
	result := sallyport.Result{
		Stdout: r.stdout.kept, StdoutBytes: r.stdout.total, StdoutTruncated: r.stdout.truncated(),
		Stderr: r.stderr.kept, StderrBytes: r.stderr.total, StderrTruncated: r.stderr.truncated(),
		Isolation: isolation(), StartedAt: r.startedAt,
	}
	select {
	case <-r.exited:
	default: // it cannot be killed
		result.TimedOut, result.Limit = true, sallyport.LimitWall
		return result
	}
	state := r.cmd.ProcessState
	result.Usage.CPUTimeMS = new((state.UserTime() + state.SystemTime()).Milliseconds())
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
	case status.Exited():
		result.ExitCode = new(status.ExitStatus())
	case timedOut && status.Signal() == syscall.SIGKILL:
		result.TimedOut, result.Limit = true, sallyport.LimitWall
	case status.Signaled():
		result.Signal = int(status.Signal())
		if status.Signal() == syscall.SIGXFSZ {
			result.Limit = sallyport.LimitDisk
		}
	}
	return result
}

// startFault tells a script that cannot be started from a host that cannot start anything.
func startFault(err error, name string) string {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return ""
	}
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR:
		return "the interpreter " + name + " is not installed"
	case syscall.EACCES, syscall.EPERM:
		return "the interpreter " + name + " may not be executed"
	case syscall.ENOEXEC:
		return "the interpreter " + name + " is not a program for this machine"
	case syscall.E2BIG:
		return "the arguments and variables are larger than a process can take"
	default:
		return ""
	}
}
