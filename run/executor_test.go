package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// An approved run is one call, whatever becomes of it; a caller that asks again passes every gate again.
func TestNeverRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
		return sallyport.Result{}, sallyport.NotStarted(&sallyport.Error{Op: "x", Code: sallyport.CodeRunnerUnreachable})
	}
	s := w.service()
	if _, err := s.Run(t.Context(), w.principal, request()); err == nil || w.called() != 1 {
		t.Fatalf("got %v after %d calls, want a failure after 1", err, w.called())
	}
	if _, err := s.Run(t.Context(), w.principal, request()); err == nil || w.called() != 2 || w.calls[0].ExecutionID == w.calls[1].ExecutionID {
		t.Fatalf("asked again: got %v after %d calls, want an execution of its own", err, w.called())
	}
	past := time.Now().Add(-time.Minute)
	w.grants[0].RevokedAt = &past
	if _, err := s.Run(t.Context(), w.principal, request()); sallyport.CodeOf(err) != sallyport.CodeGrantRevoked || w.called() != 2 {
		t.Errorf("after the grant was revoked: got %v after %d calls", err, w.called())
	}
}

// The context of a call ends when timeout and grace have passed, not before, and nobody waits longer than that.
func TestContextEndsWithTheGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		var ended time.Duration
		w.execute = func(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
			if req.Limits.Timeout != 30*time.Second || req.Grace != 5*time.Second {
				t.Errorf("timeout %s, grace %s", req.Limits.Timeout, req.Grace)
			}
			<-ctx.Done()
			ended = time.Since(began)
			return sallyport.Result{}, ctx.Err()
		}
		e, err := w.service().Run(t.Context(), w.principal, request())
		synctest.Wait()
		if err != nil || e.Status != sallyport.StatusTimeout || ended != 35*time.Second {
			t.Errorf("got %q (%v), the context ended after %s", e.Status, err, ended)
		}
	})
}

// One executor serves every run, many at a time, each with the tenant whose grant opened the gates.
func TestOneExecutorManyRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	together := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(4)
	w.execute = func(_ context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
		arrived.Done()
		<-together
		return sallyport.Result{ExitCode: new(int), Stdout: []byte(req.TenantID)}, nil
	}
	s := w.service(func(c *run.Config) { c.SlotsTotal, c.SlotsPerTenant = 4, 4 })
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			if e, err := s.Run(t.Context(), w.principal, request()); err != nil || e.Stdout != "t1" {
				t.Errorf("got %q (%v)", e.Stdout, err)
			}
		})
	}
	arrived.Wait() // all four are inside the one executor
	close(together)
	runs.Wait()
	ids := map[sallyport.ExecutionID]bool{}
	for _, call := range w.calls {
		ids[call.ExecutionID] = true
	}
	if len(ids) != 4 {
		t.Errorf("%d executions, want 4", len(ids))
	}
}

// What an executor says about its isolation is recorded as its word; nothing of ours could check it.
func TestIsolationIsTheExecutorsWord(t *testing.T) {
	t.Parallel()
	said := sallyport.Isolation{
		Executor: "far", Layers: []sallyport.Layer{sallyport.LayerSeccomp}, Missing: []sallyport.Layer{sallyport.LayerLandlock},
		Notes: []string{"the clock is shared"},
	}
	e, w := runWith(t, sallyport.Result{ExitCode: code(0), Isolation: said})
	if diff := cmp.Diff(said, e.Isolation); diff != "" {
		t.Errorf("isolation (-said +recorded):\n%s", diff)
	}
	if diff := cmp.Diff(said, w.ledger.only(t).Isolation); diff != "" {
		t.Errorf("stored isolation (-said +recorded):\n%s", diff)
	}
}

// spans remembers how each span ended.
type spans struct {
	*observer
	lock  sync.Mutex
	ended []string
}

func (s *spans) Span(ctx context.Context, name, _ string) (context.Context, func(error)) {
	return ctx, func(err error) {
		s.lock.Lock()
		defer s.lock.Unlock()
		text := name
		if err != nil {
			text += " " + err.Error()
		}
		s.ended = append(s.ended, text)
	}
}

// An executor's failure is on the span with its cause and in the count of finished runs, and nowhere a caller looks.
func TestFailureIsOnTheSpan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
		return sallyport.Result{}, errors.New("marker")
	}
	seen := &spans{observer: w.observer}
	_, err := w.service(func(c *run.Config) { c.Observer = seen }).Run(t.Context(), w.principal, request())
	if err == nil || strings.Contains(sallyport.Public(err).Message, "marker") {
		t.Errorf("got %v", err)
	}
	if !slices.Contains(seen.ended, "sallyport.run marker") {
		t.Errorf("spans: got %q, want the cause on sallyport.run", seen.ended)
	}
	if !slices.ContainsFunc(seen.ended, func(s string) bool { return strings.HasPrefix(s, "sallyport.execute ") }) || w.observer.finished != 1 {
		t.Errorf("spans: got %q, finished %d", seen.ended, w.observer.finished)
	}
}
