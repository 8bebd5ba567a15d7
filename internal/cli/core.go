package cli

import "syscall"

// keepNoCore makes sure that a process that dies leaves no image of its memory on disk: secrets are opened in it.
func keepNoCore() {
	// It lowers a limit of our own, which is always allowed.
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}
