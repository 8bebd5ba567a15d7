//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// hostState is what a script must not be able to change.
type hostState struct {
	values map[string]string // by file
	mounts map[string]bool
	clock  time.Duration // between the wall clock and the monotonic one
}

// lookAtHost reads the settings that a hostile script would like to change, the mounts and the clocks.
func lookAtHost(tb testing.TB) hostState {
	tb.Helper()
	h := hostState{values: map[string]string{}, mounts: map[string]bool{}}
	for _, name := range []string{
		"/etc/passwd", "/etc/hostname", "/etc/machine-id", "/proc/cmdline", "/proc/swaps",
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/proc/sys/kernel/modprobe",
		"/proc/sys/kernel/sysrq", "/proc/sys/kernel/panic", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max",
		"/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/dmesg_restrict", "/proc/sys/kernel/kptr_restrict",
		"/proc/sys/kernel/perf_event_paranoid", "/proc/sys/kernel/unprivileged_bpf_disabled", "/proc/sys/kernel/shmmax",
		"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/panic_on_oom", "/proc/sys/vm/mmap_min_addr", "/proc/sys/vm/max_map_count",
		"/proc/sys/fs/suid_dumpable", "/proc/sys/fs/protected_hardlinks", "/proc/sys/fs/protected_symlinks", "/proc/sys/fs/file-max",
		"/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_net_namespaces",
	} {
		if value, err := os.ReadFile(name); err == nil {
			h.values[name] = string(value)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		h.mounts[line] = true
	}
	now := time.Now()
	h.clock = time.Duration(now.UnixNano()) - monotonic(tb)
	return h
}

// monotonic is the time since the host started, from a file: a step of the wall clock does not move it.
func monotonic(tb testing.TB) time.Duration {
	tb.Helper()
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		tb.Fatal(err)
	}
	var seconds float64
	if _, err := fmt.Sscan(string(uptime), &seconds); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}

// since lists what is different from before. Others may mount while we look, so only mounts that are gone or changed, and
// new ones that can be a sandbox's, count.
func (h hostState) since(before hostState) []string {
	var changes []string
	for name, value := range before.values {
		if now := h.values[name]; now != value {
			changes = append(changes, fmt.Sprintf("%s is %q, was %q", name, now, value))
		}
	}
	for line := range before.mounts {
		device, _, _ := strings.Cut(line, " ")
		if !h.mounts[line] && device != "overlay" && device != "shm" && !strings.Contains(line, "sallyport-test") {
			changes = append(changes, "a mount is gone: "+line)
		}
	}
	for line := range h.mounts {
		if !before.mounts[line] && (strings.Contains(line, "/newroot") || strings.Contains(line, "/oldroot") || strings.Contains(line, "/skill")) {
			changes = append(changes, "a mount is new: "+line)
		}
	}
	if step := (h.clock - before.clock).Abs(); step > 5*time.Second {
		changes = append(changes, fmt.Sprintf("the wall clock was moved by %s", step))
	}
	return changes
}
