package bubblewrap

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/bpf"
)

// What the kernel does with a system call (linux/seccomp.h).
const (
	seccompKillProcess = 0x80000000
	seccompErrno       = 0x00050000
	seccompAllow       = 0x7fff0000
)

// The errnos the filter answers with.
const (
	errnoPretend    = 0 // say that it worked, and do nothing
	errnoPermission = 1
	errnoNoSystem   = 38
	errnoNoFamily   = 97
)

// Where struct seccomp_data keeps what a filter may look at. Both architectures are little-endian, so the low half of
// an argument comes first.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

func argLow(n uint32) bpf.Instruction  { return bpf.LoadAbsolute{Off: dataArgs + 8*n, Size: 4} }
func argHigh(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: dataArgs + 8*n + 4, Size: 4} }

// architecture is what differs between the machines we build for.
type architecture struct {
	name  string
	audit uint32 // AUDIT_ARCH_*
	// foreignBit marks system calls of a second table on the same machine (x32); 0 for none.
	foreignBit uint32
	number     func(denial) int
}

// architectures are the machines that have an embedded helper.
func architectures() map[string]architecture {
	return map[string]architecture{
		"amd64": {"amd64", 0xc000003e, 0x40000000, func(d denial) int { return d.amd64 }},
		"arm64": {"arm64", 0xc00000b7, 0, func(d denial) int { return d.arm64 }},
	}
}

// denial is one row of the deny list: a system call, its number per architecture (-1: it has none) and what is answered.
type denial struct {
	name         string
	amd64, arm64 int
	answer       fragment
}

// fragment is the part of the program that decides one system call. It always ends with a verdict.
type fragment []bpf.Instruction

func deny(errno uint32) bpf.Instruction { return bpf.RetConstant{Val: seccompErrno | errno} }

func permit() bpf.Instruction { return bpf.RetConstant{Val: seccompAllow} }

// always refuses whatever the arguments are.
func always(errno uint32) fragment { return fragment{deny(errno)} }

// whenBits refuses when argument arg has any of bits set in its low half, where all flags in question are.
func whenBits(arg, bits, errno uint32) fragment {
	return fragment{
		argLow(arg),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipFalse: 1},
		deny(errno),
		permit(),
	}
}

// whenOneOf refuses when the low half of argument arg is one of values. The kernel looks at the low half only, so a
// number with high bits set is the same request and must not pass.
func whenOneOf(arg, errno uint32, values ...uint32) fragment {
	f := fragment{argLow(arg)}
	for _, v := range values {
		f = append(f, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, deny(errno))
	}
	return append(f, permit())
}

// unlessOneOf refuses every value of argument arg that is not listed.
func unlessOneOf(arg, errno uint32, values ...uint32) fragment {
	f := fragment{argLow(arg)}
	for _, v := range values {
		f = append(f, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, permit())
	}
	return append(f, deny(errno))
}

// socketFamilies lets through UNIX, IPv4, IPv6 and the one netlink protocol that interpreters use to list interfaces.
// Families are a frequent source of kernel faults; a network namespace does not shield from those.
func socketFamilies() fragment {
	const unix, inet, inet6, netlink, netlinkRoute = 1, 2, 10, 16, 0
	return fragment{
		argLow(0),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix, SkipTrue: 1},
		permit(),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: inet, SkipTrue: 1},
		permit(),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: inet6, SkipTrue: 1},
		permit(),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: netlink, SkipTrue: 3},
		argLow(2),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: netlinkRoute, SkipTrue: 1},
		permit(),
		deny(errnoNoFamily),
	}
}

// setLimits handles prlimit64(pid, resource, new, old): limits of another process may not be set (PID 1 has our uid), and
// the core limit stays where PID 1 put it, because lowering it from 1 to 0 would switch a piped core handler of the
// host on again. Reading is free.
func setLimits() fragment {
	const limitCore = 4
	return fragment{
		argLow(2),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
		argHigh(2),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		permit(), // new is NULL
		argLow(0),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		deny(errnoPermission),
		argLow(1),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: limitCore, SkipTrue: 1},
		deny(errnoPretend),
		permit(),
	}
}

// The namespaces that clone and unshare could open; unshare knows the time namespace as well, whose bit means something
// else to clone.
const (
	namespaceFlags = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
	namespaceTime  = 0x00000080
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
		{"socket", 41, 198, socketFamilies()},
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

// seccompProgram builds the filter for one architecture. A call of a foreign architecture kills the process: its numbers
// mean other things, so no answer would be right.
func seccompProgram(arch architecture) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch.audit, SkipTrue: 1},
		bpf.RetConstant{Val: seccompKillProcess},
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
	}
	if arch.foreignBit != 0 {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: arch.foreignBit, SkipTrue: 1},
			deny(errnoNoSystem))
	}
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lastKnownSystemCall, SkipFalse: 1},
		deny(errnoNoSystem))
	for _, d := range denials() {
		number := arch.number(d)
		if number < 0 {
			continue
		}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: uint8(len(d.answer))})
		program = append(program, d.answer...)
	}
	return append(program, permit())
}

// seccompFilter is seccompProgram as the kernel's array of struct sock_filter.
func seccompFilter(goarch string) ([]byte, error) {
	arch, ok := architectures()[goarch]
	if !ok {
		return nil, fmt.Errorf("no seccomp deny list for %s", goarch)
	}
	raw, err := bpf.Assemble(seccompProgram(arch))
	if err != nil {
		return nil, err
	}
	filter := make([]byte, 0, 8*len(raw))
	for _, op := range raw {
		filter = binary.NativeEndian.AppendUint16(filter, op.Op)
		filter = append(filter, op.Jt, op.Jf)
		filter = binary.NativeEndian.AppendUint32(filter, op.K)
	}
	return filter, nil
}
