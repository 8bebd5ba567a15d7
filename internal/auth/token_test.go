package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/auth"
)

func set(name string, value any) func(map[string]any) {
	return func(c map[string]any) { c[name] = value }
}

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	now := p.clock()
	for name, how := range map[string]token{
		"RS256":                    {},
		"PS512":                    {alg: jose.PS512},
		"ES256":                    {kid: "ec", alg: jose.ES256},
		"EdDSA":                    {kid: "ed", alg: jose.EdDSA},
		"long type":                {typ: "application/at+jwt"},
		"type in capitals":         {typ: "AT+JWT"},
		"one of several audiences": {change: set("aud", []string{"https://other", audience})},
		"expired within the skew":  {change: set("exp", now.Add(-29*time.Second).Unix())},
		"early within the skew":    {change: set("nbf", now.Add(29*time.Second).Unix())},
		"expiry with a fraction":   {change: set("exp", float64(now.Unix())+0.5)},
		"claims of others":         {change: set("x", map[string]any{"scope": "admin"})},
		"scope asked for too much": {change: set("scope", "memory:read admin grants:write unknown MEMORY:WRITE")},
		"scp":                      {change: func(c map[string]any) { delete(c, "scope"); c["scp"] = []string{"memory:read"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := p.tokens(t, nil).Authenticate(t.Context(), p.sign(t, how))
			if err != nil {
				t.Fatal(err)
			}
			want := sallyport.Principal{
				ID: "oidc:corp:alice", TenantID: "acme", Teams: []sallyport.TeamID{"default", "ops"},
				Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("principal (-want +got):\n%s", diff)
			}
		})
	}
}

