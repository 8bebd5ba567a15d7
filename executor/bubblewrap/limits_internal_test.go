//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The same errno is told by where it came from, never with a folder of the host, and what says nothing is left unsaid.
func TestHostFault(t *testing.T) {
	t.Parallel()
	group := func(err error) error { return fmt.Errorf("%w: %w", errGroup, err) }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{unix.ENOSPC, "state folder of the sandbox is full"},
		{unix.EDQUOT, "over its quota"},
		{unix.EROFS, "state folder of the sandbox is read-only"},
		{unix.EMFILE, "LimitNOFILE"},
		{unix.ENFILE, "fs.file-max"},
		{unix.EAGAIN, "TasksMax"},
		{unix.ENOMEM, "memory for another sandbox"},
		{group(unix.ENOSPC), "room for another control group"},
		{group(unix.EAGAIN), "cgroup.max.descendants"},
		{group(unix.EROFS), "control groups are read-only"},
		{group(unix.EACCES), "Delegate=yes"},
		{group(unix.EPERM), "Delegate=yes"},
		{group(unix.EINVAL), "lower it"},
		{group(unix.EMFILE), "LimitNOFILE"},
		{fmt.Errorf("open /secret/place: %w", unix.ENOSPC), "free space there"},
		{&setupError{stage: stageStaging, errno: syscall.ENOSPC}, ""},
		{errors.New("anything"), ""},
	} {
		got := hostFault(tt.err)
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" || strings.Contains(got, "/secret") {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
}
