package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestNoRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]struct {
		method, target string
		status         int
		code           sallyport.Code
		allow          string
	}{
		"unknown":             {"GET", "/v1/nothing", 404, sallyport.CodeRouteNotFound, ""},
		"root":                {"GET", "/", 404, sallyport.CodeRouteNotFound, ""},
		"trailing slash":      {"GET", "/v1/skills/", 404, sallyport.CodeRouteNotFound, ""},
		"another version":     {"GET", "/v2/skills", 404, sallyport.CodeRouteNotFound, ""},
		"case":                {"GET", "/V1/skills", 404, sallyport.CodeRouteNotFound, ""},
		"not configured":      {"POST", "/mcp", 404, sallyport.CodeRouteNotFound, ""},
		"no metrics":          {"GET", "/metrics", 404, sallyport.CodeRouteNotFound, ""},
		"wrong method":        {"DELETE", "/v1/skills", 405, sallyport.CodeRouteNotFound, "GET, HEAD, POST"},
		"get on execute":      {"GET", "/v1/skills/x/execute", 405, sallyport.CodeRouteNotFound, "POST"},
		"options":             {"OPTIONS", "/v1/grants", 405, sallyport.CodeRouteNotFound, "GET, HEAD, POST"},
		"made-up method":      {"BREW", "/v1/keys", 405, sallyport.CodeRouteNotFound, "GET, HEAD, POST"},
		"dots":                {"GET", "/v1/skills/x/components/../y", 400, sallyport.CodeUnsafePath, ""},
		"doubled slash":       {"GET", "//v1/skills", 400, sallyport.CodeUnsafePath, ""},
		"absolute component":  {"GET", "/v1/skills/x/components//etc/passwd", 400, sallyport.CodeUnsafePath, ""},
		"encoded dots":        {"GET", "/v1/skills/x/components/%2e%2e/y", 400, sallyport.CodeUnsafePath, ""},
		"encoded slash, dots": {"GET", "/v1/skills/x/components/a%2f..%2f..%2fb", 400, sallyport.CodeUnsafePath, ""},
		"encoded backslash":   {"GET", "/v1/skills/x/components/a%5cb", 400, sallyport.CodeUnsafePath, ""},
		"encoded NUL":         {"GET", "/v1/skills/x/components/a%00b", 400, sallyport.CodeUnsafePath, ""},
		"encoded absolute":    {"GET", "/v1/skills/x/components/%2fetc%2fpasswd", 400, sallyport.CodeUnsafePath, ""},
		"artifact dots":       {"GET", "/v1/executions/e/artifacts/%2e%2e%2fx", 400, sallyport.CodeUnsafePath, ""},
		"nothing after":       {"GET", "/v1/skills/x/components/", 400, sallyport.CodeUnsafePath, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, handler: w.handler}
			got := w.call(test.method, test.target, "")
			if got.status != test.status {
				t.Errorf("status %d, want %d: %s", got.status, test.status, got.body)
			}
			if code, _ := got.refusal(t); code != string(test.code) {
				t.Errorf("code %s, want %s", code, test.code)
			}
			if allow := got.header.Get("Allow"); allow != test.allow {
				t.Errorf("allow %q, want %q", allow, test.allow)
			}
			if location := got.header.Get("Location"); location != "" {
				t.Errorf("redirected to %q", location)
			}
		})
	}
}

