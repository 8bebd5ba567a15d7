package bubblewrap

import (
	"crypto/rand"
	"encoding/hex"
	"os"
)

// A process table of its own still shows, beside processes, what the kernel tells of the whole host. Masked is what names the
// host or its parts, counts what others do there one by one, or takes requests. What interpreters and their libraries read to
// size themselves stays (cpuinfo, meminfo, stat, vmstat, loadavg, uptime, version, cgroups, filesystems, devices, sys, self), and
// so do sums over the whole machine and lists of hardware: each mask is a mount, which every run pays for.

// maskedFiles are those files, as far as a kernel has them.
func maskedFiles() []string {
	return []string{
		// The host's start, disks and parts.
		"/proc/bootconfig", "/proc/cmdline", "/proc/config.gz", "/proc/diskstats", "/proc/iomem", "/proc/mdstat", "/proc/modules",
		"/proc/mtrr", "/proc/partitions", "/proc/swaps",
		// What goes on there: key strokes, processes, locks on files, timers.
		"/proc/interrupts", "/proc/latency_stats", "/proc/locks", "/proc/pagetypeinfo", "/proc/sched_debug", "/proc/schedstat",
		"/proc/slabinfo", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
		// The kernel's memory, names and keys, and its ear.
		"/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount",
		"/proc/kpageflags", "/proc/sysrq-trigger",
	}
}

// maskedDirs are folders of the same kind: of file systems and drivers, and a place where a user can make the kernel watch the
// load of the host.
func maskedDirs() []string {
	return []string{"/proc/acpi", "/proc/asound", "/proc/driver", "/proc/dynamic_debug", "/proc/fs", "/proc/pressure", "/proc/scsi"}
}

// pathBootID names the start of the host, so two runs, and whoever they report to, could tell that they share it.
const pathBootID = "/proc/sys/kernel/random/boot_id"

// masks are the options that close them: the files by a device that cannot be opened in there, the folders by empty ones.
// What the kernel closes to an ordinary user itself needs none; each costs a mount.
func masks() []string {
	var args []string
	for _, file := range maskedFiles() {
		if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o006 != 0 {
			args = append(args, "--ro-bind", os.DevNull, file)
		}
	}
	for _, dir := range maskedDirs() {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			args = append(args, "--size", "4096", "--perms", "0555", "--tmpfs", dir, "--remount-ro", dir)
		}
	}
	return args
}

// bootID is a random one in the kernel's form: a library that asks gets an answer, and every run another.
func bootID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:] + "\n"
}
