package run_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

func keyed(key string) run.Request {
	req := request()
	req.IdempotencyKey = key
	return req
}

// The same key runs once, whoever asks how often, and its record is the answer.
func TestOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			time.Sleep(5 * time.Second)
			code := 3
			return sallyport.Result{ExitCode: &code, Stdout: []byte("out")}, nil
		}
		s := w.service()
		ids := make(chan sallyport.ExecutionID, 4)
		for range 4 {
			go func() {
				e, err := s.Run(t.Context(), w.principal, keyed("k"))
				if err != nil || e.Status != sallyport.StatusError || e.Stdout != "out" {
					t.Errorf("got %+v, %v", e, err)
				}
				ids <- e.ID
			}()
		}
		first := <-ids
		for range 3 {
			if id := <-ids; id != first {
				t.Errorf("got %s and %s", first, id)
			}
		}
		// The grant decided when it ran; what it did is still the caller's to read.
		w.grants = nil
		if e, err := s.Run(t.Context(), w.principal, keyed("k")); err != nil || e.ID != first {
			t.Errorf("later: %s, %v", e.ID, err)
		}
		if w.called() != 1 || len(w.ledger.actions()) != 2 {
			t.Errorf("%d calls and the entries %v", w.called(), w.ledger.actions())
		}
		if _, err := s.Run(t.Context(), w.principal, keyed("another")); sallyport.CodeOf(err) != sallyport.CodeGrantMissing {
			t.Errorf("another key: %v", err)
		}
		time.Sleep(25 * time.Hour)
		if _, err := s.Run(t.Context(), w.principal, keyed("k")); sallyport.CodeOf(err) != sallyport.CodeGrantMissing {
			t.Errorf("after a day: %v", err)
		}
	})
}

// Two calls that both saw the key free have one winner, and the other waits for it.
func TestOnceRace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.service()
		racing := false
		w.ledger.beforeOnce = func() {
			if racing {
				return
			}
			racing = true
			if _, err := s.Run(t.Context(), w.principal, keyed("k")); err != nil {
				t.Error(err)
			}
		}
		e, err := s.Run(t.Context(), w.principal, keyed("k"))
		if err != nil || e.Status != sallyport.StatusSuccess || w.called() != 1 {
			t.Errorf("got %+v, %v after %d calls", e, err, w.called())
		}
		if len(w.observer.refused) != 0 {
			t.Errorf("counted as refused: %v", w.observer.refused)
		}
	})
}

func TestOnceForAnotherRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.service()
	if _, err := s.Run(t.Context(), w.principal, keyed("k")); err != nil {
		t.Fatal(err)
	}
	traced := keyed("k")
	traced.TraceParent, traced.RequestID = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "other"
	if _, err := s.Run(t.Context(), w.principal, traced); err != nil {
		t.Errorf("the same request in another trace: %v", err)
	}
	for name, change := range map[string]func(*run.Request){
		"skill":    func(r *run.Request) { r.Ref.Slug = "other" },
		"revision": func(r *run.Request) { r.RevisionID = "r1" },
		"script":   func(r *run.Request) { r.ScriptPath = "scripts/y.py" },
		"args":     func(r *run.Request) { r.Args = []byte(`{}`) },
		"argv":     func(r *run.Request) { r.Argv = []string{"x"} },
		"file":     func(r *run.Request) { r.Files = []sallyport.InputFile{{Name: "a", Content: []byte("b")}} },
		"timeout":  func(r *run.Request) { r.Timeout = time.Second },
	} {
		req := keyed("k")
		change(&req)
		if _, err := s.Run(t.Context(), w.principal, req); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(err.Error(), "another request") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	other := w.principal
	other.ID = "p2"
	req := keyed("k")
	req.Timeout = time.Second
	if _, err := s.Run(t.Context(), other, req); err != nil {
		t.Errorf("another principal's key: %v", err)
	}
	for _, bad := range []string{"a b", "é", "a\n", strings.Repeat("k", 256)} {
		if _, err := s.Run(t.Context(), w.principal, keyed(bad)); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	weak := w.principal
	weak.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead}
	if _, err := s.Run(t.Context(), weak, keyed("k")); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("without the scope: got %v", err)
	}
}

// What was refused, or never began, can be asked for again with the same key.
func TestOnceAfterNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.service(func(c *run.Config) { c.SlotsTotal, c.SlotsPerTenant, c.QueueWait = 1, 1, time.Second })
		w.enabled = false
		if _, err := s.Run(t.Context(), w.principal, keyed("k")); sallyport.CodeOf(err) != sallyport.CodeFeatureDisabled {
			t.Fatal(err)
		}
		w.enabled = true
		end := make(chan struct{})
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			<-end
			return exitZero(), nil
		}
		blocking := make(chan error, 1)
		go func() {
			_, err := s.Run(t.Context(), w.principal, request())
			blocking <- err
		}()
		synctest.Wait()
		if _, err := s.Run(t.Context(), w.principal, keyed("k")); sallyport.CodeOf(err) != sallyport.CodeSlotsExhausted {
			t.Fatalf("got %v", err)
		}
		close(end)
		if err := <-blocking; err != nil {
			t.Fatal(err)
		}
		if e, err := s.Run(t.Context(), w.principal, keyed("k")); err != nil || e.Status != sallyport.StatusSuccess {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

// A caller who waits for another call's run can go away, and the run goes on.
func TestOnceHangUpWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			time.Sleep(10 * time.Second)
			return exitZero(), nil
		}
		s := w.service()
		first := make(chan error, 1)
		go func() {
			_, err := s.Run(t.Context(), w.principal, keyed("k"))
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Run(ctx, w.principal, keyed("k")); sallyport.CodeOf(err) != sallyport.CodeDeadlineExceeded {
			t.Errorf("got %v", err)
		}
		if err := <-first; err != nil || w.called() != 1 {
			t.Errorf("%v after %d calls", err, w.called())
		}
	})
}
