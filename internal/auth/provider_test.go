package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/auth"
)

// provider is an authorization server that signs whatever it is told to.
type provider struct {
	*httptest.Server

	mu       sync.Mutex // guards what follows
	now      time.Time
	keys     []any  // of the set that it publishes: jose.JSONWebKey or anything else
	issuer   string // what the metadata says
	broken   bool
	metadata string // the path that answers

	fetches atomic.Int64 // of the key set
}

// The signing keys are made once: RSA keys are slow to make.
var signers = sync.OnceValue(func() map[string]crypto.Signer {
	first, err1 := rsa.GenerateKey(rand.Reader, 2048)
	second, err2 := rsa.GenerateKey(rand.Reader, 2048)
	curve, err3 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, edwards, err4 := ed25519.GenerateKey(rand.Reader)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			panic(err)
		}
	}
	return map[string]crypto.Signer{"rsa": first, "rsa2": second, "ec": curve, "ed": edwards}
})

func public(kid string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: signers()[kid].Public(), KeyID: kid, Use: "sig"}
}

func newProvider(tb testing.TB) *provider {
	tb.Helper()
	p := &provider{
		now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), keys: []any{public("rsa"), public("ec"), public("ed")},
		metadata: "/.well-known/openid-configuration",
	}
	p.Server = httptest.NewServer(p)
	p.issuer = p.URL
	tb.Cleanup(p.Close)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.URL.Path == "/keys" {
		p.fetches.Add(1)
	}
	switch {
	case p.broken:
		http.Error(w, "no", http.StatusBadGateway)
	case r.URL.Path == p.metadata:
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.issuer, "jwks_uri": p.URL + "/keys"})
	case r.URL.Path == "/keys":
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": p.keys})
	default:
		http.NotFound(w, r)
	}
}

func (p *provider) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *provider) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

const audience = "https://sallyport.example.org/mcp"

// tokens trusts p, with change applied to the issuer.
func (p *provider) tokens(tb testing.TB, change func(*auth.Issuer)) *auth.Tokens {
	tb.Helper()
	issuer := auth.Issuer{URL: p.URL, Name: "corp", Tenant: "acme", TeamsClaim: "groups"}
	if change != nil {
		change(&issuer)
	}
	tokens, err := auth.NewTokens(auth.TokensConfig{Issuers: []auth.Issuer{issuer}, Audiences: []string{audience}, Now: p.clock})
	if err != nil {
		tb.Fatal(err)
	}
	return tokens
}

// claims are those of a good token.
func (p *provider) claims() map[string]any {
	now := p.clock()
	return map[string]any{
		"iss": p.URL, "sub": "alice", "aud": audience, "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "client_id": "agent",
		"scope": "openid memory:read", "groups": []string{"ops"},
	}
}

// token is how a token is made; the zero value is a good one.
type token struct {
	kid, typ string
	alg      jose.SignatureAlgorithm
	key      any
	change   func(claims map[string]any)
	payload  []byte
	header   map[jose.HeaderKey]any
}

func (p *provider) sign(tb testing.TB, how token) string {
	tb.Helper()
	if how.kid == "" {
		how.kid = "rsa"
	}
	if how.alg == "" {
		how.alg = jose.RS256
	}
	if how.typ == "" {
		how.typ = "at+jwt"
	}
	if how.key == nil {
		how.key = signers()[how.kid]
	}
	options := (&jose.SignerOptions{}).WithHeader("kid", how.kid).WithHeader("typ", how.typ)
	for name, value := range how.header {
		options = options.WithHeader(name, value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: how.alg, Key: how.key}, options)
	if err != nil {
		tb.Fatal(err)
	}
	payload := how.payload
	if payload == nil {
		all := p.claims()
		if how.change != nil {
			how.change(all)
		}
		if payload, err = json.Marshal(all); err != nil {
			tb.Fatal(err)
		}
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		tb.Fatal(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		tb.Fatal(err)
	}
	return compact
}

func code(t *testing.T, tokens *auth.Tokens, token string) sallyport.Code {
	t.Helper()
	_, err := tokens.Authenticate(t.Context(), token)
	return sallyport.CodeOf(err)
}
