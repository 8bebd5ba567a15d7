package httpapi

import (
	"github.com/sallyport-dev/sallyport"
)

type confirmationsData struct {
	Confirmations []sallyport.Confirmation `json:"confirmations"`
}

func listConfirmations(c *call, p sallyport.Principal) (answer, error) {
	found, err := c.api.cfg.Runs.Confirmations(c.ctx(), p)
	return ok(confirmationsData{list(found)}), err
}

func approveConfirmation(c *call, p sallyport.Principal) (answer, error) { return c.decide(p, true) }

func denyConfirmation(c *call, p sallyport.Principal) (answer, error) { return c.decide(p, false) }

func (c *call) decide(p sallyport.Principal, yes bool) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	decided, err := c.api.cfg.Runs.Decide(c.ctx(), p, sallyport.ConfirmationID(c.r.PathValue("id")), yes)
	return ok(decided), err
}
