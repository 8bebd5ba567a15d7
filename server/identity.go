package server

import (
	"context"
	"slices"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/internal/auth"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/run"
)

// Issuer is an authorization server whose access tokens are accepted beside API keys, and what its claims mean.
type Issuer = auth.Issuer

// identity checks the tokens of the configured issuers; nil when there is none.
func (c Config) identity(ensure func(ctx context.Context, tenant sallyport.TenantID, by string) error) (*auth.Tokens, error) {
	if len(c.OIDC) == 0 {
		return nil, nil //nolint:nilnil // no issuer is not an error
	}
	return auth.NewTokens(auth.TokensConfig{Issuers: c.OIDC, Audiences: c.audiences(), EnsureTenant: ensure, Now: c.Now})
}

// installation is what every tenant's policy can only narrow.
func (c Config) installation() access.Installation {
	i := access.Installation{
		ScriptsEnabled: c.ScriptsEnabled, GrantsByPublisher: c.GrantsByPublisher, RequiredLayers: c.RequiredLayers, Limits: run.FullLimits(c.Limits),
		Confirm: c.Confirm, MaskOutputs: !c.ShowSecrets,
		TenantQuota: sallyport.Quota(c.Quotas.Tenant), PrincipalQuota: sallyport.Quota(c.Quotas.Principal),
	}
	for _, row := range c.Interpreters {
		i.Interpreters = append(i.Interpreters, row.Extension)
	}
	return i
}

// audiences are the names of this server in tokens of issuers that configure none: the public URL, as clients write it with and
// without a slash, and that of MCP.
func (c Config) audiences() []string {
	if c.PublicURL == "" {
		return nil
	}
	return []string{c.PublicURL + "/mcp", c.PublicURL, c.PublicURL + "/"}
}

// resource is what callers who log in are told.
func (c Config) resource() httpapi.Resource {
	if len(c.OIDC) == 0 {
		return httpapi.Resource{}
	}
	r := httpapi.Resource{PublicURL: c.PublicURL}
	useful := []sallyport.Scope{}
	for _, issuer := range c.OIDC {
		r.Issuers = append(r.Issuers, issuer.URL)
		useful = append(useful, issuer.TokenScopes()...)
	}
	r.Scopes = slices.DeleteFunc(sallyport.Scopes(), func(scope sallyport.Scope) bool { return !slices.Contains(useful, scope) })
	return r
}

// validateIdentity returns what is wrong with the issuers and the public URL.
func (c Config) validateIdentity() []string {
	var problems []string
	if c.PublicURL != "" {
		if err := auth.CheckPublicURL(c.PublicURL); err != nil {
			problems = append(problems, "public_url: "+err.Error())
		}
	} else if len(c.OIDC) > 0 {
		problems = append(problems, "public_url: callers with tokens must be told under which name to ask for them; set it")
	}
	return append(problems, auth.CheckIssuers(c.OIDC, c.PublicURL != "")...)
}
