package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/records"
)

type executionPurgeCommand struct {
	OlderThan string `help:"Remove executions that are older than this, such as 30d or 12h." placeholder:"AGE" required:""`
	DryRun    bool   `help:"Remove nothing and say what would go."`
	Yes       bool   `help:"Remove without asking." short:"y"`
}

// Help says what stays.
func (*executionPurgeCommand) Help() string {
	return "Executions go with their output and artifacts. Those that are queued or running stay, and those that an idempotency key of the " +
		"last 24 hours stands for. The audit trail keeps its entries, and holds one about the removal. Needs the scope admin. A server does " +
		"the same by itself: see retention.executions_days."
}

func (*executionPurgeCommand) kind() string { return "execution_purge" }

func (c *executionPurgeCommand) run(ctx context.Context, a *app) error {
	age, err := agePeriod("--older-than", c.OlderThan)
	if err != nil {
		return err
	}
	ask := !c.Yes && !c.DryRun
	if ask {
		if err := a.canAsk(); err != nil {
			return err
		}
	}
	req := records.PurgeRequest{Before: time.Now().Add(-age).UTC(), DryRun: c.DryRun || ask}
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.PurgeExecutions(ctx, req)
		if err != nil {
			return err
		}
		if ask {
			printPurged(a.notes, *envelope.Data)
			if err := a.confirm(ctx, "Remove them?"); err != nil {
				return err
			}
			req.DryRun = false
			if envelope, err = api.PurgeExecutions(ctx, req); err != nil {
				return err
			}
		}
		return show(a, envelope, printPurged)
	})
}

func printPurged(p *page, r records.PurgeResult) {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	p.line("%s %s from before %s, with %s (%s)", p.yellow(verb), plural(int(r.Removed.Executions), "execution", "executions"), when(r.Before),
		plural(int(r.Removed.Artifacts), "artifact", "artifacts"), bytesText(r.Removed.ArtifactBytes))
}

// agePeriod reads a duration, or a number of days such as 30d.
func agePeriod(flag, text string) (time.Duration, error) {
	if count, found := strings.CutSuffix(text, "d"); found {
		if n, err := strconv.Atoi(count); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, invalid("%s wants an age such as 30d or 12h, got %q", flag, text)
	}
	return d, nil
}
