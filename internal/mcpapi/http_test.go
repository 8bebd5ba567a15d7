package mcpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

func as(p sallyport.Principal) func(*http.Request) (sallyport.Principal, error) {
	return func(*http.Request) (sallyport.Principal, error) { return p, nil }
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// response is one that was read whole.
type response struct {
	status int
	header http.Header
	body   []byte
}

// post sends one message as it is, with the headers that revision asks for and then those of change.
func post(t *testing.T, url, revision, method, name, body string, change ...func(*http.Request)) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", revision)
	if revision == modern {
		req.Header.Set("Mcp-Method", method)
		if name != "" {
			req.Header.Set("Mcp-Name", name)
		}
	}
	for _, c := range change {
		c(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answered, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, answered}
}

// callBody is a tools/call of the given revision.
func callBody(revision, tool, arguments string) string {
	meta := `{}`
	if revision == modern {
		meta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,"_meta":` + meta + `}}`
}

// answer is the JSON-RPC answer in a response, whichever form it has.
func (r response) answer(t *testing.T) json.RawMessage {
	t.Helper()
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		return r.body
	}
	for line := range bytes.Lines(r.body) {
		if data, found := bytes.CutPrefix(line, []byte("data: ")); found {
			return data
		}
	}
	t.Fatalf("the stream %q has no data", r.body)
	return nil
}

// The SDK's own client in both revisions on one URL: list, call, and every result private.
func TestBothRevisions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.skills.list = func(sallyport.Principal, registry.ListRequest) (registry.ListResult, error) {
		return registry.ListResult{Skills: []sallyport.Skill{skill("csv")}}, nil
	}
	f.runs.run = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) {
		return finished(), nil
	}
	url := serve(t, f.Handler(as(alice())))
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close() }()
			init := session.InitializeResult()
			if init.ProtocolVersion != revision || init.ServerInfo.Name != "sallyport" || init.ServerInfo.Version != "1.2.3" {
				t.Errorf("initialize: got %+v", init)
			}
			if !strings.Contains(init.Instructions, "recall_cloud_skill") || hasLogging(t, init.Capabilities) || init.Capabilities.Tools == nil || init.Capabilities.Tools.ListChanged {
				t.Errorf("initialize: instructions %q, capabilities %+v", init.Instructions, init.Capabilities)
			}
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(tools.Tools) != 4 || tools.CacheScope != "private" {
				t.Errorf("%d tools with scope %q, want 4 and private", len(tools.Tools), tools.CacheScope)
			}
			for _, call := range []struct {
				tool      string
				arguments map[string]any
				kind      string
				isError   bool
			}{
				{recall, map[string]any{"query": "csv"}, "recall", false},
				{execute, map[string]any{"slug": "csv", "script_path": "scripts/x.py", "input_args": map[string]any{"a": 1}}, "execution", false},
				{execute, map[string]any{"slug": "csv", "script_path": "scripts/x.py", "timeout_seconds": "x"}, "execution", true},
				{save, nil, "save", true},
			} {
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: call.arguments})
				if err != nil {
					t.Fatalf("%s: %v", call.tool, err)
				}
				structured, _ := result.StructuredContent.(map[string]any)
				if result.IsError != call.isError || structured["kind"] != call.kind || len(result.Content) != 1 {
					t.Errorf("%s: got %+v", call.tool, result)
				}
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "rm"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
				t.Errorf("unknown tool: got %v, want a protocol error", err)
			}
		})
	}
}

// hasLogging looks at the wire form: the field is deprecated.
func hasLogging(t *testing.T, capabilities *mcp.ServerCapabilities) bool {
	t.Helper()
	encoded, err := json.Marshal(capabilities)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(encoded), "logging")
}

func TestDiscoverIsPrivate(t *testing.T) {
	t.Parallel()
	url := serve(t, newFixture(t).Handler(as(alice())))
	resp := post(t, url, modern, "server/discover", "", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	var m struct {
		Result struct {
			CacheScope string   `json:"cacheScope"`
			Versions   []string `json:"supportedVersions"`
		} `json:"result"`
	}
	if err := json.Unmarshal(resp.answer(t), &m); err != nil {
		t.Fatal(err)
	}
	if m.Result.CacheScope != "private" || len(m.Result.Versions) < 2 || m.Result.Versions[0] != modern || m.Result.Versions[1] != legacy {
		t.Errorf("got %+v", m.Result)
	}
}

// The bytes of input_args arrive as they were sent, in both revisions, numbers that no float64 holds included.
func TestExactArgumentsOverHTTP(t *testing.T) {
	t.Parallel()
	const args = "{ \"n\" : 12345678901234567890.10,\t\"e\":1e400, \"u\":\"\\u003c<é\",\"z\":-0 }"
	f := newFixture(t)
	got := make(chan string, 2)
	f.runs.run = func(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
		got <- string(req.Args)
		return finished(), nil
	}
	url := serve(t, f.Handler(as(alice())))
	for _, revision := range []string{modern, legacy} {
		resp := post(t, url, revision, "tools/call", execute, callBody(revision, execute, `{"slug":"csv","script_path":"x","input_args": `+args+` }`))
		if r := checkResult(t, execute, result(t, resp.answer(t))); r.IsError {
			t.Errorf("%s: %s", revision, r.Structured)
			continue
		}
		if g := <-got; g != args {
			t.Errorf("%s:\n got %q\nwant %q", revision, g, args)
		}
	}
}

// Faults of the arguments are envelopes in both revisions, with HTTP 200.
func TestBadArgumentsOverHTTP(t *testing.T) {
	t.Parallel()
	url := serve(t, newFixture(t).Handler(as(alice())))
	for name, arguments := range map[string]string{
		"duplicate":     `{"slug":"csv","script_path":"x","input_args":{"a":1,"a":2}}`,
		"not an object": `[]`, "null": `null`, "number": `1e999`, "utf-8": "{\"slug\":\"\xff\"}",
		"unknown": `{"x":1}`, "deep": `{"input_args":{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, revision := range []string{modern, legacy} {
				resp := post(t, url, revision, "tools/call", execute, callBody(revision, execute, arguments))
				if resp.status != http.StatusOK {
					t.Errorf("%s: status %d", revision, resp.status)
				}
				if r := checkResult(t, execute, result(t, resp.answer(t))); r.code() != sallyport.CodeInvalidArgument {
					t.Errorf("%s: got %s, want INVALID_ARGUMENT", revision, r.Structured)
				}
			}
		})
	}
}

