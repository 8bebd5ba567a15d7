package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// eventually waits for what must become true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("it never became true that %s", what)
		}
	}
}

// An engine that fails at any call of a run, in any way: the call of Execute ends within timeout and grace, what it says is true, no
// container stays, and the next run is as if nothing had happened.
func TestEngineFaults(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"image", "create", "attach", "start", "delete", "inspect", "list"} {
		for _, how := range faults() {
			t.Run(call+" "+string(how), func(t *testing.T) {
				t.Parallel()
				f := newFakeEngine(t)
				e := newFakeExecutor(t, f)
				if c := e.Capabilities(t.Context()); !c.Available {
					t.Fatalf("not available: %s", c.Reason)
				}
				before, _, _ := f.counts()
				f.setFault(call, how)
				if call == "inspect" { // it is asked for when a container could not be removed
					f.mu.Lock()
					fail, asked := f.fail, 0
					f.fail = func(c string) fault {
						if c == "delete" {
							asked++
							if asked == 1 {
								return refuses
							}
						}
						return fail(c)
					}
					f.mu.Unlock()
				}
				e.mu.Lock()
				e.sweptAt = time.Time{} // so that this run sweeps
				e.mu.Unlock()
				req := fakeRequest(t)
				begin := time.Now()
				r, err := e.Execute(t.Context(), req)
				took := time.Since(begin)
				begun, failures, _ := f.counts()
				if failures == 0 {
					t.Fatal("the call was not made")
				}
				// The engine's first answers come before the run has its bounds.
				if bound := req.Limits.Timeout + req.Grace + 2*e.cfg.callTimeout; took > bound {
					t.Errorf("took %s of %s", took, bound)
				}
				switch {
				case err == nil && (r.ExitCode == nil || *r.ExitCode != 0 || string(r.Stdout) != "done\n"):
					t.Errorf("got %+v", r)
				case err == nil && begun == before:
					t.Error("it is said to have run, and nothing began")
				case err != nil && sallyport.IsNotStarted(err) != (begun == before):
					t.Errorf("got %v, and %d scripts began", err, begun-before)
				case err != nil && begun == before && sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable:
					t.Errorf("the code is %s (%v)", sallyport.CodeOf(err), err)
				}
				f.setFault("", none)
				eventually(t, "no container is left", func() bool {
					_, _, n := f.counts()
					if n > 0 {
						// What a lost answer hid is found by its age.
						e.cfg.leftoverAge = 0
						e.sweep(t.Context(), e.capabilities(t.Context()).engine)
					}
					return n == 0
				})
				eventually(t, "the next run works", func() bool {
					r, err := e.Execute(t.Context(), fakeRequest(t))
					return err == nil && r.ExitCode != nil && *r.ExitCode == 0
				})
			})
		}
	}
}

// An engine that fails while it is asked what it can do is not available, says why, and is asked again later.
func TestProbeFaults(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"version", "info", "image", "load", "volume", "archive", "create", "attach", "start"} {
		for _, how := range faults() {
			if how == garbage && (call == "volume" || call == "archive") {
				continue // these say all by their status, and the probe runs would miss what they did not do
			}
			t.Run(call+" "+string(how), func(t *testing.T) {
				t.Parallel()
				f := newFakeEngine(t)
				e := newFakeExecutor(t, f)
				f.setFault(call, how)
				c := e.Capabilities(t.Context())
				_, failures, _ := f.counts()
				if failures == 0 {
					t.Fatal("the call was not made")
				}
				if c.Available || c.Reason == "" || c.Remedy == "" || len(c.Layers) != 0 || !slices.Contains(c.Missing, sallyport.LayerSeccomp) {
					t.Errorf("got %+v", c)
				}
				if strings.Contains(c.Reason, "\x00") || !utf8.ValidString(c.Reason) || len(c.Reason) > 2000 {
					t.Errorf("the reason is %q", c.Reason)
				}
				if _, err := e.Execute(t.Context(), fakeRequest(t)); !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable {
					t.Errorf("a run: %v", err)
				}
				f.setFault("", none)
				e.doubt()
				if c := e.Capabilities(t.Context()); !c.Available {
					t.Errorf("still not available: %s", c.Reason)
				}
			})
		}
	}
}

