// Package seccomp holds the lists of system calls that scripts are denied, and makes the kernel's filters of them.
//
// It owns the lists and their assembly; it leaves loading a filter to the executors that start scripts on a kernel. Its one
// invariant: there is one list for all of them, and it names every call by the number that it has on each machine.
package seccomp

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

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
	errnoPretend      = 0 // say that it worked, and do nothing
	errnoPermission   = 1
	errnoNoMemory     = 12
	errnoNoSystem     = 38
	errnoNoProtocol   = 93
	errnoNoType       = 94
	errnoNotSupported = 95
	errnoNoFamily     = 97
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

// fragment is the part of the program that decides one system call, and the same in words. It always ends with a verdict.
type fragment struct {
	text string
	ops  []bpf.Instruction
}

func deny(errno uint32) bpf.Instruction { return bpf.RetConstant{Val: seccompErrno | errno} }

func permit() bpf.Instruction { return bpf.RetConstant{Val: seccompAllow} }

// answer is an errno in words.
func answer(errno uint32) string {
	switch errno {
	case errnoPretend:
		return "done in name only"
	case errnoPermission:
		return "EPERM"
	case errnoNoMemory:
		return "ENOMEM"
	case errnoNoSystem:
		return "ENOSYS"
	case errnoNoProtocol:
		return "EPROTONOSUPPORT"
	case errnoNoType:
		return "ESOCKTNOSUPPORT"
	case errnoNotSupported:
		return "EOPNOTSUPP"
	case errnoNoFamily:
		return "EAFNOSUPPORT"
	}
	return "errno " + strconv.FormatUint(uint64(errno), 10)
}

// always refuses whatever the arguments are.
func always(errno uint32) fragment {
	return fragment{answer(errno), []bpf.Instruction{deny(errno)}}
}

// whenBits refuses when argument arg has any of bits set in its low half, where all flags in question are.
func whenBits(arg, bits, errno uint32) fragment {
	return fragment{
		fmt.Sprintf("%s when argument %d has any of the bits %#x", answer(errno), arg, bits),
		[]bpf.Instruction{
			argLow(arg),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipFalse: 1},
			deny(errno),
			permit(),
		},
	}
}

// whenOneOf refuses when the low half of argument arg is one of values. The kernel looks at the low half only, so a
// number with high bits set is the same request and must not pass.
func whenOneOf(arg, errno uint32, values ...uint32) fragment {
	ops := []bpf.Instruction{argLow(arg)}
	for _, v := range values {
		ops = append(ops, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, deny(errno))
	}
	return fragment{fmt.Sprintf("%s when argument %d is one of %s", answer(errno), arg, hexes(values)), append(ops, permit())}
}

// unlessOneOf refuses every value of argument arg that is not listed.
func unlessOneOf(arg, errno uint32, values ...uint32) fragment {
	return fragment{
		fmt.Sprintf("%s unless argument %d is one of %s", answer(errno), arg, hexes(values)),
		append(pass(arg, values...), deny(errno)),
	}
}

// pass lets the listed values of argument arg through.
func pass(arg uint32, values ...uint32) []bpf.Instruction {
	ops := []bpf.Instruction{argLow(arg)}
	for _, v := range values {
		ops = append(ops, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, permit())
	}
	return ops
}

func hexes(values []uint32) string {
	words := make([]string, 0, len(values))
	for _, v := range values {
		words = append(words, fmt.Sprintf("%#x", v))
	}
	return strings.Join(words, ", ")
}

// The families of sockets that stay: those of one machine, which is all that a run has.
const (
	familyUnix    = 1
	familyInet    = 2
	familyInet6   = 10
	familyNetlink = 16
)

