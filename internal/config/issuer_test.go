package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/server"
)

func TestIssuers(t *testing.T) {
	t.Parallel()
	s, err := load(t, `
public_url: https://sallyport.example.org
oidc:
  - issuer: https://login.example.org
    name: corp
    audience: [https://sallyport.example.org/mcp, api://sallyport]
    tenant_claim: org_id
    tenants: {o-1: acme, 2: globex}
    teams_claim: groups
    scopes: [memory:read, memory:write, grants:write]
    roles_claim: realm_access.roles
    roles: {auditor: audit:read, owner: [admin, audit:read]}
    token_types: JWT
    algorithms: [ES256]
    clock_skew: 10s
  - {issuer: http://127.0.0.1:9000, tenant: default, keys_url: http://127.0.0.1:9000/keys}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []server.Issuer{
		{
			URL: "https://login.example.org", Name: "corp", Audiences: []string{"https://sallyport.example.org/mcp", "api://sallyport"},
			TenantClaim: "org_id", Tenants: map[string]sallyport.TenantID{"o-1": "acme", "2": "globex"}, TeamsClaim: "groups",
			Scopes:     []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite, sallyport.ScopeGrantsWrite},
			RolesClaim: "realm_access.roles",
			Roles: map[string][]sallyport.Scope{
				"auditor": {sallyport.ScopeAuditRead}, "owner": {sallyport.ScopeAdmin, sallyport.ScopeAuditRead},
			},
			TokenTypes: []string{"JWT"}, Algorithms: []string{"ES256"}, ClockSkew: 10 * time.Second,
		},
		{URL: "http://127.0.0.1:9000", Tenant: "default", KeysURL: "http://127.0.0.1:9000/keys"},
	}
	cfg := s.Server(config.Parts{})
	if diff := cmp.Diff(want, cfg.OIDC); diff != "" || cfg.PublicURL != "https://sallyport.example.org" {
		t.Errorf("%q, issuers (-want +got):\n%s", cfg.PublicURL, diff)
	}
}

func TestIssuersInAVariable(t *testing.T) {
	t.Parallel()
	s, err := load(t, "", []string{`SALLYPORT_OIDC=[{"issuer": "https://login.example.org", "tenant": "acme"}]`})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]server.Issuer{{URL: "https://login.example.org", Tenant: "acme"}}, s.OIDC); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIssuerFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ yaml, want string }{
		"a word":           {"oidc: yes\n", "want a list of issuers"},
		"a map":            {"oidc: {issuer: https://x}\n", "want a list of issuers"},
		"a list of words":  {"oidc: [https://x]\n", "want an issuer on line 1"},
		"no URL":           {"oidc: [{tenant: a}]\n", "an issuer needs its URL"},
		"unknown":          {"oidc:\n- issuer: https://x\n  audiance: y\n", `line 3: "audiance": an issuer has no such setting`},
		"twice":            {"oidc:\n- issuer: https://x\n  issuer: https://y\n", "issuer"},
		"null":             {"oidc: [{issuer: }]\n", "want a text"},
		"a list as tenant": {"oidc: [{issuer: https://x, tenant: [a]}]\n", "want a text"},
		"an alias":         {"oidc: [{issuer: https://x, tenants: &a {b: c}, roles: *a}]\n", "anchors, aliases and merges"},
		"an anchor, deep":  {"oidc: [{issuer: https://x, roles: {a: [&b c]}}]\n", "anchors, aliases and merges"},
		"a nested tenant":  {"oidc: [{issuer: https://x, tenants: {a: [b]}}]\n", "want name: value"},
		"a role twice":     {"oidc: [{issuer: https://x, roles: {a: b, a: c}}]\n", "a"},
		"an empty scope":   {"oidc: [{issuer: https://x, scopes: ['']}]\n", "want a text or a list of texts"},
		"a long skew":      {"oidc: [{issuer: https://x, clock_skew: long}]\n", "want a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, test.yaml, nil)
			if public := sallyport.Public(err); public == nil || public.Code != sallyport.CodeInvalidArgument || !strings.Contains(public.Message, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
