package auth_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/auth"
)

// A key that is added works soon, and one that is taken away stops to.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.change(func() { p.keys = []any{public("rsa")} })
	tokens := p.tokens(t, nil)
	old, next := token{}, token{kid: "rsa2"}
	check := func(when string, how token, want sallyport.Code) {
		t.Helper()
		if got := code(t, tokens, p.sign(t, how)); got != want {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	later := func(d time.Duration) { p.change(func() { p.now = p.now.Add(d) }) }
	check("first", old, "")
	check("before it is published", next, sallyport.CodeUnauthenticated)

	p.change(func() { p.keys = []any{public("rsa"), public("rsa2")} })
	check("within the pause", next, sallyport.CodeUnauthenticated)
	later(11 * time.Second)
	check("after the pause", next, "")

	p.change(func() { p.keys = []any{public("rsa2")} })
	check("while the set is fresh", old, "")
	later(6 * time.Minute)
	check("after it was revoked", old, sallyport.CodeUnauthenticated)
	check("the new one", next, "")
}

// Invented key ids do not make a request each.
func TestUnknownKeysAskSeldom(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	tokens := p.tokens(t, nil)
	forged := p.sign(t, token{kid: "gone", key: signers()["rsa"]})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { _, _ = tokens.Authenticate(t.Context(), forged) })
	}
	all.Wait()
	if got := p.fetches.Load(); got != 1 {
		t.Errorf("%d fetches for 50 forged tokens, want 1", got)
	}
}

// An issuer that cannot be asked is no reason to refuse as a bad token, and none to let anybody in.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	tokens := p.tokens(t, nil)
	later := func(d time.Duration) { p.change(func() { p.now = p.now.Add(d) }) }
	check := func(when string, want sallyport.Code) {
		t.Helper()
		if got := code(t, tokens, p.sign(t, token{})); got != want {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	p.change(func() { p.broken = true })
	check("never reached", sallyport.CodeIdentityUnavailable)
	p.change(func() { p.broken = false })
	check("within the pause", sallyport.CodeIdentityUnavailable)
	later(11 * time.Second)
	check("back", "")
	p.change(func() { p.broken = true })
	later(20 * time.Minute)
	check("away for a while", "")
	later(11 * time.Minute)
	check("away for long", sallyport.CodeIdentityUnavailable)
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	elsewhere := newProvider(t)
	for name, test := range map[string]struct {
		change func(p *provider)
		issuer func(i *auth.Issuer)
		want   sallyport.Code
	}{
		"the metadata of OAuth":     {func(p *provider) { p.metadata = "/.well-known/oauth-authorization-server" }, nil, ""},
		"a key set without any":     {nil, func(i *auth.Issuer) { i.KeysURL = i.URL + "/keys" }, ""},
		"for another issuer":        {func(p *provider) { p.issuer += "/" }, nil, sallyport.CodeIdentityUnavailable},
		"none":                      {func(p *provider) { p.metadata = "/x" }, nil, sallyport.CodeIdentityUnavailable},
		"an empty key set":          {func(p *provider) { p.keys = []any{} }, nil, sallyport.CodeIdentityUnavailable},
		"only private keys":         {func(p *provider) { p.keys = []any{jose.JSONWebKey{Key: signers()["rsa"], KeyID: "rsa"}} }, nil, sallyport.CodeIdentityUnavailable},
		"only shared secrets":       {func(p *provider) { p.keys = []any{jose.JSONWebKey{Key: []byte("secret"), KeyID: "rsa"}} }, nil, sallyport.CodeIdentityUnavailable},
		"only encryption keys":      {func(p *provider) { k := public("rsa"); k.Use = "enc"; p.keys = []any{k} }, nil, sallyport.CodeIdentityUnavailable},
		"a key that is no key":      {func(p *provider) { p.keys = append(p.keys, "x", map[string]string{"kty": "future"}) }, nil, ""},
		"a key of another use":      {func(p *provider) { k := public("rsa"); k.Algorithm = "RS512"; p.keys = []any{k} }, nil, sallyport.CodeUnauthenticated},
		"more keys than any server": {func(p *provider) { p.keys = make([]any, 101) }, nil, sallyport.CodeIdentityUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			if test.change != nil {
				p.change(func() { test.change(p) })
			}
			if got := code(t, p.tokens(t, test.issuer), p.sign(t, token{})); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("a redirect to another host", func(t *testing.T) {
		t.Parallel()
		p := newProvider(t)
		away := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/keys", http.StatusFound))
		t.Cleanup(away.Close)
		before := elsewhere.fetches.Load()
		got := code(t, p.tokens(t, func(i *auth.Issuer) { i.KeysURL = away.URL }), p.sign(t, token{}))
		if got != sallyport.CodeIdentityUnavailable || elsewhere.fetches.Load() != before {
			t.Errorf("got %q, and the other host was asked %d times", got, elsewhere.fetches.Load()-before)
		}
	})
}
