package runner_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runnerwire"
	"github.com/sallyport-dev/sallyport/runner"
	"github.com/sallyport-dev/sallyport/sallyporttest"
)

const key = "a key for tests only, long enough"

type execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error)

// newRunner is a runner whose executor does as the test says.
func newRunner(tb testing.TB, run execute, change ...func(*runner.Config)) *runner.Runner {
	tb.Helper()
	cfg := runner.Config{
		Executor: &sallyporttest.Executor{
			TB: tb, CapabilitiesFunc: func(context.Context) sallyport.Capabilities { return sallyporttest.AllLayers() }, ExecuteFunc: run,
		},
		Runtimes: map[string]sallyport.Interpreter{
			"python-3.12": {Extension: "py", Runtime: "python", Program: "/usr/bin/python3"},
		},
		Keys: []sallyport.Secret{key}, Slots: 2, Patience: 2 * time.Second,
	}
	for _, f := range change {
		f(&cfg)
	}
	r, err := runner.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func serve(tb testing.TB, r *runner.Runner) string {
	tb.Helper()
	server := httptest.NewServer(r.Handler())
	tb.Cleanup(server.Close)
	return server.URL
}

func echo(_ context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	return sallyporttest.Exited(0, string(req.Stdin)), nil
}

func minimalRun(source string) map[string]any {
	return map[string]any{
		"tenant": "t1", "runtime": "python-3.12", "source": source, "sourceSha256": sallyport.DigestOf([]byte(source)).Hex(),
		"standardInput": "{}", "timeoutSeconds": 5, "maxOutputBytes": 1024,
	}
}

// call sends one request with the key and returns its answer.
func call(tb testing.TB, method, url string, body any) (int, []byte) {
	tb.Helper()
	encoded, ok := body.([]byte)
	if !ok {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			tb.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(tb.Context(), method, url, bytes.NewReader(encoded))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, read
}

func faultOf(tb testing.TB, body []byte) runnerwire.Fault {
	tb.Helper()
	var f runnerwire.Fault
	if err := json.Unmarshal(body, &f); err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	return f
}

// The first seed's client works unchanged: it sends seven fields, understands five, and the run it describes is the run that
// the executor gets.
func TestSeedClient(t *testing.T) {
	t.Parallel()
	arguments := `{"n": 1}`
	for name, test := range map[string]struct {
		result sallyport.Result
		want   seedResult
	}{
		"success":       {sallyporttest.Exited(0, "fine"), seedResult{ExitCode: new(0), StandardOutput: "fine"}},
		"exit code":     {sallyport.Result{ExitCode: new(3), Stderr: []byte("no"), StderrBytes: 2}, seedResult{ExitCode: new(3), StandardError: "no"}},
		"timeout":       {sallyport.Result{TimedOut: true, ExitCode: new(9), Stdout: []byte("part")}, seedResult{TimedOut: true, StandardOutput: "part"}},
		"truncated":     {sallyport.Result{ExitCode: new(0), StderrTruncated: true}, seedResult{ExitCode: new(0), Truncated: true}},
		"not UTF-8":     {sallyport.Result{ExitCode: new(0), Stdout: []byte("a\xffb")}, seedResult{ExitCode: new(0), StandardOutput: "a\uFFFDb"}},
		"cut as text":   {sallyport.Result{ExitCode: new(0), Stdout: bytes.Repeat([]byte{0xff, 'a'}, 512)}, seedResult{ExitCode: new(0), StandardOutput: strings.Repeat("\uFFFDa", 256), Truncated: true}},
		"not started":   {sallyport.Result{StartError: "no interpreter"}, seedResult{StandardError: "no interpreter"}},
		"killed":        {sallyport.Result{Signal: 9, Limit: sallyport.LimitMemory}, seedResult{}},
		"over its size": {sallyport.Result{ExitCode: new(0), Stdout: bytes.Repeat([]byte("x"), 2000)}, seedResult{ExitCode: new(0), StandardOutput: strings.Repeat("x", 1024)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got sallyport.ExecRequest
			url := serve(t, newRunner(t, func(_ context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
				got = req
				return test.result, nil
			}))
			client := seedClient{&http.Client{Transport: bearer{key}}, url}
			result, err := client.execute(t.Context(), seedRequest{
				TenantID: "acme", Interpreter: "python-3.12", Content: "print(1)", ContentSHA256: strings.ToUpper(sallyport.DigestOf([]byte("print(1)")).Hex()),
				ArgumentsJSON: &arguments, TimeoutSeconds: 1.5, MaxOutputBytes: 1024,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if got.TenantID != "acme" || string(got.Content) != "print(1)" || string(got.Stdin) != arguments || got.Limits.Timeout != 1500*time.Millisecond ||
				got.Limits.OutputBytes != 1024 || got.Interpreter.Program != "/usr/bin/python3" || got.ScriptPath != "scripts/script.py" ||
				len(got.Files) != 1 || got.ExecutionID == "" || got.Limits.MemoryBytes == 0 || got.Grace <= 0 {
				t.Errorf("the executor got %+v", got)
			}
		})
	}
}

// A seed client that is refused sees a status that is no success, as its own code expects.
func TestSeedClientRefused(t *testing.T) {
	t.Parallel()
	url := serve(t, newRunner(t, func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
		return sallyport.Result{}, errors.New("the disk is full at /host/path")
	}))
	client := seedClient{&http.Client{Transport: bearer{key}}, url}
	_, err := client.execute(t.Context(), seedRequest{
		TenantID: "acme", Interpreter: "python-3.12", ContentSHA256: sallyport.DigestOf(nil).Hex(), TimeoutSeconds: 1, MaxOutputBytes: 1,
	})
	if err == nil || !strings.Contains(err.Error(), "500") || strings.Contains(err.Error(), "disk") {
		t.Errorf("got %v", err)
	}
}

// A runner whose host enforces less than its policy demands carries out nothing, for whatever server.
func TestPolicy(t *testing.T) {
	t.Parallel()
	lacking := func(c *runner.Config) {
		caps := sallyporttest.AllLayers()
		caps.Layers, caps.Missing = []sallyport.Layer{sallyport.LayerSeccomp}, []sallyport.Layer{sallyport.LayerMemoryLimit}
		c.Executor = &sallyporttest.Executor{TB: t, CapabilitiesFunc: func(context.Context) sallyport.Capabilities { return caps }, ExecuteFunc: echo}
	}
	for name, test := range map[string]struct {
		required []sallyport.Layer
		status   int
	}{
		"every layer by default": {nil, 503}, "none": {[]sallyport.Layer{}, 200}, "one it has": {[]sallyport.Layer{sallyport.LayerSeccomp}, 200},
		"one nobody has": {[]sallyport.Layer{sallyport.LayerLandlock}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, newRunner(t, nil, lacking, func(c *runner.Config) { c.RequiredLayers = test.required }))
			if status, body := call(t, http.MethodPost, url+"/runs", minimalRun("x")); status != test.status {
				t.Errorf("got %d %s", status, body)
			}
			_, said := call(t, http.MethodGet, url+"/capabilities", nil)
			if available := strings.Contains(string(said), `"available":true`); available != (test.status == 200) {
				t.Errorf("it says %s", said)
			}
		})
	}
}

// What is wrong with a request is told before anything of a script begins.
func TestRefusals(t *testing.T) {
	t.Parallel()
	url := serve(t, newRunner(t, nil, func(c *runner.Config) { c.MaxBodyBytes = 4096 }))
	with := func(change map[string]any) any {
		run := minimalRun("print(1)")
		maps.Copy(run, change)
		return run
	}
	for name, test := range map[string]struct {
		body   any
		status int
		code   string
	}{
		"not JSON":             {[]byte("{"), 400, "INVALID_ARGUMENT"},
		"a key twice":          {[]byte(`{"tenant":"a","tenant":"b"}`), 400, "INVALID_ARGUMENT"},
		"no tenant":            {with(map[string]any{"tenant": ""}), 400, "INVALID_ARGUMENT"},
		"wrong digest":         {with(map[string]any{"sourceSha256": strings.Repeat("0", 64)}), 422, "DIGEST_MISMATCH"},
		"no digest":            {with(map[string]any{"sourceSha256": ""}), 422, "DIGEST_MISMATCH"},
		"no timeout":           {with(map[string]any{"timeoutSeconds": 0}), 400, "INVALID_ARGUMENT"},
		"negative timeout":     {with(map[string]any{"timeoutSeconds": -1}), 400, "INVALID_ARGUMENT"},
		"timeout over the top": {with(map[string]any{"timeoutSeconds": 601}), 400, "INVALID_ARGUMENT"},
		"timeout without end":  {with(map[string]any{"timeoutSeconds": 1e300}), 400, "INVALID_ARGUMENT"},
		"no output limit":      {with(map[string]any{"maxOutputBytes": 0}), 400, "INVALID_ARGUMENT"},
		"output over the top":  {with(map[string]any{"maxOutputBytes": 1 << 40}), 400, "INVALID_ARGUMENT"},
		"half of the limits":   {with(map[string]any{"limits": map[string]any{"memoryBytes": 1 << 20}}), 400, "INVALID_ARGUMENT"},
		"path that escapes":    {with(map[string]any{"scriptPath": "../x"}), 400, "INVALID_ARGUMENT"},
		"grace without end":    {with(map[string]any{"graceSeconds": 1e6}), 400, "INVALID_ARGUMENT"},
		"unknown revision":     {with(map[string]any{"revision": strings.Repeat("0", 64)}), 409, "REVISION_UNKNOWN"},
		"layer it lacks":       {with(map[string]any{"requiredLayers": []string{"moat"}}), 503, "SANDBOX_UNAVAILABLE"},
		"body over the limit":  {with(map[string]any{"standardInput": strings.Repeat("x", 5000)}), 413, "REQUEST_TOO_LARGE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := call(t, http.MethodPost, url+"/runs", test.body)
			f := faultOf(t, body)
			if status != test.status || f.Code != test.code || f.Started == nil || *f.Started {
				t.Errorf("got %d %s, want %d %s and nothing started", status, body, test.status, test.code)
			}
		})
	}
}

