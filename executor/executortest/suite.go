// Package executortest is the suite that every [sallyport.Executor] passes, ours or a stranger's.
//
// It owns the attempts: scripts that do what an honest or a hostile script would do, and what must come back. It leaves the
// making of the executor, and looking for what a run left on the host, to a [Factory]. Its one invariant: an attempt is
// left out only when the executor itself admits that it does not provide that layer or feature.
package executortest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Factory describes the executor under test.
type Factory struct {
	// New makes the executor; it registers its own cleanup.
	New func(tb testing.TB) sallyport.Executor
	// Provides are the layers that the executor must enforce on this host: Run fails when its capabilities lack one, and
	// when they claim one that is not listed. Nil means that nothing is known, so capabilities decide.
	Provides []sallyport.Layer
	// Interpreters are the programs for python, bash and node, by the executor's own naming. A missing one fails.
	Interpreters []sallyport.Interpreter
	// Storage is the folder in which an engine keeps the containers of runs, where the kernel shows a run the names of what is
	// mounted for it: that, and nothing else of the host, may be read in a run's own mount table. Empty for none.
	Storage string
	// Leftovers says what runs left on the host: processes, groups, mounts, files, descriptors. It is called after every
	// attempt and must return nothing. Nil looks for nothing.
	Leftovers func(tb testing.TB) []string
}

// attempt is one row of the suite.
type attempt struct {
	name string
	// needs are layers and wants are features without which the attempt has no meaning.
	needs []sallyport.Layer
	wants []sallyport.Feature
	run   func(t *testing.T, s *suite)
}

// suite is what attempts share.
type suite struct {
	factory  Factory
	executor sallyport.Executor
}

// Run tries everything against one executor. The attempts run one after the other: after each, the host must look as if
// nothing had happened.
func Run(t *testing.T, f Factory) {
	s := &suite{factory: f, executor: f.New(t)}
	capabilities := s.executor.Capabilities(t.Context())
	if !capabilities.Available {
		t.Fatalf("the executor is not available: %s (%s)", capabilities.Reason, capabilities.Remedy)
	}
	if s.executor.Kind() == "" {
		t.Error("the executor has no kind")
	}
	if f.Provides != nil {
		compareLayers(t, capabilities.Layers, f.Provides)
	}
	s.leftovers(t)
	for _, group := range [][]attempt{
		outcomes(), invocation(), streams(), files(), artifacts(), isolation(), limits(), lifetimes(), cancellation(), concurrency(),
	} {
		for _, a := range group {
			t.Run(a.name, func(t *testing.T) {
				if missing := a.missing(capabilities); missing != "" {
					t.Logf("the executor does not claim %s", missing)
					return
				}
				a.run(t, s)
				s.leftovers(t)
			})
		}
	}
}

// missing names what the attempt needs and the executor does not claim.
func (a attempt) missing(c sallyport.Capabilities) string {
	for _, layer := range a.needs {
		if !slices.Contains(c.Layers, layer) {
			return string(layer)
		}
	}
	for _, feature := range a.wants {
		if !slices.Contains(c.Features, feature) {
			return string(feature)
		}
	}
	return ""
}

func compareLayers(t *testing.T, got, want []sallyport.Layer) {
	t.Helper()
	for _, layer := range want {
		if !slices.Contains(got, layer) {
			t.Errorf("the layer %s is not enforced", layer)
		}
	}
	for _, layer := range got {
		if !slices.Contains(want, layer) {
			t.Errorf("the layer %s is claimed but was not expected here", layer)
		}
	}
}

// leftovers fails the test for everything that does not go away within a moment.
func (s *suite) leftovers(t *testing.T) {
	t.Helper()
	if s.factory.Leftovers == nil {
		return
	}
	var left []string
	for range 40 {
		if left = s.factory.Leftovers(t); len(left) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, l := range left {
		t.Errorf("left on the host: %s", l)
	}
}

// execute runs req and fails the test on an error. took is the wall time of the call.
func (s *suite) execute(t *testing.T, req sallyport.ExecRequest) (r sallyport.Result, took time.Duration) {
	t.Helper()
	begin := time.Now()
	r, err := s.executor.Execute(t.Context(), req)
	took = time.Since(begin)
	if err != nil {
		t.Fatalf("execute: %v", err)
	}
	if bound := req.Limits.Timeout + req.Grace; took > bound {
		t.Errorf("the call took %s, more than timeout and grace, %s", took, bound)
	}
	if r.Isolation.Executor != s.executor.Kind() {
		t.Errorf("the result names the executor %q", r.Isolation.Executor)
	}
	return r, took
}

// do is execute for attempts that look at the result only.
func (s *suite) do(t *testing.T, req sallyport.ExecRequest) sallyport.Result {
	t.Helper()
	r, _ := s.execute(t, req)
	return r
}

// exited fails the test unless the script ended by itself with code.
func exited(t *testing.T, r sallyport.Result, code int) {
	t.Helper()
	switch {
	case r.StartError != "":
		t.Fatalf("not started: %s", r.StartError)
	case r.ExitCode == nil:
		t.Fatalf("no exit code (signal %d, limit %q, timed out %v), stderr %q", r.Signal, r.Limit, r.TimedOut, tail(r.Stderr))
	case *r.ExitCode != code:
		t.Fatalf("exit code %d, want %d; stdout %q, stderr %q", *r.ExitCode, code, tail(r.Stdout), tail(r.Stderr))
	case r.Signal != 0 || r.TimedOut || r.Limit != "":
		t.Fatalf("exit code %d together with signal %d, limit %q, timed out %v", code, r.Signal, r.Limit, r.TimedOut)
	}
}

func tail(b []byte) string { return string(b[max(0, len(b)-2000):]) }

// printed fails the test unless the script exited with 0 and wrote exactly want.
func printed(t *testing.T, r sallyport.Result, want string) {
	t.Helper()
	exited(t, r, 0)
	if got := string(r.Stdout); got != want {
		t.Fatalf("stdout %q, want %q", got, want)
	}
}

// timedOut fails the test unless the executor stopped the script at its wall limit.
func timedOut(t *testing.T, r sallyport.Result) {
	t.Helper()
	if !r.TimedOut || r.ExitCode != nil || r.Limit != sallyport.LimitWall {
		t.Fatalf("want a timeout: timed out %v, exit code %v, limit %q, signal %d, stderr %q", r.TimedOut, r.ExitCode, r.Limit, r.Signal, tail(r.Stderr))
	}
}

// benign proves that the next run, of another tenant, is what it should be.
func (s *suite) benign(t *testing.T) {
	t.Helper()
	req := s.request(t, "bash", "echo fine\n")
	req.TenantID = "another"
	r, took := s.execute(t, req)
	printed(t, r, "fine\n")
	if took > 5*time.Second {
		t.Errorf("the next run took %s", took)
	}
}

// canceled runs req and cancels it after delay.
func (s *suite) canceled(t *testing.T, req sallyport.ExecRequest, delay time.Duration) (sallyport.Result, time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(delay, cancel)
	begin := time.Now()
	r, err := s.executor.Execute(ctx, req)
	return r, time.Since(begin), err
}
