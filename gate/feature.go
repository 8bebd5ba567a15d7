package gate

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// featureGate: scripts are switched on for the installation and the tenant.
type featureGate struct {
	enabled func(sallyport.TenantID) bool
}

func (featureGate) Name() string { return "feature" }

func (g featureGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	if g.enabled != nil && g.enabled(c.Principal.TenantID) {
		if !c.Policy.ScriptsDisabled {
			return nil
		}
		return &sallyport.Refusal{
			Code: sallyport.CodeFeatureDisabled, Gate: g.Name(), Details: map[string]any{"policy": "scripts_disabled"},
			Message: "the tenant's policy switches scripts off; an administrator changes scripts_disabled with: sallyport policy set",
		}
	}
	return &sallyport.Refusal{
		Code: sallyport.CodeFeatureDisabled, Gate: g.Name(),
		Message: "running scripts is switched off; an operator switches it on with scripts_enabled in server.yaml",
	}
}
