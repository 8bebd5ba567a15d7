package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sallyport-dev/sallyport"
)

// applyYAML sets what a server.yaml says. The file is a plain tree: one document, no anchors, no merges, no key twice.
func applyYAML(s *Settings, name string, data []byte) error {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return &sallyport.Error{Op: "config", Code: sallyport.CodeInternal, Err: err}
	}
	var document, second yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return invalid("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		return invalid("%s: want one document", name)
	}
	w := walker{settings: s, file: name, rows: rows(), seen: map[string]int{}}
	root := &document
	if root.Kind == yaml.DocumentNode {
		if len(root.Content) != 1 {
			return nil
		}
		root = root.Content[0]
	}
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return w.fault(root, "", "want settings such as %s", quote("listen: "+DefaultListen))
	}
	return w.mapping("", root)
}

type walker struct {
	settings *Settings
	file     string
	rows     map[string]setting
	seen     map[string]int // key to line
}

func (w walker) mapping(prefix string, node *yaml.Node) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			return w.fault(name, prefix, "a setting's name is a word")
		}
		key := name.Value
		if prefix != "" {
			key = prefix + "." + key
		}
		if line, twice := w.seen[key]; twice {
			return w.fault(name, key, "is set on line %d already", line)
		}
		w.seen[key] = name.Line
		if err := w.value(key, name, value); err != nil {
			return err
		}
	}
	return nil
}

func (w walker) value(key string, name, value *yaml.Node) error {
	if value.Kind == yaml.AliasNode || value.Anchor != "" {
		return w.fault(value, key, "anchors and aliases are not used here")
	}
	row, known := w.rows[key]
	if !known {
		if value.Kind == yaml.MappingNode && w.isGroup(key) {
			return w.mapping(key, value)
		}
		return w.fault(name, "", "%s", unknownSetting(key))
	}
	var err error
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		return nil // a setting without a value is unset
	case row.tree != nil:
		err = row.tree(w.settings, value)
	case value.Kind == yaml.ScalarNode:
		err = row.setText(w.settings, value.Value)
	case value.Kind == yaml.SequenceNode && row.list != nil:
		var items []string
		if items, err = scalars(value); err == nil {
			err = row.list(w.settings, items)
		}
	case value.Kind == yaml.MappingNode && row.pairs != nil:
		var pairs map[string]string
		if pairs, err = stringMap(value); err == nil {
			err = row.pairs(w.settings, pairs)
		}
	default:
		err = fmt.Errorf("want %s", row.form)
	}
	if err != nil {
		return w.fault(value, key, "%v", err)
	}
	return nil
}

func (w walker) isGroup(key string) bool {
	for known := range w.rows {
		if strings.HasPrefix(known, key+".") {
			return true
		}
	}
	return false
}

func (w walker) fault(node *yaml.Node, key, format string, args ...any) error {
	place := fmt.Sprintf("%s:%d: ", w.file, node.Line)
	if key != "" {
		place += key + ": "
	}
	return invalid("%s", place+fmt.Sprintf(format, args...))
}

func scalars(node *yaml.Node) ([]string, error) {
	items := make([]string, 0, len(node.Content))
	for _, item := range node.Content {
		if item.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("want plain values in the list on line %d", item.Line)
		}
		items = append(items, item.Value)
	}
	return items, nil
}

func stringMap(node *yaml.Node) (map[string]string, error) {
	pairs := map[string]string{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if name.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("want name: value on line %d", name.Line)
		}
		if _, twice := pairs[name.Value]; twice {
			return nil, fmt.Errorf("%s is there twice", quote(name.Value))
		}
		pairs[name.Value] = value.Value
	}
	return pairs, nil
}