func TestEveryRouteNeedsAPrincipal(t *testing.T) {
	t.Parallel()
	refused := errors.New("row 7")
	w := newWorld(t, func(c *httpapi.Config) {
		c.Metrics, c.Auth = http.NotFoundHandler(), fakeAuth(func(*http.Request) (sallyport.Principal, error) {
			return sallyport.Principal{}, &sallyport.Error{Op: "auth", Code: sallyport.CodeUnauthenticated, Err: refused}
		})
	})
	for _, target := range []string{
		"GET /metrics", "GET /v1/capabilities", "GET /v1/skills", "POST /v1/skills", "GET /v1/skills/x", "POST /v1/skills/x/publish",
		"POST /v1/skills/x/archive", "POST /v1/skills/x/restore", "GET /v1/skills/x/revisions", "GET /v1/skills/x/revisions/r",
		"GET /v1/skills/x/components", "GET /v1/skills/x/components/a", "POST /v1/import", "POST /v1/skills/x/execute",
		"POST /v1/skills/x/explain", "GET /v1/executions", "GET /v1/executions/e", "GET /v1/executions/e/artifacts/a",
		"POST /v1/executions/e/cancel", "GET /v1/confirmations", "POST /v1/confirmations/c/approve", "POST /v1/confirmations/c/deny", "GET /v1/grants", "POST /v1/grants", "POST /v1/grants/g/revoke", "GET /v1/audit",
		"GET /v1/audit/verify", "POST /v1/audit/verify", "GET /v1/keys", "POST /v1/keys", "POST /v1/keys/k/revoke",
	} {
		method, path, _ := strings.Cut(target, " ")
		// A caller who is nobody learns nothing about the parameters either.
		got := w.call(method, path+"?nonsense=1", "")
		code, _ := got.refusal(t)
		if got.status != http.StatusUnauthorized || code != "UNAUTHENTICATED" {
			t.Errorf("%s: %d %s", target, got.status, code)
		}
		if got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no challenge", target)
		}
		if bytes.Contains(got.body, []byte("row 7")) {
			t.Errorf("%s: the cause shows", target)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		if got := w.call(http.MethodGet, path, ""); got.status != http.StatusOK {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

func TestZeroAuthRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpapi.Config) { c.Auth = nil })
	if got := w.call(http.MethodGet, "/v1/skills", ""); got.status != http.StatusUnauthorized {
		t.Errorf("got %d", got.status)
	}
}

func TestForeignPage(t *testing.T) {
	t.Parallel()
	mcp := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { t.Error("reached"); w.WriteHeader(http.StatusOK) })
	w := newWorld(t, func(c *httpapi.Config) { c.MCP = mcp })
	for _, path := range []string{"/v1/skills", "/mcp", "/v1/keys"} {
		got := w.call(http.MethodPost, path, `{}`, "Origin", "https://evil.example")
		if code, _ := got.refusal(t); got.status != http.StatusForbidden || code != "ACCESS_DENIED" {
			t.Errorf("%s: %d %s", path, got.status, code)
		}
		if got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: CORS", path)
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	for name, test := range map[string]struct {
		sent []string
		kept bool
	}{
		"absent":     {nil, false},
		"plain":      {[]string{"Run_7.a-B"}, true},
		"64 bytes":   {[]string{strings.Repeat("a", 64)}, true},
		"65 bytes":   {[]string{strings.Repeat("a", 65)}, false},
		"empty":      {[]string{""}, false},
		"a blank":    {[]string{"a b"}, false},
		"line break": {[]string{"a\r\nX-Evil: 1"}, false},
		"markup":     {[]string{"<script>"}, false},
		"two":        {[]string{"a", "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
			if test.sent != nil {
				r.Header["X-Request-Id"] = test.sent
			}
			got := (&world{t: t, handler: w.handler}).do(r)
			id := got.header.Get("X-Request-Id")
			if got.json(t)["request_id"] != id {
				t.Errorf("header %q, envelope %v", id, got.json(t)["request_id"])
			}
			if test.kept && id != test.sent[0] || !test.kept && !uuid.MatchString(id) {
				t.Errorf("got %q", id)
			}
			if test.sent != nil && r.Header["X-Request-Id"][0] != test.sent[0] {
				t.Error("the caller's own headers were changed")
			}
		})
	}
}

func TestPanicIsInternal(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, func(c *httpapi.Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	w.skills.list = func(registry.ListRequest) (registry.ListResult, error) { panic("secret cause") }
	got := w.call(http.MethodGet, "/v1/skills", "")
	if code, _ := got.refusal(t); got.status != http.StatusInternalServerError || code != "INTERNAL" {
		t.Errorf("%d %s", got.status, code)
	}
	if bytes.Contains(got.body, []byte("secret cause")) || !bytes.Contains(log.Bytes(), []byte("secret cause")) {
		t.Errorf("the cause belongs in the log and nowhere else: %s", got.body)
	}
	w.skills.list = func(registry.ListRequest) (registry.ListResult, error) { return registry.ListResult{}, nil }
	if got := w.call(http.MethodGet, "/v1/skills", ""); got.status != http.StatusOK {
		t.Errorf("after the panic: %d", got.status)
	}
}

func TestPanicAfterHalfAnAnswerCutsTheConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpapi.Config) {
		c.MCP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("half"))
			panic("x")
		})
	})
	defer func() {
		if cause, _ := recover().(error); !errors.Is(cause, http.ErrAbortHandler) {
			t.Errorf("got %v, want http.ErrAbortHandler", cause)
		}
	}()
	w.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil))
	t.Error("the handler returned")
}

