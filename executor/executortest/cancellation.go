package executortest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// cancellation: a caller that gives up ends the script, and that is no timeout.
func cancellation() []attempt {
	return []attempt{
		{name: "canceled before the start", run: func(t *testing.T, s *suite) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := s.executor.Execute(ctx, s.request(t, "bash", "echo never\n"))
			if !errors.Is(err, context.Canceled) || !sallyport.IsNotStarted(err) {
				t.Errorf("got %v, want context.Canceled marked as not started", err)
			}
		}},
		{name: "canceled while it runs", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "sleep 300 &\nsleep 300\n")
			r, took, err := s.canceled(t, req, 700*time.Millisecond)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if r.TimedOut || took > 700*time.Millisecond+req.Grace {
				t.Errorf("timed out %v after %s", r.TimedOut, took)
			}
		}},
		{name: "canceled at any moment", run: func(t *testing.T, s *suite) {
			for i := range 12 {
				r, took, err := s.canceled(t, s.request(t, "bash", "sleep 0.02\n"), time.Duration(i*6)*time.Millisecond)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				if r.TimedOut || took > 5*time.Second || (err == nil && (r.ExitCode == nil || *r.ExitCode != 0)) {
					t.Errorf("after %s: %s", took, describe(r))
				}
			}
			s.benign(t)
		}},
	}
}

// concurrency: runs do not meet.
func concurrency() []attempt {
	own := []sallyport.Layer{sallyport.LayerMountNamespace, sallyport.LayerPIDNamespace}
	return []attempt{
		{name: "eight at once", run: eightAtOnce(`
places = (os.environ['TMPDIR'], os.environ['HOME'], os.environ['SKILL_ROOT'])
`)},
		{name: "eight at once, alone in the world", needs: own, run: eightAtOnce(`
places = ('/tmp', '/dev/shm', os.environ['HOME'], os.environ['SKILL_ROOT'])
assert len([p for p in os.listdir('/proc') if p.isdigit()]) <= 2
`)},
	}
}

// eightAtOnce is an attempt whose runs mark their places at the same time and must find only their own marks.
func eightAtOnce(places string) func(*testing.T, *suite) {
	return func(t *testing.T, s *suite) {
		var wait sync.WaitGroup
		for i := range 8 {
			req := s.request(t, "python", `
import os, sys, time
me = sys.stdin.read()
`+places+`
for place in places:
    open(place + '/me', 'x').write(me)
time.sleep(0.3)
for place in places:
    assert open(place + '/me').read() == me
print(me, end='')
sys.exit(int(me))
`)
			req.TenantID = sallyport.TenantID(fmt.Sprintf("tenant-%d", i))
			req.Stdin = fmt.Append(nil, i)
			wait.Go(func() {
				r, err := s.executor.Execute(t.Context(), req)
				if err != nil {
					t.Errorf("run %d: %v", i, err)
					return
				}
				if r.ExitCode == nil || *r.ExitCode != i || string(r.Stdout) != fmt.Sprint(i) {
					t.Errorf("run %d: %s", i, describe(r))
				}
			})
		}
		wait.Wait()
	}
}
