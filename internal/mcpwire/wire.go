// Package mcpwire reads the outside of an MCP message: the JSON-RPC frame around a tool's arguments, and the lines that
// carry it on stdio.
//
// It owns what is refused before any MCP library sees a byte: malformed and ambiguous JSON, batches, identifiers that would
// not survive a round trip, lines over their bound. It leaves the arguments of a tool call to the tool, whose answer is an
// envelope and not a protocol error, and everything else in the protocol to the SDK. Its one invariant: what it accepts means
// the same to every JSON reader behind it.
package mcpwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// The JSON-RPC error codes used in front of the SDK. [CodeTransport] is in the range that the protocol leaves to servers.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeTransport      = -32000
)

// MethodCallTool is the one method whose arguments are judged elsewhere.
const MethodCallTool = "tools/call"

// metaProtocolVersion is the member of _meta in which a request of revision 2026-07-28 names its revision.
const metaProtocolVersion = "io.modelcontextprotocol/protocolVersion"

// maxArgumentDepth is where nested arguments are no longer passed on: the readers behind give up at 1000 levels.
const maxArgumentDepth = 512

// maxID is the largest number that JSON readers agree on (2^53 - 1).
const maxID = 1<<53 - 1

// Message is what stands on the outside of one message.
type Message struct {
	// ID is the identifier as received, nil for a notification.
	ID json.RawMessage
	// Method is empty for a response.
	Method string
	// Name is params.name, params.uri for resources/read, or params.taskId for what is about a task: what the Mcp-Name header mirrors.
	Name string
	// ProtocolVersion is the revision that the request names in its _meta, empty for the older ones.
	ProtocolVersion string
	// CancelID is params.requestId of notifications/cancelled, as received.
	CancelID json.RawMessage
	// Arguments of a tool call exactly as received, a part of the data that was parsed; nil when absent.
	Arguments json.RawMessage
	// argumentsAt is where they begin in that data.
	argumentsAt int
}

// IsCall reports whether the message is a request that expects an answer.
func (m Message) IsCall() bool { return m.Method != "" && m.ID != nil }

// WithoutArguments returns data, which m was parsed from, with an empty object in place of the arguments. A library that gets this
// cannot judge, change or choke on them.
func (m Message) WithoutArguments(data []byte) []byte {
	if m.Arguments == nil {
		return data
	}
	rest := data[m.argumentsAt+len(m.Arguments):]
	stripped := make([]byte, 0, m.argumentsAt+len("{}")+len(rest))
	stripped = append(stripped, data[:m.argumentsAt]...)
	return append(append(stripped, "{}"...), rest...)
}

