//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// attackResources: memory, processor and what is paid for with them.
func attackResources() []attack {
	return []attack{
		{name: "attack 41: a hundred gigabytes that are never touched", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", "import mmap\ntry:\n    m = [mmap.mmap(-1, 10 << 30, flags=mmap.MAP_PRIVATE | 0x4000) for _ in range(10)]\nexcept (OSError, MemoryError):\n    pass\nprint('on')\n"))
			s.printed(t, r, "on\n")
			if r.Usage.OOMKills != 0 {
				t.Errorf("%d kills for memory", r.Usage.OOMKills)
			}
		}},
		{name: "attack 43: anonymous files until something ends", run: func(t *testing.T, s *siege) {
			s.memoryOnly(t, s.do(t, s.script("python", `
import os
fds = []
try:
    while True:
        fds.append(os.memfd_create('x'))
        for _ in range(4): os.write(fds[-1], b'x' * (1 << 20))
except OSError:
    pass
`)))
		}},
		{name: "attack 48: pipes and sockets full of bytes", run: func(t *testing.T, s *siege) {
			s.memoryOnly(t, s.do(t, s.script("python", `
import fcntl, os, socket
held = []
try:
    for _ in range(400):
        r, w = os.pipe()
        held.append((r, w))
        os.set_blocking(w, False)
        try: fcntl.fcntl(w, 1031, 1 << 20)
        except OSError: pass
        a, b = socket.socketpair()
        held.append((a, b))
        a.setblocking(False)
        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        for fill in (lambda: os.write(w, b'x' * 65536), lambda: a.send(b'x' * 65536)):
            try:
                while True: fill()
            except BlockingIOError: pass
except OSError:
    pass
`)))
		}},
		{name: "attack 49: reads until the page cache is full", run: func(t *testing.T, s *siege) {
			req := s.script("bash", "for i in 1 2; do find /usr/lib /usr/bin -xdev -type f -size -20M 2>/dev/null | head -n 1500 | xargs -d '\\n' cat 2>/dev/null | wc -c > /dev/null; done\necho done\n")
			req.Limits.MemoryBytes = 48 << 20
			r := s.do(t, req)
			s.printed(t, r, "done\n")
			if r.Usage.OOMKills != 0 {
				t.Errorf("%d kills for memory by reading", r.Usage.OOMKills)
			}
			if peak := r.Usage.MemoryPeakBytes; peak != nil && *peak > 48<<20 {
				t.Errorf("peak %d is above the limit", *peak)
			}
		}},
		{name: "attack 50: no swap beyond the memory limit", run: func(t *testing.T, s *siege) {
			for _, limit := range s.whileRunning(t, "memory.memsw.limit_in_bytes", "memory.swap.max") {
				if limit.value != "0" && limit.value != strconv.Itoa(128<<20) {
					t.Errorf("%s is %s", limit.file, limit.value)
				}
			}
		}},
		{name: "attack 52: expressions, numbers and archives that explode", run: func(t *testing.T, s *siege) {
			for name, source := range map[string]string{
				"regular expression": "import re\nre.match('(a+)+$', 'a' * 60 + 'b')\n",
				"power":              "print(len(str(9 ** 9 ** 9 % 10 ** 9)))\n",
				"decompression":      "import zlib, io\nd = zlib.compress(b'0' * (64 << 20), 9)\nout = []\nwhile True: out.append(zlib.decompress(d))\n",
			} {
				req := s.script("python", source)
				req.Limits.Timeout = 2 * time.Second
				if r := s.do(t, req); !r.TimedOut && r.Limit != sallyport.LimitMemory && (r.ExitCode == nil || !strings.Contains(string(r.Stderr), "MemoryError")) {
					t.Errorf("%s: %s", name, told(r))
				}
			}
		}},
		{name: "attack 44: shared memory full, then goes on", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", "import errno\ntry:\n    with open('/dev/shm/x', 'wb') as f:\n        while True: f.write(b'x' * (1 << 20))\nexcept OSError as e:\n    print(e.errno == errno.ENOSPC)\n"))
			s.printed(t, r, "True\n")
			if r.Usage.OOMKills != 0 {
				t.Errorf("%d kills for memory", r.Usage.OOMKills)
			}
		}},
		{name: "attack 46: files of one byte until something ends", run: func(t *testing.T, s *siege) {
			req := s.script("bash", "i=0; while : > /tmp/$((i++)); do :; done 2>/dev/null; for d in /dev/shm $HOME $SKILL_ARTIFACTS $SKILL_ROOT; do while printf x > $d/$((i++)); do :; done 2>/dev/null; done\n")
			req.Limits.MemoryBytes = 24 << 20
			s.memoryOnly(t, s.do(t, req))
		}},
		{name: "attack 32: every process frozen until the timeout", run: func(t *testing.T, s *siege) {
			req := s.script("bash", "sleep 60 & sleep 60\n")
			req.Limits.Timeout = 2 * time.Second
			done := make(chan sallyport.Result, 1)
			go func() {
				r, err := s.e.Execute(t.Context(), req)
				if err != nil {
					t.Errorf("execute: %v", err)
				}
				done <- r
			}()
			if frozen := s.writeToGroups(t, "cgroup.freeze", "1"); frozen == 0 && os.Geteuid() == 0 {
				t.Error("no group was frozen")
			}
			r := <-done
			// PID 1 was frozen too, so it could say nothing: no output data and no artifacts, but the end is a timeout.
			s.timedOut(t, r)
		}},
	}
}

