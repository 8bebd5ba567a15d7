package httpapi

import (
	"encoding/json"

	"github.com/sallyport-dev/sallyport"
)

// Resource is what callers who log in must know (RFC 9728).
type Resource struct {
	// PublicURL is the name by which clients reach the server: scheme://host[:port]. Empty means that nobody can log in.
	PublicURL string
	// Issuers are the authorization servers that give tokens for it.
	Issuers []string
	// Scopes are what a token can carry.
	Scopes []sallyport.Scope
}

const wellKnownResource = "/.well-known/oauth-protected-resource"

// MetadataURL is where the metadata of the resource at path is; empty when there is none.
func (r Resource) MetadataURL(path string) string {
	if r.PublicURL == "" {
		return ""
	}
	return r.PublicURL + wellKnownResource + path
}

type resourceMetadata struct {
	Resource             string            `json:"resource"`
	ResourceName         string            `json:"resource_name"`
	AuthorizationServers []string          `json:"authorization_servers"`
	ScopesSupported      []sallyport.Scope `json:"scopes_supported"`
	BearerMethods        []string          `json:"bearer_methods_supported"`
}

func rootMetadata(c *call, _ sallyport.Principal) (answer, error) { return c.metadata("") }

func mcpMetadata(c *call, _ sallyport.Principal) (answer, error) { return c.metadata("/mcp") }

func (c *call) metadata(path string) (answer, error) {
	r := c.api.cfg.Resource
	if r.PublicURL == "" {
		return answer{}, sallyport.Errorf("httpapi.metadata", sallyport.CodeRouteNotFound,
			"no authorization server gives tokens for this server; send an API key")
	}
	document, err := json.Marshal(resourceMetadata{
		Resource: r.PublicURL + path, ResourceName: "Sallyport", AuthorizationServers: r.Issuers, ScopesSupported: r.Scopes,
		BearerMethods: []string{"header"},
	})
	if err != nil {
		return answer{}, &sallyport.Error{Op: "httpapi.metadata", Code: sallyport.CodeInternal, Err: err}
	}
	return answer{document: document}, nil
}