// What is wrong outside the arguments never reaches a tool, and the server stays alive.
func TestRefusesMessages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *mcpapi.Config) { c.MaxBodyBytes = 64 << 10 })
	url := serve(t, f.Handler(as(alice())))
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, test := range map[string]struct {
		body   string
		change func(*http.Request)
		status int
		want   string
	}{
		"empty":             {``, nil, 400, "ends too early"},
		"no JSON":           {`{"jsonrpc"`, nil, 400, "ends too early"},
		"batch":             {`[` + list + `]`, nil, 400, "batches are not supported"},
		"two names":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"execute_cloud_skill","arguments":{}}}`, nil, 400, `"name\" comes twice`},
		"two arguments":     {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_cloud_skill","arguments":{},"arguments":{}}}`, nil, 400, `"arguments\" comes twice`},
		"too large":         {callBody(legacy, execute, `{"slug":"`+strings.Repeat("x", 64<<10)+`"}`), nil, 413, `"code":"REQUEST_TOO_LARGE"`},
		"very deep":         {callBody(legacy, execute, strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), nil, 400, "nested deeper than 512"},
		"unknown method":    {`{"jsonrpc":"2.0","id":1,"method":"tools/remove"}`, nil, 400, "unsupported"},
		"content type":      {list, header("Content-Type", "text/plain"), 415, "application/json"},
		"accept":            {list, header("Accept", "application/json"), 400, "text/event-stream"},
		"foreign origin":    {list, header("Origin", "https://evil.example"), 403, `"code":"ACCESS_DENIED"`},
		"null origin":       {list, header("Origin", "null"), 403, `"code":"ACCESS_DENIED"`},
		"cross-site fetch":  {list, header("Sec-Fetch-Site", "cross-site"), 403, `"code":"ACCESS_DENIED"`},
		"foreign host":      {list, func(r *http.Request) { r.Host = "evil.example" }, 403, "Host"},
		"unknown revision":  {list, header("Mcp-Protocol-Version", "2020-01-01"), 400, "nsupported protocol version"},
		"GET":               {``, func(r *http.Request) { r.Method = http.MethodGet }, 405, "Method Not Allowed"},
		"DELETE":            {``, func(r *http.Request) { r.Method = http.MethodDelete }, 405, "Method Not Allowed"},
		"stays alive":       {list, nil, 200, "recall_cloud_skill"},
		"same origin":       {list, func(r *http.Request) { r.Header.Set("Origin", "http://"+r.URL.Host) }, 200, "recall_cloud_skill"},
		"notification only": {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := test.change
			if change == nil {
				change = func(*http.Request) {}
			}
			resp := post(t, url, legacy, "", "", test.body, change)
			if resp.status != test.status || !strings.Contains(string(resp.body), test.want) {
				t.Errorf("got %d %.300s, want %d with %q", resp.status, resp.body, test.status, test.want)
			}
			if test.status == http.StatusMethodNotAllowed && resp.header.Get("Allow") != "POST" {
				t.Errorf("Allow: got %q, want POST", resp.header.Get("Allow"))
			}
		})
	}
}

