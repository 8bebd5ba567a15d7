package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// Every refusal of the table in design.md 4, in its order: the executor is never reached, the refusal is counted, and those that the
// table says are in the audit trail.
func TestRefusals(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-time.Hour)
	for name, test := range map[string]struct {
		arrange func(*testing.T, *world)
		ask     func(*run.Request)
		want    sallyport.Code
		gate    string
		denied  bool
	}{
		"no scope": {
			arrange: func(_ *testing.T, w *world) { w.principal.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead} },
			want:    sallyport.CodeAccessDenied, denied: true,
		},
		"no script path":     {ask: func(r *run.Request) { r.ScriptPath = "" }, want: sallyport.CodeInvalidArgument},
		"timeout over":       {ask: func(r *run.Request) { r.Timeout = 61 * time.Second }, want: sallyport.CodeInvalidArgument},
		"timeout under":      {ask: func(r *run.Request) { r.Timeout = time.Millisecond }, want: sallyport.CodeInvalidArgument},
		"timeout negative":   {ask: func(r *run.Request) { r.Timeout = -time.Second }, want: sallyport.CodeInvalidArgument},
		"absolute path":      {ask: func(r *run.Request) { r.ScriptPath = "/etc/passwd" }, want: sallyport.CodeUnsafePath},
		"dot dot path":       {ask: func(r *run.Request) { r.ScriptPath = "scripts/../../x" }, want: sallyport.CodeUnsafePath},
		"backslash path":     {ask: func(r *run.Request) { r.ScriptPath = `scripts\x.py` }, want: sallyport.CodeUnsafePath},
		"NUL path":           {ask: func(r *run.Request) { r.ScriptPath = "x\x00" }, want: sallyport.CodeUnsafePath},
		"args not an object": {ask: func(r *run.Request) { r.Args = json.RawMessage(`[1]`) }, want: sallyport.CodeInvalidArgument},
		"args duplicate key": {ask: func(r *run.Request) { r.Args = json.RawMessage(`{"a":1,"a":2}`) }, want: sallyport.CodeInvalidArgument},
		"argv with NUL":      {ask: func(r *run.Request) { r.Argv = []string{"a\x00"} }, want: sallyport.CodeInvalidArgument},
		"file name escapes": {
			ask:  func(r *run.Request) { r.Files = []sallyport.InputFile{{Name: "../x"}} },
			want: sallyport.CodeUnsafePath,
		},
		"file sent twice": {
			ask:  func(r *run.Request) { r.Files = []sallyport.InputFile{{Name: "x"}, {Name: "x"}} },
			want: sallyport.CodeInvalidArgument,
		},
		"file is a folder": {
			ask:  func(r *run.Request) { r.Files = []sallyport.InputFile{{Name: "x"}, {Name: "x/y"}} },
			want: sallyport.CodeInvalidArgument,
		},
		"unknown skill":    {ask: func(r *run.Request) { r.Ref.Slug = "other" }, want: sallyport.CodeSkillNotFound},
		"archived":         {arrange: func(_ *testing.T, w *world) { w.skill.ArchivedAt = &past }, want: sallyport.CodeSkillArchived},
		"unknown revision": {ask: func(r *run.Request) { r.RevisionID = "r9" }, want: sallyport.CodeRevisionNotFound},
		"unknown script":   {ask: func(r *run.Request) { r.ScriptPath = "scripts/y.py" }, want: sallyport.CodeScriptNotFound},
		"not a script":     {ask: func(r *run.Request) { r.ScriptPath = "SKILL.md" }, want: sallyport.CodeInvalidComponentType},
		"feature off": {
			arrange: func(_ *testing.T, w *world) { w.enabled, w.grants = false, nil },
			want:    sallyport.CodeFeatureDisabled, gate: "feature", denied: true,
		},
		"no grant": {
			arrange: func(_ *testing.T, w *world) { w.grants = nil },
			want:    sallyport.CodeGrantMissing, gate: "grant", denied: true,
		},
		"grant of another tenant": {
			arrange: func(_ *testing.T, w *world) { w.grants[0].TenantID = "t2" },
			want:    sallyport.CodeGrantMissing, gate: "grant", denied: true,
		},
		"grant of another script": {
			arrange: func(_ *testing.T, w *world) { w.grants[0].ScriptPath = "scripts/other.py" },
			want:    sallyport.CodeGrantMissing, gate: "grant", denied: true,
		},
		"grant expired": {
			arrange: func(_ *testing.T, w *world) { w.grants[0].ExpiresAt = &past },
			want:    sallyport.CodeGrantExpired, gate: "grant", denied: true,
		},
		"grant revoked": {
			arrange: func(_ *testing.T, w *world) { w.grants[0].RevokedAt = &past },
			want:    sallyport.CodeGrantRevoked, gate: "grant", denied: true,
		},
		"pin of other bytes": {
			arrange: func(_ *testing.T, w *world) { w.grants[0].Pin = sallyport.DigestOf([]byte("x")) },
			want:    sallyport.CodePinMismatch, gate: "pin", denied: true,
		},
		"bytes changed, digest kept": {arrange: func(t *testing.T, w *world) {
			t.Helper()
			w.setFiles(t, w.revision.Components[0], component("scripts/x.py", sallyport.KindScript, "print(2)"))
		}, want: sallyport.CodePinMismatch, gate: "pin", denied: true},
		"empty pin": {
			arrange: func(_ *testing.T, w *world) { w.grants[0].Pin = "" },
			want:    sallyport.CodePinMismatch, gate: "pin", denied: true,
		},
		"interpreter": {
			arrange: func(t *testing.T, w *world) {
				t.Helper()
				w.setFiles(t, component("scripts/x.rb", sallyport.KindScript, "1"))
				w.grants[0].Pin = w.revision.Digest
			}, ask: func(r *run.Request) { r.ScriptPath = "scripts/x.rb" },
			want: sallyport.CodeInterpreterNotAllowed, gate: "interpreter", denied: true,
		},
		"arguments too large": {ask: func(r *run.Request) {
			r.Args = json.RawMessage(`{"a":"` + strings.Repeat("x", 1024) + `"}`)
		}, want: sallyport.CodeArgumentsTooLarge, gate: "argument_size", denied: true},
		"schema": {arrange: func(t *testing.T, w *world) {
			t.Helper()
			w.setScript(t, sallyport.ScriptSettings{Runtime: "python", InputSchema: json.RawMessage(`{"required":["a"]}`)})
		}, want: sallyport.CodeArgumentsMismatch, gate: "argument_schema", denied: true},
		"argv to a script with a schema": {
			arrange: func(t *testing.T, w *world) {
				t.Helper()
				w.setScript(t, sallyport.ScriptSettings{Runtime: "python", InputSchema: json.RawMessage(`{}`)})
			}, ask: func(r *run.Request) { r.Argv = []string{"x"} },
			want: sallyport.CodeArgumentsMismatch, gate: "argument_schema", denied: true,
		},
		"stored path": {arrange: func(t *testing.T, w *world) {
			t.Helper()
			w.setFiles(t, component("../evil", sallyport.KindDocument, ""), w.revision.Components[1])
			w.grants[0].Pin = w.revision.Digest
		}, want: sallyport.CodeUnsafePath, gate: "path", denied: true},
		"case collision": {arrange: func(t *testing.T, w *world) {
			t.Helper()
			w.setFiles(t, component("Scripts/X.py", sallyport.KindDocument, ""), w.revision.Components[1])
			w.grants[0].Pin = w.revision.Digest
		}, want: sallyport.CodeUnsafePath, gate: "path", denied: true},
		"content too large": {arrange: func(t *testing.T, w *world) {
			t.Helper()
			w.setFiles(t, component("scripts/x.py", sallyport.KindScript, strings.Repeat("#", 1025)))
			w.grants[0].Pin = w.revision.Digest
		}, want: sallyport.CodeContentTooLarge, gate: "content_size", denied: true},
		"sandbox away": {
			arrange: func(_ *testing.T, w *world) { w.caps = sallyport.Capabilities{Reason: "bwrap is not installed"} },
			want:    sallyport.CodeSandboxUnavailable, gate: "isolation", denied: true,
		},
		"layer missing": {
			arrange: func(_ *testing.T, w *world) { w.caps.Missing = []sallyport.Layer{sallyport.LayerMemoryLimit} },
			want:    sallyport.CodeSandboxUnavailable, gate: "isolation", denied: true,
		},
		"feature missing": {
			arrange: func(t *testing.T, w *world) {
				t.Helper()
				w.caps.Features = nil
				w.setFiles(t, append(w.revision.Components, component("scripts/y.py", sallyport.KindScript, "y = 1"))...)
				w.grants[0].Pin = w.revision.Digest
			},
			want: sallyport.CodeSandboxUnavailable, gate: "isolation", denied: true,
		},
		"audit away": {
			arrange: func(_ *testing.T, w *world) { w.ledger.openErr = errors.New("disk full") },
			want:    sallyport.CodeAuditUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if test.arrange != nil {
				test.arrange(t, w)
			}
			req := request()
			if test.ask != nil {
				test.ask(&req)
			}
			_, err := w.service().Run(t.Context(), w.principal, req)
			if got := sallyport.CodeOf(err); got != test.want {
				t.Fatalf("code: got %q (%v), want %q", got, err, test.want)
			}
			if w.called() != 0 {
				t.Error("the executor was reached")
			}
			if want := []string{test.gate + " " + string(test.want)}; !slices.Equal(w.observer.refused, want) {
				t.Errorf("counted: got %q, want %q", w.observer.refused, want)
			}
			var want []sallyport.Action
			if test.denied {
				want = []sallyport.Action{sallyport.ActionScriptDenied}
			}
			if got := w.ledger.actions(); !slices.Equal(got, want) {
				t.Errorf("audit: got %q, want %q", got, want)
			}
		})
	}
}

