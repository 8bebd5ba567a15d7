package registry

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// subsetFault says why a host that reads a subset of YAML could not read a header that is YAML, with what mends it; empty when it
// could. The subset is what the official TypeScript client reads: block mappings and lists, plain, quoted and block text, lists and
// mappings in brackets on one line, and no more.
func subsetFault(header string) string {
	hidden, _ := hideLineBreaks(header)
	node, fault := loadYAML(hidden)
	if fault != nil || node == nil {
		return ""
	}
	return subset{lines: strings.Split(hidden, "\n")}.node(node, 0)
}

// loneReturn reports whether a line of the header ends in a carriage return alone, which old editors wrote and few hosts know. length
// is about the header's, so that the body does not count.
func loneReturn(content []byte, length int) bool {
	head := content[:min(len(content), length)]
	return bytes.Count(head, []byte("\r")) > bytes.Count(head, []byte("\r\n"))
}

type subset struct {
	lines []string
}

// rest is the line on which node begins, from there on.
func (s subset) rest(node *yaml.Node) string {
	if node.Line < 1 || node.Line > len(s.lines) {
		return ""
	}
	runes := []rune(s.lines[node.Line-1])
	return string(runes[min(max(node.Column-1, 0), len(runes)):])
}

// last reports whether nothing comes behind a block that begins on node's line.
func (s subset) last(node *yaml.Node) bool {
	for _, line := range s.lines[min(max(node.Line, 0), len(s.lines)):] {
		if line != "" && line[0] != ' ' {
			return false
		}
	}
	return true
}

// blanksBehindFence reports whether the opening fence has more than its dashes, which hosts that compare the line do not find.
func blanksBehindFence(content []byte) bool {
	first, _, _ := bytes.Cut(bytes.TrimPrefix(content, []byte("\ufeff")), []byte("\n"))
	first = bytes.TrimSuffix(first, []byte("\r"))
	return isFence(string(first)) && len(first) > len("---")
}

func (s subset) node(node *yaml.Node, depth int) string {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "" || node.Style&yaml.TaggedStyle != 0:
		return "the frontmatter has anchors, aliases or tags; write the values out"
	case depth > maxYAMLDepth-2:
		return "the frontmatter is nested too deep; flatten it"
	case node.Kind == yaml.ScalarNode:
		return s.scalar(node)
	case node.Style&yaml.FlowStyle != 0 && !closedOnLine(s.rest(node)):
		return "the frontmatter has brackets that continue on the next line; write them on one line"
	}
	for i, child := range node.Content {
		isKey := node.Kind == yaml.MappingNode && i%2 == 0
		if fault := s.node(child, depth+1); fault != "" {
			return fault
		}
		if !isKey {
			if node.Kind == yaml.MappingNode && node.Style&yaml.FlowStyle != 0 && child.Kind == yaml.ScalarNode && child.Value == "" && child.Style&quotedStyles == 0 {
				return "the frontmatter has a key without a value in brackets; write the value"
			}
			continue
		}
		line := ""
		if child.Line >= 1 && child.Line <= len(s.lines) {
			line = strings.TrimLeft(s.lines[child.Line-1], " -")
		}
		kind, _ := resolvePlain(child.Value)
		if strings.HasPrefix(line, "? ") || child.Style&quotedStyles == 0 && kind != yamlText {
			return "the frontmatter has a key that is not plain text; put it in quotes"
		}
	}
	return ""
}

func (s subset) scalar(node *yaml.Node) string {
	rest := s.rest(node)
	switch {
	case node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		if rest == "" || quoteEnd(rest, 0) < 0 {
			return "the frontmatter has quoted text that continues on the next line; write it on one line or as a block with >-"
		}
	case node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		if header, _, _ := strings.Cut(rest, "#"); strings.ContainsAny(header, "0123456789") {
			return "the frontmatter has a block with an indentation number; leave the number out"
		} else if strings.Contains(header, "+") && s.last(node) {
			// Whether the line end before the closing fence belongs to the text is what readers do not agree about.
			return "the frontmatter ends with a block that keeps the lines at its end; write | or > without +"
		}
	case notFinite(node.Value):
		return "the frontmatter has a number that JSON cannot say; put it in quotes"
	}
	return ""
}

// notFinite reports whether a plain scalar is a number of YAML that JSON has no form for.
func notFinite(text string) bool {
	switch strings.ToLower(strings.TrimLeft(text, "+-")) {
	case ".inf", ".nan":
		return true
	}
	if !coreFloat.MatchString(text) {
		return false
	}
	n, _ := strconv.ParseFloat(text, 64)
	return math.IsInf(n, 0)
}

// quoteEnd returns where the quoted text that begins at start ends, behind its quote; -1 when it does not end on this line.
func quoteEnd(line string, start int) int {
	quote := line[start]
	for i := start + 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quote == '"':
			i++
		case line[i] == quote && quote == '\'' && i+1 < len(line) && line[i+1] == quote:
			i++
		case line[i] == quote:
			return i + 1
		}
	}
	return -1
}

// closedOnLine reports whether the bracket that a line begins with is closed on it.
func closedOnLine(line string) bool {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return true
			}
		case (c == '"' || c == '\'') && i > 0 && strings.IndexByte(" \t,[{:", line[i-1]) >= 0:
			end := quoteEnd(line, i)
			if end < 0 {
				return false
			}
			i = end - 1
		case c == '#' && i > 0 && (line[i-1] == ' ' || line[i-1] == '\t'):
			return false
		}
	}
	return false
}
