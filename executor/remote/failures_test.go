//go:build linux

package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/remote"
)

// busy is what a machine that does much else may add to a time.
const busy = 4 * time.Second

// request is a script alone, for a second, with half a second of grace.
func request(id string) sallyport.ExecRequest {
	source := []byte("print(1)")
	sha := sallyport.DigestOf(source).Hex()
	limits := sallyport.DefaultLimits()
	limits.Timeout, limits.OutputBytes = time.Second, 1<<10
	return sallyport.ExecRequest{
		ExecutionID: sallyport.ExecutionID(id), TenantID: "acme", Slug: "demo", Digest: sallyport.DigestOf(source),
		ScriptPath: "scripts/x.py", Interpreter: sallyport.Interpreter{Extension: "py", Runtime: "python", Program: "python-3.12"},
		Content: source, ContentSHA256: sha, Stdin: []byte(`{"n":1}`), Limits: limits, Grace: 800 * time.Millisecond,
		Files: []sallyport.Component{{Path: "scripts/x.py", Kind: sallyport.KindScript, Size: 8, SHA256: sha, Content: source}},
	}
}

// fake is a runner made of one function; asked counts POST /runs.
type fake struct {
	*httptest.Server
	asked atomic.Int64
}

// newFake serves run at POST /runs. capabilities is the body of GET /capabilities; empty is a minimal runner.
func newFake(tb testing.TB, capabilities string, run http.HandlerFunc) *fake {
	tb.Helper()
	f := &fake{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /runs", func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		run(w, r)
	})
	if capabilities != "" {
		mux.HandleFunc("GET /capabilities", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, capabilities) })
	}
	f.Server = httptest.NewServer(mux)
	tb.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

const extended = `{"protocol":"sallyport.runner.v1","executor":"bubblewrap","available":true,"layers":["seccomp"],"features":["argv","revision","files","artifacts"],"slots":4,"used":0,"later":{"x":[1]}}`

