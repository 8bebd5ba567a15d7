package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
)

// dial connects a real MCP client to the demo's server, as an agent would, and lists the tools.
func (d *demo) dial(ctx context.Context) (*mcp.ClientSession, error) {
	broken := func(err error) error {
		return &sallyport.Error{Op: "cli.demo", Code: sallyport.CodeInternal, Message: "the MCP client cannot talk to the server", Err: err}
	}
	agent := mcp.NewClient(&mcp.Implementation{Name: "sallyport-demo", Version: Version()}, nil)
	session, err := agent.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: d.data.MCPURL}, nil)
	if err != nil {
		return nil, broken(err)
	}
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		_ = session.Close()
		return nil, broken(err)
	}
	for _, tool := range tools.Tools {
		d.data.Tools = append(d.data.Tools, tool.Name)
	}
	return session, nil
}

// execute calls the tool and returns the envelope that an agent reads.
func (d *demo) execute(ctx context.Context, agent *mcp.ClientSession) (sallyport.Envelope[sallyport.Execution], error) {
	var envelope sallyport.Envelope[sallyport.Execution]
	result, err := agent.CallTool(ctx, &mcp.CallToolParams{
		Name: "execute_cloud_skill",
		Arguments: map[string]any{
			"slug": demoSlug, "script_path": demoScript, "input_args": map[string]any{"text": demoCSV},
		},
	})
	if err != nil {
		return envelope, &sallyport.Error{Op: "cli.demo", Code: sallyport.CodeInternal, Message: "the MCP call failed", Err: err}
	}
	data, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &envelope)
	}
	if err != nil || envelope.Data == nil && envelope.Error == nil {
		return envelope, &sallyport.Error{Op: "cli.demo", Code: sallyport.CodeInternal, Message: "the MCP answer holds no envelope", Err: err}
	}
	return envelope, nil
}

// profile is what the demo's script answers, as far as it is shown.
type profile struct {
	Source struct {
		Rows    int `json:"rows"`
		Columns int `json:"columns"`
	} `json:"source"`
	Columns []struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		Nulls    int    `json:"nulls"`
		Distinct int    `json:"distinct"`
	} `json:"columns"`
	Issues []struct {
		Code     string `json:"code"`
		Severity string `json:"severity"`
		Column   string `json:"column"`
		Count    int    `json:"count"`
	} `json:"issues"`
}

func (d *demo) printExecution(e sallyport.Execution) {
	d.say("%s %s", d.page.status(e.Status), d.page.dim(strings.Join(figures(e), "  ")))
	if err := e.Err(); err != nil {
		d.say("%s", clean(e.ErrorMessage))
		d.say("%s", clean(cut(e.Stderr, 300)))
		return
	}
	for _, line := range wrap("isolation: "+layers(e.Isolation.Layers), 96) {
		d.say("%s", d.page.dim(line))
	}
	if len(e.Isolation.Missing) > 0 {
		d.say("%s", d.page.yellow("missing: "+layers(e.Isolation.Missing)))
	}
	var out profile
	if err := json.Unmarshal(e.OutputData, &out); err != nil {
		return
	}
	d.say("output_data: %d rows, %d columns", out.Source.Rows, out.Source.Columns)
	for _, c := range out.Columns {
		d.say("  %s %s %s", pad(clean(c.Name), 8), pad(clean(c.Type), 9), d.page.dim(fmt.Sprintf("%d distinct, %d empty", c.Distinct, c.Nulls)))
	}
	for _, issue := range out.Issues[:min(len(out.Issues), 4)] {
		where := clean(issue.Column)
		if where == "" {
			where = "table"
		}
		d.say("  %s %s %s", severityText(d.page, issue.Severity), clean(issue.Code), d.page.dim("("+where+")"))
	}
}

// wrap breaks text at blanks.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
