//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// attackProcesses: numbers, life cycle and identity of processes.
func attackProcesses() []attack {
	return []attack{
		{name: "attack 4: bomb of raw clone, vfork and clone3", run: func(t *testing.T, s *siege) {
			req := s.compiled("bomb")
			req.Limits.Processes = 24
			s.printed(t, s.do(t, req), "clone3 ENOSYS\nclone EAGAIN after 24\nvfork EAGAIN\n")
		}},
		{name: "attack 8: daemons that ignore every signal, at the timeout", run: func(t *testing.T, s *siege) {
			req := s.script("python", `
import os, signal, time
for _ in range(10):
    if os.fork() == 0:
        os.setsid()
        for n in range(1, 65):
            try: signal.signal(n, signal.SIG_IGN)
            except (OSError, ValueError): pass
        while True:
            time.sleep(1)
time.sleep(60)
`)
			req.Limits.Timeout = time.Second
			s.timedOut(t, s.do(t, req))
		}},
		{name: "attack 13: ptrace a sibling", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.compiled("sibling")), "")
		}},
		{name: "attack 18: odd argv", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.compiled("odd argv")), "")
		}},
		{name: "attack 19: arguments and variables above what a process can take", run: func(t *testing.T, s *siege) {
			req := s.script("bash", "echo never\n")
			for range 100 {
				req.Argv = append(req.Argv, strings.Repeat("a", 100<<10))
			}
			// So much that it is not even sent to PID 1: told in the same words as what the kernel itself refuses.
			if r := s.do(t, req); !strings.Contains(r.StartError, "larger than a process can take") || len(r.Stdout) != 0 {
				t.Errorf("argv: %s", told(r))
			}
			req = s.script("bash", "echo never\n")
			req.Secrets = map[string]sallyport.Secret{"LARGE": sallyport.Secret(strings.Repeat("s", 200<<10))}
			if r := s.do(t, req); !strings.Contains(r.StartError, "larger than a process can take") || len(r.Stdout) != 0 {
				t.Errorf("variables: %s", told(r))
			}
		}},
		{name: "attack 20: renames its folder and removes what it stands on", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("bash", `
mv "$SKILL_ROOT" /skill2 2>/dev/null && echo 'renamed the mount'
mv scripts gone && mkdir scripts && rm -rf gone
mkdir /tmp/here && cd /tmp/here && rmdir /tmp/here
rm -rf "$SKILL_ARTIFACTS" "$HOME"/* /tmp/* 2>/dev/null
bash -c 'echo still here'
`)), "still here\n")
		}},
		{name: "attack 21: the state folder disappears beneath us", run: func(t *testing.T, s *siege) {
			revisions := filepath.Join(s.h.cfg.StateDir, "revisions")
			if _, err := os.Stat(revisions); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(revisions); err != nil {
				t.Fatal(err)
			}
			r, err := s.e.Execute(t.Context(), s.script("bash", "echo complete\n"))
			// Either is right: the folder is made again, or the run is refused. Half a skill is not.
			if err != nil && !sallyport.IsNotStarted(err) || err == nil && string(r.Stdout) != "complete\n" {
				t.Errorf("got %v, %s", err, told(r))
			}
			if err := os.MkdirAll(revisions, 0o711); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "attack 22: nice, io priority, affinity, scheduler", run: func(t *testing.T, s *siege) {
			req := s.script("python", `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def denied(name, act):
    try:
        act()
        print('allowed:', name)
    except (OSError, PermissionError):
        pass
denied('nice -20', lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
denied('real time', lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(99)))
denied('fifo', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
denied('nice of PID 1', lambda: os.setpriority(os.PRIO_PROCESS, 1, 5))
denied('affinity of PID 1', lambda: os.sched_setaffinity(1, {0}))
if libc.syscall(ctypes.c_long(251 if os.uname().machine == 'x86_64' else 30), 1, 0, 1 << 13) == 0:
    print('allowed: io real time')
os.nice(19)
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
`)
			r := s.do(t, req)
			// PID 1 has the script's uid, so it may be made nicer: it has nothing left to do but wait.
			out := strings.NewReplacer("allowed: nice of PID 1\n", "", "allowed: affinity of PID 1\n", "").Replace(string(r.Stdout))
			s.exited(t, r, 0)
			if out != "" {
				t.Errorf("%s", out)
			}
		}},
		{name: "attack 25: exit code 256", run: func(t *testing.T, s *siege) {
			s.exited(t, s.do(t, s.script("python", "import os\nos._exit(256)\n")), 0)
			s.exited(t, s.do(t, s.script("python", "import os\nos._exit(256 + 137)\n")), 137)
		}},
		{name: "attack 27: shell whose child was killed for memory and which exits 0", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("bash", "python3 -c 'a = []\nwhile True: a.append(bytearray(1 << 20))' 2>/dev/null\nexit 0\n"))
			s.exited(t, r, 0)
			if r.Usage.OOMKills != 1 {
				t.Errorf("%d kills for memory, want 1", r.Usage.OOMKills)
			}
		}},
		{name: "attack 31: ends within a moment of the deadline, many times", run: func(t *testing.T, s *siege) {
			var finished, timeouts atomic.Int64
			var wait sync.WaitGroup
			for worker := range 6 {
				wait.Go(func() {
					for i := range 3 {
						req := s.script("bash", fmt.Sprintf("sleep %.3f\nprintf complete\n", 0.94+0.012*float64(worker)+0.004*float64(i)))
						req.Limits.Timeout = time.Second
						r, err := s.e.Execute(t.Context(), req)
						switch {
						case err == nil && r.TimedOut && r.ExitCode == nil:
							timeouts.Add(1)
						case err == nil && r.ExitCode != nil && *r.ExitCode == 0 && string(r.Stdout) == "complete":
							finished.Add(1)
						default:
							t.Errorf("neither finished nor timed out: %v, %s", err, told(r))
						}
					}
				})
			}
			wait.Wait()
			t.Logf("%d finished, %d timed out", finished.Load(), timeouts.Load())
		}},
		{name: "attack 30: timers without end", run: func(t *testing.T, s *siege) {
			req := s.script("python", "import threading, time\ndef spin():\n    while True: time.sleep(1e-6)\nfor _ in range(8): threading.Thread(target=spin, daemon=True).start()\ntime.sleep(60)\n")
			req.Limits.Timeout = 2 * time.Second
			done := make(chan sallyport.Result, 1)
			go func() {
				r, err := s.e.Execute(t.Context(), req)
				if err != nil {
					t.Errorf("execute: %v", err)
				}
				done <- r
			}()
			time.Sleep(500 * time.Millisecond)
			s.printed(t, s.do(t, s.script("bash", "echo beside it\n")), "beside it\n")
			s.timedOut(t, <-done)
		}},
	}
}
