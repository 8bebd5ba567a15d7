package registry

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The bounds of one YAML text.
const (
	maxYAMLDepth   = 32
	maxYAMLNodes   = 10_000 // after expanding aliases
	maxYAMLAliases = 64
)

// yamlFault says why a text could not be read. Line counts from 1 within the text; 0 is unknown.
type yamlFault struct {
	code    string
	line    int
	message string
}

// readYAML reads exactly one YAML document, at most its bounds large, by the core schema of YAML 1.2: merge keys and
// time stamps are plain text, duplicate keys are refused, tags other than the core ones are ignored. An empty text is null.
func readYAML(text string) (yamlValue, *yamlFault) {
	hidden, restore := hideLineBreaks(text)
	node, fault := loadYAML(hidden)
	if fault != nil || node == nil {
		return yamlValue{}, fault
	}
	reader := yamlReader{restore: restore, nodes: maxYAMLNodes, aliases: maxYAMLAliases}
	return reader.value(node, 0)
}

// loadYAML calls the library, which must never take the process down.
func loadYAML(text string) (node *yaml.Node, fault *yamlFault) {
	defer func() {
		if recover() != nil {
			node, fault = nil, &yamlFault{ProblemYAMLInvalid, 0, "the YAML cannot be read"}
		}
	}()
	loader, err := yaml.NewLoader(strings.NewReader(text))
	if err != nil {
		return nil, yamlFaultOf(err)
	}
	var first, second yaml.Node
	if err := loader.Load(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, yamlFaultOf(err)
	}
	if err := loader.Load(&second); err == nil {
		return nil, &yamlFault{ProblemYAMLDocuments, second.Line, "a second YAML document begins; keep one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlFaultOf(err)
	}
	node = &first
	for node != nil && node.Kind == yaml.DocumentNode {
		if len(node.Content) == 0 {
			return nil, nil
		}
		node = node.Content[0]
	}
	return node, nil
}

func yamlFaultOf(err error) *yamlFault {
	fault := &yamlFault{ProblemYAMLInvalid, 0, "the YAML cannot be read"}
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		fault.line = load.Mark.Line
		if load.ContextMark.Line > 0 {
			fault.line = load.ContextMark.Line
		}
		fault.message = load.Message
		if strings.Contains(load.Message, "depth") {
			fault.code = ProblemYAMLTooDeep
		}
	}
	return fault
}

// hideLineBreaks replaces the three characters that YAML 1.1 took for line breaks and YAML 1.2 takes for text by ones that
// the library leaves alone, and returns the way back.
func hideLineBreaks(text string) (hidden string, restore *strings.Replacer) {
	var there, back []string
	next := rune(0xe000)
	for _, r := range []string{"\u0085", "\u2028", "\u2029"} {
		if !strings.Contains(text, r) {
			continue
		}
		for strings.ContainsRune(text, next) && next < 0xf8ff {
			next++
		}
		there = append(there, r, string(next))
		back = append(back, string(next), r)
		next++
	}
	return strings.NewReplacer(there...).Replace(text), strings.NewReplacer(back...)
}

type yamlReader struct {
	restore *strings.Replacer
	nodes   int
	aliases int
}

func (r *yamlReader) value(node *yaml.Node, depth int) (yamlValue, *yamlFault) {
	r.nodes--
	switch {
	case depth > maxYAMLDepth:
		return yamlValue{}, &yamlFault{ProblemYAMLTooDeep, node.Line, fmt.Sprintf("nesting is deeper than %d levels; flatten it", maxYAMLDepth)}
	case r.nodes < 0:
		return yamlValue{}, &yamlFault{ProblemYAMLAliases, node.Line, fmt.Sprintf("the YAML has more than %d values; make it smaller", maxYAMLNodes)}
	}
	switch node.Kind {
	case yaml.AliasNode:
		r.aliases--
		if r.aliases < 0 || node.Alias == nil {
			return yamlValue{}, &yamlFault{ProblemYAMLAliases, node.Line, fmt.Sprintf("more than %d aliases; write the values out", maxYAMLAliases)}
		}
		return r.value(node.Alias, depth+1)
	case yaml.ScalarNode:
		return r.scalar(node), nil
	case yaml.SequenceNode:
		list := yamlValue{kind: yamlList, line: node.Line}
		for _, child := range node.Content {
			item, fault := r.value(child, depth+1)
			if fault != nil {
				return yamlValue{}, fault
			}
			list.items = append(list.items, item)
		}
		return list, nil
	case yaml.MappingNode:
		return r.mapping(node, depth)
	case yaml.DocumentNode, yaml.StreamNode:
	}
	return yamlValue{}, &yamlFault{ProblemYAMLInvalid, node.Line, "the YAML cannot be read"}
}

func (r *yamlReader) mapping(node *yaml.Node, depth int) (yamlValue, *yamlFault) {
	m := yamlValue{kind: yamlMap, line: node.Line}
	seen := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		keyNode := node.Content[i]
		key, fault := r.value(keyNode, depth+1)
		if fault != nil {
			return yamlValue{}, fault
		}
		name := key.text // the JSON form of a number or truth value, empty for null
		if key.kind == yamlList || key.kind == yamlMap {
			return yamlValue{}, &yamlFault{ProblemYAMLKeyNotText, keyNode.Line, "a key is a list or a mapping; quote the text that begins with [ or {"}
		}
		if first, taken := seen[name]; taken {
			return yamlValue{}, &yamlFault{
				ProblemYAMLDuplicateKey, keyNode.Line,
				fmt.Sprintf("the key %q is also on line %d; keep one", shorten(name), first),
			}
		}
		seen[name] = keyNode.Line
		item, fault := r.value(node.Content[i+1], depth+1)
		if fault != nil {
			return yamlValue{}, fault
		}
		m.keys = append(m.keys, name)
		m.keyLines = append(m.keyLines, keyNode.Line)
		m.items = append(m.items, item)
	}
	return m, nil
}

const quotedStyles = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func (r *yamlReader) scalar(node *yaml.Node) yamlValue {
	text := r.restore.Replace(node.Value)
	v := yamlValue{kind: yamlText, text: text, source: text, line: node.Line, plain: node.Style&quotedStyles == 0}
	resolved := v.plain
	if node.Style&yaml.TaggedStyle != 0 {
		switch node.ShortTag() {
		case "!!int", "!!float", "!!bool", "!!null":
			resolved = true
		default:
			resolved = false
		}
	}
	if resolved {
		if v.kind, v.text = resolvePlain(text); v.kind == yamlNull {
			v.text = ""
		}
	}
	return v
}

// shorten keeps a caller's text in a message short.
func shorten(s string) string { return shortenTo(s, 80) }

// shortenTo keeps at most so many characters of s.
func shortenTo(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most]) + "…"
}
