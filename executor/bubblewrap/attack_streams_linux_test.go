//go:build amd64 || arm64

package bubblewrap_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// attackStreams: what goes in and what comes out.
func attackStreams() []attack {
	return []attack{
		{name: "attack 75: closes its streams, computes on, exits 3", run: func(t *testing.T, s *siege) {
			begin := time.Now()
			s.exited(t, s.do(t, s.script("bash", "exec >&- 2>&- <&-\nsleep 2\nexit 3\n")), 3)
			if took := time.Since(begin); took < 2*time.Second {
				t.Errorf("ended after %s", took)
			}
		}},
		{name: "attack 78: the pipes reconfigured by every process", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import fcntl, os
for fd in (1, 2):
    for path in ('/proc/self/fd/%d' % fd,):
        extra = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        for size in (4096, 1 << 20, 1 << 30):
            try: fcntl.fcntl(extra, 1031, size)
            except OSError: pass
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND | os.O_ASYNC)
        try: fcntl.fcntl(fd, fcntl.F_SETOWN, 1)
        except OSError: pass
        # A reader of our own takes bytes away from the supervisor, which must not wait for them.
        try: os.set_blocking(os.open(path, os.O_RDONLY | os.O_NONBLOCK), False)
        except OSError: pass
os.set_blocking(1, True)
os.write(1, b'x' * 5000)
`))
			s.exited(t, r, 0)
			if r.StdoutBytes != 5000 || string(r.Stdout) != strings.Repeat("x", 5000) {
				t.Errorf("%d bytes", r.StdoutBytes)
			}
		}},
		{name: "attack 79: forged reports on every descriptor", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import os, struct
# Frames of PID 1 say: ready, started, exited with 0, end.
forged = b''.join(struct.pack('<IIQ', kind, 0, 0) for kind in range(1, 9)) * 20
for fd in range(0, 1024):
    try: os.write(fd, forged)
    except OSError: pass
for pid in ('1', 'self', str(os.getppid())):
    for fd in range(0, 64):
        try:
            w = os.open('/proc/%s/fd/%d' % (pid, fd), os.O_WRONLY | os.O_NONBLOCK)
            os.write(w, forged)
        except OSError: pass
os._exit(9)
`))
			s.exited(t, r, 9)
			if len(r.Artifacts) != 0 || r.OutputData != nil {
				t.Errorf("artifacts %v, output data %q", r.Artifacts, r.OutputData)
			}
		}},
		{name: "attack 82: ten megabytes of deep, doubled, odd JSON", run: func(t *testing.T, s *siege) {
			req := s.script("python", "import hashlib, sys\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())\n")
			req.Stdin = append(append(bytes.Repeat([]byte("["), 4<<20), []byte(`{"a": NaN, "a": 1e400, "a": "\ud800"}`)...), bytes.Repeat([]byte("]"), 6<<20)...)
			s.printed(t, s.do(t, req), component("", string(req.Stdin)).SHA256+"\n")
		}},
		{name: "attack 83: broken and endless output documents", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("bash", "printf '{\"a\": [1, ' > \"$SKILL_OUTPUT\"\nexit 4\n"))
			s.exited(t, r, 4)
			if string(r.OutputData) != `{"a": [1, ` {
				t.Errorf("output data %q", r.OutputData)
			}
			r = s.do(t, s.script("bash", "truncate -s 10M \"$SKILL_OUTPUT\" || truncate -s 2M \"$SKILL_OUTPUT\"\nexit 5\n"))
			s.exited(t, r, 5)
			if len(r.OutputData) != 0 || !r.OutputDataTruncated {
				t.Errorf("kept %d bytes, truncated %v", len(r.OutputData), r.OutputDataTruncated)
			}
		}},
		{name: "attack 106: descriptors passed between processes of a run", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import os, socket
a, b = socket.socketpair(socket.AF_UNIX)
r, w = os.pipe()
if os.fork() == 0:
    _, fds, _, _ = socket.recv_fds(b, 1, 1)
    os.write(fds[0], b'passed')
    os._exit(0)
socket.send_fds(a, [b'x'], [w])
print(os.read(r, 10).decode())
# No descriptor that we were given is a socket, so nothing can be passed back out.
for fd in (0, 1, 2):
    if os.path.exists('/proc/self/fd/%d' % fd) and 'socket' in os.readlink('/proc/self/fd/%d' % fd): print('socket', fd)
`)), "passed\n")
		}},
	}
}