// Every one of these is UNAUTHENTICATED, and the good token is not.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	now := p.clock()
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := p.sign(t, token{})
	parts := strings.Split(good, ".")
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	payload, err := json.Marshal(p.claims())
	if err != nil {
		t.Fatal(err)
	}
	// The old trick: an HMAC whose secret is the public key, in the forms that a careless server might take it.
	der, err := x509.MarshalPKIXPublicKey(signers()["rsa"].Public())
	if err != nil {
		t.Fatal(err)
	}
	armored := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	without := func(name string) func(map[string]any) { return func(c map[string]any) { delete(c, name) } }
	raw := func(old, replacement string) token {
		return token{payload: []byte(strings.Replace(string(payload), old, replacement, 1))}
	}
	embedded := jose.JSONWebKey{Key: &stranger.PublicKey, KeyID: "rsa"}

	all := map[string]string{
		"empty":                         "",
		"words":                         "a.b.c",
		"two parts":                     parts[0] + "." + parts[1],
		"four parts":                    good + ".x",
		"no signature":                  parts[0] + "." + parts[1] + ".",
		"a changed claim":               parts[0] + "." + encode(strings.Replace(string(payload), "alice", "admin", 1)) + "." + parts[2],
		"a changed signature":           good[:len(good)-8] + "AAAAAAAA",
		"none":                          encode(`{"alg":"none","typ":"at+jwt"}`) + "." + parts[1] + ".",
		"none in another case":          encode(`{"alg":"nOnE","typ":"at+jwt"}`) + "." + parts[1] + ".",
		"no algorithm":                  encode(`{"typ":"at+jwt"}`) + "." + parts[1] + "." + parts[2],
		"an algorithm twice":            encode(`{"alg":"none","alg":"RS256","kid":"rsa","typ":"at+jwt"}`) + "." + parts[1] + "." + parts[2],
		"a critical header":             p.sign(t, token{header: map[jose.HeaderKey]any{"crit": []string{"x"}, "x": 1}}),
		"over the size":                 p.sign(t, token{change: set("pad", strings.Repeat("x", 16<<10))}),
		"too many claims":               p.sign(t, token{change: func(c map[string]any) { maps.Copy(c, many(201)) }}),
		"the payload is no object":      p.sign(t, token{payload: []byte(`["` + p.URL + `"]`)}),
		"the payload is null":           p.sign(t, token{payload: []byte(`null`)}),
		"a claim twice":                 p.sign(t, raw(`"sub":"alice"`, `"sub":"alice","sub":"admin"`)),
		"a claim twice, deep":           p.sign(t, raw(`"sub":"alice"`, `"sub":"alice","x":{"a":1,"a":2}`)),
		"a claim in another case":       p.sign(t, raw(`"exp"`, `"Exp"`)),
		"data after the claims":         p.sign(t, token{payload: append(payload, "{}"...)}),
		"HS256 with the key's DER":      p.sign(t, token{alg: jose.HS256, key: der}),
		"HS256 with the key's PEM":      p.sign(t, token{alg: jose.HS256, key: armored}),
		"a stranger's key":              p.sign(t, token{key: stranger}),
		"a stranger's key, sent along":  p.sign(t, token{key: stranger, header: map[jose.HeaderKey]any{"jwk": embedded}}),
		"a stranger's key, by address":  p.sign(t, token{key: stranger, header: map[jose.HeaderKey]any{"jku": p.URL + "/keys"}}),
		"an unknown key":                p.sign(t, token{kid: "gone", key: signers()["rsa"]}),
		"another key's id":              p.sign(t, token{kid: "ec", key: signers()["rsa"]}),
		"an id token":                   p.sign(t, token{typ: "JWT"}),
		"a logout token":                p.sign(t, token{typ: "logout+jwt"}),
		"another issuer":                p.sign(t, token{change: set("iss", "https://login.example.org")}),
		"the issuer with a slash":       p.sign(t, token{change: set("iss", p.URL+"/")}),
		"no issuer":                     p.sign(t, token{change: without("iss")}),
		"two issuers":                   p.sign(t, token{change: set("iss", []string{p.URL})}),
		"another audience":              p.sign(t, token{change: set("aud", "https://other.example.org")}),
		"part of the audience":          p.sign(t, token{change: set("aud", "https://sallyport.example.org")}),
		"no audience":                   p.sign(t, token{change: without("aud")}),
		"an empty list of audiences":    p.sign(t, token{change: set("aud", []string{})}),
		"the client as audience":        p.sign(t, token{change: set("aud", "agent")}),
		"expired":                       p.sign(t, token{change: set("exp", now.Add(-31*time.Second).Unix())}),
		"expired at the end of the era": p.sign(t, token{change: set("exp", 1e300)}),
		"expiry as text":                p.sign(t, token{change: set("exp", "9999999999")}),
		"negative expiry":               p.sign(t, token{change: set("exp", -1)}),
		"null expiry":                   p.sign(t, token{change: set("exp", nil)}),
		"no expiry":                     p.sign(t, token{change: without("exp")}),
		"not yet":                       p.sign(t, token{change: set("nbf", now.Add(31*time.Second).Unix())}),
		"issued in the future":          p.sign(t, token{change: set("iat", now.Add(time.Hour).Unix())}),
		"not-before as text":            p.sign(t, token{change: set("nbf", "0")}),
		"no subject":                    p.sign(t, token{change: without("sub")}),
		"an empty subject":              p.sign(t, token{change: set("sub", "")}),
		"a number as subject":           p.sign(t, token{change: set("sub", 7)}),
		"an oversize subject":           p.sign(t, token{change: set("sub", strings.Repeat("x", 256))}),
		"a team with a slash":           p.sign(t, token{change: set("groups", []string{"a/b"})}),
		"a homoglyph team":              p.sign(t, token{change: set("groups", []string{"оps"})}),
		"teams as a number":             p.sign(t, token{change: set("groups", 7)}),
		"too many teams":                p.sign(t, token{change: set("groups", make([]string, 201))}),
	}
	tokens := p.tokens(t, nil)
	if got := code(t, tokens, good); got != "" {
		t.Fatalf("the good token: got %s", got)
	}
	for name, bad := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := tokens.Authenticate(t.Context(), bad); sallyport.CodeOf(err) != sallyport.CodeUnauthenticated {
				t.Errorf("got %+v, %v, want UNAUTHENTICATED", got, err)
			}
		})
	}
}

func many(n int) map[string]any {
	all := map[string]any{}
	for i := range n {
		all["c"+strings.Repeat("x", i)] = nil
	}
	return all
}