// A refusal stays a refusal when it cannot be recorded; a counter says so.
func TestUnrecordedRefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grants, w.ledger.denyErr = nil, errors.New("disk full")
	_, err := w.service().Run(t.Context(), w.principal, request())
	if got := sallyport.CodeOf(err); got != sallyport.CodeGrantMissing {
		t.Errorf("code: got %q, want GRANT_MISSING", got)
	}
	if w.observer.unrecorded != 1 {
		t.Errorf("unrecorded: got %d, want 1", w.observer.unrecorded)
	}
}

// A pipeline without the standard gates runs nothing.
func TestNoGates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.service(func(c *run.Config) { c.Gates = nil }).Run(t.Context(), w.principal, request())
	if got := sallyport.CodeOf(err); got != sallyport.CodeGrantMissing || w.called() != 0 {
		t.Errorf("got %q and %d calls, want GRANT_MISSING and none", got, w.called())
	}
}

type panicGate struct{}

func (panicGate) Name() string { return "panic" }
func (panicGate) Check(context.Context, *sallyport.Candidate) *sallyport.Refusal {
	panic("secret cause")
}

func TestPanickingGateRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.service(func(c *run.Config) { c.Gates = append(c.Gates, panicGate{}, nil) }).Run(t.Context(), w.principal, request())
	if got := sallyport.CodeOf(err); got != sallyport.CodeInternal || w.called() != 0 {
		t.Errorf("got %q and %d calls, want INTERNAL and none", got, w.called())
	}
	if text := sallyport.Public(err).Message; strings.Contains(text, "secret") {
		t.Errorf("the cause shows: %q", text)
	}
}