// memoryOnly fails the test unless the run ended by itself, at its memory limit or at its timeout, within its memory.
func (s *siege) memoryOnly(t *testing.T, r sallyport.Result) {
	t.Helper()
	if r.Limit != sallyport.LimitMemory && !r.TimedOut && (r.ExitCode == nil || *r.ExitCode > 1 && r.Usage.OOMKills == 0) {
		t.Errorf("got %s", told(r))
	}
}

type groupValue struct{ file, value string }

// whileRunning reads control files of a run while it is under way. Not every tree has every file.
func (s *siege) whileRunning(t *testing.T, names ...string) []groupValue {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.e.Execute(t.Context(), s.script("bash", "sleep 1\n")); err != nil {
			t.Errorf("execute: %v", err)
		}
	}()
	var values []groupValue
	for len(values) == 0 {
		select {
		case <-done:
			return values
		case <-time.After(50 * time.Millisecond):
		}
		for _, name := range names {
			for _, file := range s.groupFiles(t, name) {
				if value, err := os.ReadFile(file); err == nil {
					values = append(values, groupValue{file, strings.TrimSpace(string(value))})
				}
			}
		}
	}
	<-done
	return values
}

// groupFiles are the control files of a name in the groups of runs under way.
func (s *siege) groupFiles(t *testing.T, name string) []string {
	t.Helper()
	var files []string
	for _, group := range instanceGroups(t, s.h.cfg.StateDir) {
		found, err := filepath.Glob(filepath.Join(group, "run-*", name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// writeToGroups writes to a control file of every run under way, once there is one with a script in it.
func (s *siege) writeToGroups(t *testing.T, name, value string) int {
	t.Helper()
	written := 0
	for range 100 {
		time.Sleep(15 * time.Millisecond)
		for _, file := range s.groupFiles(t, name) {
			members, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup.procs"))
			if err != nil || !slices.ContainsFunc(strings.Fields(string(members)), func(pid string) bool {
				name, err := os.ReadFile("/proc/" + pid + "/comm")
				return err == nil && string(name) == "sleep\n"
			}) {
				continue
			}
			if err := os.WriteFile(file, fmt.Append(nil, value), 0); err == nil {
				written++
			}
		}
		if written > 0 {
			break
		}
	}
	return written
}
