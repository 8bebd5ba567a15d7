package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/run"
)

type explainCommand struct {
	scriptCall
}

// Help says what the exit code means.
func (*explainCommand) Help() string {
	return "It walks the same gates as run and runs nothing. The exit code is 0 whether or not the script would run: the answer is " +
		"in data.runnable."
}

func (*explainCommand) kind() string { return "explanation" }

func (c *explainCommand) run(ctx context.Context, a *app) error {
	req, err := c.request(a)
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(api *client.Client) error {
		if req.RevisionID, err = revisionNamed(ctx, api, req.Ref, c.Revision); err != nil {
			return err
		}
		envelope, err := api.Explain(ctx, req)
		if err != nil {
			return err
		}
		return show(a, envelope, printExplanation)
	})
}

func printExplanation(p *page, e run.Explanation) {
	for _, step := range e.Steps {
		switch step.Result {
		case "passed":
			p.line("%s %s", p.green("✓"), clean(step.Name))
		case "refused":
			p.line("%s %s  %s", p.red("✗"), p.bold(clean(step.Name)), clean(step.Message))
		default:
			p.line("%s", p.dim("· "+clean(step.Name)))
		}
	}
	for _, warning := range e.Warnings {
		p.line("%s %s", p.yellow("!"), clean(warning))
	}
	if e.Runnable {
		p.line("%s", p.green("it would run"))
		return
	}
	if e.Refusal != nil {
		p.line("%s %s %s", p.red("it would be refused:"), clean(e.Refusal.Message), p.dim("code "+string(e.Refusal.Code)))
	}
	if e.Remedy != "" {
		p.line("%s %s", p.bold("→"), clean(e.Remedy))
	}
}
