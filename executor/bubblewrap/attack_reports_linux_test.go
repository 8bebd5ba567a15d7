//go:build amd64 || arm64

package bubblewrap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// attackReports: faults that users of other sandboxes have reported.
func attackReports() []attack {
	return []attack{
		{name: "report 6: everything written before the exit is there", run: func(t *testing.T, s *siege) {
			for range 10 {
				r := s.do(t, s.script("bash", "sleep 300 &\n(printf early)\nprintf '%65000s' x\nprintf late >&2\n"))
				s.exited(t, r, 0)
				if r.StdoutBytes != 65005 || string(r.Stderr) != "late" {
					t.Errorf("%d bytes, stderr %q", r.StdoutBytes, r.Stderr)
				}
			}
		}},
		{name: "report 8: timeout of a second with a child of eight", run: func(t *testing.T, s *siege) {
			req := s.script("bash", "sleep 8 &\nwait\n")
			req.Limits.Timeout = time.Second
			begin := time.Now()
			s.timedOut(t, s.do(t, req))
			if took := time.Since(begin); took > req.Limits.Timeout+req.Grace {
				t.Errorf("took %s", took)
			}
		}},
		{name: "report 13: a prompt that asks again for ever", run: func(t *testing.T, s *siege) {
			req := s.script("bash", "while :; do read -rp 'Continue? [y/n] ' a; echo \"$a is neither\"; done\n")
			req.Limits.Timeout = time.Second
			r := s.do(t, req)
			s.timedOut(t, r)
			if len(r.Stdout) > 64<<10 {
				t.Errorf("kept %d bytes", len(r.Stdout))
			}
		}},
		{name: "report 17: a timeout is no signal as well", run: func(t *testing.T, s *siege) {
			req := s.script("bash", "sleep 60\n")
			req.Limits.Timeout = time.Second
			r := s.do(t, req)
			s.timedOut(t, r)
			if r.Signal != 0 || r.ExitCode != nil || r.Usage.OOMKills != 0 {
				t.Errorf("got %s", told(r))
			}
		}},
		{name: "report 27: a megabyte of memory", run: func(t *testing.T, s *siege) {
			req := s.script("python", "print('ran')\n")
			req.Limits.MemoryBytes = 1 << 20
			r, err := s.e.Execute(t.Context(), req)
			// Not enough to start with: refused with a reason, or ended by the limit, and never a success.
			if err == nil && r.Limit != sallyport.LimitMemory && r.StartError == "" || err != nil && !sallyport.IsNotStarted(err) {
				t.Errorf("got %v, %s", err, told(r))
			}
		}},
		{name: "report 38: one write above the limit", run: func(t *testing.T, s *siege) {
			req := s.script("python", "import os\nos.write(1, b'x' * 5000)\n")
			req.Limits.OutputBytes = 1024
			r := s.do(t, req)
			s.exited(t, r, 0)
			if len(r.Stdout) != 1024 || !r.StdoutTruncated || r.StdoutBytes != 5000 {
				t.Errorf("kept %d of %d bytes, truncated %v", len(r.Stdout), r.StdoutBytes, r.StdoutTruncated)
			}
		}},
		{name: "report 41: bytes of another encoding, and what follows them", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("bash", "printf 'caf\\xe9 \\xa4 and the rest\\n'\n"))
			s.printed(t, r, "caf\xe9 \xa4 and the rest\n")
		}},
		{name: "report 53: nothing that nobody put there", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("bash", "find . -mindepth 1 | sort\nls -A \"$HOME\" /tmp /dev/shm \"$SKILL_ARTIFACTS\" \"$SKILL_INPUT\" | grep -v ':$' | grep .\ntrue\n")), "./scripts\n./scripts/script\n")
		}},
		{name: "report 55: starts that fail, many times", run: func(t *testing.T, s *siege) {
			for range 15 {
				req := s.script("bash", "echo never\n")
				req.Interpreter.Program = "/usr/bin/no-such-program"
				if r := s.do(t, req); r.StartError == "" {
					t.Errorf("got %s", told(r))
				}
				req = s.script("bash", "echo never\n")
				req.Files[0].Content = []byte("swapped")
				req.Files[0].SHA256 = component("", "x").SHA256
				_ = s.refused(t, req)
			}
		}},
		{name: "report 69: pools of processes", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import concurrent.futures, multiprocessing
def square(n): return n * n
if __name__ == '__main__':
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, range(4))))
    print(multiprocessing.Lock().acquire())
`)), "[0, 1, 4, 9]\nTrue\n")
		}},
		{name: "report 70: sockets between processes of a run", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import os, socket
server = socket.socket(socket.AF_UNIX)
server.bind('/tmp/socket')
server.listen()
abstract = socket.socket(socket.AF_UNIX)
abstract.bind('\0attack')
abstract.listen()
if os.fork() == 0:
    for address in ('/tmp/socket', '\0attack'):
        c = socket.socket(socket.AF_UNIX)
        c.connect(address)
        c.send(b'hello')
    os._exit(0)
for s in (server, abstract): print(s.accept()[0].recv(10).decode())
`)), "hello\nhello\n")
		}},
		{name: "report 71: what interpreters call at their start and at work", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", "import asyncio, ctypes, decimal, hashlib, json, sqlite3, ssl, subprocess, tempfile, threading, uuid, zoneinfo\nasync def f(): return 1\nprint(asyncio.run(f()), subprocess.run(['true']).returncode, sqlite3.connect(':memory:').execute('select 2').fetchone()[0])\n")), "1 0 2\n")
			req := s.script("node", "const {Worker} = require('worker_threads')\nnew Worker('require(\"worker_threads\").parentPort.postMessage(3)', {eval: true}).on('message', (m) => { require('crypto').randomBytes(8); console.log(m, require('child_process').execSync('echo 4').toString().trim()) })\n")
			req.Limits.MemoryBytes = 512 << 20
			s.printed(t, s.do(t, req), "3 4\n")
		}},
		{name: "report 36: little output is never a reason to end", run: func(t *testing.T, s *siege) {
			req := s.script("python", "import sys\nfor i in range(200):\n    print('x' * 100)\nsys.exit(3)\n")
			req.Limits.OutputBytes = 1000
			r := s.do(t, req)
			s.exited(t, r, 3)
			if !r.StdoutTruncated || strings.Count(string(r.Stdout), "x") < 900 {
				t.Errorf("kept %d bytes, truncated %v", len(r.Stdout), r.StdoutTruncated)
			}
		}},
	}
}