// A runtime that the operator did not list is a script that cannot be started.
func TestUnknownRuntime(t *testing.T) {
	t.Parallel()
	url := serve(t, newRunner(t, nil))
	run := minimalRun("x")
	run["runtime"] = "/bin/sh"
	status, body := call(t, http.MethodPost, url+"/runs", run)
	if status != 200 || !strings.Contains(string(body), `"startError":"the runner does not have the runtime`) || !strings.Contains(string(body), `"exitCode":null`) {
		t.Errorf("got %d %s", status, body)
	}
}

// Unknown fields of a request, such as those of a later version, change nothing.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	url := serve(t, newRunner(t, echo))
	run := minimalRun("x")
	run["priority"], run["Tenant"] = map[string]any{"deep": []int{1}}, "not the tenant"
	if status, body := call(t, http.MethodPost, url+"/runs", run); status != 200 {
		t.Errorf("got %d %s", status, body)
	}
}

// Nobody sends work without the key.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	url := serve(t, newRunner(t, nil))
	for name, header := range map[string][]string{
		"none": nil, "empty": {""}, "wrong": {"Bearer " + key + "x"}, "basic": {"Basic " + key}, "bare": {key}, "two": {"Bearer " + key, "Bearer x"},
	} {
		for _, route := range []string{"POST /runs", "GET /capabilities", "PUT /revisions/x", "GET /", "DELETE /runs"} {
			t.Run(name+" "+route, func(t *testing.T) {
				t.Parallel()
				method, path, _ := strings.Cut(route, " ")
				req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				req.Header["Authorization"] = header
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusUnauthorized {
					t.Errorf("got %d", resp.StatusCode)
				}
			})
		}
	}
}

