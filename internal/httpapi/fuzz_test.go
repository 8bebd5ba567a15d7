package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/run"
)

// Whatever is sent as a path, a query and a body, the answer is an envelope, the server is alive, and what reaches the run is a
// JSON object or nothing.
func FuzzExecute(f *testing.F) {
	f.Add("/v1/skills/x/execute", "", `{"script_path":"a","input_args":{"a":1},"argv":["x"],"timeout_seconds":5}`)
	f.Add("/v1/skills/x/execute", "a=1", `{"script_path":"a","files":[{"name":"a","content_base64":"AA=="}]}`)
	f.Add("/v1/skills/%2e%2e/execute", "%zz", `{"input_args":[]}`)
	f.Add("/v1/skills//execute", ";", `{"timeout_seconds":-0}`)
	f.Fuzz(func(t *testing.T, path, query, body string) {
		runs := &fakeRuns{t: t, run: func(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
			if args := strings.TrimSpace(string(req.Args)); args != "" && args[0] != '{' {
				t.Errorf("args %q", req.Args)
			}
			if req.Timeout < 0 {
				t.Errorf("timeout %v", req.Timeout)
			}
			return sampleExecution(sallyport.StatusSuccess), nil
		}}
		handler := httpapi.New(httpapi.Config{
			Auth: fakeAuth(func(*http.Request) (sallyport.Principal, error) { return principal(), nil }), Runs: runs,
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = unescaped(path), path, query
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, r)
		if !strings.HasPrefix(rec.Body.String(), `{"kind":`) {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if rec.Code >= 300 && rec.Code < 400 {
			t.Errorf("redirected to %s", rec.Header().Get("Location"))
		}
		// Other routes have no service behind them here, which is INTERNAL.
		if rec.Code >= 500 && strings.HasSuffix(path, "/execute") {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	})
}

func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}
