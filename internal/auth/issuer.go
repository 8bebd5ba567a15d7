package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sallyport-dev/sallyport"
)

// Issuer is one authorization server whose access tokens are accepted (RFC 9068), and what its claims mean here. The zero
// value is no issuer.
type Issuer struct {
	// URL is the issuer identifier, exactly as in the iss claim: https, or http on loopback.
	URL string
	// Name stands for the issuer in principal ids (oidc:NAME:SUBJECT), so it must never change or be given to another.
	// Lower-case letters, digits and hyphens. Empty means the first 12 hexadecimal digits of the URL's SHA-256.
	Name string
	// KeysURL is the key set (RFC 7517); empty means the one that the issuer's own metadata names.
	KeysURL string
	// Audiences are what a token's aud may name, one of them at least; empty means those of [TokensConfig].
	Audiences []string
	// Tenant is the tenant of every caller. Exactly one of Tenant and TenantClaim is set.
	Tenant sallyport.TenantID
	// TenantClaim names the claim that says which tenant a caller belongs to, and Tenants what its values mean. A value that
	// Tenants does not map is refused. A dot in the name of this and the following claims leads into an object.
	TenantClaim string
	Tenants     map[string]sallyport.TenantID
	// CreateTenants makes a tenant that Tenant or Tenants names when its first caller comes; else a caller of a tenant that is not
	// there is refused.
	CreateTenants bool
	// TeamsClaim names the claim that lists the caller's teams; empty means the default team only.
	TeamsClaim string
	// Scopes are what the scope or scp claim can give; empty means memory:read and memory:write.
	Scopes []sallyport.Scope
	// RolesClaim names the claim that lists roles, and Roles the scopes that each gives beside those of the scope claim.
	RolesClaim string
	Roles      map[string][]sallyport.Scope
	// TokenTypes are accepted in the typ header beside at+jwt. An ID token usually says JWT: an issuer that says so in access
	// tokens too is trusted to never give an ID token this audience.
	TokenTypes []string
	// Algorithms narrow the accepted signatures; empty means RS, PS and ES 256, 384 and 512, and EdDSA. Nothing else ever is.
	Algorithms []string
	// ClockSkew is how far the clocks may differ; zero means 30 seconds, the most is five minutes.
	ClockSkew time.Duration
}

const (
	defaultSkew = 30 * time.Second
	maxSkew     = 5 * time.Minute
	// typeAccessToken is the typ of RFC 9068, also written with application/ before it.
	typeAccessToken = "at+jwt"
)

// algorithms are all that are ever accepted: signatures by a private key that this server does not hold.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

func (i Issuer) withDefaults(audiences []string) Issuer {
	if i.Name == "" {
		sum := sha256.Sum256([]byte(i.URL))
		i.Name = hex.EncodeToString(sum[:6])
	}
	if len(i.Audiences) == 0 {
		i.Audiences = audiences
	}
	if len(i.Scopes) == 0 {
		i.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite}
	}
	if len(i.Algorithms) == 0 {
		for _, algorithm := range algorithms() {
			i.Algorithms = append(i.Algorithms, string(algorithm))
		}
	}
	if i.ClockSkew == 0 {
		i.ClockSkew = defaultSkew
	}
	return i
}

// TokenScopes are what the scope claim of a token can give.
func (i Issuer) TokenScopes() []sallyport.Scope { return i.withDefaults(nil).Scopes }

// CheckIssuers returns what is wrong with a list of issuers, each problem a sentence; nil when nothing is. audience reports
// whether there is one for issuers that name none.
func CheckIssuers(issuers []Issuer, audience bool) []string {
	var problems []string
	urls, names := map[string]bool{}, map[string]bool{}
	for n, issuer := range issuers {
		fault := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("oidc[%d]: ", n)+fmt.Sprintf(format, args...))
		}
		issuer.check(fault)
		if len(issuer.Audiences) == 0 && !audience {
			fault("audience: name what tokens are for, or set public_url")
		}
		name := issuer.withDefaults(nil).Name
		if urls[issuer.URL] {
			fault("issuer: %q is there twice", issuer.URL)
		}
		if names[name] {
			fault("name: two issuers are called %q, so their principals could not be told apart", name)
		}
		urls[issuer.URL], names[name] = true, true
	}
	return problems
}

