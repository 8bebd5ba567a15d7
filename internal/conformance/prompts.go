package conformance

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// said is a prompt of one message by the user.
func said(text string) *mcp.GetPromptResult { return saying(&mcp.TextContent{Text: text}) }

func saying(contents ...mcp.Content) *mcp.GetPromptResult {
	result := &mcp.GetPromptResult{Description: "A prompt for tests."}
	for _, content := range contents {
		result.Messages = append(result.Messages, &mcp.PromptMessage{Role: "user", Content: content})
	}
	return result
}

func addPrompts(server *mcp.Server) {
	add := func(name, description string, f func(p *mcp.GetPromptParams) *mcp.GetPromptResult, arguments ...string) {
		prompt := &mcp.Prompt{Name: name, Description: description}
		for _, argument := range arguments {
			prompt.Arguments = append(prompt.Arguments, &mcp.PromptArgument{Name: argument, Description: "An argument.", Required: true})
		}
		server.AddPrompt(prompt, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return f(req.Params), nil
		})
	}
	add("test_simple_prompt", "Says one thing.", func(*mcp.GetPromptParams) *mcp.GetPromptResult {
		return said("a simple prompt")
	})
	add("test_prompt_with_arguments", "Repeats its arguments.", func(p *mcp.GetPromptParams) *mcp.GetPromptResult {
		return said(fmt.Sprintf("arg1='%s', arg2='%s'", p.Arguments["arg1"], p.Arguments["arg2"]))
	}, "arg1", "arg2")
	add("test_prompt_with_embedded_resource", "Embeds a resource.", func(p *mcp.GetPromptParams) *mcp.GetPromptResult {
		return saying(embedded(p.Arguments["resourceUri"]), &mcp.TextContent{Text: "look at the resource"})
	}, "resourceUri")
	add("test_prompt_with_image", "Shows an image.", func(*mcp.GetPromptParams) *mcp.GetPromptResult {
		return saying(&mcp.ImageContent{Data: picture(), MIMEType: "image/png"}, &mcp.TextContent{Text: "look at the image"})
	})
	add("test_input_required_result_prompt", "Asks the user first.", func(p *mcp.GetPromptParams) *mcp.GetPromptResult {
		if answer := acceptedText(p.InputResponses, "user_context", "context"); answer != "" {
			return said("the user said: " + answer)
		}
		return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{
			"user_context": question("What is this about?", "context", "string"),
		}}
	})
}
