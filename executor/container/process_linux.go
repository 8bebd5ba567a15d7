package container

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// processName names a process of this machine, across restarts of both: where it can be seen, its number and when it began.
func processName(pid int) string {
	where, began := world(), startTime(pid)
	if where == "" || began == "" {
		return ""
	}
	return where + "." + strconv.Itoa(pid) + "." + began
}

// world is where process numbers mean what they mean here: this boot of this machine, and our namespace on it.
func world() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, fault := os.Readlink("/proc/self/ns/pid")
	if err != nil || fault != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "-" + strings.Trim(namespace, "pid:[]")
}

// startTime is the 22nd field of /proc/PID/stat; empty when there is no such process.
func startTime(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The second field is the program's name, which may hold anything; it ends at the last parenthesis.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return string(fields[19])
}

// dead reports whether name is of a process of this machine that is gone. A process of another machine, or of another process
// namespace on it, is not known to be.
func dead(name string) bool {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	return err == nil && parts[0] == world() && startTime(pid) != parts[2]
}
