package server_test

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/server"
)

// login starts an authorization server and returns its URL and what gives tokens with the wanted scopes.
func login(t *testing.T, audience string) (issuer string, token func(scope string) string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	provider := httptest.NewServer(mux)
	t.Cleanup(provider.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": provider.URL, "jwks_uri": provider.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k"}}})
	})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: private},
		(&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	return provider.URL, func(scope string) string {
		payload, err := json.Marshal(map[string]any{
			"iss": provider.URL, "sub": "carol", "aud": audience, "exp": time.Now().Add(time.Hour).Unix(), "scope": scope,
		})
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign(payload)
		if err != nil {
			t.Fatal(err)
		}
		compact, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return compact
	}
}

// A caller with a token is let in, told where to get one, and told what a larger one needs; a caller with a key is as before.
func TestIdentity(t *testing.T) {
	t.Parallel()
	const name = "https://sallyport.example.org"
	issuer, token := login(t, name+"/mcp")
	s, err := server.New(t.Context(), server.Config{
		DataDir: t.TempDir(), PublicURL: name, OIDC: []server.Issuer{{URL: issuer, Name: "corp", Tenant: sallyport.DefaultTenant}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	key, err := s.Access().CreateKey(t.Context(), server.Operator(), access.KeyRequest{
		Name: "reader", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, secret, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, name+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		if secret != "" {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w
	}
	call := func(tool string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"slug":"none","script_path":"x"}}}`
	}
	const (
		root      = `, resource_metadata="` + name + `/.well-known/oauth-protected-resource"`
		mcp       = `, resource_metadata="` + name + `/.well-known/oauth-protected-resource/mcp"`
		useful    = `Bearer realm="sallyport", scope="memory:read memory:write"`
		reader    = "openid memory:read"
		writer    = reader + " memory:write admin"
		publish   = `{"revision_id":"r"}`
		narrowed  = `Bearer realm="sallyport", error="insufficient_scope", scope="memory:read memory:write"`
		forAnyone = `,"arguments":{"query":"x"}}}`
	)
	recall := strings.Replace(call("recall_cloud_skill"), `,"arguments":{"slug":"none","script_path":"x"}}}`, forAnyone, 1)
	for what, test := range map[string]struct {
		method, path, secret, body string
		status                     int
		challenge, holds           string
	}{
		"metadata":                {"GET", "/.well-known/oauth-protected-resource/mcp", "", "", 200, "", issuer},
		"nobody over http":        {"GET", "/v1/skills", "", "", 401, useful + root, "UNAUTHENTICATED"},
		"nobody over mcp":         {"POST", "/mcp", "", recall, 401, useful + mcp, "UNAUTHENTICATED"},
		"no token over http":      {"GET", "/v1/skills", "a.b.c", "", 401, `Bearer realm="sallyport", error="invalid_token", scope="memory:read memory:write"` + root, ""},
		"a token over http":       {"GET", "/v1/capabilities", token(reader), "", 200, "", `"id":"oidc:corp:carol"`},
		"a small one, publishing": {"POST", "/v1/skills/none/publish", token(reader), publish, 403, narrowed + root, "ACCESS_DENIED"},
		"a small one, running":    {"POST", "/mcp", token(reader), call("execute_cloud_skill"), 403, narrowed + mcp, "ACCESS_DENIED"},
		"a small one, recalling":  {"POST", "/mcp", token(reader), recall, 200, "", `"kind":"recall"`},
		"a larger one, running":   {"POST", "/mcp", token(writer), call("execute_cloud_skill"), 200, "", "SKILL_NOT_FOUND"},
		"no admin for it":         {"GET", "/v1/keys", token(writer), "", 403, `Bearer realm="sallyport", error="insufficient_scope", scope="memory:read memory:write admin"` + root, ""},
		"a key, running":          {"POST", "/mcp", key.Secret, call("execute_cloud_skill"), 200, "", "ACCESS_DENIED"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got := ask(test.method, test.path, test.secret, test.body)
			if got.Code != test.status || got.Header().Get("WWW-Authenticate") != test.challenge || !strings.Contains(got.Body.String(), test.holds) {
				t.Errorf("got %d %q\n%s\nwant %d %q with %s", got.Code, got.Header().Get("WWW-Authenticate"), got.Body, test.status, test.challenge, test.holds)
			}
		})
	}
}

// Issuers that cannot be used stop the start.
func TestIdentityIsValidated(t *testing.T) {
	t.Parallel()
	good := server.Issuer{URL: "https://login.example.org", Tenant: "acme"}
	for want, cfg := range map[string]server.Config{
		"public_url: callers":    {OIDC: []server.Issuer{good}},
		"public_url: want https": {PublicURL: "http://sallyport.example.org"},
		"want either tenant":     {PublicURL: "https://x", OIDC: []server.Issuer{{URL: good.URL}}},
	} {
		cfg.DataDir = t.TempDir()
		if _, err := server.New(t.Context(), cfg); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A tenant that a token names must exist, unless its issuer may make it; what an issuer makes is on record.
func TestTokensOfUnknownTenants(t *testing.T) {
	t.Parallel()
	const name = "https://sallyport.example.org"
	for _, create := range []bool{false, true} {
		issuer, token := login(t, name+"/mcp")
		s, err := server.New(t.Context(), server.Config{
			DataDir: t.TempDir(), PublicURL: name, OIDC: []server.Issuer{{URL: issuer, Name: "corp", Tenant: "acme", CreateTenants: create}},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		secret, want := token("memory:read"), http.StatusUnauthorized
		if create {
			want = http.StatusOK
		}
		ask := func() int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, name+"/v1/skills", nil)
			r.Header.Set("Authorization", "Bearer "+secret)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			return w.Code
		}
		for range 2 {
			if got := ask(); got != want {
				t.Errorf("create %t: got %d, want %d", create, got, want)
			}
		}
		_, err = s.Access().Tenant(t.Context(), server.Operator(), "acme")
		if (err == nil) != create {
			t.Errorf("create %t: the tenant: %v", create, err)
		}
		if !create {
			continue
		}
		p, err := s.Access().Operate(t.Context(), server.Operator(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		entries, err := s.Audit().List(t.Context(), p, audit.Filter{})
		if err != nil || len(entries) != 1 || entries[0].Action != sallyport.ActionTenantCreate || entries[0].Actor != "oidc:corp" {
			t.Errorf("on record: %+v, %v", entries, err)
		}
		if _, err := s.Access().DisableTenant(t.Context(), server.Operator(), "acme", true); err != nil {
			t.Fatal(err)
		}
		if got := ask(); got != http.StatusUnauthorized {
			t.Errorf("a disabled tenant's token: %d", got)
		}
	}
}
