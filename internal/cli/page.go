package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// page writes text for people. Whatever came from a skill or a script goes through clean first.
type page struct {
	w     io.Writer
	color bool
}

// line writes one line. A page that cannot be written has no reader, so nothing is left to tell.
func (p *page) line(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format+"\n", args...) }

func (p *page) paint(code, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *page) bold(text string) string   { return p.paint("1", text) }
func (p *page) dim(text string) string    { return p.paint("2", text) }
func (p *page) red(text string) string    { return p.paint("31", text) }
func (p *page) green(text string) string  { return p.paint("32", text) }
func (p *page) yellow(text string) string { return p.paint("33", text) }

// pairs writes aligned "name  value" lines; pairs without a value are left out.
func (p *page) pairs(items ...[2]string) {
	width := 0
	for _, item := range items {
		if item[1] != "" {
			width = max(width, utf8.RuneCountInString(item[0]))
		}
	}
	for _, item := range items {
		if item[1] != "" {
			p.line("  %s  %s", p.dim(pad(item[0], width)), item[1])
		}
	}
}

// table writes rows under a header, in columns. Cells are cleaned.
func (p *page) table(header []string, rows [][]string) {
	if len(rows) == 0 {
		p.line("%s", p.dim("none"))
		return
	}
	widths := make([]int, len(header))
	for i, name := range header {
		widths[i] = utf8.RuneCountInString(name)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = clean(row[i])
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	write := func(row []string, style func(string) string) {
		var b strings.Builder
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString(cell)
				break
			}
			b.WriteString(pad(cell, widths[i]) + "  ")
		}
		p.line("%s", style(strings.TrimRight(b.String(), " ")))
	}
	write(header, p.dim)
	for _, row := range rows {
		write(row, func(s string) string { return s })
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// clean makes text safe for one line of a terminal: what a skill or a script wrote must not move the cursor, change
// colours or reorder letters.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == 0x200b || r >= 0x2060 && r <= 0x2064 || r == 0xfeff || r >= 0xe0000 && r <= 0xe007f:
			return utf8.RuneError // nobody would see it
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029':
			return utf8.RuneError
		}
		return r
	}, text)
}

// cleanLines is clean for text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = clean(strings.TrimSuffix(line, "\r"))
	}
	return strings.Join(lines, "\n")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func bytesText(n int64) string {
	switch {
	case n >= 10<<20:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	case n >= 1<<20:
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
	case n >= 1<<10:
		return strconv.FormatFloat(float64(n)/(1<<10), 'f', 1, 64) + " KiB"
	default:
		return strconv.FormatInt(n, 10) + " B"
	}
}

func millis(ms int64) string {
	if ms < 1000 {
		return strconv.FormatInt(ms, 10) + " ms"
	}
	return strconv.FormatFloat(float64(ms)/1000, 'f', 2, 64) + " s"
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func whenOrNever(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return when(*t)
}

// short is enough of a digest to recognise it by.
func short(d sallyport.Digest) string {
	if hex := d.Hex(); len(hex) > 12 {
		return hex[:12]
	}
	return string(d)
}
