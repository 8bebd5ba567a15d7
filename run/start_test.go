package run_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// sleeping is an executor that takes d, and stops when it is told to.
func sleeping(d time.Duration) func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
	return func(ctx context.Context, _ sallyport.ExecRequest) (sallyport.Result, error) {
		select {
		case <-time.After(d):
			return exitZero(), nil
		case <-ctx.Done():
			return sallyport.Result{}, ctx.Err()
		}
	}
}

// A started run goes on when its caller has gone, and its record tells how it stands: queued, running, over.
func TestStartOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = sleeping(20 * time.Second)
		s := w.service()
		caller, leave := context.WithCancel(t.Context())
		started, err := s.Start(caller, w.principal, request())
		if err != nil || started.Status != sallyport.StatusQueued || started.ID == "" {
			t.Fatalf("got %+v, %v", started, err)
		}
		leave()
		synctest.Wait()
		if e, err := s.Get(t.Context(), w.principal, started.ID); err != nil || e.Status != sallyport.StatusRunning {
			t.Errorf("while it runs: %s, %v", e.Status, err)
		}
		if e, err := s.Wait(t.Context(), w.principal, started.ID, 5*time.Second); err != nil || e.Status != sallyport.StatusRunning {
			t.Errorf("a wait that is over first: %s, %v", e.Status, err)
		}
		began := time.Now()
		e, err := s.Wait(t.Context(), w.principal, started.ID, time.Minute)
		if err != nil || e.Status != sallyport.StatusSuccess || time.Since(began) != 15*time.Second {
			t.Errorf("the wait for its end: %s after %s, %v", e.Status, time.Since(began), err)
		}
		if got := w.ledger.actions(); len(got) != 2 || got[0] != sallyport.ActionScriptRun || got[1] != sallyport.ActionScriptFinished {
			t.Errorf("entries %v", got)
		}
		other := w.principal
		other.TenantID = "t2"
		if _, err := s.Wait(t.Context(), other, started.ID, 0); sallyport.CodeOf(err) != sallyport.CodeExecutionNotFound {
			t.Errorf("another tenant: %v", err)
		}
		for _, patience := range []time.Duration{-1, 61 * time.Second} {
			if _, err := s.Wait(t.Context(), w.principal, started.ID, patience); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
				t.Errorf("patience %s: %v", patience, err)
			}
		}
	})
}

// What refuses a run refuses a start, at once and with nothing recorded as run.
func TestStartIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grants = nil
	s := w.service()
	if _, err := s.Start(t.Context(), w.principal, request()); sallyport.CodeOf(err) != sallyport.CodeGrantMissing {
		t.Errorf("got %v", err)
	}
	w = newWorld(t)
	w.ledger.openErr = errors.New("disk full")
	if _, err := w.service().Start(t.Context(), w.principal, request()); sallyport.CodeOf(err) != sallyport.CodeAuditUnavailable || w.called() != 0 {
		t.Errorf("no audit: %v, %d calls", err, w.called())
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), w.principal, request()); sallyport.CodeOf(err) != sallyport.CodeStoreUnavailable {
		t.Errorf("after Close: %v", err)
	}
}

