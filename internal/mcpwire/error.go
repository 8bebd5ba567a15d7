package mcpwire

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-dev/sallyport"
)

// Error is why a message was refused. It becomes a JSON-RPC error with [Error.Response].
type Error struct {
	ID      json.RawMessage // nil when none could be read
	Code    int
	Message string
	// Data is the public error of the product, where there is one.
	Data *sallyport.PublicError
}

// Error returns the sentence.
func (f *Error) Error() string { return f.Message }

// Response encodes the fault. The id is left out when none could be read, which is how the MCP schema wants it.
func (f *Error) Response() []byte {
	type wireError struct {
		Code    int                    `json:"code"`
		Message string                 `json:"message"`
		Data    *sallyport.PublicError `json:"data,omitempty"`
	}
	data, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Error   wireError       `json:"error"`
	}{"2.0", f.ID, wireError{f.Code, f.Message, f.Data}})
	if err != nil {
		// Only details that cannot be encoded get here; the answer stays an answer.
		return []byte(`{"jsonrpc":"2.0","error":{"code":-32603,"message":"internal error"}}`)
	}
	return data
}

// fault turns whatever stopped the parser into the answer for the caller.
func (p *parser) fault(err error) *Error {
	f := &Error{ID: p.msg.ID, Code: CodeInvalidRequest}
	if twice, ok := errors.AsType[twiceError](err); ok {
		if twice == "id" {
			f.ID = nil // neither of them is known to be the one
		}
		f.Message = "invalid request: " + twice.Error()
		return f
	}
	if shape, ok := errors.AsType[shapeError](err); ok {
		f.Message = "invalid request: " + shape.Error()
		return f
	}
	if own, ok := errors.AsType[*sallyport.Error](err); ok {
		f.Message = "invalid request: " + sallyport.Public(own).Message
		return f
	}
	f.Code, f.Message = CodeParse, "parse error: the JSON is malformed"
	if isEOF(err) {
		f.Message = "parse error: the JSON is empty or ends too early"
	} else if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		f.Message = fmt.Sprintf("parse error: the JSON is malformed at byte %d", s.ByteOffset)
	}
	return f
}
