package requires

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
	pep440 "github.com/aquasecurity/go-pep440-version"

	"github.com/sallyport-dev/sallyport"
)

// maxBlock bounds a block of PEP 723.
const maxBlock = 64 << 10

var blockStart = regexp.MustCompile(`^# /// ([a-zA-Z0-9-]+)$`)

// blocks finds the comment blocks of a type by the rules of PEP 723: from its first line to the last "# ///" of the same run of comments. open is
// the line of one that has no end.
func blocks(content []byte, kind string) (found []block, open int) {
	var lines []string
	for line := range bytes.Lines(content) {
		lines = append(lines, strings.TrimRight(string(line), "\r\n"))
	}
	for i := 0; i < len(lines); i++ {
		start := blockStart.FindStringSubmatch(lines[i])
		if start == nil {
			continue
		}
		end := -1
		for j := i + 1; j < len(lines) && (lines[j] == "#" || strings.HasPrefix(lines[j], "# ")); j++ {
			if lines[j] == "# ///" {
				end = j
			}
		}
		switch {
		case end < 0 && start[1] == kind:
			open = i + 1
		case end < 0:
		default:
			if start[1] == kind {
				found = append(found, block{i + 1, lines[i+1 : end]})
			}
			i = end
		}
	}
	return found, open
}

type block struct {
	line  int // of its start, from 1
	lines []string
}

// text is what the comments say.
func (b block) text() string {
	var out strings.Builder
	for _, line := range b.lines {
		out.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ") + "\n")
	}
	return out.String()
}

// python reads the script block of PEP 723.
func (n *Needs) python(script sallyport.Component) {
	found, open := blocks(script.Content, "script")
	switch {
	case open > 0 && len(found) == 0:
		n.fault(script.Path, open, "the block # /// script has no end; close it with a line # ///")
		return
	case len(found) == 0:
		return
	case len(found) > 1:
		n.fault(script.Path, found[1].line, "there is a second block # /// script; keep one, tools refuse two")
		return
	}
	b := found[0]
	text := b.text()
	if len(text) > maxBlock {
		n.fault(script.Path, b.line, "the block # /// script is larger than %d bytes", maxBlock)
		return
	}
	var described struct {
		RequiresPython *string        `toml:"requires-python"`
		Dependencies   []string       `toml:"dependencies"`
		Tool           map[string]any `toml:"tool"`
	}
	meta, err := toml.Decode(text, &described)
	if err != nil {
		line, message := b.line, "it is not TOML with requires-python: text and dependencies: list of texts"
		if parse, ok := err.(toml.ParseError); ok { //nolint:errorlint // what Decode returns
			line, message = b.line+parse.Position.Line, parse.Message
		}
		n.fault(script.Path, line, "the block # /// script cannot be read: %s", message)
		return
	}
	for _, key := range meta.Undecoded() {
		if key[0] != "tool" {
			n.fault(script.Path, b.line, "the block # /// script has %q, which PEP 723 does not know; it knows requires-python, dependencies and tool", short(key.String()))
		}
	}
	if described.RequiresPython != nil {
		wanted := strings.TrimSpace(*described.RequiresPython)
		if _, err := pep440.NewSpecifiers(wanted); err != nil || len(wanted) > maxText {
			n.fault(script.Path, b.line, "requires-python %q is no version specifier such as >=3.11", short(wanted))
		} else {
			n.Requirements = append(n.Requirements, Requirement{Language: sallyport.LanguagePython, Name: "python", Wanted: wanted})
		}
	}
	for _, text := range described.Dependencies {
		need, ok := dependency(text)
		if !ok {
			n.fault(script.Path, b.line, "the dependency %q is none; want one such as requests>=2,<3", short(text))
			continue
		}
		n.Requirements = append(n.Requirements, need)
	}
}

func short(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

var (
	dependencyForm = regexp.MustCompile(`^\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[A-Za-z0-9._,\s-]*\])?\s*(.*?)\s*$`)
	separators     = regexp.MustCompile(`[-_.]+`)
)

// dependency reads one requirement of PEP 508. One with a URL takes whatever version is there.
func dependency(text string) (Requirement, bool) {
	if len(text) > maxText {
		return Requirement{}, false
	}
	rest, marker, conditional := strings.Cut(text, ";")
	if conditional && strings.TrimSpace(marker) == "" {
		return Requirement{}, false
	}
	m := dependencyForm.FindStringSubmatch(rest)
	if m == nil {
		return Requirement{}, false
	}
	need := Requirement{
		Language: sallyport.LanguagePython, Name: strings.ToLower(separators.ReplaceAllString(m[1], "-")), Conditional: conditional,
	}
	wanted := strings.TrimSpace(m[2])
	if strings.HasPrefix(wanted, "@") {
		return need, true
	}
	if strings.HasPrefix(wanted, "(") && strings.HasSuffix(wanted, ")") {
		wanted = strings.TrimSpace(wanted[1 : len(wanted)-1])
	}
	if wanted != "" {
		if _, err := pep440.NewSpecifiers(wanted); err != nil {
			return Requirement{}, false
		}
	}
	need.Wanted = wanted
	return need, true
}
