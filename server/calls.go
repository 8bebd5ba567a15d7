package server

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
	"github.com/sallyport-dev/sallyport/run"
)

// toolCalled counts and records one call of an MCP tool, without waiting for either.
func (s *Server) toolCalled(_ context.Context, call mcpapi.ToolCall) {
	s.telemetry.ToolCalled(call.Tool, call.Code)
	if call.Principal.TenantID == "" {
		return // a caller whom nobody knows has no record to be in
	}
	s.calls.Record(audit.ToolCall{
		TenantID: call.Principal.TenantID, At: s.cfg.Now(), RequestID: call.RequestID, PrincipalID: call.Principal.ID, Tool: call.Tool,
		Arguments: call.Arguments, Code: call.Code, DurationMS: call.Duration.Milliseconds(), ExecutionID: call.ExecutionID,
		TraceID: run.TraceID(call.TraceParent),
	})
}

// maxCallText is how much of one text argument is kept, in bytes; what is longer is content.
const maxCallText = 256

// contentArguments are those that carry files.
const contentArguments = " instructions components_json files content content_base64 "

// redactCall keeps of a call's arguments what tells one call from another: names, slugs, paths, small values. Secrets are masked by
// their names, and files are replaced by their size.
func redactCall(arguments json.RawMessage) json.RawMessage {
	var sent map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(audit.Mask(arguments))))
	decoder.UseNumber()
	if decoder.Decode(&sent) != nil {
		return omitted(len(arguments))
	}
	kept := map[string]any{}
	for name, value := range sent {
		kept[name] = redactArgument(name, value)
	}
	encoded, err := json.Marshal(kept)
	if err != nil {
		return omitted(len(arguments))
	}
	return encoded
}

func omitted(size int) json.RawMessage {
	encoded, err := json.Marshal(map[string]int{"omitted_bytes": size})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return encoded
}

func redactArgument(name string, value any) any {
	if strings.Contains(contentArguments, " "+name+" ") {
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil
		}
		return map[string]int{"omitted_bytes": len(encoded)}
	}
	switch v := value.(type) {
	case map[string]any:
		for inner, of := range v {
			v[inner] = redactArgument(inner, of)
		}
		return v
	case []any:
		if name == "argv" {
			return redactArgv(v)
		}
		for i, of := range v {
			v[i] = redactArgument("", of)
		}
		return v
	case string:
		return redactText(v)
	}
	return value
}

// redactText takes what a URL may carry as a secret out, and cuts.
func redactText(text string) string {
	if at, err := url.Parse(text); err == nil && at.Host != "" {
		text = (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String()
	}
	if len(text) > maxCallText {
		text = strings.ToValidUTF8(text[:maxCallText], "") + "..."
	}
	return text
}

func redactArgv(argv []any) any {
	words := make([]string, 0, len(argv))
	for _, word := range argv {
		text, isText := word.(string)
		if !isText {
			return map[string]int{"omitted_items": len(argv)}
		}
		words = append(words, text)
	}
	words = run.MaskArgv(audit.Mask, words)
	for i, word := range words {
		words[i] = redactText(word)
	}
	return words
}
