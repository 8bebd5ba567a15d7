//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"fmt"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
)

// result judges what was seen of a run. The first rule that fits wins: stopped at the deadline or the CPU budget, never started, killed for
// memory, ended by a signal, exited. An exit code is passed on as it is: 137 is not a kill, and 124 is not a timeout.
func (o *outcome) result(isolation sallyport.Isolation, program string) (sallyport.Result, error) {
	r := sallyport.Result{
		Stdout: o.stdout, StdoutBytes: o.stdoutBytes, StdoutTruncated: o.stdoutTruncated,
		Stderr: o.stderr, StderrBytes: o.stderrBytes, StderrTruncated: o.stderrTruncated,
		OutputData: o.report.output, OutputDataTruncated: o.report.outputTruncated,
		Artifacts: o.report.artifacts, ArtifactNotes: o.report.notes, ArtifactsLost: o.lost,
		Usage: o.usage, Isolation: isolation, StartedAt: o.startedAt,
	}
	if o.misplaced {
		r.Isolation.Notes = append(r.Isolation.Notes, noteAffinity)
	}
	if o.lost {
		// Half a collection is none: what was read before PID 1 was killed may be any part of it.
		r.OutputData, r.Artifacts = nil, nil
	}
	// PID 1 knows which came first, the end of the leader or our command.
	if o.timedOut && (o.exited == nil || o.exited.size == 1) {
		r.TimedOut, r.Limit = true, sallyport.LimitWall
		if o.cpuSpent {
			r.Limit = sallyport.LimitCPU
		}
		return r, nil
	}
	if o.startFailed != nil {
		return o.startFailure(r, program)
	}
	if o.exited == nil {
		if o.usage.OOMKills > 0 {
			r.Signal, r.Limit = int(unix.SIGKILL), sallyport.LimitMemory
			return r, nil
		}
		return r, errors.New("PID 1 of the sandbox ended without a report")
	}
	status := syscall.WaitStatus(o.exited.value)
	switch {
	case status.Exited():
		r.ExitCode = new(status.ExitStatus())
	case status.Signaled():
		r.Signal = int(status.Signal())
		switch {
		case status.Signal() == unix.SIGKILL && o.usage.OOMKills > 0:
			r.Limit = sallyport.LimitMemory
		case o.overBudget(status.Signal()):
			r.Signal, r.TimedOut, r.Limit = 0, true, sallyport.LimitCPU
		case status.Signal() == unix.SIGXFSZ:
			r.Limit = sallyport.LimitDisk
		}
	default:
		return r, fmt.Errorf("PID 1 reported the wait status %#x", o.exited.value)
	}
	return r, nil
}

// overBudget reports whether the second net, the limit of one process, ended the leader before the supervisor looked.
func (o *outcome) overBudget(signal syscall.Signal) bool {
	used := o.usage.CPUTimeMS
	return signal == unix.SIGKILL && o.budget > 0 && used != nil && time.Duration(*used)*time.Millisecond >= o.budget
}

// noteAffinity: the CPU limit holds all the same where it is a layer.
const noteAffinity = "affinity advisory: the host refused the CPUs chosen for this run, so a program may see more of them than its quota"

// startFailure tells a script that cannot be started from a sandbox that could not be closed.
func (o *outcome) startFailure(r sallyport.Result, program string) (sallyport.Result, error) {
	errno := syscall.Errno(o.startFailed.size)
	if o.usage.OOMKills > 0 {
		r.Signal, r.Limit = int(unix.SIGKILL), sallyport.LimitMemory
		return r, nil
	}
	if o.startFailed.value == stageStaging && errno == unix.ENOSPC {
		r.StartError = "the skill does not fit into the space of the run"
		r.Limit = sallyport.LimitDisk
		return r, nil
	}
	if o.startFailed.value != stageExec {
		return r, sallyport.NotStarted(&setupError{stage: o.startFailed.value, errno: errno})
	}
	name := path.Base(program)
	switch errno {
	case unix.ENOENT, unix.ENOTDIR:
		r.StartError = "the interpreter " + name + " is not installed where a sandbox can see it"
	case unix.EACCES, unix.EPERM:
		r.StartError = "the interpreter " + name + " may not be executed"
	case unix.ENOEXEC, unix.ELIBBAD:
		r.StartError = "the interpreter " + name + " is not a program for this machine"
	case unix.E2BIG:
		r.StartError = "the arguments and variables are larger than a process can take"
	case unix.ENOMEM:
		r.StartError, r.Limit = "the memory limit is too small for the interpreter "+name, sallyport.LimitMemory
	default:
		r.StartError = "the interpreter " + name + " could not be started: " + errno.Error()
	}
	return r, nil
}

// setupError is a step inside the sandbox that did not work, so nothing was run.
type setupError struct {
	stage uint32
	errno syscall.Errno
}

func (e *setupError) Error() string {
	return "the sandbox could not " + stageName(e.stage) + ": " + e.errno.Error()
}

func (e *setupError) Unwrap() error { return e.errno }

func stageName(stage uint32) string {
	switch stage {
	case stageConfig:
		return "read its configuration"
	case stageStaging:
		return "stage the skill"
	case stageFork:
		return "fork"
	case stageSession:
		return "start a session"
	case stageLimits:
		return "set resource limits"
	case stagePrivileges:
		return "drop privileges"
	case stageDirectory:
		return "enter the skill's folder"
	case stageIdentity:
		return "take on the uid of the run"
	case stageLandlock:
		return "apply Landlock"
	case stageFilter:
		return "load the seccomp filter"
	}
	return "start"
}
