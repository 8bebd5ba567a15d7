package mcpapi

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
)

// list lists every tool. The SDK shows them to callers in the order of their names.
func (a *API) list() []tool {
	tools := []tool{
		a.contextTool(),
		a.executeTool(),
		a.recallTool(),
		a.saveTool(),
	}
	for i := range tools {
		tools[i].parameters = properties(tools[i].input)
	}
	return tools
}

// properties are the names in an input schema, sorted.
func properties(input json.RawMessage) []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(input, &schema); err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(schema.Properties))
}

// tool returns the tool of this name.
func (a *API) tool(name string) (tool, bool) {
	for _, t := range a.tools {
		if t.name == name {
			return t, true
		}
	}
	return tool{}, false
}

// tool is one tool of the product. It sits on the SDK's raw handler: the SDK passes the arguments on as the bytes that came, and
// call judges them, so that every fault in them is an Envelope.
type tool struct {
	name, title, description string
	// scope is what a caller needs; the service behind the tool checks it too.
	scope sallyport.Scope
	// kind of the envelope that call answers with.
	kind        string
	annotations mcp.ToolAnnotations
	input       json.RawMessage
	output      json.RawMessage
	// parameters are the names that input knows, sorted; list fills them in.
	parameters []string
	call       func(ctx context.Context, c *call) answer
}

func (t tool) describe() *mcp.Tool {
	annotations := t.annotations
	annotations.Title = t.title
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		Annotations: &annotations, InputSchema: t.input, OutputSchema: t.output,
	}
}
