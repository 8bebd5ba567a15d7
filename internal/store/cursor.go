package store

import (
	"encoding/base64"
	"encoding/json"

	"github.com/sallyport-dev/sallyport"
)

// placed is a cursor as callers carry it: what it pages through, and the place.
type placed[T any] struct {
	Kind string `json:"k"`
	At   T      `json:"at"`
}

// kindOf shortens a kind: it is compared, never read.
func kindOf(kind string) string { return sallyport.DigestOf([]byte(kind)).Hex()[:12] }

// writeCursor makes a cursor. A place holds only what its page showed already, so a cursor needs no secrecy.
func writeCursor[T any](kind string, at T) (string, error) {
	text, err := json.Marshal(placed[T]{Kind: kindOf(kind), At: at})
	return base64.RawURLEncoding.EncodeToString(text), err
}

// readCursor returns the zero place for an empty cursor. A cursor of another kind, or none at all, is INVALID_ARGUMENT.
func readCursor[T any](op, kind, cursor string) (T, error) {
	var p placed[T]
	if cursor == "" {
		return p.At, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.Kind != kindOf(kind) {
		var zero T
		return zero, &sallyport.Error{
			Op: op, Code: sallyport.CodeInvalidArgument, Err: err,
			Message: "the cursor does not belong to this list; begin again without one",
		}
	}
	return p.At, nil
}
