package executortest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// outcomes: how a script ends is told as it was, and nothing is guessed from a number.
func outcomes() []attempt {
	var list []attempt
	for _, code := range []int{0, 1, 2, 124, 125, 126, 127, 137, 139, 143, 255} {
		list = append(list, attempt{name: fmt.Sprintf("exit code %d", code), run: func(t *testing.T, s *suite) {
			exited(t, s.do(t, s.request(t, "bash", fmt.Sprintf("exit %d\n", code))), code)
		}})
	}
	for _, signal := range []int{6, 9, 11, 15} {
		list = append(list, attempt{name: fmt.Sprintf("ends itself with signal %d", signal), run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", fmt.Sprintf("kill -%d $$\nsleep 5\n", signal)))
			if r.Signal != signal || r.ExitCode != nil || r.Limit != "" || r.TimedOut {
				t.Errorf("got %s", describe(r))
			}
		}})
	}
	return append(list,
		attempt{name: "file size limit", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "ulimit -f 1\nprintf '%9999s' x > big\n"))
			if r.Signal != 25 || r.Limit != sallyport.LimitDisk || r.ExitCode != nil {
				t.Errorf("want SIGXFSZ and the limit disk, got %s", describe(r))
			}
		}},
		attempt{name: "writes to stderr and succeeds", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "echo warning >&2\necho done\n"))
			printed(t, r, "done\n")
			if string(r.Stderr) != "warning\n" || r.StderrBytes != 8 {
				t.Errorf("stderr %q, %d bytes", r.Stderr, r.StderrBytes)
			}
		}},
		attempt{name: "uncaught exception", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "python", "raise ValueError('seen')\n"))
			exited(t, r, 1)
			if !strings.Contains(string(r.Stderr), "ValueError: seen") {
				t.Errorf("stderr %q", r.Stderr)
			}
		}},
		attempt{name: "missing interpreter", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "echo never\n")
			req.Interpreter.Program = "/usr/bin/sallyport-no-such-interpreter"
			startFailed(t, s.do(t, req))
			s.benign(t)
		}},
		attempt{name: "interpreter is a folder", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "echo never\n")
			req.Interpreter.Program = "/usr/lib"
			startFailed(t, s.do(t, req))
		}},
		attempt{name: "argument too long", wants: []sallyport.Feature{sallyport.FeatureArgv}, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "echo never\n")
			req.Argv = []string{strings.Repeat("x", 200<<10)}
			startFailed(t, s.do(t, req))
		}},
		attempt{name: "time of start", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "exit 0\n"))
			exited(t, r, 0)
			if r.StartedAt.IsZero() {
				t.Error("the start is not known")
			}
		}},
	)
}

// startFailed fails the test unless nothing ran and the result says why.
func startFailed(t *testing.T, r sallyport.Result) {
	t.Helper()
	if r.StartError == "" || r.ExitCode != nil || len(r.Stdout) != 0 || r.TimedOut {
		t.Errorf("want a start error, got %s", describe(r))
	}
}

func describe(r sallyport.Result) string {
	code := "none"
	if r.ExitCode != nil {
		code = fmt.Sprint(*r.ExitCode)
	}
	return fmt.Sprintf("exit code %s, signal %d, limit %q, timed out %v, start error %q, oom kills %d, stdout %q, stderr %q",
		code, r.Signal, r.Limit, r.TimedOut, r.StartError, r.Usage.OOMKills, tail(r.Stdout), tail(r.Stderr))
}
