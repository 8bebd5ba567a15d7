//go:build unix && !linux

package unsafelocal

// seal does nothing: descriptors that we inherited ourselves are inherited further.
func seal() {}

// narrow does nothing: there is no way to limit a process that runs already.
func narrow(int) {}

// killByVariable does nothing: the environment of other processes cannot be read.
func killByVariable(string) {}