func (i Issuer) check(fault func(format string, args ...any)) {
	if err := checkURL(i.URL, true); err != nil {
		fault("issuer: %v", err)
	} else if i.KeysURL != "" {
		if err := checkURL(i.KeysURL, loopbackURL(i.URL)); err != nil {
			fault("keys_url: %v", err)
		}
	}
	if strings.Trim(i.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(i.Name) > 32 {
		fault("name: want at most 32 lower-case letters, digits and hyphens")
	}
	if slices.Contains(i.Audiences, "") {
		fault("audience: one is empty")
	}
	switch {
	case (i.Tenant == "") == (i.TenantClaim == ""):
		fault("want either tenant, or tenant_claim with tenants")
	case i.Tenant != "" && len(i.Tenants) > 0:
		fault("tenants: belongs to tenant_claim")
	case i.TenantClaim != "" && len(i.Tenants) == 0:
		fault("tenants: say which tenant each value of %s means", i.TenantClaim)
	}
	for _, value := range slices.Sorted(maps.Keys(i.Tenants)) {
		if value == "" || !plainName(string(i.Tenants[value])) {
			fault("tenants: %q: want a tenant of at most %d characters", value, maxName)
		}
	}
	if i.Tenant != "" && !plainName(string(i.Tenant)) {
		fault("tenant: want at most %d letters, digits and -._", maxName)
	}
	if (i.RolesClaim == "") != (len(i.Roles) == 0) {
		fault("roles_claim and roles go together")
	}
	checkScopes(fault, "scopes", i.Scopes)
	for _, role := range slices.Sorted(maps.Keys(i.Roles)) {
		checkScopes(fault, "roles", i.Roles[role])
	}
	for _, name := range i.Algorithms {
		if !slices.Contains(algorithms(), jose.SignatureAlgorithm(name)) {
			fault("algorithms: %q is not one of %v", name, algorithms())
		}
	}
	for _, name := range i.TokenTypes {
		if name == "" || len(name) > 64 {
			fault("token_types: want at most 64 characters")
		}
	}
	if i.ClockSkew < 0 || i.ClockSkew > maxSkew {
		fault("clock_skew: want at most %s", maxSkew)
	}
}

func checkScopes(fault func(format string, args ...any), key string, scopes []sallyport.Scope) {
	for _, scope := range scopes {
		if !scope.Valid() {
			fault("%s: %q is no scope; the scopes are %v", key, scope, sallyport.Scopes())
		}
	}
}

// maxName bounds a tenant's and a team's id, in bytes.
const maxName = 128

// plainName accepts what can be the id of a tenant or a team.
func plainName(s string) bool {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._"
	return s != "" && len(s) <= maxName && strings.Trim(s, plain) == ""
}

// CheckPublicURL returns nil when raw can be the name by which clients reach a server: scheme://host[:port], https or
// loopback.
func CheckPublicURL(raw string) error {
	if err := checkURL(raw, true); err != nil {
		return err
	}
	if u, err := url.Parse(raw); err != nil || u.Path != "" {
		return fmt.Errorf("want scheme://host without a path, got %q", raw)
	}
	return nil
}

// checkURL accepts an absolute https URL without credentials, query or fragment, and an http one of this machine when local.
func checkURL(raw string, local bool) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return fmt.Errorf("want a URL such as https://login.example.org, got %q", raw)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#"):
		return fmt.Errorf("want a URL without credentials, query and fragment, got %q", raw)
	case u.Scheme == "https", local && u.Scheme == "http" && loopbackURL(raw):
		return nil
	default:
		return fmt.Errorf("want https; http serves this machine only, got %q", raw)
	}
}

func loopbackURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && addr.Zone() == "" && addr.IsLoopback()
}
