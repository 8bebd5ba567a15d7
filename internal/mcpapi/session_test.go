package mcpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`

// callers authenticates by the Authorization header.
type byHeader map[string]sallyport.Principal

func (b byHeader) principal(r *http.Request) (sallyport.Principal, error) {
	p, ok := b[r.Header.Get("Authorization")]
	if !ok {
		return p, &sallyport.Error{Op: "test", Code: sallyport.CodeUnauthenticated}
	}
	return p, nil
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func method(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }

// people are alice with her scopes, alice with a lesser key, a colleague and somebody of another tenant with alice's name.
func people() byHeader {
	lesser, bob, other := alice(), alice(), alice()
	lesser.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead}
	bob.ID, other.TenantID = "bob", "other"
	return byHeader{"alice": alice(), "lesser": lesser, "bob": bob, "other": other}
}

func openSession(t *testing.T, url, who string) string {
	t.Helper()
	got := post(t, url, legacy, "initialize", "", initializeBody, header("Authorization", who))
	id := got.header.Get("Mcp-Session-Id")
	if got.status != http.StatusOK || id == "" {
		t.Fatalf("%d, session %q, %s", got.status, id, got.body)
	}
	return id
}

const listLine = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

// A session is its principal's and nobody else's: for all others it is as absent as one that never was. DELETE ends it.
func TestSessionIsItsPrincipals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := serve(t, f.Handler(people().principal))
	id := openSession(t, url, "alice")
	for _, test := range []struct {
		who, id string
		want    int
	}{
		{"alice", id, http.StatusOK},
		{"lesser", id, http.StatusOK},
		{"bob", id, http.StatusNotFound},
		{"other", id, http.StatusNotFound},
		{"nobody", id, http.StatusUnauthorized},
		{"alice", "made-up", http.StatusNotFound},
		{"alice", "", http.StatusOK}, // without a session, as ever
	} {
		with := []func(*http.Request){header("Authorization", test.who)}
		if test.id != "" {
			with = append(with, header("Mcp-Session-Id", test.id))
		}
		if got := post(t, url, legacy, "tools/list", "", listLine, with...); got.status != test.want {
			t.Errorf("%s with %q: %d %s", test.who, test.id, got.status, got.body)
		}
	}
	for _, verb := range []string{http.MethodGet, http.MethodDelete} {
		if got := post(t, url, legacy, "", "", "", method(verb), header("Authorization", "bob"), header("Mcp-Session-Id", id)); got.status != http.StatusNotFound {
			t.Errorf("%s by another: %d", verb, got.status)
		}
	}
	if got := post(t, url, legacy, "", "", "", method(http.MethodDelete), header("Authorization", "alice"), header("Mcp-Session-Id", id)); got.status != http.StatusNoContent {
		t.Errorf("DELETE: %d %s", got.status, got.body)
	}
	if got := post(t, url, legacy, "tools/list", "", listLine, header("Authorization", "alice"), header("Mcp-Session-Id", id)); got.status != http.StatusNotFound {
		t.Errorf("after DELETE: %d", got.status)
	}
	// The newest revision knows no sessions.
	got := post(t, url, modern, "tools/list", "", strings.Replace(listLine, `"tools/list"`, `"tools/list","params":{`+noTasks+`}`, 1),
		header("Authorization", "alice"), header("Mcp-Session-Id", id))
	if got.status != http.StatusOK || got.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("newest revision: %d, session %q", got.status, got.header.Get("Mcp-Session-Id"))
	}
}

// Within a session each call is its own caller's: a key that carries less gets less, whoever began the session. A name for a call that a
// client makes up is worth nothing.
func TestSessionCallsAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var scopes atomic.Value
	f.runs.run = func(_ context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error) {
		scopes.Store(fmt.Sprint(p.Scopes, string(req.Args)))
		return finished(), p.Require("test", sallyport.ScopeMemoryWrite)
	}
	url := serve(t, f.Handler(people().principal))
	id := openSession(t, url, "alice")
	const arguments = `{"slug":"csv","script_path":"x","input_args":{"n":9007199254740993}}`
	if got := post(t, url, legacy, "tools/call", execute, callBody(legacy, execute, arguments), header("Authorization", "alice"), header("Mcp-Session-Id", id)); strings.Contains(string(got.body), `"isError":true`) {
		t.Errorf("alice: %s", got.body)
	}
	if got := scopes.Load(); got != fmt.Sprint(alice().Scopes, `{"n":9007199254740993}`) {
		t.Errorf("ran as %v", got)
	}
	got := post(t, url, legacy, "tools/call", execute, callBody(legacy, execute, arguments),
		header("Authorization", "lesser"), header("Mcp-Session-Id", id), header("Sallyport-Call", "x"))
	if !strings.Contains(string(got.body), "ACCESS_DENIED") {
		t.Errorf("the lesser key: %s", got.body)
	}
}

// Sessions are bounded: the one used least lately makes room for the same principal's next, and an idle one ends.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := serve(t, f.Handler(people().principal))
	first, bobs := openSession(t, url, "alice"), openSession(t, url, "bob")
	second := openSession(t, url, "alice")
	for range 48 {
		openSession(t, url, "alice")
	}
	alive := func(who, id string) bool {
		return post(t, url, legacy, "tools/list", "", listLine, header("Authorization", who), header("Mcp-Session-Id", id)).status == http.StatusOK
	}
	if !alive("alice", first) {
		t.Error("the first was ended with room left")
	}
	openSession(t, url, "alice") // first was used just now, so it is second's turn
	if alive("alice", second) || !alive("alice", first) || !alive("bob", bobs) {
		t.Errorf("second %v, first %v, another's %v", alive("alice", second), alive("alice", first), alive("bob", bobs))
	}
}

// The official client of the older revision: what it is asked within its session reaches it, and cancelling a call kills the run.
func TestSessionWithTheOfficialClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.skills.list = func(sallyport.Principal, registry.ListRequest) (registry.ListResult, error) {
		return registry.ListResult{}, nil
	}
	began, ended := make(chan struct{}), make(chan error, 1)
	f.runs.run = func(ctx context.Context, _ sallyport.Principal, _ run.Request) (sallyport.Execution, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return sallyport.Execution{}, ctx.Err()
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: serve(t, f.Handler(as(alice())))}, &mcp.ClientSessionOptions{ProtocolVersion: legacy})
	if err != nil {
		t.Fatal(err)
	}
	if session.ID() == "" {
		t.Error("no session")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: execute, Arguments: map[string]any{"slug": "csv", "script_path": "x"}}); err == nil {
		t.Error("a cancelled call was answered")
	}
	if err := <-ended; err == nil {
		t.Error("the run was not cancelled")
	}
	f.EndStreams()
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		handler := f.Handler(people().principal)
		ask := func(body, session string) *recorded {
			w := &recorded{header: http.Header{}}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "alice", "Mcp-Session-Id": session,
			} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			handler.ServeHTTP(w, r)
			return w
		}
		id := ask(initializeBody, "").header.Get("Mcp-Session-Id")
		time.Sleep(29 * time.Minute)
		if got := ask(listLine, id); got.status != http.StatusOK {
			t.Errorf("in time: %d", got.status)
		}
		time.Sleep(31 * time.Minute)
		if got := ask(listLine, id); got.status != http.StatusNotFound {
			t.Errorf("too late: %d", got.status)
		}
	})
}

// recorded keeps the head of an answer.
type recorded struct {
	header http.Header
	status int
}

func (r *recorded) Header() http.Header { return r.header }
func (r *recorded) Write(data []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return len(data), nil
}

func (r *recorded) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}
func (r *recorded) Flush() {}
