package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// plainKey matches the keys that are written without quotes.
var plainKey = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

// settingsHeader is the first line of a sallyport.yaml that the product wrote.
const settingsHeader = "# Written by Sallyport from the kinds and settings that came with the files.\n"

// declare writes the kinds and script settings that came with files, and forgets those of removed files, in the sallyport.yaml
// of the skill. It changes nothing when the file, or inference, already says the same, so that saving twice is saving once.
// A sallyport.yaml that cannot be read is left for [parseSettings] to report.
func declare(files map[string]stagedFile, declared []File, removed []string) error {
	declared = slices.DeleteFunc(slices.Clone(declared), func(f File) bool { return f.Kind == "" && f.Script == nil })
	current, exists := files[SettingsFile]
	if len(declared) == 0 && (len(removed) == 0 || !exists) {
		return nil
	}
	root, fault := readSettings(current.content)
	if fault != nil {
		return nil
	}
	kinds, okKinds := section(root, "kinds")
	scripts, okScripts := section(root, "scripts")
	if !okKinds || !okScripts {
		return nil
	}
	before := string(sectionsForm(kinds, scripts))
	for _, name := range removed {
		delete(kinds, name)
		delete(scripts, name)
	}
	for _, f := range declared {
		if err := declareFile(kinds, scripts, f, files[f.Path].content); err != nil {
			return err
		}
	}
	if string(sectionsForm(kinds, scripts)) == before {
		return nil
	}
	return writeSettings(files, root, kinds, scripts)
}

// section returns one of the two mappings of sallyport.yaml; false when it is something else.
func section(root yamlValue, key string) (map[string]yamlValue, bool) {
	v, _ := root.at(key)
	if v.kind != yamlNull && v.kind != yamlMap {
		return nil, false
	}
	out := make(map[string]yamlValue, len(v.keys))
	for i, name := range v.keys {
		out[name] = v.items[i]
	}
	return out, true
}

func mapOf(entries map[string]yamlValue) yamlValue {
	v := yamlValue{kind: yamlMap}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		setKey(&v, name, entries[name])
	}
	return v
}

func sectionsForm(kinds, scripts map[string]yamlValue) json.RawMessage {
	v := yamlValue{kind: yamlMap}
	setKey(&v, "kinds", mapOf(kinds))
	setKey(&v, "scripts", mapOf(scripts))
	return v.jsonForm()
}

func declareFile(kinds, scripts map[string]yamlValue, f File, content []byte) error {
	_, hasSettings := scripts[f.Path]
	effective := InferKind(f.Path, content)
	if hasSettings {
		effective = sallyport.KindScript
	}
	if stated, declared := kinds[f.Path]; declared {
		effective = sallyport.Kind(stated.text)
	}
	kind := f.Kind
	if f.Script != nil {
		kind = sallyport.KindScript
	}
	if kind != effective {
		kinds[f.Path] = yamlValue{kind: yamlText, text: string(kind)}
	}
	if kind != sallyport.KindScript {
		delete(scripts, f.Path)
		return nil
	}
	if f.Script == nil {
		return nil
	}
	script, err := scriptValue(*f.Script, InferRuntime(f.Path, content))
	if err != nil {
		return err
	}
	if len(script.keys) == 0 {
		delete(scripts, f.Path)
		return nil
	}
	scripts[f.Path] = script
	return nil
}

// scriptValue is how sallyport.yaml states these settings; what inference gives anyway is left out.
func scriptValue(s sallyport.ScriptSettings, inferredRuntime string) (yamlValue, error) {
	v := yamlValue{kind: yamlMap}
	if s.Runtime != "" && s.Runtime != inferredRuntime {
		setKey(&v, "runtime", yamlValue{kind: yamlText, text: s.Runtime})
	}
	if s.Input != "" && s.Input != sallyport.InputStdin {
		setKey(&v, "input", yamlValue{kind: yamlText, text: string(s.Input)})
	}
	for _, part := range []struct {
		key  string
		json json.RawMessage
	}{{"input_schema", s.InputSchema}, {"argv", s.Argv}} {
		if len(part.json) == 0 || string(part.json) == "null" {
			continue
		}
		value, err := jsonValue(part.json)
		if err != nil {
			return yamlValue{}, sallyport.Errorf("registry.save", sallyport.CodeInvalidArgument, "%s is not plain JSON: %s", part.key, sallyport.Public(err).Message)
		}
		setKey(&v, part.key, value)
	}
	if !s.Limits.IsZero() {
		form, err := s.Limits.MarshalJSON()
		if err != nil {
			return yamlValue{}, &sallyport.Error{Op: "registry.save", Code: sallyport.CodeInternal, Err: err}
		}
		limits, err := jsonValue(form)
		if err != nil {
			return yamlValue{}, err
		}
		setKey(&v, "limits", limits)
	}
	if len(s.Secrets) > 0 {
		list := yamlValue{kind: yamlList}
		for _, name := range slices.Sorted(slices.Values(s.Secrets)) {
			list.items = append(list.items, yamlValue{kind: yamlText, text: name})
		}
		setKey(&v, "secrets", list)
	}
	if s.Confirm {
		setKey(&v, "confirm", yamlValue{kind: yamlBool, text: "true"})
	}
	return v, nil
}