// The executor gets exactly the bytes received: no number goes through a float.
func TestRequestIsExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req := request()
	req.Args = json.RawMessage(`{ "n": 12345678901234567890.10, "far": 1e400 }`)
	req.Argv = []string{"--x", "a b", ""}
	req.Files = []sallyport.InputFile{{Name: "in/a.csv", Content: []byte("1,2")}}
	req.TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	e, err := w.service().Run(t.Context(), w.principal, req)
	if err != nil {
		t.Fatal(err)
	}
	got := w.calls[0]
	if string(got.Stdin) != string(req.Args) || !slices.Equal(got.Argv, req.Argv) || string(got.Inputs[0].Content) != "1,2" {
		t.Errorf("got stdin %q argv %q inputs %v", got.Stdin, got.Argv, got.Inputs)
	}
	if string(got.Content) != "print(1)" || got.Digest != w.revision.Digest || len(got.Files) != 2 || got.TenantID != "t1" {
		t.Errorf("got content %q digest %q", got.Content, got.Digest)
	}
	if e.Status != sallyport.StatusSuccess || e.GrantID != "g1" || e.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("got status %q grant %q trace %q", e.Status, e.GrantID, e.TraceID)
	}
	var detail struct {
		InputArgs string `json:"input_args"`
	}
	if err := json.Unmarshal(w.ledger.entries[0].Detail, &detail); err != nil || detail.InputArgs != string(req.Args) {
		t.Errorf("recorded arguments: got %q (%v), want %q", detail.InputArgs, err, req.Args)
	}
	if want := []sallyport.Action{sallyport.ActionScriptRun, sallyport.ActionScriptFinished}; !slices.Equal(w.ledger.actions(), want) {
		t.Errorf("audit: got %q, want %q", w.ledger.actions(), want)
	}
}

