package seccomp

import "slices"

// The profiles. profiles.md lists what each denies.
const (
	// Default denies what no script needs: new namespaces, other processes' memory, mounts, kernel interfaces with a
	// history of faults, and what concerns the machine.
	Default = "default"
	// Strict denies in addition what two runs could signal each other with through the files of the host that both
	// can read: locks and leases on them, notices that somebody opened them, and the state of their pages in memory. It
	// costs programs that list network interfaces, watch files or use flock.
	Strict = "strict"
)

// profiles are the deny lists by name.
func profiles() map[string][]denial {
	return map[string][]denial{Default: denials(), Strict: overlay(denials(), strictDenials())}
}

// overlay replaces the rows of base that more has too, and adds the others.
func overlay(base, more []denial) []denial {
	for _, row := range more {
		if i := slices.IndexFunc(base, func(d denial) bool { return d.name == row.name }); i >= 0 {
			base[i] = row
		} else {
			base = append(base, row)
		}
	}
	return base
}

// The namespaces that clone and unshare could open; unshare knows the time namespace as well, whose bit means something
// else to clone.
const (
	namespaceFlags = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
	namespaceTime  = 0x00000080
)

// How mmap, memfd_create and shmget are asked for huge pages.
const (
	mapHugePages   = 0x40000
	memfdHugePages = 0x4
	shmHugePages   = 0x800
)

// lastKnownSystemCall is the newest one this list was checked against. Younger ones are answered as an older kernel
// would: what nobody judged is not allowed.
const lastKnownSystemCall = 471

