// Package auth turns an HTTP request into the principal that sent it.
//
// It owns the reading of credentials and the rules under which a caller without any is trusted. It leaves keys and
// their storage to whoever authenticates them, and every scope check to the services. Its one invariant: a request
// whose credentials are absent, doubled, malformed or wrong is nobody, unless the configuration names who a local caller is
// and the request proves that it is local.
package auth

import (
	"context"
	"net/http"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

// Keys authenticates a secret; package access provides it for keys. Anything but an active key is UNAUTHENTICATED.
type Keys interface {
	Authenticate(ctx context.Context, secret string) (sallyport.Principal, error)
}

// Config says who may be whom. The zero value refuses everybody.
type Config struct {
	// Keys authenticates bearer secrets that are API keys; nil refuses every one.
	Keys Keys
	// Tokens authenticates every other bearer secret, access tokens of authorization servers ([Tokens] does); nil refuses
	// every one.
	Tokens Keys
	// Loopback is who a caller without credentials on this machine is; nil demands credentials from everybody.
	Loopback *sallyport.Principal
	// Fixed is who a caller without credentials is on a handler that is reached in process or through a socket file only;
	// a request that came over TCP is never Fixed. Nil everywhere else.
	Fixed *sallyport.Principal
}

// Authenticator is safe for concurrent use.
type Authenticator struct {
	cfg   Config
	guard *http.CrossOriginProtection
}

// New returns an Authenticator.
func New(cfg Config) *Authenticator {
	return &Authenticator{cfg: cfg, guard: http.NewCrossOriginProtection()}
}

// Principal returns who sent r, or UNAUTHENTICATED, or ACCESS_DENIED for a browser that was led here from elsewhere.
// Credentials, when present, decide alone: a bad key is refused even where no key would have been needed.
func (a *Authenticator) Principal(r *http.Request) (sallyport.Principal, error) {
	if err := a.guard.Check(r); err != nil {
		return sallyport.Principal{}, &sallyport.Error{
			Op: "auth", Code: sallyport.CodeAccessDenied, Message: "a web page of another origin may not call this server", Err: err,
		}
	}
	values := headerValues(r.Header, "Authorization")
	if len(values) > 0 {
		return a.bearer(r.Context(), values)
	}
	if a.cfg.Fixed != nil {
		return a.fixed(r)
	}
	return a.loopback(r)
}

func (a *Authenticator) bearer(ctx context.Context, values []string) (sallyport.Principal, error) {
	secret, err := parseBearer(values)
	if err != nil {
		return sallyport.Principal{}, err
	}
	keys := a.cfg.Keys
	if !strings.HasPrefix(secret, keyPrefix) && a.cfg.Tokens != nil {
		keys = a.cfg.Tokens
	}
	if keys == nil {
		return sallyport.Principal{}, refused("invalid_token", "the key is not valid")
	}
	p, err := keys.Authenticate(ctx, secret)
	if err != nil {
		if sallyport.CodeOf(err) == sallyport.CodeUnauthenticated {
			public := refused("invalid_token", sallyport.Public(err).Message)
			public.Err = err
			return sallyport.Principal{}, public
		}
		return sallyport.Principal{}, err
	}
	if p.ID == "" || p.TenantID == "" {
		return sallyport.Principal{}, refused("invalid_token", "the key is not valid")
	}
	return p, nil
}

// keyPrefix is how an API key begins. No JWT does: its first character is that of an encoded brace.
const keyPrefix = "spk_"

// secretMaxLength bounds a secret, in bytes, before anything looks at it; a key's own form is shorter still.
const secretMaxLength = tokenMaxLength

// parseBearer accepts exactly one header of exactly the form "Bearer" SP token68 (RFC 6750), the scheme in any case.
// Stricter than RFC 9110 about blanks on purpose: what two parsers could read differently is refused.
func parseBearer(values []string) (string, error) {
	if len(values) != 1 {
		return "", refused("invalid_request", "send exactly one Authorization header")
	}
	scheme, secret, found := strings.Cut(values[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", refused("invalid_request", "send the key as Authorization: Bearer KEY")
	}
	if len(secret) > secretMaxLength || !token68(secret) {
		return "", refused("invalid_token", "the key is malformed")
	}
	return secret, nil
}

// token68 is the form of a bearer secret: letters, digits and -._~+/ with = at the end only.
func token68(s string) bool {
	s = strings.TrimRight(s, "=")
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~+/", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// headerValues returns all values of a header whatever the case of its key: a handler that is reached in process may be
// handed a map that no parser canonicalised.
func headerValues(header http.Header, name string) []string {
	var values []string
	for key, list := range header {
		if strings.EqualFold(key, name) {
			values = append(values, list...)
		}
	}
	return values
}

func refused(challenge, message string) *sallyport.Error {
	e := &sallyport.Error{Op: "auth", Code: sallyport.CodeUnauthenticated, Message: message}
	if challenge != "" {
		e.Details = map[string]any{reply.DetailChallenge: challenge}
	}
	return e
}
