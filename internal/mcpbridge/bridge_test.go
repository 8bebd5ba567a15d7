package mcpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpbridge"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
)

// session is a running bridge whose input and output a test holds.
type session struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, handler http.HandlerFunc, key string) *session {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return startAt(t, server.URL+"/mcp", server.Client(), key)
}

func startAt(t *testing.T, url string, client *http.Client, key string) *session {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	s := &session{t: t, in: inW, out: bufio.NewReader(outR), stop: stop, done: make(chan error, 1)}
	go func() {
		err := mcpbridge.Run(ctx, mcpbridge.Config{Client: client, URL: url, Key: key}, inR, outW)
		_ = outW.Close()
		s.done <- err
	}()
	t.Cleanup(func() {
		stop()
		_ = inW.Close()
		_ = outR.Close()
	})
	return s
}

func (s *session) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) receive() string {
	s.t.Helper()
	got := make(chan string, 1)
	go func() {
		line, err := s.out.ReadString('\n')
		if err != nil {
			line = "end: " + err.Error()
		}
		got <- strings.TrimSuffix(line, "\n")
	}()
	select {
	case line := <-got:
		return line
	case <-time.After(20 * time.Second):
		s.t.Fatal("no line within 20 s")
		return ""
	}
}

func (s *session) wait() error {
	s.t.Helper()
	select {
	case err := <-s.done:
		return err
	case <-time.After(20 * time.Second):
		s.t.Fatal("the bridge did not return within 20 s")
		return nil
	}
}

// reply answers every call with its method, as JSON.
func reply(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"method":%q}}`, m.ID, m.Method)
}

func TestForwardsAndEndsClean(t *testing.T) {
	t.Parallel()
	s := start(t, reply, "")
	s.send(`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`)
	if got, want := s.receive(), `{"jsonrpc":"2.0","id":"a","result":{"method":"tools/list"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(); err != nil {
		t.Errorf("Run: got %v, want nil", err)
	}
	if got := s.receive(); got != "end: EOF" {
		t.Errorf("got %s, want nothing more", got)
	}
}

// Input that ends right behind its calls still gets their answers.
func TestAnswersBeforeEnd(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		reply(w, r)
	}))
	defer server.Close()
	var out strings.Builder
	in := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if err := mcpbridge.Run(t.Context(), mcpbridge.Config{Client: server.Client(), URL: server.URL}, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":1`, `"id":2`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output %q lacks %s", out.String(), want)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	type seen struct{ Version, Method, Name, Authorization, Accept string }
	got := make(chan seen, 1)
	s := start(t, func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		got <- seen{h.Get("MCP-Protocol-Version"), h.Get("Mcp-Method"), h.Get("Mcp-Name"), h.Get("Authorization"), h.Get("Accept")}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(body), `"initialize"`) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}, "spk_secret")
	const accept = "application/json, text/event-stream"
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	for _, test := range []struct {
		name, line string
		want       seen
	}{
		{
			"modern tool call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},` + meta + `}}`,
			seen{"2026-07-28", "tools/call", "t", "Bearer spk_secret", accept},
		},
		{
			"modern list", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`,
			seen{"2026-07-28", "tools/list", "", "Bearer spk_secret", accept},
		},
		{
			"modern resource", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"skill://a/ü",` + meta + `}}`,
			seen{"2026-07-28", "resources/read", "=?base64?c2tpbGw6Ly9hL8O8?=", "Bearer spk_secret", accept},
		},
		{"before initialize", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, seen{"", "", "", "Bearer spk_secret", accept}},
		{"initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, seen{"", "", "", "Bearer spk_secret", accept}},
		{"after initialize", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, seen{"2025-11-25", "", "", "Bearer spk_secret", accept}},
	} {
		s.send(test.line)
		if diff := cmp.Diff(test.want, <-got); diff != "" {
			t.Errorf("%s: headers (-want +got):\n%s", test.name, diff)
		}
		s.receive()
	}
}

// Events are passed on in order, notifications before the answer, each as one line.
func TestEventStream(t *testing.T) {
	t.Parallel()
	s := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": hello\n\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\r\ndata: \"params\":{\"n\":12345678901234567890123}}\r\n\r\n"+
			"id: 1\ndata:\n\ndata:{\"jsonrpc\":\"2.0\", \"id\":1, \"result\":{}}\n\ndata: {\"after\":\"the answer\"}\n\n")
	}, "")
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
	for _, want := range []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"n":12345678901234567890123}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
	} {
		if got := s.receive(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTrouble(t *testing.T) {
	t.Parallel()
	text := func(status int, media, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"plain refusal": {text(500, "text/plain", "secret stack"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"the server answered 500 Internal Server Error"}}`},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, `"message":"the server answered 307 Temporary Redirect"`},
		"our refusal":     {text(401, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"UNAUTHENTICATED: no","data":{"code":"UNAUTHENTICATED","message":"no","retry":false}}}`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"UNAUTHENTICATED: no","data":{"code":"UNAUTHENTICATED","message":"no","retry":false}}}`},
		"protocol error":  {text(404, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x","data":[1]}}`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x","data":[1]}}`},
		"a page":          {text(200, "text/html", "<p>"), "does not speak MCP"},
		"no JSON":         {text(200, "application/json", "{"), "no JSON"},
		"another's id":    {text(200, "application/json", `{"jsonrpc":"2.0","method":"x"}`), `"method":"x"`},
		"stream cut off":  {text(200, "text/event-stream", "data: {\"jsonrpc\":"), "without an answer"},
		"stream no JSON":  {text(200, "text/event-stream", "data: {\n\n"), "no JSON"},
		"event too large": {text(200, "text/event-stream", "data: "+strings.Repeat("x", mcpwire.MaxLine+100)), "over the size limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, test.handler, "")
			s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			if got := s.receive(); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want it to contain %s", got, test.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	url := strings.Replace(server.URL, "http://", "http://user:hidden@", 1)
	server.Close()
	s := startAt(t, url, http.DefaultClient, "")
	s.send(`{"jsonrpc":"2.0","id":"x","method":"tools/list"}`)
	got := s.receive()
	if !strings.Contains(got, `"id":"x"`) || !strings.Contains(got, "cannot be reached") || strings.Contains(got, "hidden") {
		t.Errorf("got %s, want an error for x that says the server cannot be reached, without the password", got)
	}
}

// A cancelled call closes its request, gets no answer and disturbs no other.
func TestCancel(t *testing.T) {
	t.Parallel()
	running, gone := make(chan struct{}), make(chan struct{})
	s := start(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "slow") {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			reply(w, r)
			return
		}
		close(running)
		<-r.Context().Done()
		close(gone)
	}, "")
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`)
	<-running
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Fatal("the request was not closed")
	}
	s.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got := s.receive(); !strings.Contains(got, `"id":2`) {
		t.Errorf("got %s, want the answer to 2 and none to 1", got)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	running, gone := make(chan struct{}), make(chan struct{})
	s := start(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only when the body was read
		close(running)
		<-r.Context().Done()
		close(gone)
	}, "")
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`)
	<-running
	s.stop()
	if err := s.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: got %v, want context.Canceled", err)
	}
	<-gone
}

