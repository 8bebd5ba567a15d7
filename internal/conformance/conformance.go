// Package conformance holds the fixtures that the official MCP conformance suite calls by name: tools, resources and prompts put
// on the product's own MCP surface, so that the suite tests the wiring that ships.
//
// It owns the fixtures, the test binary that serves them (cmd/conformance-server), the script that runs the suite (run.sh) and the
// locked Node packages it needs (node). It leaves everything about the protocol to the product and its SDK. Its one invariant:
// nothing here is linked into the product.
package conformance

import (
	"context"
	"crypto/rand"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options adds what the fixtures need of a server: completion, subscriptions, logging for the older revision, and lists that
// change.
func Options(options *mcp.ServerOptions) {
	options.Capabilities = &mcp.ServerCapabilities{
		Logging: &mcp.LoggingCapabilities{},
	}
	options.CompletionHandler = func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
	}
	options.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
	options.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
}

// Extend registers every fixture.
func Extend(server *mcp.Server) {
	addContentTools(server)
	addSchemaTools(server)
	addStatelessTools(server)
	addSessionTools(server)
	addInputTools(server, newSealer(rand.Reader))
	addTaskTools(server)
	addResources(server)
	addPrompts(server)
}

// noArguments is the input of a tool that takes none.
type noArguments struct{}

// text is a result of one text.
func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// addTool registers a typed tool without structured output.
func addTool[In any](server *mcp.Server, name, description string, f func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, error)) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			result, err := f(ctx, req, in)
			return result, nil, err
		})
}
