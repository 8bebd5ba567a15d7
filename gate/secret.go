package gate

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// Secrets says which of a tenant's secrets are not set; package secret provides it.
type Secrets interface {
	Missing(ctx context.Context, tenant sallyport.TenantID, names []string) ([]string, error)
}

// secretGate: every secret that the script declares is set.
type secretGate struct{ secrets Secrets }

func (secretGate) Name() string { return "secrets" }

func (g secretGate) Check(ctx context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	if c.Script.Script == nil || len(c.Script.Script.Secrets) == 0 {
		return nil
	}
	missing := c.Script.Script.Secrets
	if g.secrets != nil {
		var err error
		if missing, err = g.secrets.Missing(ctx, c.Principal.TenantID, c.Script.Script.Secrets); err != nil {
			return &sallyport.Refusal{Code: sallyport.CodeOf(err), Gate: g.Name()}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	e := sallyport.SecretMissing("gate.secrets", missing)
	return &sallyport.Refusal{Code: e.Code, Gate: g.Name(), Message: e.Message, Details: e.Details}
}
