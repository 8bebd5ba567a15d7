package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// yamlKind is the type of a yamlValue.
type yamlKind int

const (
	yamlNull yamlKind = iota
	yamlBool
	yamlNumber
	yamlText
	yamlList
	yamlMap
)

// yamlValue is one YAML value, resolved by the core schema of YAML 1.2, that always has a JSON form.
type yamlValue struct {
	kind yamlKind
	// text is the text of a yamlText, the JSON form of a yamlBool or yamlNumber.
	text string
	// items are the elements of a list or the values of a map, in source order.
	items []yamlValue
	// keys and keyLines go with the items of a map.
	keys     []string
	keyLines []int
	line     int
	// plain says that a scalar was written without quotes; source is how it was written.
	plain  bool
	source string
}

// at returns the value of key in a map.
func (v yamlValue) at(key string) (yamlValue, bool) {
	for i, k := range v.keys {
		if k == key {
			return v.items[i], true
		}
	}
	return yamlValue{}, false
}

// setKey replaces or appends key in a map.
func setKey(v *yamlValue, key string, item yamlValue) {
	for i, k := range v.keys {
		if k == key {
			v.items[i] = item
			return
		}
	}
	v.keys = append(v.keys, key)
	v.keyLines = append(v.keyLines, 0)
	v.items = append(v.items, item)
}

// removeKey takes key out of a map.
func removeKey(v *yamlValue, key string) {
	for i, k := range v.keys {
		if k == key {
			v.keys = append(v.keys[:i:i], v.keys[i+1:]...)
			v.keyLines = append(v.keyLines[:i:i], v.keyLines[i+1:]...)
			v.items = append(v.items[:i:i], v.items[i+1:]...)
			return
		}
	}
}

// scalarText returns the text of a scalar as its author wrote it, false for null, lists and maps.
func (v yamlValue) scalarText() (string, bool) {
	switch v.kind {
	case yamlText:
		return v.text, true
	case yamlBool, yamlNumber:
		return v.source, true
	case yamlNull, yamlList, yamlMap:
	}
	return "", false
}

// jsonForm returns the compact JSON form, keys in source order.
func (v yamlValue) jsonForm() json.RawMessage { return v.appendJSON(nil) }

func (v yamlValue) appendJSON(out []byte) []byte {
	switch v.kind {
	case yamlNull:
		return append(out, "null"...)
	case yamlBool, yamlNumber:
		return append(out, v.text...)
	case yamlText:
		return appendJSONText(out, v.text)
	case yamlList:
		out = append(out, '[')
		for i, item := range v.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.appendJSON(out)
		}
		return append(out, ']')
	case yamlMap:
		out = append(out, '{')
		for i, item := range v.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSONText(out, v.keys[i])
			out = append(out, ':')
			out = item.appendJSON(out)
		}
		return append(out, '}')
	}
	return out
}

func appendJSONText(out []byte, text string) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return append(out, `""`...) // a string always encodes
	}
	return append(out, bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))...)
}

// flow returns the value as one line of YAML that reads back as the same value.
func (v yamlValue) flow() string {
	switch v.kind {
	case yamlNull:
		return "null"
	case yamlBool, yamlNumber:
		return v.text
	case yamlText:
		return quoteYAML(v.text)
	case yamlList:
		parts := make([]string, len(v.items))
		for i, item := range v.items {
			parts[i] = item.flow()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yamlMap:
		parts := make([]string, len(v.items))
		for i, item := range v.items {
			parts[i] = flowKey(v.keys[i]) + item.flow()
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return ""
}

// maxSimpleKey is the longest key, in bytes, that is written without a question mark; YAML allows 1024 characters.
const maxSimpleKey = 1000

func flowKey(key string) string {
	quoted := quoteYAML(key)
	if len(quoted) > maxSimpleKey {
		return "? " + quoted + " : "
	}
	return quoted + ": "
}

// quoteYAML returns s as a double-quoted YAML scalar on one line. Bytes that are not UTF-8 become U+FFFD.
func quoteYAML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError:
			b.WriteRune(utf8.RuneError)
		case r < 0x20 || r >= 0x7f && r <= 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