func TestFlagsReachArgv(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setScript(t, sallyport.ScriptSettings{Runtime: "python", Input: sallyport.InputFlags, Argv: json.RawMessage(`"free"`)})
	req := request()
	req.Args, req.Argv = json.RawMessage(`{"name":"x","n":1.0}`), []string{"tail"}
	if _, err := w.service().Run(t.Context(), w.principal, req); err != nil {
		t.Fatal(err)
	}
	if want := []string{"--name", "x", "--n", "1.0", "tail"}; !slices.Equal(w.calls[0].Argv, want) || len(w.calls[0].Stdin) != 0 {
		t.Errorf("got argv %q stdin %q, want %q and nothing", w.calls[0].Argv, w.calls[0].Stdin, want)
	}
}

// A narrow grant is taken before a wide one; a stale narrow one does not stop a wide one that fits.
func TestGrantOrder(t *testing.T) {
	t.Parallel()
	narrow := sallyport.Grant{ID: "narrow", TenantID: "t1", SkillID: "s1", ScriptPath: "scripts/x.py"}
	wide := sallyport.Grant{ID: "wide", TenantID: "t1", SkillID: "s1"}
	for name, test := range map[string]struct {
		narrowFits, wideFits bool
		want                 sallyport.GrantID
	}{"both": {true, true, "narrow"}, "narrow only": {true, false, "narrow"}, "wide only": {false, true, "wide"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			stale := sallyport.DigestOf([]byte("old"))
			n, d := narrow, wide
			n.Pin, d.Pin = stale, stale
			if test.narrowFits {
				n.Pin = w.revision.Digest
			}
			if test.wideFits {
				d.Pin = w.revision.Digest
			}
			w.grants = []sallyport.Grant{d, n}
			e, err := w.service().Run(t.Context(), w.principal, request())
			if err != nil || e.GrantID != test.want {
				t.Errorf("got grant %q (%v), want %q", e.GrantID, err, test.want)
			}
		})
	}
}

