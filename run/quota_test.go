package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// quota checks that err is RATE_LIMITED by the quota name until after wait.
func quota(t *testing.T, when string, err error, name string, wait time.Duration) {
	t.Helper()
	public := sallyport.Public(err)
	if public == nil || public.Code != sallyport.CodeRateLimited || public.Retry != sallyport.CanRetry {
		t.Fatalf("%s: got %v, want RATE_LIMITED with retry", when, err)
	}
	want := map[string]any{"quota": name, "retry_after_ms": wait.Milliseconds()}
	if diff := cmp.Diff(want, public.Details); diff != "" {
		t.Errorf("%s: details (-want +got):\n%s", when, diff)
	}
	if !strings.Contains(public.Message, "try again in ") {
		t.Errorf("%s: the sentence %q does not say when to come back", when, public.Message)
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	cpu := int64(4_000)
	for name, test := range map[string]struct {
		quotas run.Quotas
		allows int // runs in a row, each taking no time
		quota  string
		wait   time.Duration
	}{
		"runs a minute of a tenant":    {run.Quotas{Tenant: run.Quota{RunsPerMinute: 3}}, 3, "tenant.runs_per_minute", 20 * time.Second},
		"runs a minute of a principal": {run.Quotas{Principal: run.Quota{RunsPerMinute: 2}}, 2, "principal.runs_per_minute", 30 * time.Second},
		"runs a day":                   {run.Quotas{Tenant: run.Quota{RunsPerDay: 24}}, 24, "tenant.runs_per_day", time.Hour},
		"the tighter one":              {run.Quotas{Tenant: run.Quota{RunsPerMinute: 5, RunsPerDay: 2}}, 2, "tenant.runs_per_day", 12 * time.Hour},
		// The third run begins with two of ten seconds left and leaves two less than none.
		"CPU": {run.Quotas{Principal: run.Quota{CPUSecondsPerDay: 10}}, 3, "principal.cpu_seconds_per_day", 3 * 24 * time.Hour / 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
					result := exitZero()
					result.Usage.CPUTimeMS = &cpu
					return result, nil
				}
				s := w.service(func(c *run.Config) { c.Quotas = test.quotas })
				for i := range test.allows {
					if _, err := s.Run(t.Context(), w.principal, request()); err != nil {
						t.Fatalf("run %d: %v", i+1, err)
					}
				}
				_, err := s.Run(t.Context(), w.principal, request())
				quota(t, "over the quota", err, test.quota, test.wait)
				_, err = s.Run(t.Context(), w.principal, request())
				quota(t, "a refused run is not counted", err, test.quota, test.wait)
				if w.called() != test.allows {
					t.Errorf("the executor was called %d times, want %d", w.called(), test.allows)
				}
				// A refusal is a counter, and nothing in the trail.
				if got := len(w.ledger.actions()); got != 2*test.allows {
					t.Errorf("%d entries, want %d", got, 2*test.allows)
				}
				time.Sleep(test.wait)
				if _, err := s.Run(t.Context(), w.principal, request()); err != nil {
					t.Errorf("after the wait: %v", err)
				}
			})
		})
	}
}