func TestRefusesLines(t *testing.T) {
	t.Parallel()
	s := start(t, reply, "")
	for _, test := range []struct{ line, want string }{
		{`nonsense`, `"code":-32700`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "batches"},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","name":"b"}}`, `comes twice`},
		{strings.Repeat("x", mcpwire.MaxLine+2), "over 16777216 bytes"},
		{`{"jsonrpc":"2.0","id":4,"method":"ping"}`, `"result"`},
	} {
		s.send(test.line)
		if got := s.receive(); !strings.Contains(got, test.want) {
			t.Errorf("got %.200s, want it to contain %s", got, test.want)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := start(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		reply(w, r)
	}, "")
	for i := range mcpbridge.MaxInFlight {
		s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
	}
	s.send(`{"jsonrpc":"2.0","id":"more","method":"ping"}`)
	if got := s.receive(); !strings.Contains(got, `"id":"more"`) || !strings.Contains(got, "RATE_LIMITED") {
		t.Errorf("got %s, want a refusal of more", got)
	}
	s.send(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	if got := s.receive(); !strings.Contains(got, "in use") || strings.Contains(got, `"id":5`) {
		t.Errorf("got %s, want a refusal without the id that another call has", got)
	}
	close(release)
	answered := map[string]bool{}
	for range mcpbridge.MaxInFlight {
		var m struct {
			ID json.Number `json:"id"`
		}
		if err := json.Unmarshal([]byte(s.receive()), &m); err != nil {
			t.Fatal(err)
		}
		answered[m.ID.String()] = true
	}
	if len(answered) != mcpbridge.MaxInFlight {
		t.Errorf("%d calls were answered, want %d", len(answered), mcpbridge.MaxInFlight)
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]mcpbridge.Config{
		"zero":     {},
		"no url":   {Client: http.DefaultClient},
		"no http":  {Client: http.DefaultClient, URL: "file:///etc"},
		"no host":  {Client: http.DefaultClient, URL: "http:///mcp"},
		"no parse": {Client: http.DefaultClient, URL: "http://[::1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := mcpbridge.Run(t.Context(), cfg, strings.NewReader(""), io.Discard)
			if code := sallyport.CodeOf(err); code != sallyport.CodeInvalidArgument {
				t.Errorf("code: got %q, want INVALID_ARGUMENT", code)
			}
		})
	}
}

func TestReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken input")
	err := mcpbridge.Run(t.Context(), mcpbridge.Config{Client: http.DefaultClient, URL: "http://localhost"}, iotest.ErrReader(broken), io.Discard)
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the input", err)
	}
}

// A session that the server begins is kept for what comes after: what the server asks within a call reaches the client, the answer goes
// back, a session that is gone is done without, and the last one is ended.
func TestSession(t *testing.T) {
	t.Parallel()
	answered, ended := make(chan string, 1), make(chan string, 1)
	known := "s1"
	s := start(t, func(w http.ResponseWriter, r *http.Request) {
		session := r.Header.Get("Mcp-Session-Id")
		if r.Method == http.MethodDelete {
			ended <- session
			return
		}
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(body), `"initialize"`):
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", known)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`)
		case session != "" && session != known:
			http.Error(w, "session not found", http.StatusNotFound)
		case strings.Contains(string(body), `"ask"`):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{}}\n\n")
			_ = http.NewResponseController(w).Flush()
			_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"said\":%q}}\n\n", <-answered)
		case strings.Contains(string(body), `"result"`):
			answered <- session
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":3,"result":{"session":%q}}`, session)
		}
	}, "")
	s.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	s.receive()
	s.send(`{"jsonrpc":"2.0","id":2,"method":"ask"}`)
	if got := s.receive(); !strings.Contains(got, "elicitation/create") {
		t.Fatalf("got %s", got)
	}
	s.send(`{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`)
	if got, want := s.receive(), `{"jsonrpc":"2.0","id":2,"result":{"said":"s1"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	known = "s2" // a server that was started anew
	s.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	if got, want := s.receive(), `{"jsonrpc":"2.0","id":3,"result":{"session":""}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	s.receive()
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(); err != nil {
		t.Error(err)
	}
	if got := <-ended; got != "s2" {
		t.Errorf("ended %q", got)
	}
}
