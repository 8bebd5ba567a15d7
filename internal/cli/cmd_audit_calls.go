package cli

import (
	"context"
	"strconv"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/client"
)

type auditCallsCommand struct {
	Tool      string `help:"Only calls of this tool." placeholder:"TOOL"`
	Principal string `help:"Only calls of this principal." placeholder:"ID"`
	Code      string `help:"Only calls that ended in this code, such as GRANT_MISSING." placeholder:"CODE"`
	Execution string `help:"Only the call of this execution." placeholder:"ID"`
	Since     string `help:"Only calls from this instant on, or younger than this, such as 24h." placeholder:"TIME"`
	Until     string `help:"Only calls before this instant." placeholder:"TIME"`
	Below     int64  `help:"Go on below this sequence number." placeholder:"N"`
	Limit     int    `help:"At most this many, up to 1000." default:"100"`
}

// Help says what is in a record.
func (*auditCallsCommand) Help() string {
	return "Each record holds the tool, the principal, the arguments without secrets and file contents, the code, the duration, the execution " +
		"and the trace. Records are no part of the audit trail: they are written after the answer and go after retention.tool_calls_days."
}

func (*auditCallsCommand) kind() string { return "tool_calls" }

func (c *auditCallsCommand) run(ctx context.Context, a *app) error {
	filter := audit.CallFilter{
		Tool: c.Tool, PrincipalID: sallyport.PrincipalID(c.Principal), Code: sallyport.Code(c.Code),
		ExecutionID: sallyport.ExecutionID(c.Execution), Below: c.Below, Limit: c.Limit,
	}
	var err error
	if filter.Since, err = instant("--since", c.Since); err != nil {
		return err
	}
	if filter.Until, err = instant("--until", c.Until); err != nil {
		return err
	}
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.ToolCalls(ctx, filter)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.ToolCallList) {
			rows := make([][]string, 0, len(list.ToolCalls))
			for _, call := range list.ToolCalls {
				rows = append(rows, []string{
					strconv.FormatInt(call.Sequence, 10), when(call.At), call.Tool, string(call.PrincipalID), string(call.Code), millis(call.DurationMS),
					cut(string(call.Arguments), 72),
				})
			}
			p.table([]string{"NO", "AT", "TOOL", "BY", "CODE", "TOOK", "ARGUMENTS"}, rows)
			if list.NextBelow != 0 {
				p.line("%s", p.dim("more: --below "+strconv.FormatInt(list.NextBelow, 10)))
			}
		})
	})
}