// What one principal uses is its own, and what never began is given back.
func TestQuotaOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.service(func(c *run.Config) { c.Quotas = run.Quotas{Principal: run.Quota{RunsPerMinute: 1}} })
		if _, err := s.Run(t.Context(), w.principal, request()); err != nil {
			t.Fatal(err)
		}
		other := w.principal
		other.ID = "p2"
		if _, err := s.Run(t.Context(), other, request()); err != nil {
			t.Errorf("another principal: %v", err)
		}
		fresh := w.principal
		fresh.ID = "p3"
		w.ledger.openErr = context.DeadlineExceeded
		if _, err := s.Run(t.Context(), fresh, request()); sallyport.CodeOf(err) != sallyport.CodeAuditUnavailable {
			t.Fatalf("got %v", err)
		}
		w.ledger.openErr = nil
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			return sallyport.Result{}, sallyport.NotStarted(errors.New("no room"))
		}
		if _, err := s.Run(t.Context(), fresh, request()); sallyport.CodeOf(err) == sallyport.CodeRateLimited {
			t.Error("a run without its entry was counted")
		}
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) { return exitZero(), nil }
		if _, err := s.Run(t.Context(), fresh, request()); err != nil {
			t.Errorf("a run that never began was counted: %v", err)
		}
		// What a gate refuses is not counted either.
		last := w.principal
		last.ID = "p4"
		w.enabled = false
		_, _ = s.Run(t.Context(), last, request())
		w.enabled = true
		if _, err := s.Run(t.Context(), last, request()); err != nil {
			t.Errorf("a refused run was counted: %v", err)
		}
	})
}

func TestConcurrentRuns(t *testing.T) {
	t.Parallel()
	for name, quotas := range map[string]run.Quotas{
		"principal.concurrent_runs": {Principal: run.Quota{ConcurrentRuns: 2}}, "tenant.concurrent_runs": {Tenant: run.Quota{ConcurrentRuns: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				end := make(chan struct{})
				w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
					<-end
					return exitZero(), nil
				}
				s := w.service(func(c *run.Config) { c.Quotas = quotas })
				ended := make(chan error, 2)
				for range 2 {
					go func() {
						_, err := s.Run(t.Context(), w.principal, request())
						ended <- err
					}()
				}
				synctest.Wait()
				_, err := s.Run(t.Context(), w.principal, request())
				quota(t, "a third one", err, name, time.Second)
				close(end)
				if err1, err2 := <-ended, <-ended; err1 != nil || err2 != nil {
					t.Fatal(err1, err2)
				}
				synctest.Wait()
				if _, err := s.Run(t.Context(), w.principal, request()); err != nil {
					t.Errorf("after they ended: %v", err)
				}
			})
		})
	}
}

// A script that only fails is refused after a while, for the principal who hammers it and with that content only; a success, new
// content or time opens it again.
func TestFailureBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		exit := 1
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			code := exit
			return sallyport.Result{ExitCode: &code}, nil
		}
		s := w.service(func(c *run.Config) { c.Quotas = run.Quotas{Failures: 3, FailureWindow: 5 * time.Minute} })
		try := func(p sallyport.Principal) error {
			_, err := s.Run(t.Context(), p, request())
			return err
		}
		fail := func(n int) {
			t.Helper()
			for range n {
				if err := try(w.principal); err != nil {
					t.Fatal(err)
				}
			}
		}
		fail(2)
		exit = 0
		fail(1) // a success forgets
		exit = 1
		fail(3)
		time.Sleep(time.Minute)
		err := try(w.principal)
		quota(t, "after three failures", err, "failures", 4*time.Minute)
		if message := sallyport.Public(err).Message; !strings.Contains(message, "scripts/x.py failed 3 times in a row") || !strings.Contains(message, "try again in 4m0s") {
			t.Errorf("got %q", message)
		}
		other := w.principal
		other.ID = "p2"
		if err := try(other); err != nil {
			t.Errorf("another principal: %v", err)
		}
		old := w.revision
		w.setFiles(t, component("SKILL.md", sallyport.KindDocument, "---\n"), component("scripts/x.py", sallyport.KindScript, "print(2)"))
		w.grants[0].Pin = w.revision.Digest
		if err := try(w.principal); err != nil {
			t.Errorf("mended content: %v", err)
		}
		w.revision, w.grants[0].Pin = old, old.Digest
		quota(t, "the old content", try(w.principal), "failures", 4*time.Minute)
		time.Sleep(4 * time.Minute)
		fail(1)
		time.Sleep(6 * time.Minute)
		fail(3) // the one before is too long ago to count
		quota(t, "after three more", try(w.principal), "failures", 5*time.Minute)
	})
}
