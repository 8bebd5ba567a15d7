package unsafelocal

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// openFiles is what one process may have open.
const openFiles = 1024

// seal keeps descriptors that we inherited ourselves, such as a shell's, from being inherited further.
func seal() { _ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) }

// narrow limits what a fault of a script would take from the host. It is no isolation: root can take it back.
func narrow(pid int) {
	for resource, value := range map[int]uint64{unix.RLIMIT_NOFILE: openFiles, unix.RLIMIT_CORE: 0} {
		_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
	}
}

// killByVariable kills every process whose first environment holds variable: what left the group by a session of its own. A
// script that wants to get away does; this is for those that are careless.
func killByVariable(variable string) {
	for range 5 {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		found := 0
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || pid == os.Getpid() {
				continue
			}
			environment, err := os.ReadFile("/proc/" + e.Name() + "/environ")
			if err == nil && bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+variable+"\x00")) {
				found++
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if found == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
