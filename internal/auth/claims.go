package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// claims are the members of a token's payload, each as it stands.
type claims map[string]json.RawMessage

const (
	maxClaims  = 200
	maxSubject = 255 // bytes, as OpenID Connect bounds it
	maxWords   = 200 // of one claim
)

// parseClaims reads a payload strictly: a name that comes twice, at any depth, means two things to two readers.
func parseClaims(payload []byte) (claims, error) {
	var c claims
	if err := strictjson.Decode(payload, &c); err != nil {
		return nil, err
	}
	if c == nil || len(c) > maxClaims {
		return nil, errors.New("the payload is no object, or one of too many members")
	}
	return c, nil
}

// decode reads one value that parseClaims has checked already.
func decode(raw json.RawMessage, v any) error {
	if string(raw) == "null" {
		return errors.New("null")
	}
	return json.Unmarshal(raw, v)
}

// text returns a claim that is a string.
func (c claims) text(name string) (string, bool) {
	var s string
	return s, c[name] != nil && decode(c[name], &s) == nil && s != ""
}

// at finds a claim by its name, or by a path of names with dots between them.
func (c claims) at(path string) json.RawMessage {
	if raw, ok := c[path]; ok {
		return raw
	}
	first, rest, nested := strings.Cut(path, ".")
	raw, ok := c[first]
	if !nested || !ok {
		return nil
	}
	var inner claims
	if decode(raw, &inner) != nil {
		return nil
	}
	return inner.at(rest)
}

// words returns a claim that is a string or a list of strings. split takes a string apart at blanks.
func (c claims) words(path string, split bool) ([]string, bool) {
	raw := c.at(path)
	if raw == nil {
		return nil, false
	}
	var one string
	if decode(raw, &one) == nil {
		if split {
			return strings.Fields(one), true
		}
		return []string{one}, true
	}
	var many []string
	if decode(raw, &many) != nil || len(many) > maxWords {
		return nil, false
	}
	return many, true
}

// principal maps the claims of a verified token.
func (i *trusted) principal(c claims) (sallyport.Principal, error) {
	subject, ok := c.text("sub")
	if !ok || len(subject) > maxSubject {
		return sallyport.Principal{}, badToken("the token names no subject", nil)
	}
	tenant, ok := i.tenantOf(c)
	if !ok {
		return sallyport.Principal{}, badToken("the token belongs to no tenant of this server", nil)
	}
	teams, err := i.teamsOf(c)
	if err != nil {
		return sallyport.Principal{}, err
	}
	return sallyport.Principal{
		ID: sallyport.PrincipalID("oidc:" + i.Name + ":" + escape(subject)), TenantID: tenant, Teams: teams, Scopes: i.scopesOf(c),
	}, nil
}

func (i *trusted) tenantOf(c claims) (sallyport.TenantID, bool) {
	if i.TenantClaim == "" {
		return i.Tenant, i.Tenant != ""
	}
	var value string
	if raw := c.at(i.TenantClaim); raw == nil || decode(raw, &value) != nil {
		return "", false
	}
	tenant, ok := i.Tenants[value]
	return tenant, ok && tenant != ""
}

// teamsOf returns the default team and those of the claim. A team that cannot be one is refused: a caller must not believe to
// be where it is not.
func (i *trusted) teamsOf(c claims) ([]sallyport.TeamID, error) {
	teams := []sallyport.TeamID{sallyport.DefaultTeam}
	if i.TeamsClaim == "" || c.at(i.TeamsClaim) == nil {
		return teams, nil
	}
	names, ok := c.words(i.TeamsClaim, false)
	if !ok {
		return nil, badToken("the teams of the token are no list of texts", nil)
	}
	for _, name := range names {
		if !plainName(name) {
			return nil, badToken("the token names a team that cannot be one: at most 128 letters, digits and -._", nil)
		}
		teams = append(teams, sallyport.TeamID(name))
	}
	slices.Sort(teams)
	return slices.Compact(teams), nil
}

// scopesOf returns the scopes in their fixed order. Unknown ones mean something to somebody else.
func (i *trusted) scopesOf(c claims) []sallyport.Scope {
	has := map[sallyport.Scope]bool{}
	for _, name := range []string{"scope", "scp"} {
		words, _ := c.words(name, true)
		for _, word := range words {
			has[sallyport.Scope(word)] = slices.Contains(i.Scopes, sallyport.Scope(word))
		}
	}
	if i.RolesClaim != "" {
		roles, _ := c.words(i.RolesClaim, true)
		for _, role := range roles {
			for _, scope := range i.Roles[role] {
				has[scope] = true
			}
		}
	}
	return slices.DeleteFunc(sallyport.Scopes(), func(scope sallyport.Scope) bool { return !has[scope] })
}

// escape writes a subject in plain ASCII so that two subjects never look or compare alike.
func escape(subject string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~@|"
	var b strings.Builder
	for i := range len(subject) {
		if c := subject[i]; strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
