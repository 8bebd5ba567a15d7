package server

import (
	"net/http"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/internal/auth"
)

// TenantHeader names the tenant that the operator of the data folder acts in. Only [Server.LocalHandler] accepts it.
const TenantHeader = "Sallyport-Tenant"

// admission lets in whom a credential has proved, as far as the tenant does. It is safe for concurrent use.
type admission struct {
	who    *auth.Authenticator
	access *access.Service
	// local is set on the handler of the data folder's own operator.
	local bool
}

// Principal implements httpapi.Authenticator.
func (a admission) Principal(r *http.Request) (sallyport.Principal, error) {
	named := headerValues(r.Header, TenantHeader)
	if len(named) > 0 && !a.local {
		return sallyport.Principal{}, sallyport.Errorf("server.admission", sallyport.CodeAccessDenied,
			"the header %s is for the operator of the data folder only; a key or token belongs to one tenant", TenantHeader)
	}
	p, err := a.who.Principal(r)
	if err != nil {
		return sallyport.Principal{}, err
	}
	switch {
	case p.Operator && a.local:
		return a.operate(r, p, named)
	case len(named) > 0:
		return sallyport.Principal{}, sallyport.Errorf("server.admission", sallyport.CodeAccessDenied,
			"the header %s is for the operator, and this request shows a key or token of one tenant", TenantHeader)
	case p.KeyID != "":
		return p, nil // its look-up let it in
	}
	return a.access.Admit(r.Context(), p)
}

func (a admission) operate(r *http.Request, p sallyport.Principal, named []string) (sallyport.Principal, error) {
	tenant := p.TenantID
	switch {
	case len(named) > 1:
		return sallyport.Principal{}, sallyport.Errorf("server.admission", sallyport.CodeInvalidArgument, "the header %s is sent more than once", TenantHeader)
	case len(named) == 1:
		tenant = sallyport.TenantID(named[0])
	}
	return a.access.Operate(r.Context(), p, tenant)
}

// headerValues returns all values of a header whatever the case of its key: a request in process may have a map that no parser
// canonicalised.
func headerValues(header http.Header, name string) []string {
	var values []string
	for key, list := range header {
		if strings.EqualFold(key, name) {
			values = append(values, list...)
		}
	}
	return values
}
