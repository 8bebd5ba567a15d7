package conformance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The schema that must survive tools/list word for word, and the one whose parameter is mirrored in a header.
const (
	schema2020 = `{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {
			"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
			"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}
		},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]},
		"else": {"required": ["email"]},
		"additionalProperties": false
	}`
	schemaHeader = `{
		"type": "object",
		"properties": {
			"region": {"type": "string", "description": "mirrored in a header", "x-mcp-header": "Region"},
			"level": {"type": "integer", "description": "not mirrored"}
		}
	}`
)

func addSchemaTools(server *mcp.Server) {
	raw := func(name, description, schema string) {
		server.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return text(fmt.Sprintf("called with %s", req.Params.Arguments)), nil
			})
	}
	raw("json_schema_2020_12_tool", "Has a schema with the whole vocabulary of 2020-12.", schema2020)
	raw("test_x_mcp_header", "Has a parameter that a header mirrors.", schemaHeader)
}

// addStatelessTools adds the tools of the revision without sessions.
func addStatelessTools(server *mcp.Server) {
	addTool(server, "test_missing_capability", "Needs the client's sampling capability.", missingCapability)
	addTool(server, "test_streaming_elicitation", "Answers with a result and no request on the stream.",
		func(context.Context, *mcp.CallToolRequest, noArguments) (*mcp.CallToolResult, error) {
			return text("nothing but a result"), nil
		})
	addTool(server, "test_logging_tool", "Logs a line, which reaches only those who asked for lines.",
		func(ctx context.Context, req *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, error) {
			return text("logged a line"), log(ctx, req, "a line")
		})
	addTool(server, "test_trigger_tool_change", "Changes the list of tools.",
		func(context.Context, *mcp.CallToolRequest, noArguments) (*mcp.CallToolResult, error) {
			addTool(server, "test_transient", "Comes and stays.", func(context.Context, *mcp.CallToolRequest, noArguments) (*mcp.CallToolResult, error) {
				return text("here"), nil
			})
			return text("the list of tools changed"), nil
		})
	addTool(server, "test_trigger_prompt_change", "Changes the list of prompts.",
		func(context.Context, *mcp.CallToolRequest, noArguments) (*mcp.CallToolResult, error) {
			server.AddPrompt(&mcp.Prompt{Name: "test_transient_prompt", Description: "Comes and stays."},
				func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
					return said("here"), nil
				})
			return text("the list of prompts changed"), nil
		})
}

func missingCapability(_ context.Context, req *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, error) {
	if has := req.ClientCapabilities(); has != nil && has.Sampling != nil {
		return text("the client can sample"), nil
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}},
	})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client must declare sampling", Data: data,
	}
}
