// Package canonical owns the byte forms that are hashed: the RFC 8785 form of a JSON value, the form of a revision and
// the form of an audit entry.
//
// It leaves storage and comparison of the digests to others. Its one invariant: two values that differ in anything
// that counts have different forms, and the same value has the same form on every machine, for ever.
package canonical

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"github.com/sallyport-dev/sallyport"
)

// JSON returns the RFC 8785 form of v, which encoding/json must be able to encode. Embedded raw JSON with a duplicate
// key, invalid UTF-8 or a number beyond the range of a double is an INTERNAL error. Numbers are doubles: an integer
// beyond 2^53 is rounded, as RFC 8785 demands.
func JSON(v any) ([]byte, error) {
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, fault("canonical.json", "the value is not JSON", err)
	}
	form, err := jcs.Transform(encoded)
	if err != nil {
		return nil, fault("canonical.json", "the value has no canonical form", err)
	}
	return form, nil
}

// fault is an INTERNAL error: what is hashed was made by the product itself, so a value without a form is a defect or a
// corrupt row, never a caller's mistake.
func fault(op, message string, err error) error {
	return &sallyport.Error{Op: op, Code: sallyport.CodeInternal, Message: message, Err: err}
}

var errNotUTF8 = errors.New("not valid UTF-8")

// checkText refuses text that encoding/json would replace: two different byte strings must never have one form.
func checkText(op string, texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fault(op, "a text is not valid UTF-8", errNotUTF8)
		}
	}
	return nil
}
