package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
)

func loginAt(c *httpapi.Config) {
	c.Resource = httpapi.Resource{
		PublicURL: "https://sallyport.example.org", Issuers: []string{"https://login.example.org"},
		Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead},
	}
}

func TestResourceMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loginAt, func(c *httpapi.Config) { c.Auth = nil })
	for path, resource := range map[string]string{
		"/.well-known/oauth-protected-resource":     "https://sallyport.example.org",
		"/.well-known/oauth-protected-resource/mcp": "https://sallyport.example.org/mcp",
	} {
		want := map[string]any{
			"resource": resource, "resource_name": "Sallyport", "authorization_servers": []any{"https://login.example.org"},
			"scopes_supported": []any{"memory:read"}, "bearer_methods_supported": []any{"header"},
		}
		got := w.call(http.MethodGet, path, "")
		if diff := cmp.Diff(want, got.json(t)); diff != "" || got.status != http.StatusOK {
			t.Errorf("%s: %d (-want +got):\n%s", path, got.status, diff)
		}
		if code, _ := newWorld(t).call(http.MethodGet, path, "").refusal(t); code != string(sallyport.CodeRouteNotFound) {
			t.Errorf("%s without an issuer: got %s", path, code)
		}
	}
}

// A challenge says where to log in, and an insufficient scope is named beside those that the caller has.
func TestChallengesNameTheMetadata(t *testing.T) {
	t.Parallel()
	refuse := func(p sallyport.Principal, err error) func(*httpapi.Config) {
		return func(c *httpapi.Config) {
			c.Auth = fakeAuth(func(*http.Request) (sallyport.Principal, error) { return p, err })
		}
	}
	const metadata = `, resource_metadata="https://sallyport.example.org/.well-known/oauth-protected-resource"`
	nobody := &sallyport.Error{Op: "auth", Code: sallyport.CodeUnauthenticated}
	bad := &sallyport.Error{Op: "auth", Code: sallyport.CodeUnauthenticated, Details: map[string]any{"challenge": "invalid_token"}}
	for name, test := range map[string]struct {
		change func(*httpapi.Config)
		status int
		want   string
	}{
		"nobody":    {refuse(sallyport.Principal{}, nobody), 401, `Bearer realm="sallyport", scope="memory:read memory:write"` + metadata},
		"bad token": {refuse(sallyport.Principal{}, bad), 401, `Bearer realm="sallyport", error="invalid_token", scope="memory:read memory:write"` + metadata},
	} {
		got := newWorld(t, loginAt, test.change).call(http.MethodGet, "/v1/grants", "")
		if got.status != test.status || got.header.Get("WWW-Authenticate") != test.want {
			t.Errorf("%s: %d %q, want %d %q", name, got.status, got.header.Get("WWW-Authenticate"), test.status, test.want)
		}
	}
}