// denials is the default deny list. Everything not named is allowed: what a script needs differs too much between
// interpreters, their versions and their libraries for a list of the allowed.
func denials() []denial {
	return []denial{
		// New namespaces. clone3 hides its flags in memory that a filter cannot read; on ENOSYS every libc falls back.
		{"clone", 56, 220, whenBits(0, namespaceFlags, errnoPermission)},
		{"clone3", 435, 435, always(errnoNoSystem)},
		{"unshare", 272, 97, whenBits(0, namespaceFlags|namespaceTime, errnoPermission)},
		{"setns", 308, 268, always(errnoPermission)},
		// Tracing, reading and steering other processes.
		{"ptrace", 101, 117, always(errnoPermission)},
		{"process_vm_readv", 310, 270, always(errnoPermission)},
		{"process_vm_writev", 311, 271, always(errnoPermission)},
		{"process_madvise", 440, 440, always(errnoPermission)},
		{"kcmp", 312, 272, always(errnoPermission)},
		{"pidfd_getfd", 438, 438, always(errnoPermission)},
		{"perf_event_open", 298, 241, always(errnoPermission)},
		{"move_pages", 279, 239, always(errnoPermission)},
		{"migrate_pages", 256, 238, always(errnoPermission)},
		{"prlimit64", 302, 261, setLimits()},
		{"setrlimit", 160, 164, whenOneOf(0, errnoPretend, 4)},
		// The CPUs of a run are as many as its quota is; more would only be shown, not given.
		{"sched_setaffinity", 203, 122, always(errnoPermission)},
		// How PID 1 is scheduled. A process may still steer itself and its children.
		{"setpriority", 141, 140, notInitOrUser(2)},
		{"ioprio_set", 251, 30, notInitOrUser(3)},
		{"sched_setscheduler", 144, 119, notInit(0)},
		{"sched_setparam", 142, 118, notInit(0)},
		{"sched_setattr", 314, 274, notInit(0)},
		// Mounts and roots.
		{"mount", 165, 40, always(errnoPermission)},
		{"umount2", 166, 39, always(errnoPermission)},
		{"pivot_root", 155, 41, always(errnoPermission)},
		{"chroot", 161, 51, always(errnoPermission)},
		{"move_mount", 429, 429, always(errnoPermission)},
		{"open_tree", 428, 428, always(errnoPermission)},
		{"open_tree_attr", 467, 467, always(errnoPermission)},
		{"fsopen", 430, 430, always(errnoPermission)},
		{"fsconfig", 431, 431, always(errnoPermission)},
		{"fsmount", 432, 432, always(errnoPermission)},
		{"fspick", 433, 433, always(errnoPermission)},
		{"mount_setattr", 442, 442, always(errnoPermission)},
		// A file handle reaches past every mount.
		{"open_by_handle_at", 304, 265, always(errnoPermission)},
		// Families of sockets, and typing into a terminal.
		{"socket", 41, 198, sockets(true)},
		// It makes a socket of any family before it finds out that only UNIX has pairs.
		{"socketpair", 53, 199, unlessOneOf(0, errnoNoFamily, familyUnix)},
		{"setsockopt", 54, 208, socketOptions()},
		{"ioctl", 16, 29, whenOneOf(1, errnoPermission, 0x5412, 0x541c, 0x541d)},
		// Parts of the kernel with a long history of faults that no script needs.
		{"bpf", 321, 280, always(errnoPermission)},
		{"userfaultfd", 323, 282, always(errnoPermission)},
		{"io_uring_setup", 425, 425, always(errnoPermission)},
		{"io_uring_enter", 426, 426, always(errnoPermission)},
		{"io_uring_register", 427, 427, always(errnoPermission)},
		{"keyctl", 250, 219, always(errnoPermission)},
		{"add_key", 248, 217, always(errnoPermission)},
		{"request_key", 249, 218, always(errnoPermission)},
		{"fanotify_init", 300, 262, always(errnoPermission)},
		{"modify_ldt", 154, -1, always(errnoPermission)},
		// Asking for the current personality, and for the plain one, is all a script does.
		{"personality", 135, 92, unlessOneOf(0, errnoPermission, 0, 0xffffffff)},
		// Supplies of the whole machine that no limit of a run counts: huge pages are reserved by the operator and are outside
		// of the memory limit, and there is one number of requests of the old asynchronous interface for all processes.
		{"mmap", 9, 222, whenBits(3, mapHugePages, errnoNoMemory)},
		{"memfd_create", 319, 279, whenBits(1, memfdHugePages, errnoNoMemory)},
		{"shmget", 29, 194, whenBits(2, shmHugePages, errnoNoMemory)},
		{"io_setup", 206, 0, always(errnoNoSystem)},
		// They write out what every other program of the machine has in memory, and cannot be ended meanwhile. Nothing that a
		// script can write to outlives it.
		{"sync", 162, 81, always(errnoPretend)},
		{"syncfs", 306, 267, always(errnoPretend)},
		// The machine: modules, time, power, swap, accounting, ports, names, log.
		{"init_module", 175, 105, always(errnoPermission)},
		{"finit_module", 313, 273, always(errnoPermission)},
		{"delete_module", 176, 106, always(errnoPermission)},
		{"create_module", 174, -1, always(errnoPermission)},
		{"kexec_load", 246, 104, always(errnoPermission)},
		{"kexec_file_load", 320, 294, always(errnoPermission)},
		{"reboot", 169, 142, always(errnoPermission)},
		{"swapon", 167, 224, always(errnoPermission)},
		{"swapoff", 168, 225, always(errnoPermission)},
		{"settimeofday", 164, 170, always(errnoPermission)},
		{"clock_settime", 227, 112, always(errnoPermission)},
		{"adjtimex", 159, 171, always(errnoPermission)},
		{"clock_adjtime", 305, 266, always(errnoPermission)},
		{"acct", 163, 89, always(errnoPermission)},
		{"quotactl", 179, 60, always(errnoPermission)},
		{"quotactl_fd", 443, 443, always(errnoPermission)},
		{"iopl", 172, -1, always(errnoPermission)},
		{"ioperm", 173, -1, always(errnoPermission)},
		{"syslog", 103, 116, always(errnoPermission)},
		{"sethostname", 170, 161, always(errnoPermission)},
		{"setdomainname", 171, 162, always(errnoPermission)},
		{"vhangup", 153, 58, always(errnoPermission)},
		{"nfsservctl", 180, 42, always(errnoPermission)},
		{"lookup_dcookie", 212, 18, always(errnoPermission)},
		{"uselib", 134, -1, always(errnoPermission)},
		{"sysfs", 139, -1, always(errnoPermission)},
		{"_sysctl", 156, -1, always(errnoPermission)},
	}
}

// strictDenials is what the strict profile denies in addition, or, for a call of the default list, instead.
func strictDenials() []denial {
	return []denial{
		// Locks, leases and notices on files that runs share: one run sets, another sees.
		{"flock", 73, 32, always(errnoPermission)},
		// F_GETLK, F_OFD_GETLK, F_SETLEASE, F_GETLEASE, F_NOTIFY. Locks of one's own files can still be taken: a lock for
		// reading is all that a shared file allows, and those do not collide.
		{"fcntl", 72, 25, whenOneOf(1, errnoPermission, 5, 36, 1024, 1025, 1026)},
		{"inotify_init", 253, -1, always(errnoPermission)},
		{"inotify_init1", 294, 26, always(errnoPermission)},
		// Which pages of a shared file are in memory, and throwing them out.
		{"mincore", 27, 232, always(errnoPermission)},
		{"cachestat", 451, 451, always(errnoPermission)},
		{"fadvise64", 221, 223, always(errnoPermission)},
		{"readahead", 187, 213, always(errnoPermission)},
		{"preadv2", 327, 286, whenBits(5, 8, errnoNotSupported)}, // RWF_NOWAIT
		// The identity of a file beyond this sandbox.
		{"name_to_handle_at", 303, 264, always(errnoPermission)},
		// No netlink at all, not even the list of interfaces.
		{"socket", 41, 198, sockets(false)},
		// Another way into pipes with a history of faults.
		{"vmsplice", 278, 75, always(errnoPermission)},
	}
}
