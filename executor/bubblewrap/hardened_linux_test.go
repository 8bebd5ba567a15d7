//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// hardened returns a program that is bubblewrap as it works on another kind of host: the system calls that such a host
// does not have, or does not allow, are refused to it and to everything that it starts.
func hardened(tb testing.TB, kind string) string {
	tb.Helper()
	dir := openDir(tb, -1)
	path := filepath.Join(dir, "bwrap")
	script := fmt.Sprintf("#!/bin/sh\nexec /usr/bin/env %s=hardened %s %s %s \"$@\"\n", playVariable, testBinary(tb), kind, bubblewrapProgram(tb))
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		tb.Fatal(err)
	}
	return path
}

// playHardened is the other half of hardened: test KIND BWRAP ARGUMENTS...
func playHardened() int {
	refuse := func(number, errno uint32) []bpf.Instruction {
		return []bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1},
			bpf.RetConstant{Val: 0x00050000 | errno},
		}
	}
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4}}
	switch os.Args[1] {
	case "no-landlock":
		program = append(program, refuse(unix.SYS_LANDLOCK_CREATE_RULESET, uint32(unix.ENOSYS))...)
	case "broken-landlock":
		program = append(program, refuse(unix.SYS_LANDLOCK_RESTRICT_SELF, uint32(unix.EINVAL))...)
	case "no-userns":
		const newUser = 0x10000000
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE, SkipTrue: 1},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_UNSHARE, SkipTrue: 3},
			bpf.LoadAbsolute{Off: 16, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: newUser, SkipTrue: 1},
			bpf.RetConstant{Val: 0x00050000 | uint32(unix.EPERM)})
	default:
		return 1
	}
	runtime.LockOSThread()
	if err := load(append(program, bpf.RetConstant{Val: 0x7fff0000})); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err := syscall.Exec(os.Args[2], os.Args[2:], []string{})
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// load puts the calling process under a filter.
func load(program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, 0, len(raw))
	for _, op := range raw {
		filter = append(filter, unix.SockFilter{Code: op.Op, Jt: op.Jt, Jf: op.Jf, K: op.K})
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}