// A handler whose connections prove no certificate lets nobody in, whoever serves it.
func TestCertificateIsAskedFor(t *testing.T) {
	t.Parallel()
	url := serve(t, newRunner(t, nil, func(c *runner.Config) { c.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert} }))
	if status, _ := call(t, http.MethodGet, url+"/capabilities", nil); status != http.StatusUnauthorized {
		t.Errorf("got %d", status)
	}
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	executor := &sallyporttest.Executor{TB: t}
	for name, cfg := range map[string]runner.Config{
		"zero":                      {},
		"no executor":               {Keys: []sallyport.Secret{key}},
		"nobody to keep out":        {Executor: executor},
		"short key":                 {Executor: executor, Keys: []sallyport.Secret{"short"}},
		"certificates not demanded": {Executor: executor, TLS: &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven}},
		"negative":                  {Executor: executor, Keys: []sallyport.Secret{key}, Slots: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := runner.New(cfg); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The runner keeps what has the digest that its name says, and the runs that name it get exactly that.
func TestRevisions(t *testing.T) {
	t.Parallel()
	var got sallyport.ExecRequest
	url := serve(t, newRunner(t, func(_ context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
		got = req
		return sallyporttest.Exited(0, ""), nil
	}, func(c *runner.Config) { c.CacheBytes = 2000 }))
	revision := func(content string) (string, runnerwire.Revision) {
		r := runnerwire.Revision{Files: []runnerwire.File{
			{Path: "scripts/x.py", Kind: "script", Content: []byte(content)}, {Path: "scripts/y.py", Kind: "script", Content: []byte("y\xff")},
		}}
		return runnerwire.Key(r.Components()), r
	}
	ask := func(key string) (int, []byte) {
		run := minimalRun("x")
		run["revision"], run["scriptPath"] = key, "scripts/x.py"
		return call(t, http.MethodPost, url+"/runs", run)
	}
	name, files := revision("x")
	if status, _ := ask(name); status != http.StatusConflict {
		t.Fatalf("before the upload: got %d", status)
	}
	_, others := revision("z")
	if status, body := call(t, http.MethodPut, url+"/revisions/"+name, others); status != http.StatusUnprocessableEntity {
		t.Fatalf("content of another: got %d %s", status, body)
	}
	if status, body := call(t, http.MethodPut, url+"/revisions/"+name, files); status != http.StatusNoContent {
		t.Fatalf("upload: got %d %s", status, body)
	}
	if status, body := ask(name); status != http.StatusOK || len(got.Files) != 2 || string(got.Files[1].Content) != "y\xff" {
		t.Fatalf("after the upload: got %d %s, files %v", status, body, got.Files)
	}
	other := minimalRun("other source")
	other["revision"], other["scriptPath"] = name, "scripts/x.py"
	if status, _ := call(t, http.MethodPost, url+"/runs", other); status != http.StatusUnprocessableEntity {
		t.Errorf("a source that is not the revision's script: got %d", status)
	}
	other["scriptPath"] = "scripts/none.py"
	if status, _ := call(t, http.MethodPost, url+"/runs", other); status != http.StatusBadRequest {
		t.Errorf("a script that is not in the revision: got %d", status)
	}
	for i := range 5 {
		key, files := revision(strings.Repeat("x", i+10))
		if status, body := call(t, http.MethodPut, url+"/revisions/"+key, files); status != http.StatusNoContent {
			t.Fatalf("upload %d: got %d %s", i, status, body)
		}
	}
	if status, _ := ask(name); status != http.StatusConflict {
		t.Errorf("the oldest was not evicted: got %d", status)
	}
	key, large := revision(strings.Repeat("x", 3000))
	if status, _ := call(t, http.MethodPut, url+"/revisions/"+key, large); status != http.StatusRequestEntityTooLarge {
		t.Errorf("larger than the cache: got %d", status)
	}
	for name, files := range map[string][]runnerwire.File{
		"unsafe": {{Path: "../x"}}, "unsorted": {{Path: "b"}, {Path: "a"}}, "twice": {{Path: "a"}, {Path: "a"}},
	} {
		if status, _ := call(t, http.MethodPut, url+"/revisions/x", runnerwire.Revision{Files: files}); status != http.StatusBadRequest {
			t.Errorf("%s: got %d", name, status)
		}
	}
}

// A request that is repeated, by a proxy perhaps, is not a second run.
func TestRepeatedRequest(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	url := serve(t, newRunner(t, func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
		runs.Add(1)
		return sallyporttest.Exited(0, ""), nil
	}))
	run := minimalRun("x")
	run["executionId"] = "e1"
	if status, body := call(t, http.MethodPost, url+"/runs", run); status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	status, body := call(t, http.MethodPost, url+"/runs", run)
	if f := faultOf(t, body); status != 409 || f.Code != "ALREADY_ASKED" || f.Started == nil || !*f.Started || runs.Load() != 1 {
		t.Errorf("got %d %s after %d runs", status, body, runs.Load())
	}
}