// sockets lets through UNIX, and TCP and UDP over IPv4 and IPv6. Families and protocols are a frequent source of kernel
// faults, which a network namespace does not shield from: asking for one is enough to load its module and run its code. With
// netlink, also the one protocol of it that interpreters use to list interfaces.
func sockets(netlink bool) fragment {
	const (
		netlinkRoute     = 0
		typeBits         = 0xf // above are flags
		stream, datagram = 1, 2
		tcp, udp         = 6, 17
	)
	text := "EAFNOSUPPORT for families other than UNIX, INET and INET6"
	var routes []bpf.Instruction
	if netlink {
		text = "EAFNOSUPPORT for families other than UNIX, INET, INET6 and netlink route"
		routes = []bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: familyNetlink, SkipTrue: 3},
			argLow(2),
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: netlinkRoute, SkipTrue: 1},
			permit(),
		}
	}
	internet := []bpf.Instruction{
		argLow(1),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: typeBits},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: stream, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: datagram, SkipTrue: 1},
		deny(errnoNoType),
	}
	internet = append(append(internet, pass(2, 0, tcp, udp)...), deny(errnoNoProtocol))
	ops := append(pass(0, familyUnix),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: familyInet, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: familyInet6, SkipTrue: uint8(len(internet))})
	ops = append(append(append(ops, internet...), routes...), deny(errnoNoFamily))
	return fragment{
		text + "; of the INET families ESOCKTNOSUPPORT unless streams or datagrams, EPROTONOSUPPORT unless protocol 0, TCP or UDP", ops,
	}
}

// socketOptions refuses what puts code of the kernel or a program of the caller's between a socket and its user: the layers
// above TCP (tls, espintcp, smc), encapsulation in UDP, and socket filters.
func socketOptions() fragment {
	const (
		levelSocket, levelTCP, levelUDP = 1, 6, 17
		upperLayer                      = 31
		encapsulation                   = 100
	)
	check := func(level uint32, options ...uint32) []bpf.Instruction {
		ops := []bpf.Instruction{argLow(2)}
		for _, option := range options {
			ops = append(ops, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: option, SkipTrue: 1}, deny(errnoPermission))
		}
		ops = append(ops, permit())
		return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: level, SkipTrue: uint8(len(ops))}}, ops...)
	}
	ops := append([]bpf.Instruction{argLow(1)}, check(levelTCP, upperLayer)...)
	ops = append(ops, check(levelUDP, encapsulation)...)
	ops = append(ops, check(levelSocket, 26, 50, 51, 52)...) // SO_ATTACH_FILTER, _BPF, _REUSEPORT_CBPF, _REUSEPORT_EBPF
	return fragment{"EPERM for layers above TCP, encapsulation in UDP and socket filters", append(ops, permit())}
}

// notInit refuses to change how PID 1 is scheduled: it has the uid of the script, tells how the run ended, and must not be
// made to wait. Argument pid is the process, 0 for the caller.
func notInit(pid uint32) fragment {
	return fragment{"EPERM for PID 1", whenOneOf(pid, errnoPermission, 1).ops}
}

// notInitOrUser is notInit for calls that take a kind and a number: PID 1 is one process, one process group, and one of the
// processes of the user.
func notInitOrUser(user uint32) fragment {
	return fragment{
		"EPERM for PID 1, its process group, and for all processes of a user",
		append([]bpf.Instruction{
			argLow(0),
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: user, SkipTrue: 1},
			deny(errnoPermission),
		}, notInit(1).ops...),
	}
}

// setLimits handles prlimit64(pid, resource, new, old): limits of another process may not be set (PID 1 has our uid), and
// the core limit stays where PID 1 put it, because lowering it from 1 to 0 would switch a piped core handler of the
// host on again. Reading is free.
func setLimits() fragment {
	const limitCore = 4
	return fragment{
		"EPERM when it sets a limit of another process; setting the core limit is done in name only",
		[]bpf.Instruction{
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
		},
	}
}

// assemble builds the filter for one architecture. A call of a foreign architecture kills the process: its numbers
// mean other things, so no answer would be right.
func assemble(arch architecture, list []denial) []bpf.Instruction {
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
	for _, d := range list {
		number := arch.number(d)
		if number < 0 {
			continue
		}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: uint8(len(d.answer.ops))})
		program = append(program, d.answer.ops...)
	}
	return append(program, permit())
}

// Filter is the named profile for a machine (by its GOARCH) as the kernel's array of struct sock_filter.
func Filter(goarch, profile string) ([]byte, error) {
	arch, ok := architectures()[goarch]
	if !ok {
		return nil, fmt.Errorf("no seccomp deny list for %s", goarch)
	}
	list, ok := profiles()[profile]
	if !ok {
		return nil, fmt.Errorf("no seccomp profile %q", profile)
	}
	raw, err := bpf.Assemble(assemble(arch, list))
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