// An executor that ignores its context is given up at timeout + grace: the record is closed, the slot is free, the gauge counts it
// for as long as it does not return, and its late result is discarded.
func TestDeafExecutor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			time.Sleep(time.Hour)
			return exitZero(), nil
		}
		s := w.service(func(c *run.Config) { c.SlotsTotal = 1 })
		began := time.Now()
		e, err := s.Run(t.Context(), w.principal, request())
		if err != nil || e.Status != sallyport.StatusTimeout || e.ErrorKind != sallyport.CodeExecutionTimeout || e.ExitCode != nil {
			t.Errorf("got %q %q (%v), want timeout", e.Status, e.ErrorKind, err)
		}
		if took := time.Since(began); took != 35*time.Second {
			t.Errorf("took %s, want 35s", took)
		}
		if w.observer.abandoned != 1 {
			t.Errorf("abandoned: got %d, want 1", w.observer.abandoned)
		}
		w.becomes(func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) { return exitZero(), nil })
		if e, err := s.Run(t.Context(), w.principal, request()); err != nil || e.Status != sallyport.StatusSuccess || e.QueueMS != 0 {
			t.Errorf("next run: got %q after %d ms (%v), want success at once", e.Status, e.QueueMS, err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if w.observer.abandoned != 0 {
			t.Errorf("abandoned after its return: got %d, want 0", w.observer.abandoned)
		}
	})
}

// A result that comes after the timeout but within the grace is used.
func TestResultWithinGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			time.Sleep(33 * time.Second)
			return sallyport.Result{TimedOut: true, Limit: sallyport.LimitWall, Stdout: []byte("partial")}, nil
		}
		e, err := w.service().Run(t.Context(), w.principal, request())
		if err != nil || e.Status != sallyport.StatusTimeout || e.Stdout != "partial" || e.DurationMS != 33000 {
			t.Errorf("got %q %q %d (%v)", e.Status, e.Stdout, e.DurationMS, err)
		}
	})
}

// A caller that hangs up during the run gets canceled at that instant; the slot stays held until the executor returns.
func TestHangUpDuringRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = func(ctx context.Context, _ sallyport.ExecRequest) (sallyport.Result, error) {
			<-ctx.Done()
			time.Sleep(2 * time.Second) // stopping takes a while
			return sallyport.Result{}, ctx.Err()
		}
		s := w.service(func(c *run.Config) { c.SlotsTotal = 1 })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		began := time.Now()
		e, err := s.Run(ctx, w.principal, request())
		if err != nil || e.Status != sallyport.StatusCanceled || e.ErrorKind != sallyport.CodeExecutionCanceled {
			t.Errorf("got %q %q (%v), want canceled", e.Status, e.ErrorKind, err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %s, want 3s", took)
		}
		w.becomes(func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) { return exitZero(), nil })
		if e, err := s.Run(t.Context(), w.principal, request()); err != nil || e.QueueMS != 2000 {
			t.Errorf("next run: got %q after %d ms (%v), want the slot after 2000", e.Status, e.QueueMS, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A caller that hangs up while waiting for a slot leaves no execution open, and no slot.
func TestHangUpInQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			time.Sleep(10 * time.Second)
			return exitZero(), nil
		}
		s := w.service(func(c *run.Config) { c.SlotsTotal = 1 })
		go s.Run(t.Context(), w.principal, request()) //nolint:errcheck // it only holds the slot
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e, err := s.Run(ctx, w.principal, request())
		if err != nil || e.Status != sallyport.StatusCanceled || w.called() != 1 {
			t.Errorf("got %q (%v) and %d calls, want canceled and 1", e.Status, err, w.called())
		}
		if e, err := s.Run(t.Context(), w.principal, request()); err != nil || e.Status != sallyport.StatusSuccess {
			t.Errorf("next run: got %q (%v), want success", e.Status, err)
		}
		if open, _ := w.ledger.Unfinished(t.Context()); len(open) != 0 {
			t.Errorf("open executions: %d, want none", len(open))
		}
	})
}

