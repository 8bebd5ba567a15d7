package gate

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// confirmGate: a person said yes to exactly this request, where the installation, the tenant or the script wants that.
type confirmGate struct {
	unattended bool
}

func (confirmGate) Name() string { return "confirm" }

func (g confirmGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	if g.unattended && !c.Policy.Confirm && (c.Script.Script == nil || !c.Script.Script.Confirm) || c.Confirmation != nil {
		return nil
	}
	return &sallyport.Refusal{Code: sallyport.CodeConfirmationRequired, Gate: g.Name()}
}
