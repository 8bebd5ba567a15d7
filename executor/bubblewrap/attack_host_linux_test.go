//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"os"
	"slices"
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

// shownInside reports whether a mount of the host is one that sandboxes are built from. Container engines and others mount and
// unmount elsewhere while we look, and no script could reach that.
func shownInside(line string) bool {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return false
	}
	if fields[1] == "/" {
		return true
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(fields[1], "/"), "/")
	return slices.Contains([]string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "dev", "proc", "sys"}, top)
}

// since lists what is different from before. Others may mount while we look, so only mounts that sandboxes are built from and
// that are gone or changed, and new ones that can be a sandbox's, count.
func (h hostState) since(before hostState) []string {
	var changes []string
	for name, value := range before.values {
		if now := h.values[name]; now != value {
			changes = append(changes, fmt.Sprintf("%s is %q, was %q", name, now, value))
		}
	}
	for line := range before.mounts {
		if !h.mounts[line] && shownInside(line) {
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

// What another program unmounts meanwhile is its own affair; what a sandbox shows is not.
func TestHostStateComparesMounts(t *testing.T) {
	t.Parallel()
	gone := map[string]bool{
		"proc /tmp/other/proc proc rw,relatime 0 0":                                      false,
		"overlay /var/lib/containers/storage/overlay/x/merged overlay rw 0 0":            false,
		"shm /var/lib/containers/storage/overlay-containers/x/userdata/shm tmpfs rw 0 0": false,
		"nsfs /run/netns/x nsfs rw 0 0":                                                  false,
		"/dev/vda1 / ext4 rw 0 0":                                                        true,
		"proc /proc proc rw,nosuid 0 0":                                                  true,
		"devtmpfs /dev devtmpfs rw 0 0":                                                  true,
		"cgroup /sys/fs/cgroup/memory cgroup rw 0 0":                                     true,
		"/dev/vdb1 /usr/local ext4 ro 0 0":                                               true,
	}
	for line, counts := range gone {
		before := hostState{mounts: map[string]bool{line: true}}
		if changes := (hostState{}).since(before); (len(changes) > 0) != counts {
			t.Errorf("%s is gone: got %q", line, changes)
		}
	}
}
