package executortest

import (
	"fmt"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// lifetimes: a run ends with its leader or at its deadline, whatever it started, and takes all of it along.
func lifetimes() []attempt {
	pid := []sallyport.Layer{sallyport.LayerPIDNamespace}
	return []attempt{
		{name: "sleeps past its timeout", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "sleep 60\n")
			req.Limits.Timeout = time.Second
			r, took := s.execute(t, req)
			timedOut(t, r)
			if took < time.Second || took > 4*time.Second {
				t.Errorf("took %s", took)
			}
		}},
		{name: "ignores every signal", run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import signal, time\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: time.sleep(1)\n")
			req.Limits.Timeout = time.Second
			r, took := s.execute(t, req)
			timedOut(t, r)
			if took > 4*time.Second {
				t.Errorf("took %s", took)
			}
		}},
		{name: "stops itself", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "kill -STOP $$\n")
			req.Limits.Timeout = time.Second
			timedOut(t, s.do(t, req))
		}},
		{name: "background child holds the streams", run: promptly("sleep 300 &\necho done\nexit 0\n", "done\n")},
		{name: "child in a session of its own", run: promptly("setsid sleep 300 > /dev/null 2>&1 < /dev/null &\necho done\n", "done\n")},
		{name: "double fork with closed streams", run: promptly("(setsid bash -c 'trap \"\" TERM INT HUP QUIT; exec >&- 2>&- <&-; while :; do sleep 1; done' &)\necho done\n", "done\n")},
		{name: "timeout with children that hold the streams", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "sleep 300 &\n(setsid sleep 300 &)\nsleep 300\n")
			req.Limits.Timeout = time.Second
			r, took := s.execute(t, req)
			timedOut(t, r)
			if took > 4*time.Second {
				t.Errorf("took %s", took)
			}
		}},
		{name: "kills everything it may", needs: pid, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "bash", "sleep 60 &\nkill -9 -1\nwait\necho alive\n")), "alive\n")
			s.benign(t)
		}},
		{name: "kills PID 1 with every signal", needs: pid, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "bash", "for n in $(seq 1 31) $(seq 34 64); do kill -$n 1; done 2>/dev/null\nsleep 0.2\nkill -0 1 && echo alive\n")), "alive\n")
		}},
		{name: "main thread ends before the others", run: func(t *testing.T, s *suite) {
			r, took := s.execute(t, s.request(t, "python", "import ctypes, os, threading, time\ndef late():\n    time.sleep(1)\n    os.write(1, b'late')\n    os._exit(5)\nthreading.Thread(target=late).start()\nctypes.CDLL(None).pthread_exit(0)\n"))
			if took < time.Second || string(r.Stdout) != "late" {
				t.Errorf("took %s, %s", took, describe(r))
			}
		}},
		{name: "ends close to its deadline", run: func(t *testing.T, s *suite) {
			for i := range 8 {
				req := s.request(t, "python", fmt.Sprintf("import os, time\ntime.sleep(%f)\nos.write(1, b'all of it')\nos._exit(0)\n", 0.9+0.02*float64(i)))
				req.Limits.Timeout = time.Second
				r := s.do(t, req)
				whole := string(r.Stdout) == "all of it"
				switch {
				case r.TimedOut && r.ExitCode == nil:
				case !r.TimedOut && r.ExitCode != nil && *r.ExitCode == 0 && whole:
				default:
					t.Errorf("neither finished nor timed out: %s", describe(r))
				}
			}
		}},
	}
}

// promptly is an attempt whose leader exits at once while something it started would live for minutes.
func promptly(source, want string) func(*testing.T, *suite) {
	return func(t *testing.T, s *suite) {
		r, took := s.execute(t, s.request(t, "bash", source))
		printed(t, r, want)
		if took > 4*time.Second {
			t.Errorf("took %s", took)
		}
	}
}