func TestUnknownToolIsProtocolError(t *testing.T) {
	t.Parallel()
	url := serve(t, newFixture(t).Handler(as(alice())))
	for revision, status := range map[string]int{modern: http.StatusBadRequest, legacy: http.StatusOK} {
		resp := post(t, url, revision, "tools/call", "rm", callBody(revision, "rm", `{"x":1}`))
		answer := resp.answer(t)
		if resp.status != status || !strings.Contains(string(answer), `"code":-32602`) {
			t.Errorf("%s: got %d %s, want %d with -32602", revision, resp.status, answer, status)
		}
	}
}

// Nobody gets past the door without a Principal, whatever the function that names it does.
func TestChallenges(t *testing.T) {
	t.Parallel()
	fail := func(code sallyport.Code) func(*http.Request) (sallyport.Principal, error) {
		return func(*http.Request) (sallyport.Principal, error) {
			return sallyport.Principal{}, &sallyport.Error{Op: "auth", Code: code, Err: errors.New("MARKER")}
		}
	}
	nobody := as(sallyport.Principal{})
	noTenant, noID := alice(), alice()
	noTenant.TenantID, noID.ID = "", ""
	const bare = `Bearer realm="sallyport", scope="memory:read memory:write"`
	for name, test := range map[string]struct {
		principal func(*http.Request) (sallyport.Principal, error)
		token     string
		status    int
		challenge string
		code      sallyport.Code
	}{
		"no function":    {nil, "", 401, bare, sallyport.CodeUnauthenticated},
		"zero principal": {nobody, "", 401, bare, sallyport.CodeUnauthenticated},
		"no tenant":      {as(noTenant), "", 401, bare, sallyport.CodeUnauthenticated},
		"no id":          {as(noID), "", 401, bare, sallyport.CodeUnauthenticated},
		"no token":       {fail(sallyport.CodeUnauthenticated), "", 401, bare, sallyport.CodeUnauthenticated},
		"bad token":      {fail(sallyport.CodeUnauthenticated), "x", 401, bare + `, error="invalid_token", error_description="the key or token is not valid"`, sallyport.CodeUnauthenticated},
		"denied":         {fail(sallyport.CodeAccessDenied), "x", 403, `Bearer realm="sallyport", error="insufficient_scope", scope="memory:read memory:write"`, sallyport.CodeAccessDenied},
		"store":          {fail(sallyport.CodeStoreUnavailable), "x", 503, "", sallyport.CodeStoreUnavailable},
		"broke":          {func(*http.Request) (sallyport.Principal, error) { return alice(), errors.New("MARKER") }, "x", 500, "", sallyport.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, newFixture(t).Handler(test.principal))
			for _, body := range []string{callBody(modern, execute, `{"slug":"csv","script_path":"x"}`), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `nonsense`} {
				resp := post(t, url, modern, "tools/call", execute, body, func(r *http.Request) {
					if test.token != "" {
						r.Header.Set("Authorization", "Bearer "+test.token)
					}
				})
				answer := string(resp.answer(t))
				if resp.status != test.status || resp.header.Get("WWW-Authenticate") != test.challenge {
					t.Errorf("got %d %q, want %d %q", resp.status, resp.header.Get("WWW-Authenticate"), test.status, test.challenge)
				}
				if !strings.Contains(answer, `"code":"`+string(test.code)+`"`) || strings.Contains(answer, "MARKER") {
					t.Errorf("got %s, want %s without the cause", answer, test.code)
				}
			}
		})
	}
}