// A full queue refuses at once, a wait that is over refuses then; both close the opened entry as not_started.
func TestSlotsExhausted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			time.Sleep(31 * time.Second)
			return exitZero(), nil
		}
		s := w.service(func(c *run.Config) { c.SlotsTotal, c.QueueLength, c.QueueWait = 1, 1, 20*time.Second })
		go s.Run(t.Context(), w.principal, request()) //nolint:errcheck // it only holds the slot
		synctest.Wait()
		waited := make(chan error)
		go func() {
			e, err := s.Run(t.Context(), w.principal, request())
			if e.Status != sallyport.StatusNotStarted || e.ErrorKind != sallyport.CodeSlotsExhausted {
				t.Errorf("waiter: got %q %q, want not_started", e.Status, e.ErrorKind)
			}
			waited <- err
		}()
		synctest.Wait()
		began := time.Now()
		if _, err := s.Run(t.Context(), w.principal, request()); sallyport.CodeOf(err) != sallyport.CodeSlotsExhausted || time.Since(began) != 0 {
			t.Errorf("full queue: got %v after %s, want SLOTS_EXHAUSTED at once", err, time.Since(began))
		}
		if err := <-waited; sallyport.CodeOf(err) != sallyport.CodeSlotsExhausted || time.Since(began) != 20*time.Second {
			t.Errorf("waiter: got %v after %s, want SLOTS_EXHAUSTED after 20s", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		want := map[sallyport.Action]int{sallyport.ActionScriptRun: 3, sallyport.ActionScriptFinished: 3}
		got := map[sallyport.Action]int{}
		for _, a := range w.ledger.actions() {
			got[a]++
		}
		if len(got) != 2 || got[sallyport.ActionScriptRun] != want[sallyport.ActionScriptRun] || got[sallyport.ActionScriptFinished] != 3 {
			t.Errorf("audit: got %v, want %v", got, want)
		}
	})
}

// Whatever breaks in an executor is an error of that run only; its message reaches nobody.
func TestBrokenExecutor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		execute func(context.Context, sallyport.ExecRequest) (sallyport.Result, error)
		status  sallyport.Status
		code    sallyport.Code
	}{
		"error": {func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			return sallyport.Result{}, errors.New("marker at /host/path")
		}, sallyport.StatusLost, sallyport.CodeInternal},
		"panic": {func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) { panic("marker") }, sallyport.StatusLost, sallyport.CodeInternal},
		"nothing began": {func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			return sallyport.Result{}, sallyport.NotStarted(errors.New("marker"))
		}, sallyport.StatusNotStarted, sallyport.CodeInternal},
		"sandbox": {func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			return sallyport.Result{}, sallyport.NotStarted(&sallyport.Error{Op: "x", Code: sallyport.CodeSandboxUnavailable, Err: errors.New("marker")})
		}, sallyport.StatusNotStarted, sallyport.CodeSandboxUnavailable},
		"unreachable": {func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			return sallyport.Result{}, &sallyport.Error{Op: "x", Code: sallyport.CodeRunnerUnreachable, Err: errors.New("marker")}
		}, sallyport.StatusLost, sallyport.CodeRunnerUnreachable},
		"a code it may not use": {func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			return sallyport.Result{}, &sallyport.Error{Op: "x", Code: sallyport.CodeGrantMissing, Message: "marker"}
		}, sallyport.StatusLost, sallyport.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.execute = test.execute
			e, err := w.service().Run(t.Context(), w.principal, request())
			if e.Status != test.status || sallyport.CodeOf(err) != test.code {
				t.Errorf("got %q %q, want %q %q", e.Status, sallyport.CodeOf(err), test.status, test.code)
			}
			shown, _ := json.Marshal([]any{sallyport.Public(err), e, w.ledger.entries})
			if strings.Contains(string(shown), "marker") {
				t.Errorf("the private cause shows: %s", shown)
			}
			if stored := w.ledger.only(t); stored.Status != test.status {
				t.Errorf("stored: got %q, want %q", stored.Status, test.status)
			}
		})
	}
}

