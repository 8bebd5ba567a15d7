// Package goprovider_test logs in to a server of the product with access tokens of an OpenID provider written in Go, one without
// resource indicators and without the typ of RFC 9068.
package goprovider_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/server"
)

// jwtStorage is the provider's own storage, with access tokens that are JWTs.
type jwtStorage struct{ *storage.Storage }

type jwtClient struct{ op.Client }

func (jwtClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

// IsScopeAllowed lets the client ask for scopes of the product.
func (jwtClient) IsScopeAllowed(scope string) bool { return sallyport.Scope(scope).Valid() }

func (s jwtStorage) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	client, err := s.Storage.ClientCredentials(ctx, id, secret)
	return jwtClient{client}, err
}

// GetPrivateClaimsFromScopes writes the scopes into the token: this provider leaves that to its installation.
func (jwtStorage) GetPrivateClaimsFromScopes(_ context.Context, _, _ string, scopes []string) (map[string]any, error) {
	return map[string]any{"scope": strings.Join(scopes, " ")}, nil
}

// newProvider starts the provider on loopback and returns its issuer.
func newProvider(t *testing.T) string {
	t.Helper()
	var handler http.Handler
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(s.Close)
	issuer := strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/"
	keep := jwtStorage{storage.NewStorage(storage.NewUserStore(issuer))}
	handler = exampleop.SetupServer(issuer, keep, slog.New(slog.DiscardHandler), false)
	return issuer
}

// newServer starts the product for tokens of the issuer that name the audience.
func newServer(t *testing.T, issuer, audience string) string {
	t.Helper()
	s, err := server.New(t.Context(), server.Config{
		DataDir: t.TempDir() + "/data", PublicURL: "http://127.0.0.1:8787",
		OIDC: []server.Issuer{{
			URL: issuer, Name: "go", Audiences: []string{audience}, Tenant: sallyport.DefaultTenant, TokenTypes: []string{"JWT"},
			Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeAuditRead},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	front := httptest.NewServer(s.Handler())
	t.Cleanup(front.Close)
	return front.URL
}

// token asks the provider for an access token with the scopes.
func token(t *testing.T, issuer string, scopes ...string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {strings.Join(scopes, " ")}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, issuer+"oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("sid1", "verysecret")
	status, body := send(t, req)
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || answer.AccessToken == "" {
		t.Fatalf("the provider gives no token: %d %s", status, body)
	}
	return answer.AccessToken
}

func send(t *testing.T, req *http.Request) (int, []byte) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read from
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

// call asks the product, and returns the status and the code of a refusal.
func call(t *testing.T, path, bearer string) (int, sallyport.Code) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	status, body := send(t, req)
	var answer struct {
		Error struct {
			Code sallyport.Code `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%d %s", status, body)
	}
	return status, answer.Error.Code
}

func TestTokensOfAGoProvider(t *testing.T) {
	issuer := newProvider(t)
	url := newServer(t, issuer, "sid1")

	reader := token(t, issuer, "memory:read")
	if status, code := call(t, url+"/v1/skills", reader); status != http.StatusOK {
		t.Errorf("a reader lists skills: %d %s", status, code)
	}
	if status, code := call(t, url+"/v1/audit", reader); status != http.StatusForbidden || code != sallyport.CodeAccessDenied {
		t.Errorf("a reader reads the trail: %d %s; want 403 ACCESS_DENIED", status, code)
	}
	// The larger token that a client steps up to.
	auditor := token(t, issuer, "memory:read", "audit:read")
	if status, code := call(t, url+"/v1/audit", auditor); status != http.StatusOK {
		t.Errorf("an auditor reads the trail: %d %s", status, code)
	}
	// The issuer may not give what the installation does not let it give.
	admin := token(t, issuer, "memory:read", "admin")
	if status, code := call(t, url+"/v1/keys", admin); status != http.StatusForbidden || code != sallyport.CodeAccessDenied {
		t.Errorf("a token with a scope that is not the issuer's: %d %s; want 403 ACCESS_DENIED", status, code)
	}
	// One character of the signature, of the content and of the header.
	parts := strings.Split(reader, ".")
	for i := range parts {
		changed := slices.Clone(parts)
		first := "A"
		if strings.HasPrefix(changed[i], "A") {
			first = "B"
		}
		changed[i] = first + changed[i][1:]
		if status, code := call(t, url+"/v1/skills", strings.Join(changed, ".")); status != http.StatusUnauthorized || code != sallyport.CodeUnauthenticated {
			t.Errorf("part %d changed: %d %s; want 401 UNAUTHENTICATED", i, status, code)
		}
	}
	// A server that another audience was given to.
	if status, code := call(t, newServer(t, issuer, "another")+"/v1/skills", reader); status != http.StatusUnauthorized || code != sallyport.CodeUnauthenticated {
		t.Errorf("another audience: %d %s; want 401 UNAUTHENTICATED", status, code)
	}
	// A token of another provider of the same make, with keys of its own.
	if status, code := call(t, url+"/v1/skills", token(t, newProvider(t), "memory:read")); status != http.StatusUnauthorized || code != sallyport.CodeUnauthenticated {
		t.Errorf("another issuer: %d %s; want 401 UNAUTHENTICATED", status, code)
	}
}
