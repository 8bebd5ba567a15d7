package registry

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The bounds of the specification, in characters.
const (
	maxNameLength          = 64
	maxDescriptionLength   = 1024
	maxCompatibilityLength = 500
	maxBodyLines           = 500
	maxBodyCharacters      = 20_000 // about 5000 tokens
)

// specFields are the top-level fields of the specification.
func specFields() []string {
	return []string{"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
}

// checkFields applies the rules to the fields; firstLine is the line of the file on which the header begins.
func (p *skillParser) checkFields(firstLine int) {
	p.checkName(firstLine)
	p.checkDescription(firstLine)
	for i, key := range p.fields.keys {
		value, line := p.fields.items[i], firstLine+p.fields.keyLines[i]-1
		switch key {
		case "name", "description":
		case "license":
			if value.kind != yamlText {
				p.add(ProblemLicense, line, "license is not text; write it in quotes or leave it out")
			}
		case "compatibility":
			p.checkCompatibility(value, line)
		case "metadata":
			p.checkMetadata(value, firstLine, line)
		case "allowed-tools":
			if value.kind != yamlText {
				p.add(ProblemAllowedTools, line, "allowed-tools is not one text; write the tools on one line, separated by blanks")
			}
		default:
			p.add(ProblemFieldUnknown, line, "the field %q is not in the specification; it is kept; move it under metadata", shorten(key))
		}
	}
	if strings.Count(p.md.Body, "\n") > maxBodyLines || utf8.RuneCountInString(p.md.Body) > maxBodyCharacters {
		p.add(ProblemBodyLong, p.md.BodyLine, "the body is longer than %d lines or about 5000 tokens; move parts into references/", maxBodyLines)
	}
}

func (p *skillParser) checkName(firstLine int) {
	value, found := p.fields.at("name")
	line := firstLine
	if found {
		line = firstLine + value.line - 1
	}
	text, scalar := value.scalarText()
	name := strings.TrimSpace(text)
	switch {
	case found && !scalar && value.kind != yamlNull:
		p.fallBackToDirectory(ProblemNameNotText, line, "name is not text")
	case name == "":
		p.fallBackToDirectory(ProblemNameMissing, line, "name is missing or blank")
	default:
		if value.kind != yamlText {
			p.add(ProblemNameNotText, line, "name is a number or a truth value; it is read as text; put it in quotes")
		}
		p.md.Name = name
		p.checkNameText(line)
	}
}

func (p *skillParser) fallBackToDirectory(code string, line int, fault string) {
	directory := strings.TrimSpace(strings.ToValidUTF8(p.directory, "\ufffd"))
	if directory == "" || unsafeName(directory) {
		p.addError(code, line, "%s; add a line name: followed by lower-case letters, digits and hyphens", fault)
		return
	}
	p.md.Name = directory
	p.add(code, line, "%s; the directory's name %q is used; add a line name: %s", fault, shorten(directory), Slug(directory))
}

func (p *skillParser) checkNameText(line int) {
	name := norm.NFKC.String(p.md.Name)
	if unsafeName(p.md.Name) {
		p.add(ProblemNameUnsafe, line, "the name looks like a path or has control characters; use lower-case letters, digits and hyphens")
		return
	}
	if count := utf8.RuneCountInString(p.md.Name); count > maxNameLength {
		p.add(ProblemNameTooLong, line, "the name has %d characters, more than %d; shorten it", count, maxNameLength)
	}
	var wrong, foreign bool
	for _, r := range name {
		switch {
		case r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
		case r > unicode.MaxASCII && (unicode.IsDigit(r) || unicode.IsLetter(r) && unicode.ToLower(r) == r || unicode.IsMark(r)):
			foreign = true
		default:
			wrong = true
		}
	}
	if wrong {
		p.add(ProblemNameCharacters, line, "the name has characters other than lower-case letters, digits and hyphens; %q would do", Slug(p.md.Name))
	}
	if foreign {
		p.add(ProblemNameNotASCII, line, "the name has letters outside ASCII; the slug is %q; other hosts may refuse the name", Slug(p.md.Name))
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		p.add(ProblemNameHyphens, line, "the name has a hyphen first or last, or two in a row; %q would do", Slug(p.md.Name))
	}
	if p.directory != "" && norm.NFKC.String(p.directory) != name {
		p.add(ProblemNameDirectory, line, "the name %q is not the directory's name %q; make them equal", shorten(p.md.Name), shorten(strings.ToValidUTF8(p.directory, "\ufffd")))
	}
	for _, word := range []string{"anthropic", "claude"} {
		if strings.Contains(strings.ToLower(name), word) {
			p.add(ProblemNameReserved, line, "the name contains %q, which one upload service reserves", word)
		}
	}
}

// unsafeName reports whether a name would leave a directory if anything ever took it for a path, or hides what it is.
func unsafeName(name string) bool {
	if strings.HasPrefix(name, "/") || strings.Contains(name, `\`) || len(name) > 1 && name[1] == ':' && isLetter(name[0]) && strings.ContainsAny(name, `/\`) {
		return true
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029
	})
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func (p *skillParser) checkDescription(firstLine int) {
	value, found := p.fields.at("description")
	line := firstLine
	if found {
		line = firstLine + value.line - 1
	}
	text, scalar := value.scalarText()
	switch {
	case found && !scalar && value.kind != yamlNull:
		p.addError(ProblemDescriptionNotText, line, "description is a list or a mapping; put the text in double quotes")
		return
	case strings.TrimSpace(text) == "":
		p.add(ProblemDescriptionMissing, line, "description is missing or blank; say in a sentence or two what the skill does and when to use it")
		return
	case value.kind != yamlText:
		p.add(ProblemDescriptionNotText, line, "description is a number or a truth value; it is read as text; put it in quotes")
	}
	p.md.Description = text
	if count := utf8.RuneCountInString(strings.TrimSpace(text)); count > maxDescriptionLength {
		p.add(ProblemDescriptionTooLong, line, "description has %d characters, more than %d; shorten it", count, maxDescriptionLength)
	}
	if strings.ContainsAny(text, "<>") {
		p.add(ProblemDescriptionMarkup, line, "description has angle brackets, which some upload services refuse")
	}
}

func (p *skillParser) checkCompatibility(value yamlValue, line int) {
	count := utf8.RuneCountInString(strings.TrimSpace(value.text))
	if value.kind != yamlText || count == 0 || count > maxCompatibilityLength {
		p.add(ProblemCompatibility, line, "compatibility is not text of 1 to %d characters; write it so or leave it out", maxCompatibilityLength)
	}
}

func (p *skillParser) checkMetadata(value yamlValue, firstLine, line int) {
	if value.kind == yamlNull {
		return // the same as none
	}
	if value.kind != yamlMap {
		p.add(ProblemMetadata, line, "metadata is not a mapping; it is kept; write it as lines of key: value")
		return
	}
	for i, item := range value.items {
		at := firstLine + value.keyLines[i] - 1
		switch item.kind {
		case yamlText:
		case yamlBool, yamlNumber:
			p.add(ProblemMetadataCoerced, at, "the value of %q is a number or a truth value and counts as text; put it in quotes", shorten(value.keys[i]))
		case yamlNull, yamlList, yamlMap:
			p.add(ProblemMetadata, at, "the value of %q is not text; it is kept; other readers refuse it", shorten(value.keys[i]))
		}
	}
}