// With StepUp a call without its scope is an HTTP challenge that names what is needed beside what is there; without it an envelope.
func TestStepUp(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		loggedIn := bob()
		loggedIn.KeyID = ""
		stepUp := func(c *mcpapi.Config) {
			c.StepUp, c.ResourceMetadata = true, "https://x/.well-known/oauth-protected-resource/mcp"
		}
		url := serve(t, newFixture(t, stepUp).Handler(as(loggedIn)))
		resp := post(t, url, revision, "tools/call", execute, callBody(revision, execute, `{}`))
		want := `Bearer realm="sallyport", error="insufficient_scope", scope="memory:read memory:write", ` +
			`resource_metadata="https://x/.well-known/oauth-protected-resource/mcp"`
		if resp.status != http.StatusForbidden || resp.header.Get("WWW-Authenticate") != want {
			t.Errorf("%s: got %d %q, want 403 %q", revision, resp.status, resp.header.Get("WWW-Authenticate"), want)
		}
		if answer := string(resp.answer(t)); !strings.Contains(answer, `"id":1`) {
			t.Errorf("%s: got %s, want an answer to 1", revision, answer)
		}

		// A key cannot be widened, and without StepUp nobody can.
		for _, url := range []string{serve(t, newFixture(t, stepUp).Handler(as(bob()))), serve(t, newFixture(t).Handler(as(loggedIn)))} {
			resp = post(t, url, revision, "tools/call", execute, callBody(revision, execute, `{}`))
			if r := checkResult(t, execute, result(t, resp.answer(t))); r.code() != sallyport.CodeAccessDenied {
				t.Errorf("%s: got %s, want ACCESS_DENIED", revision, r.Structured)
			}
		}
	}
}

// The principal is the one of the request, not of a neighbour's.
func TestPrincipalOfEachRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.skills.list = func(p sallyport.Principal, req registry.ListRequest) (registry.ListResult, error) {
		if string(p.ID) != req.Query {
			t.Errorf("%s was served as %s", req.Query, p.ID)
		}
		time.Sleep(time.Millisecond)
		return registry.ListResult{}, nil
	}
	url := serve(t, f.Handler(func(r *http.Request) (sallyport.Principal, error) {
		p := alice()
		p.ID = sallyport.PrincipalID(r.Header.Get("X-Who"))
		return p, nil
	}))
	done := make(chan struct{})
	for _, who := range []string{"ann", "ben", "cem", "dan"} {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range 20 {
				revision := []string{modern, legacy}[i%2]
				resp := post(t, url, revision, "tools/call", recall, callBody(revision, recall, `{"query":"`+who+`"}`), func(r *http.Request) { r.Header.Set("X-Who", who) })
				if resp.status != http.StatusOK {
					t.Errorf("status %d", resp.status)
				}
			}
		}()
	}
	for range 4 {
		<-done
	}
}

