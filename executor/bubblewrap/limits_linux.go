//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
)

// limitFault says which limit cannot be meant, and what to do. Below the least a run cannot start, above the most the
// kernel, or this process, could not keep what the number promises. Nothing is ever moved into the range instead.
func limitFault(l sallyport.Limits) string {
	for _, row := range []struct {
		name               string
		value, least, most int64
	}{
		{"timeout_ms", l.Timeout.Milliseconds(), 1, (24 * time.Hour).Milliseconds()},
		{"memory_bytes", l.MemoryBytes, sallyport.MinMemoryBytes, 1 << 46},
		{"processes", l.Processes, 1, 4_000_000},
		{"cpu_millis", l.CPUMillis, 10, 1_000_000},
		{"scratch_bytes", l.ScratchBytes, 4096, 1 << 40},
		{"output_bytes", l.OutputBytes, 1, 1 << 30},
		{"artifact_bytes", l.ArtifactBytes, 1, 1 << 32},
		{"artifact_files", l.ArtifactFiles, 1, artifactEntries},
		{"cpu_time_ms", l.CPUTime.Milliseconds(), 0, (24 * time.Hour).Milliseconds()}, // 0 is no budget
	} {
		switch {
		case row.value < row.least:
			return fmt.Sprintf("the limit %s is %d, and a run needs at least %d: raise it where the request, the script, the tenant or the server sets it", row.name, row.value, row.least)
		case row.value > row.most:
			return fmt.Sprintf("the limit %s is %d, and at most %d can be enforced: lower it where the request, the script, the tenant or the server sets it", row.name, row.value, row.most)
		}
	}
	return ""
}

// errGroup marks what went wrong with the control groups of a run.
var errGroup = errors.New("control group")

// groupFault is hostFault for control groups, where the same errnos mean something else.
func groupFault(err error) string {
	for _, row := range []struct {
		errno    unix.Errno
		sentence string
	}{
		{unix.ENOSPC, "this host has no room for another control group: remove those that nobody uses"},
		{unix.EAGAIN, "this host allows no further control group here: raise cgroup.max.descendants of the service's group"},
		{unix.EROFS, "the control groups are read-only: give the server a delegated group that it can write to"},
		{unix.EACCES, "the control groups belong to somebody else: give the server a delegated group (Delegate=yes)"},
		{unix.EPERM, "the control groups belong to somebody else: give the server a delegated group (Delegate=yes)"},
		{unix.EINVAL, "the control groups refuse a limit of this run: lower it to what the service itself may use"},
	} {
		if errors.Is(err, row.errno) {
			return row.sentence
		}
	}
	return ""
}

// hostFault says what of the host stood in the way of a start and what an operator can do, without naming a folder; empty
// when the error does not tell.
func hostFault(err error) string {
	if _, inside := errors.AsType[*setupError](err); inside {
		return ""
	}
	if errors.Is(err, errGroup) {
		if fault := groupFault(err); fault != "" {
			return fault
		}
	}
	for _, row := range []struct {
		errno    unix.Errno
		sentence string
	}{
		{unix.ENOSPC, "the state folder of the sandbox is full: free space there, or name with the setting state a folder with room"},
		{unix.EDQUOT, "the state folder of the sandbox is over its quota: raise the quota, or name with the setting state a folder with room"},
		{unix.EROFS, "the state folder of the sandbox is read-only: make it writable, or name with the setting state a folder that is"},
		{unix.EMFILE, "this process has no free file descriptor: raise its limit of open files (LimitNOFILE= of the service)"},
		{unix.ENFILE, "this host has no free file descriptor: raise fs.file-max"},
		{unix.EAGAIN, "this host refuses another process: raise the limit of tasks (TasksMax= of the service) or kernel.pid_max"},
		{unix.ENOMEM, "this host has no memory for another sandbox: lower the number of slots"},
	} {
		if errors.Is(err, row.errno) {
			return row.sentence
		}
	}
	return ""
}
