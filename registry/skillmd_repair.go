package registry

import (
	"fmt"
	"regexp"
	"strings"
)

// repair is one change of the reading: the line counts from 0 within the header.
type repair struct {
	line    int
	message string
}

var (
	repairEntry  = regexp.MustCompile(`^( *)((?:- +)*)([A-Za-z0-9_][A-Za-z0-9_ .-]*?)[ \t]*:(?:[ \t]+(.*))?$`)
	repairItem   = regexp.MustCompile(`^( *)(-[ \t]+)(\S.*)$`)
	repairGlued  = regexp.MustCompile(`^( *)(name|description|license|compatibility|allowed-tools):([^\s/].*)$`)
	repairField  = regexp.MustCompile(`^ {1,3}(name|description|license|compatibility|metadata|allowed-tools):([ \t]|$)`)
	repairBlock  = regexp.MustCompile(`^[|>][-+0-9]*[ \t]*(#.*)?$`)
	repairInline = regexp.MustCompile(`^[|>][-+]?[ \t]+([^0-9].*)$`) // a number behind > is a comparison
	repairAlias  = regexp.MustCompile(`^\*([^\s,\[\]{}]+)$`)
	repairIndent = regexp.MustCompile(`^[ \t\x{00a0}]*`)
)

// repairHeader returns the header with every value that is not YAML by itself put in quotes, and what it changed. It reads
// line by line what people write without knowing YAML: a colon in a sentence, a leading @ or *, quotes within quotes, text
// that goes on without indentation, tabs. The number of lines stays.
func repairHeader(text string) (string, []repair) {
	r := repairer{header: text, inline: true}
	r.lines = strings.Split(text, "\n")
	for i := range r.lines {
		r.cleanLine(i)
	}
	for i := 0; i < len(r.lines); {
		i = r.entry(i)
	}
	return strings.Join(r.lines, "\n"), r.repairs
}

type repairer struct {
	header  string
	lines   []string
	repairs []repair
	// inline says that the last top-level key has its value on its own line, so no nested block is open.
	inline bool
}

func (r *repairer) note(line int, format string, args ...any) {
	r.repairs = append(r.repairs, repair{line, fmt.Sprintf(format, args...)})
}

// cleanLine turns tabs and no-break spaces in an indentation into blanks and drops control characters.
func (r *repairer) cleanLine(i int) {
	line := r.lines[i]
	if indent := repairIndent.FindString(line); strings.ContainsAny(indent, "\t\u00a0") {
		line = strings.NewReplacer("\t", "  ", "\u00a0", " ").Replace(indent) + line[len(indent):]
		r.note(i, "the line is indented with a tab or a no-break space; it was read with blanks; use blanks")
	}
	clean := strings.Map(func(c rune) rune {
		if c < 0x20 && c != '\t' || c >= 0x7f && c < 0xa0 && c != 0x85 {
			return -1
		}
		return c
	}, line)
	if clean != line {
		r.note(i, "the line has control characters; it was read without them; remove them")
	}
	r.lines[i] = clean
}

// entry mends the entry that begins on line i and returns the line after it.
func (r *repairer) entry(i int) int {
	line := r.lines[i]
	if blankOrComment(line) {
		return i + 1
	}
	if r.inline && repairField.MatchString(line) {
		line = strings.TrimLeft(line, " ")
		r.lines[i] = line
		r.note(i, "the line is indented more than its neighbours; it was read without; remove the blanks at its start")
	}
	if glued := repairGlued.FindStringSubmatch(line); glued != nil {
		line = glued[1] + glued[2] + ": " + glued[3]
		r.lines[i] = line
		r.note(i, "a blank is missing after %q; it was read with one; add it", glued[2]+":")
	}
	if m := repairEntry.FindStringSubmatch(line); m != nil {
		indent := len(m[1]) + len(m[2])
		if indent == 0 {
			r.inline = m[4] != ""
		}
		v := repairValue{indent: indent, prefix: m[1] + m[2] + m[3] + ": ", what: fmt.Sprintf("the value of %q", m[3]), text: m[4]}
		v.mustBeText = indent == 0 && m[3] == "description"
		return r.value(i, v)
	}
	if m := repairItem.FindStringSubmatch(line); m != nil {
		return r.value(i, repairValue{indent: len(m[1]), prefix: m[1] + m[2], what: "the list item", text: m[3]})
	}
	return i + 1
}

// repairValue is one value: what stands on a line behind its prefix.
type repairValue struct {
	indent       int
	prefix, what string
	text         string
	mustBeText   bool // a list or a mapping is not what was meant
}