func TestMapping(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	claim := func(i *auth.Issuer) {
		i.Tenant, i.TenantClaim = "", "org.id"
		i.Tenants = map[string]sallyport.TenantID{"o-1": "acme", "o-2": "globex"}
	}
	for name, test := range map[string]struct {
		issuer func(*auth.Issuer)
		change func(map[string]any)
		want   *sallyport.Principal
	}{
		"a mapped tenant": {claim, set("org", map[string]any{"id": "o-2"}), &sallyport.Principal{
			ID: "oidc:corp:alice", TenantID: "globex", Teams: []sallyport.TeamID{"default", "ops"},
			Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead},
		}},
		"a claim named with a dot": {claim, set("org.id", "o-1"), &sallyport.Principal{
			ID: "oidc:corp:alice", TenantID: "acme", Teams: []sallyport.TeamID{"default", "ops"},
			Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead},
		}},
		"an unmapped tenant":         {claim, set("org", map[string]any{"id": "o-3"}), nil},
		"the name of a tenant":       {claim, set("org", map[string]any{"id": "acme"}), nil},
		"no tenant":                  {claim, set("org", 7), nil},
		"a list of tenants":          {claim, set("org", map[string]any{"id": []string{"o-1"}}), nil},
		"a tenant in other letters":  {claim, set("org", map[string]any{"id": "O-1"}), nil},
		"a tenant claim, not wanted": {nil, set("tenant", "globex"), principal("oidc:corp:alice", sallyport.ScopeMemoryRead)},
		"roles": {
			func(i *auth.Issuer) {
				i.RolesClaim = "realm_access.roles"
				i.Roles = map[string][]sallyport.Scope{"reviewer": {sallyport.ScopeGrantsWrite, sallyport.ScopeAuditRead}}
			},
			set("realm_access", map[string]any{"roles": []string{"reviewer", "admin", "unknown"}}),
			principal("oidc:corp:alice", sallyport.ScopeMemoryRead, sallyport.ScopeGrantsWrite, sallyport.ScopeAuditRead),
		},
		"admin where the issuer may give it": {
			func(i *auth.Issuer) { i.Scopes = []sallyport.Scope{sallyport.ScopeAdmin} }, set("scope", "admin memory:read"),
			principal("oidc:corp:alice", sallyport.ScopeAdmin),
		},
		"no scopes": {nil, set("scope", ""), principal("oidc:corp:alice")},
		"a subject that looks like another issuer's": {
			nil, set("sub", "x:y/z é%"), principal("oidc:corp:x%3Ay%2Fz%20%C3%A9%25", sallyport.ScopeMemoryRead),
		},
		"an exception for the type":       {func(i *auth.Issuer) { i.TokenTypes = []string{"JWT"} }, nil, principal("oidc:corp:alice", sallyport.ScopeMemoryRead)},
		"algorithms that leave this out":  {func(i *auth.Issuer) { i.Algorithms = []string{"ES256"} }, nil, nil},
		"audiences of its own":            {func(i *auth.Issuer) { i.Audiences = []string{"api://x"} }, nil, nil},
		"audiences of its own, fulfilled": {func(i *auth.Issuer) { i.Audiences = []string{"api://x"} }, set("aud", "api://x"), principal("oidc:corp:alice", sallyport.ScopeMemoryRead)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := p.tokens(t, test.issuer).Authenticate(t.Context(), p.sign(t, token{change: test.change}))
			if test.want == nil {
				if sallyport.CodeOf(err) != sallyport.CodeUnauthenticated {
					t.Errorf("got %+v, %v, want UNAUTHENTICATED", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*test.want, got); diff != "" {
				t.Errorf("principal (-want +got):\n%s", diff)
			}
		})
	}
}

func principal(id sallyport.PrincipalID, scopes ...sallyport.Scope) *sallyport.Principal {
	return &sallyport.Principal{
		ID: id, TenantID: "acme", Teams: []sallyport.TeamID{"default", "ops"}, Scopes: append([]sallyport.Scope{}, scopes...),
	}
}

