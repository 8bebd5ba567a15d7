package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// masked stands in the trail for a value that must not be there.
const masked = "***"

// Mask returns raw with the value of every member whose name looks like a secret's replaced by "***", at any depth,
// whatever kind of value it is. A name is compared by its letters and digits alone, whatever their case, and looks
// secret when it contains apikey, authorization, password, secret or token (tokens, as in max_tokens, is a count).
//
// Everything else keeps its bytes, numbers beyond a double included. What is not exactly one JSON value without
// duplicate names becomes "***" as a whole: what cannot be read cannot be cleared.
func Mask(raw json.RawMessage) json.RawMessage {
	out, err := mask(raw)
	if err != nil {
		return json.RawMessage(`"` + masked + `"`)
	}
	return out
}

func mask(raw json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	enc := jsontext.NewEncoder(&out, jsontext.PreserveRawStrings(true), jsontext.Multiline(false))
	hide, hidden := false, false
	for started := false; !started || dec.StackDepth() > 0; started = true {
		if hide {
			hide, hidden = false, true
			if err := dec.SkipValue(); err != nil {
				return nil, err
			}
			if err := enc.WriteToken(jsontext.String(masked)); err != nil {
				return nil, err
			}
			continue
		}
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		// An odd count inside an object means that the token just read was a name.
		if kind, n := dec.StackIndex(dec.StackDepth()); kind == '{' && n%2 == 1 {
			hide = looksSecret(token.String())
		}
		if err := enc.WriteToken(token); err != nil {
			return nil, err
		}
	}
	if rest := bytes.TrimLeft(raw[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, errTrailing
	}
	if !hidden {
		return raw, nil
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// looksSecret reports whether the value of a member with this name must be masked.
func looksSecret(name string) bool {
	word, starts := normalise(name)
	for _, part := range []string{"apikey", "authorization", "password", "secret"} {
		if strings.Contains(word, part) {
			return true
		}
	}
	const token = "token"
	for at := 0; ; {
		found := strings.Index(word[at:], token)
		if found < 0 {
			return false
		}
		at += found + len(token)
		// "tokens" is a count; in token_string and tokenString the s begins another word.
		if at == len(word) || word[at] != 's' || starts[at] {
			return true
		}
	}
}

// normalise returns the letters and digits of name in lower case, and per byte whether a word begins there: behind
// anything that is neither, and at an upper-case letter behind a lower-case one.
func normalise(name string) (word string, starts []bool) {
	var b strings.Builder
	start, lower := true, false
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			start = true
			continue
		}
		start = start || lower && unicode.IsUpper(r)
		n, _ := b.WriteRune(unicode.ToLower(r))
		for i := range n {
			starts = append(starts, start && i == 0)
		}
		start, lower = false, unicode.IsLower(r)
	}
	return b.String(), starts
}
