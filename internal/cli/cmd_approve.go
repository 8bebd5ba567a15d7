package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

type approveCommand struct {
	ID   string `arg:"" help:"The id that the refusal named; without it, list what waits for an answer." name:"id" optional:""`
	Deny bool   `help:"Say no instead."`
}

// Help says what a yes is worth.
func (*approveCommand) Help() string {
	return "Where the installation, the tenant or the script wants a person's yes, a run is refused with CONFIRMATION_REQUIRED and an id. " +
		"Somebody else with the scope grants:write approves it within 10 minutes; the very same request then runs once."
}

func (c *approveCommand) kind() string {
	if c.ID == "" {
		return "confirmations"
	}
	return "confirmation"
}

func (c *approveCommand) run(ctx context.Context, a *app) error {
	if c.ID == "" && c.Deny {
		return badUsage("--deny wants the id of a question")
	}
	return a.withClient(ctx, func(api *client.Client) error {
		if c.ID == "" {
			envelope, err := api.Confirmations(ctx)
			if err != nil {
				return err
			}
			return show(a, envelope, printConfirmations)
		}
		decide := api.Approve
		if c.Deny {
			decide = api.Deny
		}
		envelope, err := decide(ctx, sallyport.ConfirmationID(c.ID))
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, q sallyport.Confirmation) {
			word := p.green("approved")
			if q.State == sallyport.ConfirmationDenied {
				word = p.yellow("denied")
			}
			p.line("%s %s  %s  %s", word, p.bold(clean(q.Slug+" "+q.ScriptPath)), clean(string(q.PrincipalID)), p.dim(string(q.ID)))
		})
	})
}

func printConfirmations(p *page, list client.ConfirmationList) {
	rows := make([][]string, 0, len(list.Confirmations))
	for _, q := range list.Confirmations {
		rows = append(rows, []string{
			when(q.CreatedAt), string(q.ID), string(q.PrincipalID), q.Slug + " " + q.ScriptPath, short(q.RevisionDigest), cut(clean(string(q.Request)), 120),
		})
	}
	p.table([]string{"ASKED", "CONFIRMATION", "BY", "SCRIPT", "DIGEST", "REQUEST"}, rows)
}