// A caller that goes away ends its script.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan error, 1)
	url := serve(t, newRunner(t, func(ctx context.Context, _ sallyport.ExecRequest) (sallyport.Result, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return sallyport.Result{}, ctx.Err()
	}))
	body, err := json.Marshal(minimalRun("x"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/runs", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	go func() {
		<-began
		cancel()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("got an answer")
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the script was not stopped")
	}
}

// A full runner says so, in time for another one to be asked, and a panic ends one run only.
func TestSlots(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	url := serve(t, newRunner(t, func(_ context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
		if string(req.Stdin) == "panic" {
			panic("marker")
		}
		<-hold
		return sallyporttest.Exited(0, ""), nil
	}, func(c *runner.Config) { c.Slots = 1 }))
	panics := minimalRun("x")
	panics["standardInput"] = "panic"
	status, body := call(t, http.MethodPost, url+"/runs", panics)
	if f := faultOf(t, body); status != 500 || f.Started == nil || !*f.Started || strings.Contains(string(body), "marker") {
		t.Errorf("panic: got %d %s", status, body)
	}
	first := make(chan int)
	go func() {
		status, _ := call(t, http.MethodPost, url+"/runs", minimalRun("x"))
		first <- status
	}()
	for range 200 {
		if _, body := call(t, http.MethodGet, url+"/capabilities", nil); strings.Contains(string(body), `"used":1`) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	status, body = call(t, http.MethodPost, url+"/runs", minimalRun("x"))
	if f := faultOf(t, body); status != 503 || f.Code != "SLOTS_EXHAUSTED" || f.Started == nil || *f.Started {
		t.Errorf("full: got %d %s", status, body)
	}
	close(hold)
	if status := <-first; status != 200 {
		t.Errorf("the first: got %d", status)
	}
}

// Beyond loopback nothing is served in the clear.
func TestServeRefusesInTheClear(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := newRunner(t, nil).Serve(t.Context(), listener); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
		t.Errorf("got %v", err)
	}
}