// What comes over the stream of a container is bounded and judged, wherever it ends and whatever it is.
func TestReportFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		report func(w io.Writer)
		lost   bool // it may have run, and nobody knows how it ended
		want   func(r sallyport.Result) string
	}{
		{name: "nothing", report: func(io.Writer) {}, lost: true},
		{name: "ends behind the start", report: func(w io.Writer) { send(w, frameStarted, 0, 0, "") }, lost: true},
		{name: "ends behind the exit", report: func(w io.Writer) { send(w, frameStarted, 0, 0, ""); send(w, frameExited, 3<<8, 0, "") }, want: func(r sallyport.Result) string {
			if r.ExitCode == nil || *r.ExitCode != 3 || !r.ArtifactsLost {
				return "want the exit code and lost artifacts"
			}
			return ""
		}},
		{name: "half an artifact", report: func(w io.Writer) {
			send(w, frameExited, 0, 0, "")
			b := order.AppendUint32(nil, frameArtifact)
			b = order.AppendUint32(b, 0)
			b = order.AppendUint64(b, 1)
			b = order.AppendUint64(b, 1000)
			_, _ = w.Write(append(b, "n12345"...))
		}, want: func(r sallyport.Result) string {
			if len(r.Artifacts) != 0 || !r.ArtifactsLost || r.ExitCode == nil {
				return "half a collection is none"
			}
			return ""
		}},
		{name: "unknown frame", report: func(w io.Writer) { send(w, 99, 0, 0, "") }, lost: true},
		{name: "text", report: func(w io.Writer) { _, _ = io.WriteString(w, strings.Repeat("<html>", 100)) }, lost: true},
		{name: "stream of nobody", report: func(w io.Writer) { send(w, frameStream, 3, 1, "x") }, lost: true},
		{name: "more output than allowed", report: func(w io.Writer) {
			for range 100 {
				send(w, frameStream, 1, streamChunk, strings.Repeat("x", streamChunk))
			}
		}, lost: true},
		{name: "chunk of exabytes", report: func(w io.Writer) { send(w, frameStream, 1, 1<<62, "x") }, lost: true},
		{name: "output data of exabytes", report: func(w io.Writer) { send(w, frameExited, 0, 0, ""); send(w, frameOutput, 0, 1<<62, "x") }, want: func(r sallyport.Result) string {
			if !r.ArtifactsLost || r.OutputData != nil {
				return "want lost output data"
			}
			return ""
		}},
		{name: "started without end", report: func(w io.Writer) {
			for range 1000 {
				send(w, frameStarted, 0, 0, "")
			}
		}, lost: true},
		{name: "total of less than was sent", report: func(w io.Writer) {
			send(w, frameStream, 1, 3, "abc")
			send(w, frameExited, 0, 0, "")
			send(w, frameTotal, 1, 1, "")
			send(w, frameEnd, 0, 0, "")
		}, want: func(r sallyport.Result) string {
			if string(r.Stdout) != "abc" || r.StdoutBytes != 3 || r.StdoutTruncated {
				return "want what was sent"
			}
			return ""
		}},
		{name: "killed by nobody", report: func(w io.Writer) { send(w, frameExited, 9, 0, ""); send(w, frameEnd, 0, 0, "") }, want: func(r sallyport.Result) string {
			if r.Signal != 9 || r.ExitCode != nil || r.Limit != "" || r.TimedOut {
				return "want signal 9 and no reason"
			}
			return ""
		}},
		{name: "wait status of a stopped process", report: func(w io.Writer) { send(w, frameExited, 0x137f, 0, ""); send(w, frameEnd, 0, 0, "") }, lost: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeEngine(t)
			e := newFakeExecutor(t, f)
			f.report = func(w io.Writer) {
				tt.report(w)
				if m, ok := w.(muxed); ok {
					if c, ok := m.to.(net.Conn); ok {
						_ = c.Close()
					}
				}
			}
			r, err := e.Execute(t.Context(), fakeRequest(t))
			switch {
			case tt.lost && (err == nil || sallyport.IsNotStarted(err)):
				t.Errorf("got %+v, %v, want an error of a run that may have begun", r, err)
			case !tt.lost && err != nil:
				t.Errorf("got %v", err)
			case !tt.lost:
				if fault := tt.want(r); fault != "" {
					t.Errorf("%s, got %+v", fault, r)
				}
			}
			eventually(t, "no container is left", func() bool { _, _, n := f.counts(); return n == 0 })
		})
	}
}

