package httpapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
)

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	v, err := document()
	if err != nil {
		t.Fatal(err)
	}
	validating.Lock()
	defer validating.Unlock()
	if ok, errs := v.ValidateDocument(); !ok {
		for _, err := range errs {
			t.Errorf("%s: %s", err.Message, err.Reason)
		}
	}
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/openapi.json", "/v1/openapi.json"} {
		got := w.call(http.MethodGet, path, "")
		if got.status != http.StatusOK || string(got.body) != string(httpapi.OpenAPI()) {
			t.Errorf("%s: %d, %d bytes", path, got.status, len(got.body))
		}
	}
	var v struct{ OpenAPI string }
	if err := json.Unmarshal(httpapi.OpenAPI(), &v); err != nil || v.OpenAPI != "3.1.0" {
		t.Errorf("got version %q, %v", v.OpenAPI, err)
	}
}

// Every route refuses a caller whom nobody knows and a parameter that nobody knows, and says so as the document has it.
func TestEveryRouteRefuses(t *testing.T) {
	t.Parallel()
	known := newWorld(t)
	strange := newWorld(t, func(c *httpapi.Config) {
		c.Auth = fakeAuth(func(*http.Request) (sallyport.Principal, error) {
			return sallyport.Principal{}, &sallyport.Error{Op: "test", Code: sallyport.CodeUnauthenticated}
		})
	})
	for _, route := range httpapi.Routes() {
		method, pattern, _ := strings.Cut(route, " ")
		path := regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(pattern, "x")
		if code, _ := known.call(method, path+"?nonsense=1", "").refusal(t); code != "INVALID_ARGUMENT" {
			t.Errorf("%s with a parameter that nobody knows: %s", route, code)
		}
		if httpapi.Public(route) {
			continue
		}
		got := strange.call(method, path, "")
		if code, _ := got.refusal(t); code != "UNAUTHENTICATED" || got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s for a stranger: %d %s", route, got.status, code)
		}
	}
}
