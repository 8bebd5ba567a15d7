package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// isolations remembers what was said about the isolation of a run before anything was recorded.
type isolations struct {
	*observer
	said []sallyport.Isolation
}

func (o *isolations) SandboxStarted(_ context.Context, _, _ time.Time, i sallyport.Isolation) {
	o.said = append(o.said, i)
}

// What an executor says about itself is bounded before it becomes a record or the label of a metric.
func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := &isolations{observer: w.observer}
	long := strings.Repeat("\x1b[2J\xff", 1<<20)
	layers := append(slices.Repeat([]sallyport.Layer{"far"}, 1000), sallyport.Layer(long))
	artifacts := make([]sallyport.ArtifactFile, 1000)
	for i := range artifacts {
		artifacts[i].Path = "../" + long
	}
	w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
		return sallyport.Result{
			StartError: long, Artifacts: artifacts, StartedAt: time.Now(),
			Isolation: sallyport.Isolation{Executor: long, Layers: layers, Missing: layers, Plan: long, Profile: long, Notes: []string{long}},
			Usage:     sallyport.Usage{MemoryPeakBytes: new(int64(-1)), CPUTimeMS: new(int64(-1)), OOMKills: -1},
		}, nil
	}
	e, err := w.service(func(c *run.Config) { c.Observer = seen }).Run(t.Context(), w.principal, request())
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) > 256<<10 || !utf8.ValidString(e.ErrorMessage) || strings.ContainsRune(e.ErrorMessage, '\x1b') {
		t.Errorf("an execution of %d bytes: %.300q", len(encoded), e.ErrorMessage)
	}
	if e.Isolation.Executor != w.ledger.only(t).Isolation.Executor || !utf8.ValidString(e.Isolation.Executor) || len(e.Isolation.Executor) > 64 {
		t.Errorf("the executor's name is %.100q", e.Isolation.Executor)
	}
	if len(seen.said) != 1 || seen.said[0].Executor != e.Isolation.Executor {
		t.Errorf("the start was told %d times, by another name than %q", len(seen.said), e.Isolation.Executor)
	}
	if e.MemoryPeakBytes != nil || e.CPUTimeMS != nil || e.OOMKills != 0 {
		t.Errorf("usage: %v %v %d", e.MemoryPeakBytes, e.CPUTimeMS, e.OOMKills)
	}
}

// A start that lies outside of the call is not when the script began.
func TestStartOutsideOfTheCall(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]time.Time{
		"years ahead": time.Unix(1<<50, 0), "tomorrow": time.Now().Add(24 * time.Hour), "yesterday": time.Now().Add(-24 * time.Hour), "before all": time.Unix(-1<<50, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := runWith(t, sallyport.Result{ExitCode: code(0), StartedAt: said})
			if e.StartedAt == nil || e.StartedAt.Before(e.CreatedAt) || e.StartedAt.After(*e.FinishedAt) {
				t.Errorf("started at %v, created at %v", e.StartedAt, e.CreatedAt)
			}
			if _, err := json.Marshal(e); err != nil {
				t.Error(err)
			}
		})
	}
}

// dialTimeout is what a connection gives that nobody answers: an error that is a deadline, and not the caller's.
func dialTimeout(t *testing.T) error {
	t.Helper()
	_, err := (&net.Dialer{Deadline: time.Unix(1, 0)}).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want a deadline", err)
	}
	return err
}

// A cancellation or deadline of the executor's own is a failure of the executor: nobody called the run off.
func TestExecutorsOwnDeadline(t *testing.T) {
	t.Parallel()
	unreachable := &sallyport.Error{Op: "x", Code: sallyport.CodeRunnerUnreachable, Err: dialTimeout(t)}
	for name, test := range map[string]struct {
		err    error
		status sallyport.Status
		code   sallyport.Code
	}{
		"canceled":               {context.Canceled, sallyport.StatusLost, sallyport.CodeInternal},
		"deadline":               {context.DeadlineExceeded, sallyport.StatusLost, sallyport.CodeInternal},
		"a code of cancellation": {sallyport.Errorf("x", sallyport.CodeCanceled, "marker"), sallyport.StatusLost, sallyport.CodeInternal},
		"no connection":          {sallyport.NotStarted(unreachable), sallyport.StatusNotStarted, sallyport.CodeRunnerUnreachable},
		"silence":                {unreachable, sallyport.StatusLost, sallyport.CodeRunnerUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
				return sallyport.Result{}, test.err
			}
			e, err := w.service().Run(t.Context(), w.principal, request())
			if e.Status != test.status || sallyport.CodeOf(err) != test.code || w.ledger.only(t).Status != test.status {
				t.Errorf("got %q %v, want %q %q", e.Status, err, test.status, test.code)
			}
		})
	}
}

// An executor that ends the goroutine it is called on loses that run at once, and nothing else.
func TestExecutorEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
		runtime.Goexit()
		return sallyport.Result{}, nil
	}
	s := w.service(func(c *run.Config) { c.SlotsTotal, c.SlotsPerTenant = 1, 1 })
	for range 2 { // the second needs the slot of the first
		e, err := s.Run(t.Context(), w.principal, request())
		if e.Status != sallyport.StatusLost || sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("got %q (%v)", e.Status, err)
		}
	}
}