func TestNilServiceIsInternal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpapi.Config) { c.Skills = nil })
	if got := w.call(http.MethodGet, "/v1/skills", ""); got.status != http.StatusInternalServerError {
		t.Errorf("got %d", got.status)
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, func(c *httpapi.Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	w.skills.save = func(registry.SaveRequest) (registry.SaveResult, error) {
		return registry.SaveResult{}, &sallyport.Error{Op: "store", Code: sallyport.CodeStoreUnavailable, Err: errors.New("disk of doom")}
	}
	w.call(http.MethodPost, "/v1/skills", `{"message":"MARKER-body"}`, "Authorization", "Bearer MARKER-key", "X-Request-Id", "r-9")
	w.call(http.MethodGet, "/v1/skills/MARKER-slug?MARKER-query=1", "")
	line := log.String()
	if strings.Contains(line, "MARKER") {
		t.Errorf("the log repeats what the caller sent: %s", line)
	}
	for _, want := range []string{
		`"request_id":"r-9"`, `"route":"/v1/skills"`, `"status":503`, `"code":"STORE_UNAVAILABLE"`, "disk of doom",
		`"principal_id":"alice"`, `"method":"POST"`, `"route":"/v1/skills/{skill}"`, `"status":400`,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("the log lacks %s: %s", want, line)
		}
	}
}

func TestAnswersAreNotCachedOrSniffed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/healthz", "/v1/nothing", "/openapi.json"} {
		got := w.call(http.MethodGet, path, "")
		if got.header.Get("Cache-Control") != "no-store" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, got.header)
		}
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newWorld(t).handler)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close() //nolint:errcheck // Nothing to lose.
	if got.StatusCode != http.StatusOK || got.ContentLength <= 0 {
		t.Errorf("%d, length %d", got.StatusCode, got.ContentLength)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err     error
		status  int
		message string
	}{
		"ready":       {nil, 200, ""},
		"unavailable": {&sallyport.Error{Code: sallyport.CodeAuditUnavailable, Message: "the disk is full"}, 503, "the disk is full"},
		"stranger":    {errors.New("dial 10.0.0.1"), 503, "the server is not ready"},
		"broken":      {&sallyport.Error{Code: sallyport.CodeInternal}, 503, "the server is not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *httpapi.Config) { c.Ready = func(context.Context) error { return test.err } })
			got := w.call(http.MethodGet, "/readyz", "")
			if got.status != test.status {
				t.Errorf("status %d, want %d", got.status, test.status)
			}
			if test.message != "" {
				if _, message := got.refusal(t); message != test.message {
					t.Errorf("message %q, want %q", message, test.message)
				}
			}
		})
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpapi.Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte("up 1\n"))
		})
		c.MCP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if _, streams := w.(http.Flusher); !streams {
				t.Error("a mounted handler cannot stream")
			}
			w.(http.Flusher).Flush() //nolint:errcheck // Just checked.
			_, _ = w.Write([]byte(`{"id":"` + r.Header.Get("X-Request-Id") + `"}`))
		})
	})
	if got := w.call(http.MethodGet, "/metrics", ""); string(got.body) != "up 1\n" {
		t.Errorf("metrics: %s", got.body)
	}
	if got := w.call(http.MethodPost, "/mcp", `{}`, "X-Request-Id", "m-1"); string(got.body) != `{"id":"m-1"}` {
		t.Errorf("mcp: %s", got.body)
	}
	if got := w.call(http.MethodPut, "/mcp", `{}`); got.header.Get("Allow") != "DELETE, GET, HEAD, POST" {
		t.Errorf("allow %q", got.header.Get("Allow"))
	}
}

// A caller who hangs up cancels the service's context.
func TestHangingUpCancels(t *testing.T) {
	t.Parallel()
	entered, left := make(chan struct{}), make(chan error, 1)
	w := newWorld(t)
	w.skills.importAll = nil
	handler := httpapi.New(httpapi.Config{
		Auth: fakeAuth(func(r *http.Request) (sallyport.Principal, error) {
			close(entered)
			<-r.Context().Done()
			left <- r.Context().Err()
			return sallyport.Principal{}, r.Context().Err()
		}),
	})
	server := httptest.NewServer(handler)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/skills", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := server.Client().Do(r); err == nil {
		_ = got.Body.Close()
		t.Error("the call was answered")
	}
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