// A runner that is told to stop takes no more work and lets the run under way end.
func TestDrain(t *testing.T) {
	t.Parallel()
	began, hold := make(chan struct{}), make(chan struct{})
	r := newRunner(t, func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
		close(began)
		<-hold
		return sallyporttest.Exited(0, "whole"), nil
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, listener) }()
	answered := make(chan string, 1)
	go func() {
		_, body := call(t, http.MethodPost, url+"/runs", minimalRun("x"))
		answered <- string(body)
	}()
	<-began
	stop()
	inside := httptest.NewServer(r.Handler())
	defer inside.Close()
	for range 200 {
		if status, _ := call(t, http.MethodGet, inside.URL+"/healthz", nil); status == http.StatusServiceUnavailable {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	status, body := call(t, http.MethodPost, inside.URL+"/runs", minimalRun("x"))
	if f := faultOf(t, body); status != 503 || f.Code != "DRAINING" || f.Started == nil || *f.Started {
		t.Errorf("new work: got %d %s", status, body)
	}
	close(hold)
	if body := <-answered; !strings.Contains(body, `"standardOutput":"whole"`) {
		t.Errorf("the run under way: got %s", body)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// What does not end within the patience is cancelled.
func TestDrainCancels(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	r := newRunner(t, func(ctx context.Context, _ sallyport.ExecRequest) (sallyport.Result, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return sallyport.Result{}, ctx.Err()
	}, func(c *runner.Config) { c.Patience = 50 * time.Millisecond })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, listener) }()
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listener.Addr().String()+"/runs", strings.NewReader(mustJSON(minimalRun("x"))))
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+key)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-began
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	<-ended
}

func mustJSON(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}
