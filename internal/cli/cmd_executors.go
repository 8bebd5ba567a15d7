package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/all"
	"github.com/sallyport-dev/sallyport/executor/remote"
)

type executorsCommand struct{}

// Help says what is looked at.
func (*executorsCommand) Help() string {
	return "Each kind that these settings allow is made and asked what it can enforce now; runners are asked over the network. The one " +
		"that would serve is marked."
}

func (*executorsCommand) kind() string { return "executors" }

type executorList struct {
	Executors []executorKind `json:"executors"`
}

// executorKind is one kind under these settings. Configured says that it could be made; Problem why it could not.
type executorKind struct {
	Kind       string              `json:"kind"`
	Selected   bool                `json:"selected"`
	Configured bool                `json:"configured"`
	Problem    string              `json:"problem,omitempty"`
	Available  bool                `json:"available"`
	Reason     string              `json:"reason,omitempty"`
	Remedy     string              `json:"remedy,omitempty"`
	Layers     []sallyport.Layer   `json:"layers"`
	Missing    []sallyport.Layer   `json:"missing,omitempty"`
	Features   []sallyport.Feature `json:"features"`
	Runners    []remote.Health     `json:"runners,omitempty"`
}

func (c *executorsCommand) run(ctx context.Context, a *app) error {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	cfg, err := executorConfig(settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	var list executorList
	for i, kind := range all.Kinds() {
		row := executorKind{
			Kind: kind.Name, Selected: settings.Executor == kind.Name || settings.Executor == "" && i == 0,
			Layers: []sallyport.Layer{}, Features: []sallyport.Feature{},
		}
		if err := c.ask(ctx, kind, cfg, &row); err != nil {
			return err
		}
		list.Executors = append(list.Executors, row)
	}
	return showOwn(a, sallyport.Success("executors", "", list), printExecutors)
}

// ask makes one executor and writes what it says into row.
func (*executorsCommand) ask(ctx context.Context, kind all.Kind, cfg all.Config, row *executorKind) error {
	executor, err := kind.New(cfg)
	if err != nil {
		row.Problem = sallyport.Public(err).Message
		return nil
	}
	found := executor.Capabilities(ctx)
	row.Configured, row.Available, row.Reason, row.Remedy = true, found.Available, found.Reason, found.Remedy
	row.Layers, row.Missing, row.Features = found.Layers, found.Missing, found.Features
	if runners, ok := executor.(*remote.Executor); ok {
		row.Runners = runners.Health(ctx)
	}
	return errors.Join(ctx.Err(), closeExecutor(executor))
}

func printExecutors(p *page, list executorList) {
	for _, e := range list.Executors {
		name := p.bold(e.Kind)
		if e.Selected {
			name += " " + p.dim("(serves)")
		}
		switch {
		case !e.Configured:
			p.line("%s  %s", name, p.dim("not configured: "+clean(e.Problem)))
		case !e.Available:
			p.line("%s  %s: %s", name, p.red("unavailable"), clean(e.Reason))
		default:
			p.line("%s  %s", name, p.green("available"))
		}
		p.pairs([][2]string{
			{"enforces", layers(e.Layers)},
			{"lacks", layers(e.Missing)},
			{"features", joinWords(e.Features)},
		}...)
		for _, r := range e.Runners {
			state := p.green("ready")
			if !r.Usable {
				state = p.red(clean(r.Cause))
			}
			p.line("  %s  %s", clean(r.Runner), state)
		}
	}
}