// value mends the value on line i with the lines that continue it, and returns the line after it.
func (r *repairer) value(i int, v repairValue) int {
	value := strings.TrimSpace(v.text)
	end, loose := r.continuation(i+1, v.indent)
	more := r.lines[i+1 : end]
	fold := foldLines
	switch {
	case repairBlock.MatchString(value):
		if end = r.skipBlock(i+1, v.indent); !r.marginBlock(i+1, end, v.indent) {
			return end
		}
		if value[0] == '|' {
			fold = joinLines
		}
		end, _ = r.continuation(end, v.indent)
		more, value = r.lines[i+1:end], ""
	case value == "" && !v.mustBeText, strings.HasPrefix(value, "#"), value == "" && len(more) == 0:
		return i + 1
	case !loose && r.readsAlone(value, more, v.mustBeText):
		return end
	}
	how := "as if it stood in quotes; put it in double quotes"
	if sign := repairInline.FindStringSubmatch(value); sign != nil && v.mustBeText {
		if value[0] == '|' {
			fold = joinTrimmed
		}
		value, how = sign[1], "without the block sign at its start; begin its text on the next line, indented"
	}
	r.lines[i] = v.prefix + quoteYAML(unquoteOuter(fold(value, more)))
	for j := i + 1; j < end; j++ {
		r.lines[j] = ""
	}
	r.note(i, "%s is not valid YAML; it was read %s", v.what, how)
	return end
}

// marginBlock reports whether a block scalar has no indented text and its text begins on line end, at the margin.
func (r *repairer) marginBlock(begin, end, indent int) bool {
	for _, line := range r.lines[begin:end] {
		if strings.TrimSpace(line) != "" {
			return false
		}
	}
	return indent == 0 && end < len(r.lines) && !r.looksLikeEntry(r.lines[end])
}

// skipBlock returns the line after a block scalar whose key is indented by indent.
func (r *repairer) skipBlock(i, indent int) int {
	for i < len(r.lines) && (strings.TrimSpace(r.lines[i]) == "" || leadingBlanks(r.lines[i]) > indent) {
		i++
	}
	return i
}

// continuation returns the line after those that continue a value. loose means that one of them lacks the indentation that
// YAML demands.
func (r *repairer) continuation(i, indent int) (end int, loose bool) {
	end = i
	for ; i < len(r.lines); i++ {
		line := r.lines[i]
		switch {
		case strings.TrimSpace(line) == "":
			continue
		case indent == 0 && repairField.MatchString(line):
			return end, loose
		case leadingBlanks(line) > indent:
		case indent == 0 && !r.looksLikeEntry(line):
			loose = true
		default:
			return end, loose
		}
		end = i + 1
	}
	return end, loose
}

func (*repairer) looksLikeEntry(line string) bool {
	return strings.HasPrefix(line, "#") || strings.HasPrefix(line, "? ") || repairEntry.MatchString(line) || repairItem.MatchString(line) || repairGlued.MatchString(line)
}

// readsAlone reports whether the value is YAML by itself. An alias counts when the header has its anchor.
func (r *repairer) readsAlone(value string, more []string, asText bool) bool {
	if alias := repairAlias.FindStringSubmatch(value); alias != nil {
		return strings.Contains(r.header, "&"+alias[1])
	}
	var b strings.Builder
	b.WriteString("k: " + value + "\n")
	for _, line := range more {
		b.WriteString(" " + line + "\n")
	}
	v, fault := readYAML(b.String())
	if fault != nil || v.kind != yamlMap || len(v.keys) != 1 || v.keys[0] != "k" {
		return false
	}
	return !asText || v.items[0].kind != yamlList && v.items[0].kind != yamlMap
}

// foldLines joins a value and its further lines as YAML folds plain text: a line end is a blank, an empty line a line end.
func foldLines(value string, more []string) string {
	var b strings.Builder
	b.WriteString(value)
	empty := 0
	for _, line := range more {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" {
			empty++
			continue
		}
		if empty == 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.Repeat("\n", empty))
		b.WriteString(trimmed)
		empty = 0
	}
	return strings.TrimSpace(b.String())
}

// joinLines joins a value and its further lines as they stand.
func joinLines(value string, more []string) string {
	return strings.TrimSpace(value + "\n" + strings.Join(more, "\n"))
}

// joinTrimmed joins a value and its further lines without the blanks around each.
func joinTrimmed(value string, more []string) string {
	var b strings.Builder
	b.WriteString(value)
	for _, line := range more {
		b.WriteString("\n" + strings.TrimSpace(line))
	}
	return strings.TrimSpace(b.String())
}

// unquoteOuter drops one pair of quotes around s, unless they are two pairs: "a" or "b".
func unquoteOuter(s string) string {
	if len(s) < 2 || s[0] != s[len(s)-1] {
		return s
	}
	inner := s[1 : len(s)-1]
	if at := strings.IndexByte(inner, s[0]); at > 0 && inner[at-1] != ' ' && inner[at-1] != '\\' && (at+1 == len(inner) || strings.IndexByte(" ,.;:)", inner[at+1]) >= 0) {
		return s
	}
	switch s[0] {
	case '"':
		return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\t`, "\t").Replace(inner)
	case '\'':
		return strings.ReplaceAll(inner, "''", "'")
	}
	return s
}

func blankOrComment(line string) bool {
	trimmed := strings.TrimSpace(line)
	return trimmed == "" || strings.HasPrefix(trimmed, "#")
}

func leadingBlanks(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
