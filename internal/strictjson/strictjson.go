// Package strictjson decodes the JSON that callers send: duplicate keys, unknown fields, wrong case, invalid UTF-8,
// trailing data and deep nesting are INVALID_ARGUMENT errors that name the place.
//
// It leaves size bounds to whoever read the bytes. Its one invariant: what it accepts means the same to every
// JSON reader.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-dev/sallyport"
)

// MaxDepth bounds nesting.
const MaxDepth = 64

// Check returns nil when data is exactly one JSON value without duplicate keys, invalid UTF-8 or nesting over
// MaxDepth.
func Check(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return fault(err)
		}
		switch depth := dec.StackDepth(); {
		case depth > MaxDepth:
			return sallyport.Errorf("json", sallyport.CodeInvalidArgument, "the JSON is nested deeper than %d levels", MaxDepth)
		case depth == 0:
			return trailing(dec)
		}
	}
}

func trailing(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return sallyport.Errorf("json", sallyport.CodeInvalidArgument, "there is data after the JSON value")
	}
	return nil
}

// Decode checks data and decodes it into v, which must be a pointer. Unknown fields are refused by name; keys match by
// exact case.
func Decode(data []byte, v any) error {
	if err := Check(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return fault(err)
	}
	return nil
}

func fault(err error) error {
	e := &sallyport.Error{Op: "json", Code: sallyport.CodeInvalidArgument, Err: err}
	if own, ok := errors.AsType[*sallyport.Error](err); ok {
		e.Code, e.Message = own.Code, own.Message
		return e
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		e.Message = "the JSON is empty or ends too early"
		return e
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e.Message = fmt.Sprintf("the JSON is malformed at byte %d%s: %v", s.ByteOffset, at(string(s.JSONPointer)), s.Err)
		return e
	}
	if s, ok := errors.AsType[*json.SemanticError](err); ok {
		switch {
		case errors.Is(err, json.ErrUnknownName):
			e.Message = "unknown field" + at(string(s.JSONPointer))
		case s.JSONKind != 0:
			e.Message = fmt.Sprintf("wrong type%s: a JSON %s does not fit", at(string(s.JSONPointer)), s.JSONKind)
		default:
			e.Message = "wrong value" + at(string(s.JSONPointer))
		}
		return e
	}
	e.Message = "the JSON is malformed"
	return e
}

// at says where a fault is. The names in it are the sender's, so they are cut: an answer does not grow with what was wrong.
func at(pointer string) string {
	const most = 200
	switch {
	case pointer == "":
		return ""
	case len(pointer) > most:
		pointer = strings.ToValidUTF8(pointer[:most], "") + "..."
	}
	return " at " + pointer
}
