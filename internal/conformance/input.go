package conformance

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sealer signs the state that travels through the client between two rounds of one call.
type sealer struct{ key []byte }

func newSealer(random io.Reader) sealer {
	key := make([]byte, sha256.Size)
	if _, err := io.ReadFull(random, key); err != nil {
		return sealer{} // opens nothing
	}
	return sealer{key}
}

func (s sealer) mac(state string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(state))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s sealer) seal(state string) string { return state + "." + s.mac(state) }

// open returns the state that seal got, and false for anything else.
func (s sealer) open(sealed string) (string, bool) {
	cut := strings.LastIndexByte(sealed, '.')
	if len(s.key) == 0 || cut < 0 {
		return "", false
	}
	return sealed[:cut], hmac.Equal([]byte(s.mac(sealed[:cut])), []byte(sealed[cut+1:]))
}

var errState = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request state is not one that this server made"}

// question asks the user for one required member.
func question(message, member, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{
		Message:         message,
		RequestedSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}`, member, kind, member)),
	}
}

func sample(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}},
		MaxTokens: 100,
	}
}

// accepted is what the user answered; nil when there is no answer or the user declined.
func accepted(responses mcp.InputResponseMap, key string) map[string]any {
	answer, ok := responses[key].(*mcp.ElicitResult)
	if !ok || answer == nil || answer.Action != "accept" {
		return nil
	}
	return answer.Content
}

// acceptedText is one text of an answer, empty when there is none.
func acceptedText(responses mcp.InputResponseMap, key, member string) string {
	s, _ := accepted(responses, key)[member].(string)
	return s
}

// sampled is what the model said.
func sampled(responses mcp.InputResponseMap, key string) (string, bool) {
	answer, ok := responses[key].(*mcp.CreateMessageWithToolsResult)
	if !ok || answer == nil {
		return "", false
	}
	for _, content := range answer.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			return t.Text, true
		}
	}
	return "", true
}

func needs(state string, requests mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: requests, RequestState: state}
}

// addInputTools adds the tools that end a call with questions and are called again with the answers.
func addInputTools(server *mcp.Server, seal sealer) {
	add := func(name, description string, f func(p *mcp.CallToolParamsRaw, can *mcp.ClientCapabilities) (*mcp.CallToolResult, error)) {
		addTool(server, "test_input_required_result_"+name, description, func(_ context.Context, req *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, error) {
			return f(req.Params, req.ClientCapabilities())
		})
	}
	add("elicitation", "Asks the user's name.", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (*mcp.CallToolResult, error) {
		if name := acceptedText(p.InputResponses, "user_name", "name"); name != "" {
			return text("Hello, " + name + "!"), nil
		}
		return needs("", mcp.InputRequestMap{"user_name": question("What is your name?", "name", "string")}), nil
	})
	add("sampling", "Asks the client's model.", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (*mcp.CallToolResult, error) {
		if said, ok := sampled(p.InputResponses, "capital_question"); ok {
			return text("The model said: " + said), nil
		}
		return needs("", mcp.InputRequestMap{"capital_question": sample("What is the capital of France?")}), nil
	})
	add("list_roots", "Asks for the client's roots.", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (*mcp.CallToolResult, error) {
		if roots, ok := p.InputResponses["client_roots"].(*mcp.ListRootsResult); ok && roots != nil {
			return text(fmt.Sprintf("The client has %d roots", len(roots.Roots))), nil
		}
		return needs("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}), nil
	})
	confirm := func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (*mcp.CallToolResult, error) {
		if p.RequestState != "" {
			if state, ok := seal.open(p.RequestState); !ok || state != "confirm" {
				return nil, errState
			}
			if accepted(p.InputResponses, "confirm") != nil {
				return text("state-ok: the state came back and the user confirmed"), nil
			}
		}
		return needs(seal.seal("confirm"), mcp.InputRequestMap{"confirm": question("Please confirm.", "ok", "boolean")}), nil
	}
	add("request_state", "Asks for a confirmation, with signed state.", confirm)
	add("tampered_state", "Refuses a state that was changed.", confirm)
	add("multiple_inputs", "Asks for three things at once.", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (*mcp.CallToolResult, error) {
		name := acceptedText(p.InputResponses, "user_name", "name")
		greeting, greeted := sampled(p.InputResponses, "greeting")
		roots, rooted := p.InputResponses["client_roots"].(*mcp.ListRootsResult)
		if name != "" && greeted && rooted && roots != nil {
			return text(fmt.Sprintf("%s %s, %d roots", greeting, name, len(roots.Roots))), nil
		}
		return needs(seal.seal("three"), mcp.InputRequestMap{
			"user_name": question("What is your name?", "name", "string"), "greeting": sample("Greet somebody."), "client_roots": &mcp.ListRootsParams{},
		}), nil
	})
	add("multi_round", "Asks twice.", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (*mcp.CallToolResult, error) {
		if p.RequestState == "" {
			return needs(seal.seal("first"), mcp.InputRequestMap{"step1": question("What is your name?", "name", "string")}), nil
		}
		state, ok := seal.open(p.RequestState)
		name, second := strings.CutPrefix(state, "second ")
		switch {
		case !ok:
			return nil, errState
		case second:
			return text(fmt.Sprintf("%s likes %s", name, acceptedText(p.InputResponses, "step2", "color"))), nil
		default:
			name := acceptedText(p.InputResponses, "step1", "name")
			return needs(seal.seal("second "+name), mcp.InputRequestMap{"step2": question("Which colour do you like?", "color", "string")}), nil
		}
	})
	add("capabilities", "Asks only for what the client can.", func(p *mcp.CallToolParamsRaw, can *mcp.ClientCapabilities) (*mcp.CallToolResult, error) {
		requests := mcp.InputRequestMap{}
		if can != nil && can.Elicitation != nil {
			requests["user_name"] = question("What is your name?", "name", "string")
		}
		if can != nil && can.Sampling != nil {
			requests["greeting"] = sample("Greet somebody.")
		}
		if len(p.InputResponses) > 0 || len(requests) == 0 {
			return text("asked for nothing that the client cannot do"), nil
		}
		return needs("", requests), nil
	})
}
