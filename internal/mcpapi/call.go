package mcpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// ToolCall is the record of one call.
type ToolCall struct {
	RequestID string
	Tool      string
	Principal sallyport.Principal
	// Arguments as they came, secrets and all: whoever keeps them redacts them first.
	Arguments   json.RawMessage
	Parameters  []string       // known names only, sorted
	Code        sallyport.Code // empty for success
	Duration    time.Duration
	ExecutionID sallyport.ExecutionID // of a run that was opened
	TraceParent string                // the caller's W3C trace context
}

// call is one call of a tool, as its function sees it.
type call struct {
	tool      tool
	principal sallyport.Principal
	// args are the arguments as received, "{}" when absent.
	args        json.RawMessage
	requestID   string
	traceParent string
	meta        map[string]any
	// can is what the client declared, nil for nothing; state and inputs are what it brings back to a call that asked for something.
	can    *mcp.ClientCapabilities
	state  string
	inputs mcp.InputResponseMap
	notify func(ctx context.Context, progress float64, message string)
}

// answer is what a tool's function gives back.
type answer struct {
	// envelope is the whole structured answer, already encoded.
	envelope json.RawMessage
	// text stands beside it for hosts that show nothing else.
	text string
	// err is why the call did not succeed, nil when it did.
	err         error
	executionID sallyport.ExecutionID
	// question replaces the answer by one to the client's user, and broken by an error of the protocol.
	question *mcp.CallToolResult
	broken   error
}

// handler adapts t to the SDK. Whatever happens behind it, the answer is a result with an envelope and never a protocol error.
func (a *API) handler(t tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		started := time.Now()
		who, ok := callerFrom(ctx)
		c := &call{
			tool: t, principal: who.principal, args: req.Params.Arguments, requestID: requestID(req),
			traceParent: traceParent(req), meta: req.Params.GetMeta(), notify: notifier(req),
			can: req.ClientCapabilities(), state: req.Params.RequestState, inputs: req.Params.InputResponses,
		}
		if who.arguments != nil {
			c.args = who.arguments
		}
		if len(bytes.TrimSpace(c.args)) == 0 {
			c.args = json.RawMessage("{}")
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if who.gone != nil {
			// Older revisions do not tie a call to its stream. Their answer cannot be delivered later either, because the server
			// keeps no session, so a caller who hangs up has cancelled.
			defer context.AfterFunc(who.gone, cancel)() //nolint:contextcheck // two contexts meet here on purpose
		}
		var got answer
		if ok {
			got = a.answer(ctx, c)
		} else {
			got = refused(c, &sallyport.Error{Op: "mcp." + t.name, Code: sallyport.CodeUnauthenticated})
		}
		a.record(ctx, c, got, time.Since(started))
		switch {
		case got.broken != nil:
			return nil, got.broken
		case got.question != nil:
			return got.question, nil
		}
		return got.result(), nil
	}
}

// answer calls the tool; a panic in it is INTERNAL.
func (a *API) answer(ctx context.Context, c *call) (got answer) {
	defer func() {
		if cause := recover(); cause != nil {
			got = refused(c, &sallyport.Error{
				Op: "mcp." + c.tool.name, Code: sallyport.CodeInternal, Err: fmt.Errorf("panic: %v", cause),
			})
		}
	}()
	return c.tool.call(ctx, c)
}

// record tells the observer and the log. Only the log sees the private cause of an INTERNAL error.
func (a *API) record(ctx context.Context, c *call, got answer, took time.Duration) {
	code := sallyport.CodeOf(got.err)
	names := c.parameters()
	if a.cfg.Observe != nil {
		a.cfg.Observe(ctx, ToolCall{
			RequestID: c.requestID, Tool: c.tool.name, Principal: c.principal, Arguments: c.args, Parameters: names, Code: code,
			Duration: took, ExecutionID: got.executionID, TraceParent: c.traceParent,
		})
	}
	attrs := []any{
		"request_id", c.requestID, "tool", c.tool.name, "tenant_id", c.principal.TenantID, "principal_id", c.principal.ID,
		"parameters", names, "code", code, "duration_ms", took.Milliseconds(),
	}
	if got.executionID != "" {
		attrs = append(attrs, "execution_id", got.executionID)
	}
	if c.traceParent != "" {
		attrs = append(attrs, "traceparent", c.traceParent)
	}
	if sallyport.Lookup(code).Class == sallyport.ClassInternal && got.err != nil {
		a.cfg.Logger.ErrorContext(ctx, "mcp tool call broke", append(attrs, "error", got.err)...)
		return
	}
	a.cfg.Logger.InfoContext(ctx, "mcp tool call", attrs...)
}

