package conformance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addSessionTools adds the tools in which a server asks its client during a call, which takes a session of the older revision.
func addSessionTools(server *mcp.Server) {
	type sampling struct {
		Prompt string `json:"prompt" jsonschema:"what to ask the model"`
	}
	addTool(server, "test_sampling", "Asks the client's model.", func(ctx context.Context, req *mcp.CallToolRequest, in sampling) (*mcp.CallToolResult, error) {
		got, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
			Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}},
			MaxTokens: 100,
		})
		if err != nil {
			return nil, err
		}
		return text(fmt.Sprintf("the model said %v", got.Content)), nil
	})
	type elicitation struct {
		Message string `json:"message" jsonschema:"what to ask the user"`
	}
	addTool(server, "test_elicitation", "Asks the user for a name.", func(ctx context.Context, req *mcp.CallToolRequest, in elicitation) (*mcp.CallToolResult, error) {
		return ask(ctx, req, in.Message, `{"type":"object","properties":{"username":{"type":"string"}},"required":["username"]}`)
	})
	addTool(server, "test_elicitation_sep1034_defaults", "Asks the user, with defaults.", func(ctx context.Context, req *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, error) {
		return ask(ctx, req, "with defaults", `{"type":"object","properties":{
			"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`)
	})
	addTool(server, "test_elicitation_sep1330_enums", "Asks the user to choose.", func(ctx context.Context, req *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, error) {
		return ask(ctx, req, "with choices", `{"type":"object","properties":{
			"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"One"},{"const":"value2","title":"Two"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2"],"enumNames":["One","Two"]},
			"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2"]}},
			"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"One"},{"const":"value2","title":"Two"}]}}}}`)
	})
}

func ask(ctx context.Context, req *mcp.CallToolRequest, message, schema string) (*mcp.CallToolResult, error) {
	got, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)})
	if err != nil {
		return nil, err
	}
	return text(fmt.Sprintf("the user's answer: action=%s, content=%v", got.Action, got.Content)), nil
}