func answers(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

const fine = `{"exitCode":0,"standardOutput":"fine","standardError":"","truncated":false,"timedOut":false}`

// A minimal runner gets the seven fields and nothing else, and its five are enough.
func TestMinimalRunner(t *testing.T) {
	t.Parallel()
	var sent map[string]any
	var header http.Header
	f := newFake(t, "", func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"exitCode":3,"standardOutput":"out","standardError":"err","truncated":true,"timedOut":false,"unknown":{"deep":[1]}}`)
	})
	e := newExecutor(t, remote.Config{Runners: []string{f.URL}, Key: key})
	got, err := e.Execute(t.Context(), request("e1"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"tenant": "acme", "runtime": "python-3.12", "source": "print(1)", "sourceSha256": sallyport.DigestOf([]byte("print(1)")).Hex(),
		"standardInput": `{"n":1}`, "timeoutSeconds": 1.0, "maxOutputBytes": 1024.0,
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if header.Get("Authorization") != "Bearer "+string(key) {
		t.Errorf("the key was not sent: %v", header)
	}
	result := sallyport.Result{
		ExitCode: new(3), Stdout: []byte("out"), Stderr: []byte("err"), StdoutBytes: 3, StderrBytes: 3, StdoutTruncated: true, StderrTruncated: true,
		Isolation: sallyport.Isolation{Executor: "remote", Layers: []sallyport.Layer{}},
	}
	if diff := cmp.Diff(result, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// A runner that declares nothing provides what the operator lists, and lacks what any isolated runner has.
func TestMinimalCapabilities(t *testing.T) {
	t.Parallel()
	f := newFake(t, "", answers(fine))
	e := newExecutor(t, remote.Config{Runners: []string{f.URL}})
	got := e.Capabilities(t.Context())
	if !got.Available || len(got.Layers) != 0 || len(got.Features) != 0 || !slices.Contains(got.Missing, sallyport.LayerNetworkIsolation) {
		t.Errorf("nothing listed: got %+v", got)
	}
	all := []sallyport.Layer{
		sallyport.LayerNetworkIsolation, sallyport.LayerReadOnlySystem, sallyport.LayerMemoryLimit, sallyport.LayerProcessLimit,
		sallyport.LayerCPULimit, sallyport.LayerGroupKill, sallyport.LayerScratchLimit,
	}
	e = newExecutor(t, remote.Config{Runners: []string{f.URL}, Layers: all, Features: []sallyport.Feature{sallyport.FeatureArgv}})
	got = e.Capabilities(t.Context())
	if len(got.Layers) != len(all) || len(got.Missing) != 0 || len(got.Features) != 1 {
		t.Errorf("all listed: got %+v", got)
	}
	for name, change := range map[string]func(*sallyport.ExecRequest){
		"siblings": func(r *sallyport.ExecRequest) {
			r.Files = append(r.Files, sallyport.Component{Path: "scripts/y.py"})
		},
		"input files": func(r *sallyport.ExecRequest) { r.Inputs = []sallyport.InputFile{{Name: "x"}} },
		"secrets":     func(r *sallyport.ExecRequest) { r.Secrets = map[string]sallyport.Secret{"K": "v"} },
		"bytes":       func(r *sallyport.ExecRequest) { r.Content = []byte{0xff} },
		"no limit":    func(r *sallyport.ExecRequest) { r.Limits.MemoryBytes = 0 },
	} {
		req := request("e-" + name)
		change(&req)
		before := f.asked.Load()
		if _, err := e.Execute(t.Context(), req); !sallyport.IsNotStarted(err) || f.asked.Load() != before {
			t.Errorf("%s: got %v", name, err)
		}
	}
	req := request("e-argv")
	req.Argv = []string{"x"}
	if _, err := e.Execute(t.Context(), req); err != nil {
		t.Errorf("argv: got %v", err)
	}
}

// An answer that does not come, or is none, is a run that was lost: it may have happened.
func TestLost(t *testing.T) {
	t.Parallel()
	hijack := func(text string, hold bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, text)
			if hold {
				_, _ = io.Copy(io.Discard, conn) // until the other side gives up
			}
			_ = conn.Close()
		}
	}
	for name, run := range map[string]http.HandlerFunc{
		"closed without an answer": hijack("", false),
		"half a status line":       hijack("HTTP/1.1 2", false),
		"not HTTP":                 hijack("SSH-2.0-OpenSSH\r\n", false),
		"200 then silence":         hijack("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n", true),
		"silence":                  hijack("", true),
		"half an answer, silence":  hijack("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"exitCode\":0,", true),
		"body cut off":             hijack("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"exitCode\":0,", false),
		"chunks cut off":           hijack("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"exi", false),
		"partial JSON":             answers(`{"exitCode":0,"standardOutput":"x`),
		"two documents":            answers(fine + fine),
		"wrong types":              answers(`{"exitCode":"0","standardOutput":"","standardError":"","truncated":false,"timedOut":false}`),
		"a list":                   answers(`[]`),
		"a page":                   answers(`<html>Welcome to the hotel</html>`),
		"nothing":                  answers(``),
		"not UTF-8":                answers("{\"exitCode\":0,\"standardOutput\":\"\xff\"}"),
		"ten gigabytes announced":  hijack("HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n{", true),
		"answer without end": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"standardOutput":"`)
			for {
				if _, err := w.Write([]byte(strings.Repeat("x", 1<<20))); err != nil {
					return
				}
			}
		},
		"header without end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
			_, _ = io.WriteString(w, fine)
		},
		"bad gateway": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "upstream", http.StatusBadGateway) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"redirect see other": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/runs", http.StatusSeeOther) },
		"broke while running": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"code":"INTERNAL","message":"marker","started":true}`)
		},
		"asked before": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code":"ALREADY_ASKED","message":"marker","started":true}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := newFake(t, extended, run), newFake(t, extended, run)
			e := newExecutor(t, remote.Config{Runners: []string{first.URL, second.URL}})
			req := request("e-" + name)
			began := time.Now()
			got, err := e.Execute(t.Context(), req)
			took := time.Since(began)
			if err == nil || sallyport.IsNotStarted(err) {
				t.Fatalf("got %+v, %v; want a run that was lost", got, err)
			}
			if took > req.Limits.Timeout+req.Grace+busy {
				t.Errorf("took %s, the caller waits %s", took, req.Limits.Timeout+req.Grace)
			}
			if asked := first.asked.Load() + second.asked.Load(); asked != 1 {
				t.Errorf("%d runners were asked", asked)
			}
			public, _ := json.Marshal(sallyport.Public(err))
			if strings.Contains(string(public), "127.0.0.1") || strings.Contains(string(public), "marker") {
				t.Errorf("the caller would see %s", public)
			}
		})
	}
}

// What certainly began nothing is said to have begun nothing.
func TestNotStarted(t *testing.T) {
	t.Parallel()
	no := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		run  http.HandlerFunc
		code sallyport.Code
	}{
		"no such route":   {no(404, "not found"), sallyport.CodeRunnerUnreachable},
		"wrong key":       {no(401, `{"code":"UNAUTHENTICATED","message":"","started":false}`), sallyport.CodeRunnerUnreachable},
		"wrong digest":    {no(422, `{"code":"DIGEST_MISMATCH","message":"","started":false}`), sallyport.CodeInternal},
		"no sandbox":      {no(503, `{"code":"SANDBOX_UNAVAILABLE","message":"","started":false}`), sallyport.CodeSandboxUnavailable},
		"full":            {no(503, `{"code":"SLOTS_EXHAUSTED","message":"","started":false}`), sallyport.CodeSlotsExhausted},
		"stopping":        {no(503, `{"code":"DRAINING","message":"","started":false}`), sallyport.CodeRunnerUnreachable},
		"revision forgot": {no(409, `{"code":"REVISION_UNKNOWN","message":"","started":false}`), sallyport.CodeRunnerUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, extended, test.run)
			e := newExecutor(t, remote.Config{Runners: []string{f.URL}})
			if _, err := e.Execute(t.Context(), request("e")); !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != test.code {
				t.Errorf("got %v, want %s and nothing started", err, test.code)
			}
		})
	}
	t.Run("refused connection", func(t *testing.T) {
		t.Parallel()
		e := newExecutor(t, remote.Config{Runners: []string{"http://" + deadAddress(t)}})
		_, err := e.Execute(t.Context(), request("e"))
		if !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeRunnerUnreachable {
			t.Errorf("got %v", err)
		}
		if found := e.Capabilities(t.Context()); found.Available || strings.Contains(found.Reason, "127.0.0.1") {
			t.Errorf("got %+v", found)
		}
	})
}

// deadAddress is a port that nobody listens on.
func deadAddress(tb testing.TB) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// A runner that dies between the question what it can do and the run is passed over: nothing was sent to it.
func TestNextRunner(t *testing.T) {
	t.Parallel()
	full := newFake(t, extended, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"code":"SLOTS_EXHAUSTED","message":"","started":false}`)
	})
	dying, alive := newFake(t, extended, answers(fine)), newFake(t, extended, answers(fine))
	e := newExecutor(t, remote.Config{Runners: []string{dying.URL, full.URL, alive.URL}, PollInterval: time.Minute})
	if found := e.Capabilities(t.Context()); !found.Available {
		t.Fatal(found.Reason)
	}
	dying.CloseClientConnections()
	dying.Close()
	for i := range 6 {
		got, err := e.Execute(t.Context(), request(fmt.Sprint("e", i)))
		if err != nil || string(got.Stdout) != "fine" {
			t.Fatalf("run %d: got %v", i, err)
		}
	}
	if alive.asked.Load() != 6 {
		t.Errorf("the living runner was asked %d times", alive.asked.Load())
	}
}