// decode reads the arguments into v, strictly. A caller without the scope learns that first, and nothing about its arguments.
func (c *call) decode(v any) error {
	err := c.decodeArguments(v)
	if err == nil {
		return nil
	}
	return c.invalid(err)
}

func (c *call) decodeArguments(v any) error {
	if kind := jsontext.Value(bytes.TrimSpace(c.args)).Kind(); kind != '{' && kind != jsontext.KindInvalid {
		return sallyport.Errorf("mcp.arguments", sallyport.CodeInvalidArgument, "the arguments must be a JSON object")
	}
	err := strictjson.Decode(c.args, v)
	if err != nil && errors.Is(err, jsonv2.ErrUnknownName) {
		return sallyport.Errorf("mcp.arguments", sallyport.CodeInvalidArgument, "%s; %s takes %s",
			sallyport.Public(err).Message, c.tool.name, strings.Join(c.tool.parameters, ", "))
	}
	return err
}

// invalid is err, unless the caller lacks the scope of the tool.
func (c *call) invalid(err error) error {
	if denied := c.principal.Require("mcp."+c.tool.name, c.tool.scope); denied != nil {
		return denied
	}
	return err
}

// argument is INVALID_ARGUMENT with a sentence.
func (c *call) argument(format string, args ...any) error {
	return c.invalid(sallyport.Errorf("mcp."+c.tool.name, sallyport.CodeInvalidArgument, format, args...))
}

// parameters are the known names among the arguments that came, sorted.
func (c *call) parameters() []string {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(c.args, &sent); err != nil {
		return nil
	}
	names := []string{}
	for _, name := range c.tool.parameters {
		if _, ok := sent[name]; ok {
			names = append(names, name)
		}
	}
	return names
}

// succeeded answers with data; err is set when the call has data and did not succeed: a script that failed.
func succeeded[T any](c *call, data T, text string, err error) answer {
	envelope := sallyport.Success(c.tool.kind, c.requestID, data)
	envelope.Error = sallyport.Public(err)
	encoded, broken := encode(envelope)
	if broken != nil {
		return refused(c, &sallyport.Error{Op: "mcp." + c.tool.name, Code: sallyport.CodeInternal, Err: broken})
	}
	return answer{envelope: encoded, text: text, err: err}
}

// refused answers without data.
func refused(c *call, err error) answer {
	encoded, broken := encode(sallyport.Failure[struct{}](c.tool.kind, c.requestID, err))
	if broken != nil {
		// Only an error's details can fail to encode; they are dropped and the code stays.
		bare := &sallyport.Error{Op: "mcp." + c.tool.name, Code: sallyport.CodeOf(err), Err: broken}
		encoded, _ = encode(sallyport.Failure[struct{}](c.tool.kind, c.requestID, bare))
	}
	return answer{envelope: encoded, text: refusalText(err), err: err}
}

// refusalText is the sentence for hosts that show text only.
func refusalText(err error) string {
	public := sallyport.Public(err)
	text := string(public.Code) + ": " + strings.TrimSuffix(public.Message, ".") + "."
	if _, said := sallyport.RetryAfter(err); public.Retry == sallyport.CanRetry && !said {
		text += " The same call may succeed later."
	}
	return text
}

// encode writes v as JSON as it is: numbers and characters of raw members stay what they are.
func encode(v any) (json.RawMessage, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buffer.Bytes(), "\n"), nil
}

// requestID names one call in the log and in the envelope: as the HTTP surface named the request, else anew.
func requestID(req *mcp.CallToolRequest) string {
	if req.Extra != nil && req.Extra.Header != nil {
		if given := req.Extra.Header.Get("X-Request-Id"); validRequestID(given) {
			return given
		}
	}
	return uuid.NewString()
}

// validRequestID accepts what is safe to repeat anywhere.
func validRequestID(s string) bool {
	const safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	return s != "" && len(s) <= 128 && strings.Trim(s, safe) == ""
}