// An outcome that cannot be recorded is told all the same; the next start closes the record as lost.
func TestRecover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ledger.closeErr = errors.New("disk full")
	s := w.service()
	e, err := s.Run(t.Context(), w.principal, request())
	if err != nil || e.Status != sallyport.StatusSuccess || s.Unrecorded() != 1 {
		t.Fatalf("got %q (%v), unrecorded %d", e.Status, err, s.Unrecorded())
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.ledger.closeErr = nil
	n, err := w.service().Recover(t.Context())
	if err != nil || n != 1 {
		t.Fatalf("recovered %d (%v), want 1", n, err)
	}
	if got := w.ledger.only(t); got.Status != sallyport.StatusLost || got.ErrorKind != sallyport.CodeExecutionLost || got.FinishedAt == nil {
		t.Errorf("got %q %q, want lost", got.Status, got.ErrorKind)
	}
	if n, err := w.service().Recover(t.Context()); n != 0 || err != nil {
		t.Errorf("second recovery: got %d (%v), want 0", n, err)
	}
}

// An outcome that cannot be recorded at once is recorded as soon as it can be: as what it was, not as lost.
func TestRecordedLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ledger.closeErr = errors.New("disk full")
		s := w.service()
		if e, err := s.Run(t.Context(), w.principal, request()); err != nil || e.Status != sallyport.StatusSuccess {
			t.Fatalf("got %q (%v)", e.Status, err)
		}
		time.Sleep(10 * time.Second)
		w.ledger.mu.Lock()
		w.ledger.closeErr = nil
		w.ledger.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.ledger.only(t).Status; got != sallyport.StatusSuccess || s.Unrecorded() != 0 {
			t.Errorf("got %q, unrecorded %d; want success, 0", got, s.Unrecorded())
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCancelByID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.execute = func(ctx context.Context, _ sallyport.ExecRequest) (sallyport.Result, error) {
			<-ctx.Done()
			return sallyport.Result{}, ctx.Err()
		}
		s := w.service()
		done := make(chan sallyport.Execution)
		go func() {
			e, _ := s.Run(t.Context(), w.principal, request())
			done <- e
		}()
		synctest.Wait()
		id := w.ledger.only(t).ID
		stranger := w.principal
		stranger.TenantID = "t2"
		if err := s.Cancel(t.Context(), stranger, id); sallyport.CodeOf(err) != sallyport.CodeExecutionNotFound {
			t.Errorf("stranger: got %v, want EXECUTION_NOT_FOUND", err)
		}
		if err := s.Cancel(t.Context(), w.principal, id); err != nil {
			t.Fatal(err)
		}
		if e := <-done; e.Status != sallyport.StatusCanceled {
			t.Errorf("got %q, want canceled", e.Status)
		}
	})
}

func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grants = nil
	x, err := w.service().Explain(t.Context(), w.principal, request())
	if err != nil {
		t.Fatal(err)
	}
	if x.Runnable || x.Refusal == nil || x.Refusal.Code != sallyport.CodeGrantMissing || !strings.Contains(x.Remedy, "sallyport grant issue demo scripts/x.py") {
		t.Errorf("got %+v", x)
	}
	if len(x.Steps) != 12 || x.Steps[1].Result != "passed" || x.Steps[2].Result != "refused" || x.Steps[10].Result != "not_reached" {
		t.Errorf("steps: got %+v", x.Steps)
	}
	if len(w.ledger.actions()) != 0 || len(w.observer.refused) != 0 {
		t.Error("explaining left a trace")
	}
	w.grants = []sallyport.Grant{{ID: "g1", TenantID: "t1", SkillID: "s1", Pin: w.revision.Digest}}
	if x, err := w.service().Explain(t.Context(), w.principal, request()); err != nil || !x.Runnable || x.GrantID != "g1" || x.Runtime != "python" {
		t.Errorf("granted: got %+v (%v)", x, err)
	}
	if x, err := w.service().Explain(t.Context(), w.principal, run.Request{Ref: sallyport.SkillRef{Slug: "no"}, ScriptPath: "x"}); err != nil || x.Refusal.Code != sallyport.CodeSkillNotFound {
		t.Errorf("unknown skill: got %+v (%v)", x, err)
	}
	if w.called() != 0 {
		t.Error("explaining ran the script")
	}
}
