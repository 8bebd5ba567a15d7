package container

import (
	"errors"
	"path"
	"strconv"

	"github.com/sallyport-dev/sallyport"
)

// Numbers of Linux, which is where scripts run, whatever this process runs on.
const (
	signalKill      = 9
	signalFileSize  = 25
	signalMask      = 0x7f
	errnoPerm       = 1
	errnoNoEntry    = 2
	errnoTooBig     = 7
	errnoNoExec     = 8
	errnoNoMemory   = 12
	errnoAccess     = 13
	errnoNotDir     = 20
	errnoIsDir      = 21
	errnoNoSpace    = 28
	errnoReadOnly   = 30
	errnoNoSystem   = 38
	errnoBadLibrary = 80
	errnoNoFamily   = 97
	errnoNoNetwork  = 101
)

// result judges what was seen of a run. The first rule that fits wins: stopped at the deadline, never started, stopped for its
// budget of CPU time, killed for memory, ended by a signal, exited. An exit code is passed on as it is: 137 is not a kill, and
// 124 is not a timeout.
func (o *outcome) result(isolation sallyport.Isolation, program string) (sallyport.Result, error) {
	rep := o.report
	r := sallyport.Result{
		OutputData: rep.output, OutputDataTruncated: rep.outputTruncated, Artifacts: rep.artifacts, ArtifactNotes: rep.notes,
		ArtifactsLost: o.lost, Usage: rep.usage, Isolation: isolation, StartedAt: o.startedAt,
	}
	r.Stdout, r.StdoutBytes, r.StdoutTruncated = rep.streams[0].result()
	r.Stderr, r.StderrBytes, r.StderrTruncated = rep.streams[1].result()
	if o.oomKilled && r.Usage.OOMKills == 0 {
		r.Usage.OOMKills = 1 // the least that it can have been
	}
	if o.misplaced {
		r.Isolation.Notes = append(r.Isolation.Notes, noteAffinity)
	}
	if o.shortened {
		r.Isolation.Notes = append(r.Isolation.Notes, noteShortened)
	}
	if o.lost {
		// Half a collection is none: what was read before the container went may be any part of it.
		r.OutputData, r.Artifacts = nil, nil
	}
	switch {
	case o.startFailed != nil:
		return o.startFailure(r, program)
	case o.exited != nil && o.exited.size == killedByCPU:
		r.TimedOut, r.Limit = true, sallyport.LimitCPU
		return r, nil
	// PID 1 knows which came first, the end of the leader or our command.
	case o.timedOut && (o.exited == nil || o.exited.size == killedByCommand):
		r.TimedOut, r.Limit = true, sallyport.LimitWall
		return r, nil
	case o.exited == nil && r.Usage.OOMKills > 0:
		r.Signal, r.Limit = signalKill, sallyport.LimitMemory
		return r, nil
	case o.exited == nil:
		return r, errNoReport
	}
	status := o.exited.value
	switch signal := status & signalMask; signal {
	case 0:
		r.ExitCode = new(int(status >> 8 & 0xff))
	case signalMask:
		return r, errors.New("PID 1 reported the wait status " + strconv.Itoa(int(status)))
	default:
		r.Signal = int(signal)
		switch {
		case signal == signalKill && r.Usage.OOMKills > 0:
			r.Limit = sallyport.LimitMemory
		case signal == signalFileSize:
			r.Limit = sallyport.LimitDisk
		}
	}
	return r, nil
}

// What could not be held in a run.
const (
	noteAffinity  = "affinity advisory: the kernel refused the CPUs chosen for this run, so a program may see more of them than its quota"
	noteShortened = "the engine was slow to start the container, so the script had less than its timeout"
)

// startFailure tells a script that cannot be started from a container that could not be closed.
func (o *outcome) startFailure(r sallyport.Result, program string) (sallyport.Result, error) {
	errno := o.startFailed.size
	if o.startFailed.value == stageStaging && errno == errnoNoSpace {
		r.StartError, r.Limit = "the skill does not fit into the space of the run", sallyport.LimitDisk
		return r, nil
	}
	if o.startFailed.value != stageExec {
		return r, sallyport.NotStarted(&setupError{stage: o.startFailed.value, errno: errno})
	}
	name := path.Base(program)
	switch errno {
	case errnoNoEntry, errnoNotDir:
		r.StartError = "the interpreter " + name + " is not in the image"
	case errnoAccess, errnoPerm, errnoIsDir:
		r.StartError = "the interpreter " + name + " may not be executed"
	case errnoNoExec, errnoBadLibrary:
		r.StartError = "the interpreter " + name + " is not a program for this machine"
	case errnoTooBig:
		r.StartError = "the arguments and variables are larger than a process can take"
	case errnoNoMemory:
		r.StartError, r.Limit = "the memory limit is too small for the interpreter "+name, sallyport.LimitMemory
	default:
		r.StartError = "the interpreter " + name + " could not be started: errno " + strconv.FormatUint(errno, 10)
	}
	return r, nil
}

// setupError is a step inside the container that did not work, so nothing was run.
type setupError struct {
	stage uint32
	errno uint64
}

func (e *setupError) Error() string {
	return "PID 1 of the container could not " + stageName(e.stage) + ": errno " + strconv.FormatUint(e.errno, 10)
}

func stageName(stage uint32) string {
	switch stage {
	case stageConfig:
		return "read its orders"
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
	case stageLandlock:
		return "apply Landlock"
	case stageFilter:
		return "load the seccomp filter"
	}
	return "start"
}
