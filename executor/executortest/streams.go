package executortest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// streams: bounded, complete up to the bound, raw, and never a reason to wait or to stop.
func streams() []attempt {
	list := []attempt{
		{name: "flood without a line break", run: func(t *testing.T, s *suite) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			r := s.do(t, s.request(t, "python", "import sys\nfor _ in range(640):\n    sys.stdout.write('y' * 65536)\nsys.stdout.flush()\nsys.exit(3)\n"))
			runtime.GC()
			runtime.ReadMemStats(&after)
			exited(t, r, 3)
			if !r.StdoutTruncated || len(r.Stdout) != 64<<10 || r.StdoutBytes != 640<<16 || r.StderrTruncated {
				t.Errorf("kept %d of %d bytes, truncated %v", len(r.Stdout), r.StdoutBytes, r.StdoutTruncated)
			}
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
				t.Errorf("the heap grew by %d bytes", grown)
			}
		}},
		{name: "flood on both streams until the timeout", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "yes >&2 &\nyes\n")
			req.Limits.Timeout = time.Second
			r := s.do(t, req)
			timedOut(t, r)
			if !r.StdoutTruncated || !r.StderrTruncated || len(r.Stdout) != 64<<10 || len(r.Stderr) != 64<<10 {
				t.Errorf("kept %d and %d bytes", len(r.Stdout), len(r.Stderr))
			}
		}},
		{name: "cut inside a character", run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import sys\nsys.stdout.buffer.write('abc'.encode() + '\\U0001F600'.encode() * 100)\n")
			for limit := int64(40); limit < 44; limit++ {
				req.Limits.OutputBytes = limit
				r := s.do(t, again(req))
				exited(t, r, 0)
				if int64(len(r.Stdout)) > limit || int64(len(r.Stdout)) <= limit-4 || !utf8.Valid(r.Stdout) || !r.StdoutTruncated || r.StdoutBytes != 403 {
					t.Errorf("limit %d: kept %q of %d bytes, truncated %v", limit, r.Stdout, r.StdoutBytes, r.StdoutTruncated)
				}
			}
		}},
		{name: "character split over two writes", run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "python", "import os, time\nb = '€'.encode()\nos.write(1, b[:1])\ntime.sleep(0.2)\nos.write(1, b[1:])\n")), "€")
		}},
		{name: "invalid UTF-8 is passed on", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", "import os\nos.write(1, b'a\\xff\\xfe\\x80b\\xe2\\x82')\nos.write(2, b'\\xa4')\nos._exit(4)\n"))
			exited(t, r, 4)
			if string(r.Stdout) != "a\xff\xfe\x80b\xe2\x82" || string(r.Stderr) != "\xa4" {
				t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
			}
		}},
		{name: "streams closed, still computing", run: func(t *testing.T, s *suite) {
			r, took := s.execute(t, s.request(t, "bash", "exec >&- 2>&- <&-\nsleep 1\nexit 3\n"))
			exited(t, r, 3)
			if took < time.Second {
				t.Errorf("ended after %s", took)
			}
		}},
		{name: "stdout opened again", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "echo one > /proc/self/fd/1\necho two > /dev/stdout\n(: < /dev/tty) 2>/dev/null || echo 'no terminal'\n"))
			printed(t, r, "one\ntwo\nno terminal\n")
		}},
		{name: "pipe flags changed", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", `
import fcntl, os, sys
flags = fcntl.fcntl(1, fcntl.F_GETFL)
fcntl.fcntl(1, fcntl.F_SETFL, flags | os.O_NONBLOCK)
try:
    fcntl.fcntl(1, 1031, 1 << 20)
except OSError:
    pass
left = b'z' * 500000
while left:
    try:
        left = left[os.write(1, left):]
    except BlockingIOError:
        pass
sys.exit(6)
`))
			exited(t, r, 6)
			if r.StdoutBytes != 500000 {
				t.Errorf("%d bytes", r.StdoutBytes)
			}
		}},
		{name: "nothing to forge a result with", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", `
import os
found = []
for fd in range(3, 1024):
    try:
        os.fstat(fd)
        found.append(fd)
    except OSError:
        pass
print(found, end='')
os.write(1, b'{"exit_code": 0, "status": "success"}\x00\x04\x00\x00\x00')
os._exit(9)
`))
			exited(t, r, 9)
			if want := "{\"exit_code\": 0, \"status\": \"success\"}\x00\x04\x00\x00\x00"; !strings.HasSuffix(string(r.Stdout), want) {
				t.Errorf("stdout %q", r.Stdout)
			}
		}},
		{name: "only three descriptors", run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "python", `
import os
def is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False
print([fd for fd in range(1024) if is_open(fd)], end='')
`)), "[0, 1, 2]")
		}},
		{name: "output before the timeout is kept", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "echo begun\necho and so on >&2\nsleep 60\n")
			req.Limits.Timeout = time.Second
			r := s.do(t, req)
			timedOut(t, r)
			if string(r.Stdout) != "begun\n" || string(r.Stderr) != "and so on\n" {
				t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
			}
		}},
	}
	for _, difference := range []int{-1, 0, 1} {
		list = append(list, attempt{name: fmt.Sprintf("output of the limit %+d", difference), run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", fmt.Sprintf("import sys\nsys.stdout.write('x' * %d)\n", 5000+difference))
			req.Limits.OutputBytes = 5000
			r := s.do(t, req)
			exited(t, r, 0)
			if len(r.Stdout) != min(5000, 5000+difference) || r.StdoutTruncated != (difference > 0) || r.StdoutBytes != int64(5000+difference) {
				t.Errorf("kept %d of %d bytes, truncated %v", len(r.Stdout), r.StdoutBytes, r.StdoutTruncated)
			}
		}})
	}
	return list
}
