package cli

import (
	"bufio"
	"context"
	"encoding/json"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/client"
)

type auditExportCommand struct{}

// Help says what is written.
func (*auditExportCommand) Help() string {
	return "Each line is one entry, exactly as it is stored, with its hash and the hash of the one before it. Where old entries were removed, the signed statement about it comes first. Each line is a JSON " +
		"document of its own, so --json is not for this command."
}

func (*auditExportCommand) kind() string { return "audit" }

func (c *auditExportCommand) run(ctx context.Context, a *app) error {
	if a.args.JSON {
		return badUsage("--json is not for export: every line is a JSON document already")
	}
	return a.withClient(ctx, func(api *client.Client) error {
		out := bufio.NewWriter(a.stdout)
		after := int64(0)
		for {
			envelope, err := api.Entries(ctx, audit.Filter{After: after, Limit: 1000})
			if err != nil {
				return err
			}
			if proof := envelope.Data.Pruned; proof != nil && after == 0 {
				line, err := json.Marshal(proof)
				if err != nil {
					return &sallyport.Error{Op: "cli.export", Code: sallyport.CodeInternal, Err: err}
				}
				_, _ = out.Write(append(line, '\n'))
			}
			for _, entry := range envelope.Data.Entries {
				line, err := json.Marshal(entry)
				if err != nil {
					return &sallyport.Error{Op: "cli.export", Code: sallyport.CodeInternal, Err: err}
				}
				_, _ = out.Write(append(line, '\n')) // a failed write stays in out until Flush
			}
			if after = envelope.Data.NextAfter; after == 0 {
				break
			}
		}
		if err := out.Flush(); err != nil {
			return invalid("standard output cannot be written: %v", err)
		}
		return nil
	})
}
