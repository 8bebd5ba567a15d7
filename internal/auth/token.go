package auth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sallyport-dev/sallyport"
)

// TokensConfig says whose tokens are accepted.
type TokensConfig struct {
	// Issuers are held against [CheckIssuers] by whoever reads the configuration.
	Issuers []Issuer
	// Audiences are the server's own names, for issuers that name none.
	Audiences []string
	// EnsureTenant makes the tenant unless it is there, for issuers with CreateTenants; by names the issuer. Nil makes none.
	EnsureTenant func(ctx context.Context, tenant sallyport.TenantID, by string) error
	// Now is nil for time.Now.
	Now func() time.Time
}

// Tokens verifies the access tokens of authorization servers. It is safe for concurrent use; it asks an issuer for its keys
// when a token first needs them.
type Tokens struct {
	issuers []*trusted
	ensure  func(ctx context.Context, tenant sallyport.TenantID, by string) error
	now     func() time.Time
}

// trusted is one issuer with its keys.
type trusted struct {
	Issuer

	keys       *keySet
	algorithms []jose.SignatureAlgorithm
}

// NewTokens returns a Tokens. It refuses issuers that CheckIssuers does.
func NewTokens(cfg TokensConfig) (*Tokens, error) {
	if problems := CheckIssuers(cfg.Issuers, len(cfg.Audiences) > 0); len(problems) > 0 {
		return nil, sallyport.Errorf("auth.tokens", sallyport.CodeInvalidArgument, "%s", strings.Join(problems, "; "))
	}
	t := &Tokens{ensure: cfg.EnsureTenant, now: cfg.Now}
	if t.now == nil {
		t.now = time.Now
	}
	client := newClient()
	for _, issuer := range cfg.Issuers {
		issuer = issuer.withDefaults(cfg.Audiences)
		one := &trusted{Issuer: issuer, keys: newKeySet(issuer, client, t.now)}
		for _, name := range issuer.Algorithms {
			one.algorithms = append(one.algorithms, jose.SignatureAlgorithm(name))
		}
		t.issuers = append(t.issuers, one)
	}
	return t, nil
}

// tokenMaxLength bounds a token, in bytes, before anything of it is decoded.
const tokenMaxLength = 16 << 10

// Authenticate returns the principal that a token speaks for: UNAUTHENTICATED for one that proves nothing, IDENTITY_UNAVAILABLE
// when its issuer's keys cannot be had. The sentence of a refusal says what is wrong only about what the token says itself.
func (t *Tokens) Authenticate(ctx context.Context, token string) (sallyport.Principal, error) {
	if len(token) > tokenMaxLength {
		return sallyport.Principal{}, badToken(fmt.Sprintf("the token is over %d bytes", tokenMaxLength), nil)
	}
	signed, err := jose.ParseSignedCompact(token, algorithms())
	if err != nil {
		return sallyport.Principal{}, badToken("the token is no JWT with an accepted signature algorithm", err)
	}
	// Not trusted yet: it only says whose keys to hold the token against.
	claims, err := parseClaims(signed.UnsafePayloadWithoutVerification())
	if err != nil {
		return sallyport.Principal{}, badToken("the claims of the token are malformed", err)
	}
	issuer := t.issuer(claims)
	if issuer == nil {
		return sallyport.Principal{}, badToken("the issuer of the token is not trusted here", nil)
	}
	if err := issuer.verify(ctx, signed); err != nil {
		return sallyport.Principal{}, err
	}
	if err := issuer.current(claims, t.now()); err != nil {
		return sallyport.Principal{}, err
	}
	p, err := issuer.principal(claims)
	if err == nil && issuer.CreateTenants && t.ensure != nil {
		err = t.ensure(ctx, p.TenantID, "oidc:"+issuer.Name)
	}
	if err != nil {
		return sallyport.Principal{}, err
	}
	return p, nil
}

func (t *Tokens) issuer(c claims) *trusted {
	name, _ := c.text("iss")
	for _, issuer := range t.issuers {
		if issuer.URL == name {
			return issuer
		}
	}
	return nil
}

// verify checks the header and the signature.
func (i *trusted) verify(ctx context.Context, signed *jose.JSONWebSignature) error {
	header := signed.Signatures[0].Protected
	if !slices.Contains(i.algorithms, jose.SignatureAlgorithm(header.Algorithm)) {
		return badToken("the token is signed with an algorithm that is not accepted", nil)
	}
	kind, _ := header.ExtraHeaders[jose.HeaderType].(string)
	if !i.accepts(kind) {
		return badToken("the token is not an access token (typ at+jwt)", nil)
	}
	keys, err := i.keys.candidates(ctx, header.KeyID, header.Algorithm)
	switch {
	case errors.Is(err, errNoKey):
		return badToken("the signature of the token is not valid", err)
	case errors.Is(err, errKeys):
		return &sallyport.Error{Op: "auth.token", Code: sallyport.CodeIdentityUnavailable, Err: err}
	case err != nil:
		return err
	}
	for _, key := range keys {
		// The payload that is checked is the very bytes that the claims were read from.
		if _, err = signed.Verify(key.Key); err == nil {
			return nil
		}
	}
	return badToken("the signature of the token is not valid", err)
}

// accepts reports whether typ is that of an access token, in any case and with or without application/.
func (i *trusted) accepts(typ string) bool {
	if prefix := "application/"; len(typ) > len(prefix) && strings.EqualFold(typ[:len(prefix)], prefix) {
		typ = typ[len(prefix):]
	}
	if strings.EqualFold(typ, typeAccessToken) {
		return true
	}
	return slices.ContainsFunc(i.TokenTypes, func(also string) bool { return strings.EqualFold(typ, also) })
}

// current checks for whom and when the token is.
func (i *trusted) current(c claims, now time.Time) error {
	audiences, ok := c.words("aud", false)
	if !ok || !slices.ContainsFunc(audiences, func(name string) bool { return slices.Contains(i.Audiences, name) }) {
		return badToken("the token is for another audience", nil)
	}
	expires, given, ok := c.instant("exp")
	switch {
	case !given || !ok:
		return badToken("the token does not say when it expires", nil)
	case !now.Before(expires.Add(i.ClockSkew)):
		return badToken("the token is expired", nil)
	}
	for _, name := range []string{"nbf", "iat"} {
		from, given, ok := c.instant(name)
		if given && (!ok || now.Before(from.Add(-i.ClockSkew))) {
			return badToken("the token is not valid yet", nil)
		}
	}
	return nil
}

// badToken is a refusal; the cause is for the log.
func badToken(message string, cause error) *sallyport.Error {
	e := refused("invalid_token", message)
	e.Err = cause
	return e
}

// latest is the last instant that a date claim may name: the year 5138, far from any overflow.
const latest = 1e11

// instant reads a NumericDate: seconds, perhaps with a fraction.
func (c claims) instant(name string) (at time.Time, given, ok bool) {
	raw, given := c[name]
	if !given {
		return time.Time{}, false, false
	}
	var seconds float64
	if decode(raw, &seconds) != nil || math.IsNaN(seconds) || seconds < 0 || seconds > latest {
		return time.Time{}, true, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true, true
}