// Started runs take the same slots and quotas, are cancelled by their id, and are begun once for an idempotency key.
func TestStartIsGoverned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = sleeping(20 * time.Second)
		s := w.service(func(c *run.Config) {
			c.SlotsTotal, c.SlotsPerTenant, c.QueueLength = 1, 1, 1
		})
		first, err1 := s.Start(t.Context(), w.principal, keyed("k"))
		again, err2 := s.Start(t.Context(), w.principal, keyed("k"))
		if err1 != nil || err2 != nil || first.ID != again.ID {
			t.Fatalf("%s and %s, %v, %v", first.ID, again.ID, err1, err2)
		}
		synctest.Wait()
		second, err := s.Start(t.Context(), w.principal, request())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		third, err := s.Start(t.Context(), w.principal, request())
		if err != nil {
			t.Fatal(err)
		}
		// The queue of one is full, so the third never begins; the second waits behind the first.
		if e, err := s.Wait(t.Context(), w.principal, third.ID, time.Second); err != nil || e.Status != sallyport.StatusNotStarted || e.ErrorKind != sallyport.CodeSlotsExhausted {
			t.Errorf("the third: %+v, %v", e, err)
		}
		if e, _ := s.Get(t.Context(), w.principal, second.ID); e.Status != sallyport.StatusQueued {
			t.Errorf("the second: %s", e.Status)
		}
		if err := s.Cancel(t.Context(), w.principal, first.ID); err != nil {
			t.Fatal(err)
		}
		if e, err := s.Wait(t.Context(), w.principal, first.ID, time.Second); err != nil || e.Status != sallyport.StatusCanceled {
			t.Errorf("the first: %s, %v", e.Status, err)
		}
		if e, err := s.Wait(t.Context(), w.principal, second.ID, time.Minute); err != nil || e.Status != sallyport.StatusSuccess {
			t.Errorf("the second in the end: %s, %v", e.Status, err)
		}
		s = w.service(func(c *run.Config) { c.Quotas.Tenant.ConcurrentRuns = 1 })
		held, err := s.Start(t.Context(), w.principal, request())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Start(t.Context(), w.principal, request()); sallyport.CodeOf(err) != sallyport.CodeRateLimited {
			t.Errorf("over the quota: %v", err)
		}
		if _, err := s.Wait(t.Context(), w.principal, held.ID, time.Minute); err != nil {
			t.Fatal(err)
		}
		if e, err := s.Start(t.Context(), w.principal, request()); err != nil {
			t.Errorf("after its end: %v", err)
		} else if _, err := s.Wait(t.Context(), w.principal, e.ID, time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// A service that closes ends what waits for a slot at once, lets running scripts end while there is time, and says so in the record of
// those it had to end.
func TestCloseDrains(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		takes time.Duration
		want  sallyport.Status
		after time.Duration
	}{
		"a short run ends by itself":      {20 * time.Second, sallyport.StatusSuccess, 20 * time.Second},
		"a long one is ended in time":     {29 * time.Second, sallyport.StatusCanceled, 25 * time.Second},
		"what ends at once is waited for": {0, sallyport.StatusSuccess, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.execute = sleeping(test.takes)
				s := w.service(func(c *run.Config) { c.SlotsTotal, c.SlotsPerTenant = 1, 1 })
				running, err := s.Start(t.Context(), w.principal, request())
				if err != nil {
					t.Fatal(err)
				}
				if test.takes > 0 {
					synctest.Wait()
				}
				queued, err := s.Start(t.Context(), w.principal, request())
				if err != nil {
					t.Fatal(err)
				}
				if test.takes > 0 {
					synctest.Wait()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
				defer cancel()
				began := time.Now()
				if err := s.Close(ctx); err != nil || time.Since(began) != test.after {
					t.Errorf("Close: %v after %s", err, time.Since(began))
				}
				e, err := w.ledger.Execution(t.Context(), "t1", running.ID)
				if err != nil || e.Status != test.want {
					t.Errorf("the running one: %s, %v", e.Status, err)
				}
				if test.want == sallyport.StatusCanceled && e.ErrorMessage != "the server stopped before the execution ended, and ended it" {
					t.Errorf("it says %q", e.ErrorMessage)
				}
				if e, err = w.ledger.Execution(t.Context(), "t1", queued.ID); err != nil || test.takes > 0 && e.Status != sallyport.StatusCanceled {
					t.Errorf("the queued one: %s, %v", e.Status, err)
				}
			})
		})
	}
}

// Watch hears of the record twice, in order.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := ""
	req := request()
	req.Watch = func(e sallyport.Execution) { seen += string(e.Status) + " " }
	if _, err := w.service().Run(t.Context(), w.principal, req); err != nil || seen != "queued running " {
		t.Errorf("saw %q, %v", seen, err)
	}
}
