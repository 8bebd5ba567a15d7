package registry

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxHeaderBytes bounds the frontmatter.
const maxHeaderBytes = 64 << 10

// header is the text between the fences; line is the line on which it begins, counted from 1.
type header struct {
	text string
	line int
}

// split finds the frontmatter and sets Body. False means that there is none to read, and the problem is recorded.
func (p *skillParser) split(content []byte) (header, bool) {
	text := p.decode(content)
	start, line := p.skipBeforeFence(text)
	first, rest, more := strings.Cut(text[start:], "\n")
	if !isFence(first) {
		p.add(ProblemFrontmatterMissing, 1, "not a skill: no frontmatter; begin the file with a line of three dashes, then name and description, then three dashes again")
		p.md.Body, p.md.BodyLine = text, 1
		return header{}, false
	}
	if start > 0 {
		p.add(ProblemTextBeforeFence, 1, "there is text before the frontmatter; make the line of three dashes the first line")
	}
	found := header{line: line + 1}
	end, length := -1, 0
	if more {
		end, length = closingFence(rest)
	}
	switch {
	case mangledHeader.MatchString(rest):
		p.add(ProblemFrontmatterUnclosed, line+1, "a formatter made a heading of the frontmatter; write name and description on a line each, and end it with a line of three dashes")
		return header{}, false
	case end < 0:
		p.add(ProblemFrontmatterUnclosed, line, "the frontmatter is not closed; end it with a line of three dashes")
		return header{}, false
	}
	if end > maxHeaderBytes {
		p.add(ProblemFrontmatterTooLarge, line, "the frontmatter has %d bytes, more than %d; move text into the body", end, maxHeaderBytes)
		return header{}, false
	}
	found.text = rest[:end]
	p.md.Body = rest[end+length:]
	p.md.BodyLine = found.line + strings.Count(found.text, "\n") + 1
	if fence := strings.TrimSpace(rest[end : end+length]); fence != "---" {
		p.add(ProblemFenceLong, p.md.BodyLine-1, "the frontmatter ends with %d dashes, which other readers stumble over; write three", len(fence))
	}
	return found, true
}

// decode drops a byte order mark, replaces what is not UTF-8 and makes every line end LF.
func (p *skillParser) decode(content []byte) string {
	if bytes.HasPrefix(content, []byte{0xff, 0xfe}) || bytes.HasPrefix(content, []byte{0xfe, 0xff}) {
		p.add(ProblemNotUTF8, 1, "the file is UTF-16; save it as UTF-8")
	} else if !utf8.Valid(content) {
		p.add(ProblemNotUTF8, 0, "the file has bytes that are not UTF-8; they are read as U+FFFD; save it as UTF-8")
	}
	if rest, found := bytes.CutPrefix(content, []byte("\ufeff")); found {
		p.add(ProblemByteOrderMark, 1, "the file begins with a byte order mark, which other readers stumble over; save it without")
		content = rest
	}
	return normaliseText(content)
}

// normaliseText returns content as valid UTF-8 with LF line ends.
func normaliseText(content []byte) string {
	text := strings.ToValidUTF8(string(content), "\ufffd")
	if !strings.Contains(text, "\r") {
		return text
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
}

// codeFence is the first line of a SKILL.md that was saved as a block of code, as some assistants write it.
var codeFence = regexp.MustCompile("^(```+|~~~+)[ \t]*(skill|markdown|md|yaml|yml)?[ \t]*$")

// skipBeforeFence returns where the opening fence is when nothing but blank lines, HTML comments and the opening of a block of
// code come before it, else 0, and the number of its line.
func (*skillParser) skipBeforeFence(text string) (offset, line int) {
	rest := text
	for {
		trimmed := strings.TrimLeft(rest, " \t\n")
		comment, found := strings.CutPrefix(trimmed, "<!--")
		if !found {
			break
		}
		_, after, closed := strings.Cut(comment, "-->")
		if !closed {
			return 0, 1
		}
		rest = after
	}
	for {
		first, after, more := strings.Cut(rest, "\n")
		if strings.Trim(first, " \t") != "" || !more {
			break
		}
		rest = after
	}
	if first, after, more := strings.Cut(rest, "\n"); more && codeFence.MatchString(first) {
		rest = after
	}
	offset = len(text) - len(rest)
	if first, _, _ := strings.Cut(rest, "\n"); offset > 0 && (text[offset-1] != '\n' || !isFence(first)) {
		return 0, 1
	}
	return offset, 1 + strings.Count(text[:offset], "\n")
}

// mangledHeader is what Markdown formatters make of a frontmatter: they take its last line and the closing fence for a heading.
var mangledHeader = regexp.MustCompile(`^[ \t\n]*##[ \t]+name:`)

// longFence is a closing fence as Markdown formatters stretch it. No line of YAML frontmatter looks like it.
var longFence = regexp.MustCompile(`^----+[ \t]*$`)

// isFence reports whether line is three dashes and nothing else but blanks behind them.
func isFence(line string) bool {
	rest, found := strings.CutPrefix(line, "---")
	return found && strings.Trim(rest, " \t") == ""
}

// closingFence returns where the closing fence begins and how long it is with its line end; -1 when there is none. The fence
// may be the last bytes of the file, and may have more than three dashes.
func closingFence(text string) (offset, length int) {
	for offset < len(text) {
		line, _, more := strings.Cut(text[offset:], "\n")
		length = len(line)
		if more {
			length++
		}
		if isFence(line) || longFence.MatchString(line) {
			return offset, length
		}
		offset += length
	}
	return -1, 0
}
