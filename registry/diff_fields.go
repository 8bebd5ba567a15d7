package registry

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/sallyport-dev/sallyport"
)

// FieldDiff is one named value that differs. A side that is absent has no such value.
type FieldDiff struct {
	Name   string          `json:"name"`
	Change Change          `json:"change"`
	Before json.RawMessage `json:"old_value,omitempty"`
	After  json.RawMessage `json:"new_value,omitempty"`
}

// maxFieldDepth bounds how deep mappings are compared key by key; below it they are compared whole.
const maxFieldDepth = 4

// diffJSON compares two JSON objects key by key, keys in order.
func diffJSON(prefix string, before, after json.RawMessage) []FieldDiff {
	return diffMaps(prefix, object(before), object(after), 1)
}

func diffMaps(prefix string, before, after map[string]any, depth int) []FieldDiff {
	keys := map[string]any{}
	maps.Copy(keys, before)
	maps.Copy(keys, after)
	var out []FieldDiff
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		old, had := before[key]
		now, has := after[key]
		oldMap, oldIsMap := old.(map[string]any)
		nowMap, nowIsMap := now.(map[string]any)
		switch name := prefix + key; {
		case had && has && reflect.DeepEqual(old, now):
		case oldIsMap && nowIsMap && depth < maxFieldDepth:
			out = append(out, diffMaps(name+".", oldMap, nowMap, depth+1)...)
		default:
			out = append(out, fieldDiff(name, had, has, old, now))
		}
	}
	return out
}

func fieldDiff(name string, had, has bool, before, after any) FieldDiff {
	d := FieldDiff{Name: name, Change: ChangeChanged}
	switch {
	case !had:
		d.Change = ChangeAdded
	case !has:
		d.Change = ChangeRemoved
	}
	if had {
		d.Before = plainJSON(before)
	}
	if has {
		d.After = plainJSON(after)
	}
	return d
}

func plainJSON(value any) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// object decodes a JSON object, numbers as they are written; anything else is an empty one.
func object(form json.RawMessage) map[string]any {
	fields := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(form))
	decoder.UseNumber()
	if decoder.Decode(&fields) != nil || fields == nil {
		return map[string]any{}
	}
	return fields
}

// diffSettings compares the settings of scripts, named by path and setting. A script that is in one revision only has all of
// its settings added or removed.
func diffSettings(before, after []sallyport.Component) []FieldDiff {
	old, now := settingsByPath(before), settingsByPath(after)
	paths := maps.Clone(old)
	maps.Copy(paths, now)
	var out []FieldDiff
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		out = append(out, diffMaps(path+" ", old[path], now[path], maxFieldDepth)...)
	}
	return out
}

func settingsByPath(components []sallyport.Component) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, c := range components {
		if c.Script != nil {
			out[c.Path] = object(plainJSON(c.Script))
		}
	}
	return out
}
