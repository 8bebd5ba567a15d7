package sallyport

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Flags turns input_args into command line arguments for a script that declares input: flags. Keys
// [A-Za-z0-9][A-Za-z0-9_-]* in the order sent become --key value; true becomes --key; false and null are left out;
// arrays repeat; a value that begins with "-" becomes --key=value; the values of the key "_" come last, behind "--".
// Numbers keep their exact text. Objects, nested arrays, other keys and NUL are ARGUMENTS_MISMATCH.
func Flags(args json.RawMessage) ([]string, error) {
	mismatch := func(format string, a ...any) ([]string, error) {
		return nil, Errorf("flags", CodeArgumentsMismatch, format, a...)
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return mismatch("input_args is not a JSON object")
	}
	var flags, rest []string
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return mismatch("input_args is not a JSON object")
		}
		key, _ := token.(string)
		var value any
		if err := dec.Decode(&value); err != nil {
			return mismatch("input_args is not a JSON object")
		}
		if key != "_" && !flagName(key) {
			return mismatch("the key %q cannot become a flag", key)
		}
		values, list := value.([]any)
		if !list {
			values = []any{value}
		}
		for _, v := range values {
			text, present, ok := flagValue(v)
			switch {
			case !ok:
				return mismatch("the value of %q cannot become a flag: it is an object, a nested list or holds NUL", key)
			case key == "_" && text != nil:
				rest = append(rest, *text)
			case key == "_" && present:
				return mismatch("a value of %q is true; it must be text or a number", key)
			case text != nil && strings.HasPrefix(*text, "-"):
				flags = append(flags, "--"+key+"="+*text)
			case text != nil:
				flags = append(flags, "--"+key, *text)
			case present:
				flags = append(flags, "--"+key)
			}
		}
	}
	if len(rest) > 0 {
		flags = append(append(flags, "--"), rest...)
	}
	return flags, nil
}

// flagValue returns the text of a string or number; present without text is true; neither is false or null.
func flagValue(v any) (text *string, present, ok bool) {
	switch v := v.(type) {
	case nil:
		return nil, false, true
	case bool:
		return nil, v, true
	case string:
		return &v, true, !strings.Contains(v, "\x00")
	case json.Number:
		s := v.String()
		return &s, true, true
	default:
		return nil, false, false
	}
}

func flagName(key string) bool {
	for i := range len(key) {
		c := key[i]
		if !isASCIILetter(c) && (c < '0' || c > '9') && (i == 0 || c != '_' && c != '-') {
			return false
		}
	}
	return key != ""
}
