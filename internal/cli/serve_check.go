package cli

import (
	"context"
	"log/slog"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/config"
)

// checklist is what serve --check prints.
type checklist struct {
	Profile config.Profile     `json:"profile"`
	Starts  bool               `json:"starts"`
	Checks  []config.RiskCheck `json:"checks"`
}

// check holds the settings and this machine against the table of risks. It opens no data folder, so it works beside a server.
func (c *serveCommand) check(ctx context.Context, a *app, settings config.Settings) error {
	executor, err := newExecutor(settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	found := executor.Capabilities(ctx)
	if err := closeExecutor(executor); err != nil {
		return err
	}
	seen := config.Seen{SandboxKnown: true, SandboxProven: found.Available && len(found.Missing) == 0}
	list := checklist{Profile: settings.Profile, Starts: true, Checks: settings.Checklist(seen)}
	refusal := settings.CheckRisks(seen)
	envelope := sallyport.Success(c.kind(), "", list)
	if refusal != nil {
		list.Starts = false
		envelope.Data = &list
		envelope.Error = sallyport.Public(refusal)
	}
	if err := showOwn(a, envelope, printChecklist); err != nil {
		return err
	}
	if refusal != nil {
		return reportedError{exitCode(refusal)}
	}
	return nil
}

func printChecklist(p *page, list checklist) {
	p.line("profile %s", p.bold(string(list.Profile)))
	for _, check := range list.Checks {
		switch check.Result {
		case config.RiskRefused:
			p.line("%s %s  %s: %s", p.red("✗"), p.bold(string(check.Risk)), clean(check.Found), clean(check.What))
			p.line("  %s %s, or --accept %s", p.bold("→"), clean(check.Remedy), check.Risk)
		case config.RiskAccepted:
			p.line("%s %s  accepted: %s", p.yellow("!"), string(check.Risk), clean(check.Found))
		default:
			p.line("%s %s", p.green("✓"), string(check.Risk))
		}
	}
	if list.Starts {
		p.line("%s", p.green("it would start"))
	} else {
		p.line("%s", p.red("it would not start"))
	}
}