// Parse reads one message. The error is always a [*Error]. Everything but the arguments of a tool call must be strict: no
// duplicate keys, valid UTF-8, nesting within [strictjson.MaxDepth]. A batch is refused.
func Parse(data []byte) (Message, error) {
	p := parser{data: data, dec: jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	if err := p.message(); err != nil {
		return Message{}, p.fault(err)
	}
	return p.msg, nil
}

type parser struct {
	data     []byte
	dec      *jsontext.Decoder
	msg      Message
	params   jsontext.Value
	paramsAt int
	result   bool // there is a result or an error member
}

// shapeError is a fault in the shape of the frame, as opposed to its JSON.
type shapeError string

func (e shapeError) Error() string { return string(e) }

// twiceError is a key that comes twice in one object.
type twiceError string

func (e twiceError) Error() string { return fmt.Sprintf("the key %q comes twice", string(e)) }

func (p *parser) message() error {
	switch p.dec.PeekKind() {
	case '[':
		return shapeError("JSON-RPC batches are not supported; send one message per request")
	case '{':
	default:
		if _, err := p.dec.ReadValue(); err != nil {
			return err
		}
		return shapeError("a message must be a JSON object")
	}
	version := ""
	err := members(p.dec, func(name string) error {
		value, err := p.dec.ReadValue()
		if err != nil {
			return err
		}
		if name == "params" {
			// Judged below, when the method is known.
			p.paramsAt = int(p.dec.InputOffset()) - len(value)
			p.params = jsontext.Value(p.data[p.paramsAt:][:len(value)])
			return nil
		}
		if err := strictjson.Check(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch name {
		case "jsonrpc":
			version = text(value)
		case "id":
			if !validID(value) {
				return shapeError("id must be a string or a whole number")
			}
			p.msg.ID = json.RawMessage(value.Clone())
		case "method":
			if p.msg.Method = text(value); p.msg.Method == "" {
				return shapeError("method must be a string that is not empty")
			}
		case "result", "error":
			p.result = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := p.end(); err != nil {
		return err
	}
	switch {
	case version != "2.0":
		return shapeError(`jsonrpc must be "2.0"`)
	case p.msg.Method == "" && (!p.result || p.msg.ID == nil):
		return shapeError("the message has no method")
	case p.msg.Method == "" || p.params == nil || p.params.Kind() == jsontext.KindNull:
		return nil
	}
	return p.readParams()
}

// end fails when there is data after the message.
func (p *parser) end() error {
	if kind := p.dec.PeekKind(); kind != 0 {
		return shapeError("there is data after the JSON value")
	}
	if _, err := p.dec.ReadToken(); err != nil && !isEOF(err) {
		return shapeError("there is data after the JSON value")
	}
	return nil
}

func (p *parser) readParams() error {
	if p.params.Kind() != '{' {
		return shapeError("params must be a JSON object")
	}
	dec := jsontext.NewDecoder(bytes.NewReader(p.params), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return members(dec, func(name string) error {
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if name == "arguments" && p.msg.Method == MethodCallTool {
			if deeper(value, maxArgumentDepth) {
				return shapeError(fmt.Sprintf("params.arguments is nested deeper than %d levels", maxArgumentDepth))
			}
			at := int(dec.InputOffset()) - len(value)
			p.msg.argumentsAt = p.paramsAt + at
			p.msg.Arguments = json.RawMessage(p.params[at:][:len(value)])
			return nil
		}
		if err := strictjson.Check(value); err != nil {
			return fmt.Errorf("params.%s: %w", name, err)
		}
		switch name {
		case "name", "uri", "taskId":
			if name == nameMember(p.msg.Method) {
				p.msg.Name = text(value)
			}
		case "requestId":
			if p.msg.Method == "notifications/cancelled" {
				p.msg.CancelID = json.RawMessage(value.Clone())
			}
		case "_meta":
			p.msg.ProtocolVersion = metaVersion(value)
		}
		return nil
	})
}

// nameMember is the parameter that the Mcp-Name header mirrors.
func nameMember(method string) string {
	switch {
	case method == "resources/read":
		return "uri"
	case strings.HasPrefix(method, "tasks/"):
		return "taskId"
	default:
		return "name"
	}
}

// members reads an object and calls f at each value, which f must read. A name that comes twice is an error.
func members(dec *jsontext.Decoder, f func(name string) error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if seen[name] {
			return twiceError(name)
		}
		seen[name] = true
		if err := f(name); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// deeper reports whether value, which is valid JSON, nests deeper than limit.
func deeper(value jsontext.Value, limit int) bool {
	depth, quoted, escaped := 0, false, false
	for _, c := range value {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped = c == '\\'
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{', c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

func metaVersion(meta jsontext.Value) string {
	if meta.Kind() != '{' {
		return ""
	}
	version := ""
	dec := jsontext.NewDecoder(bytes.NewReader(meta))
	// The value was checked, so nothing here can fail.
	_ = members(dec, func(name string) error {
		value, err := dec.ReadValue()
		if err == nil && name == metaProtocolVersion {
			version = text(value)
		}
		return err
	})
	return version
}

// text returns the string in value, empty when it is none.
func text(value jsontext.Value) string {
	unquoted, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(unquoted)
}

// validID accepts a string, and a whole number that every reader keeps.
func validID(value jsontext.Value) bool {
	switch value.Kind() {
	case '"':
		return true
	case '0':
		n, err := strconv.ParseInt(string(value), 10, 64)
		return err == nil && math.Abs(float64(n)) <= maxID
	default:
		return false
	}
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
