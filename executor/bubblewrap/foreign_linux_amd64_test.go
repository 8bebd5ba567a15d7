package bubblewrap_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// A call of another architecture is the end of the process, by SIGSYS, in both profiles.
func TestForeignSystemCall(t *testing.T) {
	t.Parallel()
	const source = `
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
m.write(bytes.fromhex('b814000000cd80c3'))  # mov $20, %eax; int $0x80; ret
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print(f(), flush=True)
`
	for _, profile := range []string{bubblewrap.ProfileDefault, bubblewrap.ProfileStrict} {
		e := newExecutor(t, bubblewrap.Config{Profile: profile})
		r, err := e.Execute(t.Context(), request("python", "/usr/bin/python3", source))
		if err != nil || r.Signal != 31 || r.ExitCode != nil || len(r.Stdout) != 0 {
			t.Errorf("%s: signal %d, %q %q, %v", profile, r.Signal, r.Stdout, r.Stderr, err)
		}
	}
}