// A stream that says nothing at all is left at the deadline, and that is a timeout, because it was ours.
func TestSilentContainer(t *testing.T) {
	t.Parallel()
	f := newFakeEngine(t)
	e := newFakeExecutor(t, f)
	f.report = func(w io.Writer) { send(w, frameStarted, 0, 0, "") }
	r, err := e.Execute(t.Context(), fakeRequest(t))
	if err != nil || !r.TimedOut || r.Limit != sallyport.LimitWall || r.ExitCode != nil || !r.ArtifactsLost {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A caller that gives up is told so at every step of a run, and nothing stays.
func TestCanceledAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"image", "create", "attach", "start", "word"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			f := newFakeEngine(t)
			e := newFakeExecutor(t, f)
			if c := e.Capabilities(t.Context()); !c.Available {
				t.Fatal(c.Reason)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f.mu.Lock()
			f.fail = func(c string) fault {
				if c == call {
					cancel()
				}
				return none
			}
			f.report = func(w io.Writer) { cancel() }
			f.mu.Unlock()
			before, _, _ := f.counts()
			_, err := e.Execute(ctx, fakeRequest(t))
			begun, _, _ := f.counts()
			if !errors.Is(err, context.Canceled) || sallyport.IsNotStarted(err) != (begun == before) {
				t.Errorf("got %v, and %d scripts began", err, begun-before)
			}
			eventually(t, "no container is left", func() bool { _, _, n := f.counts(); return n == 0 })
		})
	}
}

// However much an engine says, little of it is kept. It counts what the process allocates, so no other test may run beside it.
func TestAnswersAreBounded(t *testing.T) {
	f := newFakeEngine(t)
	e := newEngine(f.socket, time.Minute)
	f.setFault("info", endless)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := &session{engine: e, prefix: "/v1.43"}
	err := s.info(t.Context())
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("got %v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("allocated %d bytes", grown)
	}
	e.close()
}