// Runs go where there is room.
func TestLeastLoaded(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	wait := func(w http.ResponseWriter, _ *http.Request) {
		<-hold
		_, _ = io.WriteString(w, fine)
	}
	small := newFake(t, strings.Replace(extended, `"slots":4`, `"slots":2`, 1), wait)
	large := newFake(t, strings.Replace(extended, `"slots":4`, `"slots":6`, 1), wait)
	taken := newFake(t, strings.Replace(extended, `"used":0`, `"used":4`, 1), wait)
	e := newExecutor(t, remote.Config{Runners: []string{small.URL, large.URL, taken.URL}, PollInterval: time.Minute})
	e.Capabilities(t.Context())
	done := make(chan error)
	for i := range 8 {
		req := request(fmt.Sprint("e", i))
		req.Limits.Timeout = 20 * time.Second
		go func() {
			_, err := e.Execute(t.Context(), req)
			done <- err
		}()
		for range 500 {
			if small.asked.Load()+large.asked.Load()+taken.asked.Load() > int64(i) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	if small.asked.Load() != 2 || large.asked.Load() != 6 || taken.asked.Load() != 0 {
		t.Errorf("small %d, large %d, taken %d", small.asked.Load(), large.asked.Load(), taken.asked.Load())
	}
	close(hold)
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Several runners provide together what all of them do, and each run gets a runner that enforces what its gate demanded.
func TestWhatAllProvide(t *testing.T) {
	t.Parallel()
	more := strings.Replace(extended, `["seccomp"]`, `["seccomp","memory_limit"]`, 1)
	weak, strong := newFake(t, extended, answers(fine)), newFake(t, more, answers(fine))
	e := newExecutor(t, remote.Config{Runners: []string{weak.URL, strong.URL}})
	got := e.Capabilities(t.Context())
	if diff := cmp.Diff([]sallyport.Layer{"seccomp"}, got.Layers); diff != "" || len(got.Missing) != 0 || len(got.Places) != 2 || len(got.Places[1].Layers) != 2 {
		t.Errorf("got %+v", got)
	}
	for i := range 6 {
		req := request("e-strong-" + strconv.Itoa(i))
		req.RequiredLayers = []sallyport.Layer{"memory_limit"}
		if _, err := e.Execute(t.Context(), req); err != nil {
			t.Error(err)
		}
	}
	if weak.asked.Load() != 0 || strong.asked.Load() != 6 {
		t.Errorf("the runner without the layer was asked %d times, the other %d", weak.asked.Load(), strong.asked.Load())
	}
	none := request("e-none")
	none.RequiredLayers = []sallyport.Layer{"landlock"}
	if _, err := e.Execute(t.Context(), none); !sallyport.IsNotStarted(err) || !strings.Contains(sallyport.Public(err).Message, "does not enforce landlock") {
		t.Errorf("got %v", err)
	}
	var said atomic.Pointer[string]
	said.Store(&more)
	var required atomic.Value
	changing := http.NewServeMux()
	changing.HandleFunc("GET /capabilities", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, *said.Load()) })
	changing.HandleFunc("POST /runs", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			RequiredLayers []string `json:"requiredLayers"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		required.Store(fmt.Sprint(body.RequiredLayers))
		_, _ = io.WriteString(w, fine)
	})
	server := httptest.NewServer(changing)
	defer server.Close()
	e = newExecutor(t, remote.Config{Runners: []string{server.URL}, PollInterval: 20 * time.Millisecond})
	if got := e.Capabilities(t.Context()); len(got.Layers) != 2 {
		t.Fatalf("got %+v", got)
	}
	before, after := request("before"), request("after")
	before.RequiredLayers = []sallyport.Layer{"memory_limit", "seccomp"}
	after.RequiredLayers = before.RequiredLayers
	if _, err := e.Execute(t.Context(), before); err != nil || required.Load() != "[memory_limit seccomp]" {
		t.Errorf("got %v, the runner was asked for %v", err, required.Load())
	}
	said.Store(new(extended))
	for range 200 {
		if h := e.Health(t.Context()); len(h[0].Layers) == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := e.Execute(t.Context(), after); !sallyport.IsNotStarted(err) {
		t.Errorf("got %v, want a refusal", err)
	}
}

// A caller that gives up ends its request, and is told its own word and not that of a timeout.
func TestCanceled(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	began := make(chan struct{})
	f := newFake(t, extended, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(began)
		<-r.Context().Done()
		close(ended)
	})
	e := newExecutor(t, remote.Config{Runners: []string{f.URL}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	_, err := e.Execute(ctx, request("e"))
	if !errors.Is(err, context.Canceled) || sallyport.IsNotStarted(err) {
		t.Errorf("got %v", err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the runner did not see it")
	}
}

// A runner whose clock is years away is none the less understood: no time of day is compared.
func TestClockFarOff(t *testing.T) {
	t.Parallel()
	f := newFake(t, extended, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
		_, _ = io.WriteString(w, strings.TrimSuffix(fine, "}")+`,"startedAfterMs":20,"startedAt":"1970-01-01T00:00:00Z"}`)
	})
	e := newExecutor(t, remote.Config{Runners: []string{f.URL}})
	before := time.Now()
	got, err := e.Execute(t.Context(), request("e"))
	if err != nil {
		t.Fatal(err)
	}
	if at := got.StartedAt; at.Before(before.Add(20*time.Millisecond)) || at.After(time.Now().Add(20*time.Millisecond)) {
		t.Errorf("started at %s, between %s and now", at, before)
	}
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	for name, runners := range map[string][]string{
		"none": nil, "in the clear": {"http://runner.example:80"}, "another scheme": {"ftp://127.0.0.1"}, "no host": {"https://"}, "path only": {"/runs"},
		"with a password": {"https://me:secret@127.0.0.1"}, "with a query": {"https://127.0.0.1/?a=b"}, "twice": {"https://a:1", "https://a:1"}, "broken": {"https://[::1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := remote.New(remote.Config{Runners: runners}); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What a runner says about itself and cannot be used is a runner that cannot be used.
func TestUnusable(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"broken":       `{"protocol":`,
		"another":      `{"protocol":"other","available":true}`,
		"not possible": strings.Replace(extended, `"available":true`, `"available":false,"reason":"no user namespaces\u001b[31m"`, 1),
		"draining":     strings.Replace(extended, `"used":0`, `"used":0,"draining":true`, 1),
		"too long":     strings.Replace(extended, `"used":0`, `"used":0,"x":"`+strings.Repeat("x", 70<<10)+`"`, 1),
		"zero value":   `{"protocol":"sallyport.runner.v1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, said, answers(fine))
			e := newExecutor(t, remote.Config{Runners: []string{f.URL}})
			if got := e.Capabilities(t.Context()); got.Available || got.Reason == "" || strings.ContainsRune(got.Reason, 0x1b) {
				t.Errorf("got %+v", got)
			}
			if _, err := e.Execute(t.Context(), request("e")); !sallyport.IsNotStarted(err) || f.asked.Load() != 0 {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The suite's other half: what an executor provides is what its runner does, no more.
func TestHealthNamesTheRunner(t *testing.T) {
	t.Parallel()
	f := newFake(t, extended, answers(fine))
	e := newExecutor(t, remote.Config{Runners: []string{f.URL, "http://" + deadAddress(t)}})
	got := e.Health(t.Context())
	if len(got) != 2 || !got[0].Usable || got[0].Runner != f.URL || got[0].Executor != "bubblewrap" || got[1].Usable || got[1].Cause == "" {
		t.Errorf("got %+v", got)
	}
	if _, err := e.Execute(t.Context(), request("e")); err != nil {
		t.Error(err)
	}
}