// writeSettings replaces sallyport.yaml, or drops it when nothing is left to say. The text is checked to read back.
func writeSettings(files map[string]stagedFile, root yamlValue, kinds, scripts map[string]yamlValue) error {
	for key, entries := range map[string]map[string]yamlValue{"kinds": kinds, "scripts": scripts} {
		removeKey(&root, key)
		if len(entries) > 0 {
			setKey(&root, key, mapOf(entries))
		}
	}
	root = sortedMap(root)
	if len(root.keys) == 0 {
		delete(files, SettingsFile)
		return nil
	}
	text := settingsHeader + settingsText(root)
	if again, fault := readYAML(text); fault != nil || !bytes.Equal(again.jsonForm(), root.jsonForm()) {
		return sallyport.Errorf("registry.save", sallyport.CodeInvalidArgument,
			"the kinds and settings cannot be written into %s; send that file instead", SettingsFile)
	}
	files[SettingsFile] = stagedFile{content: []byte(text), mode: defaultMode}
	return nil
}

func sortedMap(v yamlValue) yamlValue {
	entries := make(map[string]yamlValue, len(v.keys))
	for i, key := range v.keys {
		entries[key] = v.items[i]
	}
	return mapOf(entries)
}

// settingsText writes the two upper levels of the file as blocks and everything below on one line each.
func settingsText(root yamlValue) string {
	var b strings.Builder
	for i, key := range root.keys {
		section := root.items[i]
		if section.kind != yamlMap || len(section.keys) == 0 {
			fmt.Fprintf(&b, "%s%s\n", blockKey("", key), section.flow())
			continue
		}
		b.WriteString(strings.TrimRight(blockKey("", key), " ") + "\n")
		for j, name := range section.keys {
			entry := section.items[j]
			if entry.kind != yamlMap || len(entry.keys) == 0 {
				fmt.Fprintf(&b, "%s%s\n", blockKey("  ", name), entry.flow())
				continue
			}
			b.WriteString(strings.TrimRight(blockKey("  ", name), " ") + "\n")
			for k, setting := range entry.keys {
				fmt.Fprintf(&b, "%s%s\n", blockKey("    ", setting), entry.items[k].flow())
			}
		}
	}
	return b.String()
}

// blockKey writes a key of a block mapping up to its value.
func blockKey(indent, key string) string {
	quoted := quoteYAML(key)
	switch {
	case len(quoted) > maxSimpleKey:
		return indent + "? " + quoted + "\n" + indent + ": "
	case plainKey.MatchString(key) && !ambiguousKey(key):
		return indent + key + ": "
	}
	return indent + quoted + ": "
}

// ambiguousKey reports whether key, written plain, is not text.
func ambiguousKey(key string) bool {
	kind, _ := resolvePlain(key)
	return kind != yamlText
}

// jsonValue reads strict JSON as a value.
func jsonValue(data []byte) (yamlValue, error) {
	if err := strictjson.Check(data); err != nil {
		return yamlValue{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decodeValue(decoder)
}

func decodeValue(decoder *json.Decoder) (yamlValue, error) {
	token, err := decoder.Token()
	if err != nil {
		return yamlValue{}, sallyport.Errorf("registry.json", sallyport.CodeInvalidArgument, "it is not JSON")
	}
	switch t := token.(type) {
	case nil:
		return yamlValue{kind: yamlNull}, nil
	case bool:
		return yamlValue{kind: yamlBool, text: strconv.FormatBool(t)}, nil
	case string:
		return yamlValue{kind: yamlText, text: t}, nil
	case json.Number:
		if kind, text := resolvePlain(t.String()); kind == yamlNumber {
			return yamlValue{kind: yamlNumber, text: text}, nil
		}
		return yamlValue{}, sallyport.Errorf("registry.json", sallyport.CodeInvalidArgument, "a number is out of range")
	case json.Delim:
		return decodeNested(decoder, t)
	}
	return yamlValue{}, sallyport.Errorf("registry.json", sallyport.CodeInvalidArgument, "it is not JSON")
}

func decodeNested(decoder *json.Decoder, open json.Delim) (yamlValue, error) {
	v := yamlValue{kind: yamlList}
	if open == '{' {
		v.kind = yamlMap
	}
	for decoder.More() {
		if v.kind == yamlMap {
			key, err := decodeValue(decoder)
			if err != nil {
				return yamlValue{}, err
			}
			v.keys = append(v.keys, key.text)
			v.keyLines = append(v.keyLines, 0)
		}
		item, err := decodeValue(decoder)
		if err != nil {
			return yamlValue{}, err
		}
		v.items = append(v.items, item)
	}
	_, err := decoder.Token()
	return v, err
}