// A caller who closes the stream cancels the run, in both revisions.
func TestHangUpCancels(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			running, ended := make(chan struct{}), make(chan error, 1)
			f.runs.run = func(ctx context.Context, _ sallyport.Principal, _ run.Request) (sallyport.Execution, error) {
				close(running)
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Second):
				}
				ended <- ctx.Err()
				e := finished()
				e.Status, e.ErrorKind = sallyport.StatusCanceled, sallyport.CodeExecutionCanceled
				return e, nil
			}
			url := serve(t, f.Handler(as(alice())))
			ctx, hangUp := context.WithCancel(t.Context())
			go func() {
				<-running
				hangUp()
			}()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(callBody(revision, execute, `{"slug":"csv","script_path":"x"}`)))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": revision,
				"Mcp-Method": "tools/call", "Mcp-Name": execute,
			} {
				req.Header.Set(name, value)
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err == nil {
					t.Error("the request was answered before it was cancelled")
				}
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the run's context: got %v, want canceled", err)
			}
		})
	}
}

// The trace context of the header counts when the message has none.
func TestTraceContextOfHeader(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f := newFixture(t)
	f.runs.run = func(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
		if req.TraceParent != trace {
			t.Errorf("got %q, want %q", req.TraceParent, trace)
		}
		return finished(), nil
	}
	url := serve(t, f.Handler(as(alice())))
	resp := post(t, url, legacy, "", "", callBody(legacy, execute, `{"slug":"csv","script_path":"x"}`), func(r *http.Request) { r.Header.Set("Traceparent", trace) })
	checkResult(t, execute, result(t, resp.answer(t)))
}

// The request keeps the name that the HTTP surface gave it, when that is safe to repeat.
func TestRequestIDOfHeader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs.run = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) {
		return finished(), nil
	}
	url := serve(t, f.Handler(as(alice())))
	for given, kept := range map[string]bool{"req-1.A_b": true, "": false, "a b": false, "<x>": false, strings.Repeat("x", 129): false} {
		resp := post(t, url, legacy, "", "", callBody(legacy, execute, `{"slug":"csv","script_path":"x"}`), func(r *http.Request) { r.Header.Set("X-Request-Id", given) })
		r := checkResult(t, execute, result(t, resp.answer(t)))
		if (r.envelope.RequestID == given) != kept {
			t.Errorf("%q: got %q, kept should be %v", given, r.envelope.RequestID, kept)
		}
	}
}

// What Extend adds is served behind the same guard, with its arguments.
func TestExtend(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *mcpapi.Config) {
		c.Extend = func(s *mcp.Server) {
			type in struct {
				A string `json:"a"`
			}
			mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "says it"}, func(_ context.Context, _ *mcp.CallToolRequest, args in) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: args.A}}}, nil, nil
			})
			mcp.AddTool(s, &mcp.Tool{Name: "panics", Description: "panics"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				panic("MARKER")
			})
		}
	})
	url := serve(t, f.Handler(as(alice())))
	for _, revision := range []string{modern, legacy} {
		got := string(post(t, url, revision, "tools/call", "echo", callBody(revision, "echo", `{"a":"hello"}`)).answer(t))
		if !strings.Contains(got, `"text":"hello"`) {
			t.Errorf("%s: got %s", revision, got)
		}
		got = string(post(t, url, revision, "tools/call", "panics", callBody(revision, "panics", `{}`)).answer(t))
		if !strings.Contains(got, `"code":-32603`) || strings.Contains(got, "MARKER") {
			t.Errorf("%s: got %s, want an internal error", revision, got)
		}
	}
	if diff := cmp.Diff(true, strings.Contains(f.log.String(), "an mcp handler panicked")); diff != "" {
		t.Error("the log lacks the panic")
	}
}