// Two issuers may both call somebody alice; neither can speak for the other.
func TestTwoIssuers(t *testing.T) {
	t.Parallel()
	first, second := newProvider(t), newProvider(t)
	second.change(func() { second.keys = []any{public("ec")} })
	tokens, err := auth.NewTokens(auth.TokensConfig{Now: first.clock, Audiences: []string{audience}, Issuers: []auth.Issuer{
		{URL: first.URL, Tenant: "acme"}, {URL: second.URL, Tenant: "globex"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	one, err1 := tokens.Authenticate(t.Context(), first.sign(t, token{}))
	two, err2 := tokens.Authenticate(t.Context(), second.sign(t, token{kid: "ec", alg: jose.ES256}))
	if err1 != nil || err2 != nil || one.TenantID != "acme" || two.TenantID != "globex" || one.ID == two.ID {
		t.Errorf("got %+v %v and %+v %v", one, err1, two, err2)
	}
	if got := code(t, tokens, second.sign(t, token{})); got != sallyport.CodeUnauthenticated {
		t.Errorf("a token of the second, signed with a key of the first: got %q", got)
	}
}

// An API key and a token share the header; each is judged by its own kind only.
func TestTokenBesideKeys(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	a := auth.New(auth.Config{Keys: keys{}, Tokens: p.tokens(t, nil)})
	for name, test := range map[string]struct {
		secret string
		want   sallyport.PrincipalID
	}{
		"a key": {goodKey, "alice"}, "a token": {p.sign(t, token{}), "oidc:corp:alice"},
		"a bad key": {"spk_wrong", ""}, "neither": {"abc", ""},
		"a token called a key": {"spk_" + p.sign(t, token{}), ""},
	} {
		got, err := a.Principal(request(t, header("Authorization", "Bearer "+test.secret)))
		if got.ID != test.want || (test.want == "") != (sallyport.CodeOf(err) == sallyport.CodeUnauthenticated) {
			t.Errorf("%s: got %q, %v, want %q", name, got.ID, err, test.want)
		}
	}
	refuses := auth.New(auth.Config{Keys: keys{}})
	if _, err := refuses.Principal(request(t, header("Authorization", "Bearer "+p.sign(t, token{})))); sallyport.CodeOf(err) != sallyport.CodeUnauthenticated {
		t.Errorf("without issuers: got %v", err)
	}
}

func TestCheckIssuers(t *testing.T) {
	t.Parallel()
	good := auth.Issuer{URL: "https://login.example.org/realms/a", Tenant: "acme"}
	for name, test := range map[string]struct {
		change func(*auth.Issuer)
		want   string
	}{
		"good":               {func(*auth.Issuer) {}, ""},
		"loopback":           {func(i *auth.Issuer) { i.URL = "http://127.0.0.1:9000" }, ""},
		"no issuer":          {func(i *auth.Issuer) { i.URL = "" }, "issuer: want a URL"},
		"in the clear":       {func(i *auth.Issuer) { i.URL = "http://login.example.org" }, "want https"},
		"like loopback":      {func(i *auth.Issuer) { i.URL = "http://127.0.0.1.example.org" }, "want https"},
		"credentials":        {func(i *auth.Issuer) { i.URL = "https://a:b@example.org" }, "without credentials"},
		"query":              {func(i *auth.Issuer) { i.URL = "https://example.org?a" }, "without credentials, query"},
		"keys in the clear":  {func(i *auth.Issuer) { i.KeysURL = "http://127.0.0.1/keys" }, "keys_url: want https"},
		"name":               {func(i *auth.Issuer) { i.Name = "a:b" }, "name: want"},
		"no tenant":          {func(i *auth.Issuer) { i.Tenant = "" }, "want either tenant"},
		"both tenants":       {func(i *auth.Issuer) { i.TenantClaim = "org" }, "want either tenant"},
		"unmapped claim":     {func(i *auth.Issuer) { i.Tenant, i.TenantClaim = "", "org" }, "say which tenant"},
		"tenant with blanks": {func(i *auth.Issuer) { i.Tenant = "a b" }, "tenant: want"},
		"scope":              {func(i *auth.Issuer) { i.Scopes = []sallyport.Scope{"root"} }, `"root" is no scope`},
		"roles alone":        {func(i *auth.Issuer) { i.RolesClaim = "roles" }, "go together"},
		"role":               {func(i *auth.Issuer) { i.RolesClaim, i.Roles = "r", map[string][]sallyport.Scope{"a": {""}} }, "is no scope"},
		"HS256":              {func(i *auth.Issuer) { i.Algorithms = []string{"HS256"} }, `"HS256" is not one of`},
		"none":               {func(i *auth.Issuer) { i.Algorithms = []string{"none"} }, `"none" is not one of`},
		"skew":               {func(i *auth.Issuer) { i.ClockSkew = time.Hour }, "clock_skew: want at most 5m0s"},
		"empty audience":     {func(i *auth.Issuer) { i.Audiences = []string{""} }, "audience: one is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := good
			test.change(&issuer)
			got := strings.Join(auth.CheckIssuers([]auth.Issuer{issuer}, true), "; ")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := auth.CheckIssuers([]auth.Issuer{good, good}, true); len(got) != 2 {
		t.Errorf("the same issuer twice: got %q", got)
	}
	if got := auth.CheckIssuers([]auth.Issuer{good}, false); len(got) != 1 {
		t.Errorf("no audience at all: got %q", got)
	}
	for raw, ok := range map[string]bool{
		"https://sallyport.example.org": true, "https://sallyport.example.org:8443": true, "http://127.0.0.1:8787": true,
		"http://sallyport.example.org": false, "https://sallyport.example.org/": false, "https://x/y": false, "sallyport": false, "": false,
	} {
		if err := auth.CheckPublicURL(raw); (err == nil) != ok {
			t.Errorf("%q: got %v", raw, err)
		}
	}
	if _, err := auth.NewTokens(auth.TokensConfig{Issuers: []auth.Issuer{{}}}); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
		t.Errorf("the zero issuer: got %v", err)
	}
	none, err := auth.NewTokens(auth.TokensConfig{})
	if err != nil || code(t, none, newProvider(t).sign(t, token{})) != sallyport.CodeUnauthenticated {
		t.Errorf("no issuer: %v", err)
	}
}
