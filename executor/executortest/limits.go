package executortest

import (
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// limits: each holds, ends at most its own run, and is named when it fired.
func limits() []attempt {
	memory := []sallyport.Layer{sallyport.LayerMemoryLimit}
	processes := []sallyport.Layer{sallyport.LayerProcessLimit, sallyport.LayerGroupKill}
	scratch := []sallyport.Layer{sallyport.LayerScratchLimit}
	budget := []sallyport.Feature{sallyport.FeatureCPUTime}
	return []attempt{
		{name: "takes memory until it dies", needs: memory, run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", "a = []\nwhile True:\n    a.append(bytearray(1 << 20))\n"))
			if r.Signal != 9 || r.Limit != sallyport.LimitMemory || r.ExitCode != nil || r.Usage.OOMKills < 1 || r.TimedOut {
				t.Errorf("want a kill for memory, got %s", describe(r))
			}
			if peak := r.Usage.MemoryPeakBytes; peak != nil && (*peak > 256<<20 || *peak < 200<<20) {
				t.Errorf("peak %d", *peak)
			}
			s.benign(t)
		}},
		{name: "child killed for memory, parent succeeds", needs: memory, run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", "import subprocess, sys\np = subprocess.run([sys.executable, '-c', 'a = []\\nwhile True: a.append(bytearray(1 << 20))'])\nprint(p.returncode, end='')\n"))
			printed(t, r, "-9")
			if r.Usage.OOMKills < 1 {
				t.Errorf("%d kills for memory reported", r.Usage.OOMKills)
			}
		}},
		{name: "child killed for memory, shell exits 137", needs: memory, run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "python3 -c 'a = []\nwhile True: a.append(bytearray(1 << 20))'\nexit $?\n"))
			exited(t, r, 137)
			if r.Usage.OOMKills < 1 {
				t.Errorf("%d kills for memory reported", r.Usage.OOMKills)
			}
		}},
		{name: "memory in files that have no name", needs: memory, run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", "import os\nfds = [os.memfd_create(str(i)) for i in range(64)]\nfor fd in fds:\n    try:\n        for _ in range(8): os.write(fd, b'x' * (1 << 20))\n    except OSError: pass\n"))
			if r.Limit != sallyport.LimitMemory && (r.ExitCode == nil || *r.ExitCode != 0) {
				t.Errorf("got %s", describe(r))
			}
			if peak := r.Usage.MemoryPeakBytes; peak != nil && *peak > 256<<20 {
				t.Errorf("peak %d", *peak)
			}
		}},
		{name: "files without content until something ends", needs: memory, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "i = 0\ntry:\n    while True:\n        open('/tmp/%d' % i, 'w').write('x')\n        i += 1\nexcept OSError:\n    pass\n")
			req.Limits.MemoryBytes, req.Limits.Timeout = 32<<20, time.Minute
			r, took := s.execute(t, req)
			if r.TimedOut || took > time.Minute {
				t.Errorf("took %s, %s", took, describe(r))
			}
			s.benign(t)
		}},
		{name: "fills every file system", needs: scratch, run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", `
import os, errno
for place in ['/tmp', '/dev/shm', os.environ['HOME'], os.environ['SKILL_ROOT'], os.environ['SKILL_ARTIFACTS']]:
    total = 0
    try:
        with open(os.path.join(place, 'full'), 'wb') as f:
            while total < 200 << 20:
                total += f.write(b'x' * (1 << 20))
        print(place, 'has no limit')
    except OSError as e:
        if e.errno != errno.ENOSPC: print(place, e)
        if total < 4 << 20 or total > 16 << 20: print(place, total)
    os.unlink(os.path.join(place, 'full'))
`))
			printed(t, r, "")
		}},
		{name: "fork bomb", needs: processes, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", ":() { : | : & }; :\nwait\nsleep 60\n")
			req.Limits.Timeout = 2 * time.Second
			r := s.do(t, req)
			if !r.TimedOut && r.ExitCode == nil {
				t.Errorf("got %s", describe(r))
			}
			s.benign(t)
		}},
		{name: "slow fork bomb", needs: processes, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import os, time\nwhile True:\n    try:\n        if os.fork() == 0:\n            time.sleep(0.005)\n            continue\n        if os.getppid() == 1: os._exit(0)\n    except OSError:\n        pass\n    time.sleep(0.005)\n")
			req.Limits.Timeout = 2 * time.Second
			s.do(t, req)
			s.benign(t)
		}},
		{name: "as many processes as allowed and no more", needs: processes, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import os, sys\nn = 1\ntry:\n    while True:\n        if os.fork() == 0:\n            os.execlp('sleep', 'sleep', '60')\n        n += 1\nexcept BlockingIOError:\n    print(n, end='')\n")
			req.Limits.Processes = 24
			printed(t, s.do(t, req), "24")
		}},
		{name: "thread bomb", needs: processes, run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", "import os, threading, time\ntry:\n    while True:\n        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nexcept RuntimeError:\n    print('refused', flush=True)\n    os._exit(3)\n"))
			exited(t, r, 3)
		}},
		{name: "zombies", needs: processes, run: func(t *testing.T, s *suite) {
			for range 2 {
				printed(t, s.do(t, s.request(t, "python", "import os\nn = 0\ntry:\n    while n < 5000:\n        if os.fork() == 0: os._exit(0)\n        n += 1\nexcept BlockingIOError:\n    pass\nprint(n > 30, end='')\n")), "True")
			}
		}},
		{name: "orphans are reaped meanwhile", needs: processes, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "bash", "for i in $(seq 300); do (true &) ; done\necho done\n")), "done\n")
		}},
		{name: "processor time", needs: []sallyport.Layer{sallyport.LayerCPULimit}, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "while :; do :; done &\nwhile :; do :; done\n")
			req.Limits.CPUMillis, req.Limits.Timeout = 300, 2*time.Second
			r := s.do(t, req)
			timedOut(t, r)
			if r.Usage.CPUTimeMS == nil || *r.Usage.CPUTimeMS > 1000 || *r.Usage.CPUTimeMS < 100 {
				t.Errorf("used %v ms of processor time in 2 s at 0.3 processors", r.Usage.CPUTimeMS)
			}
		}},
		{name: "budget of processor time, one process", wants: budget, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "echo begun\nwhile :; do :; done\n")
			req.Limits.CPUTime = 500 * time.Millisecond
			r := s.do(t, req)
			overBudget(t, req, r)
			if got := string(r.Stdout); got != "begun\n" {
				t.Errorf("stdout %q", got)
			}
			s.benign(t)
		}},
		{name: "budget of processor time, children one after another", wants: budget, run: func(t *testing.T, s *suite) {
			// Each stays far below the budget, is reaped or left to PID 1, and leaves its session.
			req := s.request(t, "bash", "while :; do\n  setsid bash -c 'for ((i = 0; i < 20000; i++)); do :; done' &\n  (bash -c 'for ((i = 0; i < 20000; i++)); do :; done' &)\n  wait\ndone\n")
			req.Limits.CPUTime = 800 * time.Millisecond
			overBudget(t, req, s.do(t, req))
		}},
		{name: "budget of processor time, children side by side", wants: budget, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import os\nfor _ in range(6):\n    if os.fork() == 0:\n        os.setsid()\n        while True: pass\nos.wait()\n")
			req.Limits.CPUTime = 800 * time.Millisecond
			overBudget(t, req, s.do(t, req))
		}},
		{name: "budget of processor time, threads", wants: budget, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import hashlib, threading\ndata = bytes(1 << 20)\ndef work():\n    while True: hashlib.sha256(data).digest()\nfor _ in range(4): threading.Thread(target=work).start()\n")
			req.Limits.CPUTime = 800 * time.Millisecond
			overBudget(t, req, s.do(t, req))
		}},
		{name: "budget of processor time, waiting costs nothing", wants: budget, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "sleep 2\necho fine\n")
			req.Limits.CPUTime = 1500 * time.Millisecond
			r := s.do(t, req)
			printed(t, r, "fine\n")
			if used := r.Usage.CPUTimeMS; used != nil && *used > 750 {
				t.Errorf("waiting cost %d ms of processor time: whoever watches the budget uses it up", *used)
			}
		}},
		{name: "budget of processor time, the wall clock fires first", wants: budget, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "sleep 60\n")
			req.Limits.CPUTime, req.Limits.Timeout = 10*time.Second, time.Second
			timedOut(t, s.do(t, req))
		}},
		{name: "usage is measured", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", "import time\nb = bytearray(60 << 20)\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"))
			exited(t, r, 0)
			if cpu := r.Usage.CPUTimeMS; cpu == nil || *cpu < 250 || *cpu > 5000 {
				t.Errorf("processor time %v", cpu)
			}
			if peak := r.Usage.MemoryPeakBytes; peak != nil && (*peak < 60<<20 || *peak > 200<<20) {
				t.Errorf("peak %d", *peak)
			}
			if r.Usage.OOMKills != 0 {
				t.Errorf("%d kills for memory", r.Usage.OOMKills)
			}
		}},
		{name: "more open files than allowed", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", "import os\nn = 0\ntry:\n    while n < 100000:\n        os.pipe()\n        n += 1\nexcept OSError as e:\n    print(e.strerror, end='')\n"))
			exited(t, r, 0)
			if !strings.Contains(string(r.Stdout), "Too many open files") {
				t.Errorf("stdout %q", r.Stdout)
			}
		}},
	}
}

// overBudget fails the test unless the executor stopped the script at its budget of processor time. It may notice late, and
// what it reads at the end is more than what it read when it stopped the script, but not by a multiple.
func overBudget(t *testing.T, req sallyport.ExecRequest, r sallyport.Result) {
	t.Helper()
	if !r.TimedOut || r.ExitCode != nil || r.Signal != 0 || r.Limit != sallyport.LimitCPU {
		t.Fatalf("want the budget to end it, got %s", describe(r))
	}
	if used := r.Usage.CPUTimeMS; used == nil || *used < req.Limits.CPUTime.Milliseconds() || *used > 3*req.Limits.CPUTime.Milliseconds()+1000 {
		t.Errorf("used %v ms of processor time with a budget of %s", used, req.Limits.CPUTime)
	}
}