// Containers of other servers, and of living processes, are left alone; what is dead, expired or was never started is removed.
func TestSweep(t *testing.T) {
	t.Parallel()
	f := newFakeEngine(t)
	e := newFakeExecutor(t, f)
	now := time.Now()
	old, young := fmt.Sprint(now.Add(-time.Hour).Unix()), fmt.Sprint(now.Unix())
	alive := e.labels()[labelProcess]
	row := func(id, owner, process, expires, state, created string) listed {
		return listed{ID: id, State: state, Created: jsonNumber(created), Labels: map[string]string{
			labelOwner: owner, labelProcess: process, labelExpires: expires, labelExecution: id,
		}}
	}
	later := fmt.Sprint(now.Add(time.Hour).Unix())
	f.foreign = []listed{
		row("theirs-dead", "other", "x.1.1", old, "exited", old),
		row("mine-running", "me", alive, later, "running", old),
		row("mine-starting", "me", alive, later, "created", young),
		row("mine-elsewhere", "me", "another-machine.1.1", later, "running", old),
		row("mine-expired", "me", alive, old, "running", old),
		row("mine-forgotten", "me", alive, later, "created", old),
		row("mine-of-a-dead-process", "me", deadName(t, alive), later, "running", young),
	}
	if c := e.Capabilities(t.Context()); !c.Available {
		t.Fatal(c.Reason)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var left []string
	for _, c := range f.foreign {
		left = append(left, c.ID)
	}
	want := []string{"theirs-dead", "mine-running", "mine-starting", "mine-elsewhere"}
	if alive == "" { // processes have no names on this system
		want = append(want, "mine-of-a-dead-process")
	}
	if !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

// An engine that is not there, or is something else, is told with its remedy.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	silent := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for socket, word := range map[string]string{
		filepath.Join(t.TempDir(), "absent"): "start the engine",
		silent:                               "slow",
	} {
		e, err := New(Config{Socket: socket, Owner: "me", callTimeout: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		c := e.Capabilities(t.Context())
		if c.Available || !strings.Contains(c.Remedy, word) || c.Reason == "" {
			t.Errorf("got %+v", c)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Images: which are asked for, and which are refused without asking.
func TestImages(t *testing.T) {
	t.Parallel()
	f := newFakeEngine(t)
	e := newFakeExecutor(t, f)
	for name, tt := range map[string]struct {
		in   sallyport.Interpreter
		want string
	}{
		"configured":         {sallyport.Interpreter{Runtime: "bash", Program: "bash"}, ""},
		"its own":            {sallyport.Interpreter{Runtime: "ds", Program: "/bin/python3", Image: "img"}, ""},
		"none":               {sallyport.Interpreter{Runtime: "node", Program: "node"}, "no image is configured"},
		"absent":             {sallyport.Interpreter{Runtime: "ds", Program: "node", Image: "ds:1"}, "is not on the engine"},
		"a file of the host": {sallyport.Interpreter{Runtime: "ds", Program: "node", Image: "/srv/ds.tar@sha256:" + strings.Repeat("a", 64)}, "no reference"},
		"a way out":          {sallyport.Interpreter{Runtime: "ds", Program: "node", Image: "x/../../containers"}, "no reference"},
		"a query":            {sallyport.Interpreter{Runtime: "ds", Program: "node", Image: "x?force=1"}, "no reference"},
		"half a digest":      {sallyport.Interpreter{Runtime: "ds", Program: "node", Image: "x@sha256:abc"}, "no digest"},
	} {
		req := fakeRequest(t)
		req.Interpreter = tt.in
		r, err := e.Execute(t.Context(), req)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want == "" && (r.ExitCode == nil || r.Isolation.RuntimeDigest != "sha256:"+strings.Repeat("ab", 32)):
			t.Errorf("%s: %+v", name, r)
		case tt.want != "" && (!strings.Contains(r.StartError, tt.want) || r.ExitCode != nil):
			t.Errorf("%s: the start error is %q, want %q", name, r.StartError, tt.want)
		}
	}
	for ref, ok := range map[string]bool{
		"python:3": false, "python": false, "python@sha256:" + strings.Repeat("a", 64): true, "sha256:" + strings.Repeat("a", 64): true,
		"localhost:5000/x@sha256:" + strings.Repeat("0", 64): true, "@sha256:" + strings.Repeat("0", 64): false,
	} {
		_, err := New(Config{Socket: "/s", Owner: "me", RequireDigest: true, Images: map[string]string{"python": ref}})
		if (err == nil) != ok {
			t.Errorf("%q with a digest required: %v", ref, err)
		}
	}
}

// Each configuration that cannot be meant is refused, the zero value first.
func TestConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"zero": {}, "relative": {Socket: "podman.sock", Owner: "me"}, "no owner": {Socket: "/s"}, "owner with a quote": {Socket: "/s", Owner: `a"`},
		"profile": {Socket: "/s", Owner: "me", Profile: "lax"}, "root": {Socket: "/s", Owner: "me", FirstUID: 1, UIDCount: 10},
	} {
		if e, err := New(cfg); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || e != nil {
			t.Errorf("%s: got %v, %v", name, e, err)
		}
	}
}

func jsonNumber(s string) json.Number { return json.Number(s) }

// deadName is alive with a time of start that no process has.
func deadName(t *testing.T, alive string) string {
	t.Helper()
	if alive == "" {
		return ""
	}
	return alive[:strings.LastIndexByte(alive, '.')] + ".1"
}
