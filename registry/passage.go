package registry

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// passageBytes bounds the text of one passage.
const passageBytes = 1600

// Passage is a part of a text file: what stands below one heading, or as much of it as fits.
type Passage struct {
	// Heading is the path of headings that leads here, joined by " > "; empty before the first one.
	Heading string
	// StartLine and EndLine are the lines of the file, counted from 1, both included.
	StartLine, EndLine int
	Text               string
	// Score says how well the passage matches a query; 0 is not at all.
	Score int
}

// Passages splits text, which begins at firstLine of its file, into passages of at most 1600 bytes: at headings outside code
// fences when it is Markdown, then between paragraphs, then between lines. Nothing but blank lines is left out.
func Passages(text string, firstLine int, markdown bool) []Passage {
	s := splitter{next: firstLine, start: firstLine}
	for line := range strings.Lines(text) {
		if markdown {
			s.fence(line)
		}
		level, title := heading(line)
		if markdown && s.marker == "" && level > 0 {
			s.flush()
			s.enter(level, title)
		}
		s.add(line)
	}
	s.flush()
	return s.out
}

type splitter struct {
	out         []Passage
	titles      [6]string
	marker      string // of the code fence that is open
	lines       []string
	size        int
	start, next int
}

// fence opens and closes code fences.
func (s *splitter) fence(line string) {
	trimmed := strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		length := len(trimmed) - len(strings.TrimLeft(trimmed, c))
		switch {
		case length < 3:
		case s.marker == "":
			s.marker = strings.Repeat(c, length)
			return
		case strings.HasPrefix(trimmed, s.marker) && strings.TrimSpace(strings.TrimLeft(trimmed, c)) == "":
			s.marker = ""
			return
		}
	}
}

// heading returns the level and the text of an ATX heading, level 0 when line is none.
func heading(line string) (level int, title string) {
	trimmed := strings.TrimRight(line, " \t\r\n")
	rest := strings.TrimLeft(trimmed, "#")
	level = len(trimmed) - len(rest)
	if level < 1 || level > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0, ""
	}
	return level, strings.TrimSpace(strings.TrimRight(strings.TrimSpace(rest), "#"))
}

func (s *splitter) enter(level int, title string) {
	s.titles[level-1] = title
	for i := level; i < len(s.titles); i++ {
		s.titles[i] = ""
	}
}

// add takes one line into the open passage, and closes it before when it would grow too long.
func (s *splitter) add(line string) {
	for len(line) > passageBytes {
		s.flush()
		end := passageBytes
		for !utf8.RuneStart(line[end]) {
			end--
		}
		s.lines, s.size = []string{line[:end]}, end
		s.emit(s.next)
		line = line[end:]
	}
	if s.size+len(line) > passageBytes {
		s.breakParagraph()
	}
	s.lines = append(s.lines, line)
	s.size += len(line)
	s.next++
}

// breakParagraph closes the open passage after its last blank line in the second half, else whole.
func (s *splitter) breakParagraph() {
	for i := len(s.lines) - 1; i > len(s.lines)/2; i-- {
		if strings.TrimSpace(s.lines[i]) != "" {
			continue
		}
		rest := append([]string{}, s.lines[i+1:]...)
		s.lines = s.lines[:i]
		s.emit(s.start + i - 1)
		s.start += i + 1
		s.lines, s.size = rest, len(strings.Join(rest, ""))
		return
	}
	s.flush()
}

func (s *splitter) flush() {
	s.emit(s.next - 1)
	s.start = s.next
}

// emit closes the open lines, of which the last is end.
func (s *splitter) emit(end int) {
	text := strings.TrimRight(strings.Join(s.lines, ""), " \t\r\n")
	if strings.TrimSpace(text) != "" {
		var titles []string
		for _, title := range s.titles {
			if title != "" {
				titles = append(titles, title)
			}
		}
		// Blank lines at the end are not part of it.
		end = min(end, s.start+strings.Count(text, "\n"))
		s.out = append(s.out, Passage{Heading: strings.Join(titles, " > "), StartLine: s.start, EndLine: max(end, s.start), Text: text})
	}
	s.lines, s.size = nil, 0
}

// commonWords say nothing about a task.
const commonWords = " a an and are as at be but by can do does for from get has have how i if in into is it me my not of on or our please " +
	"that the their them then there these this to use using was we what when where which who why will with you your "

// maxTerms bounds the different words of a query.
const maxTerms = 32

// queryTerms are the different words of a query in order, without the common ones unless there are no others.
func queryTerms(query string) []string {
	var all, rare []string
	seen := map[string]bool{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(query), notInWord) {
		if seen[word] || len(rare) == maxTerms {
			continue
		}
		seen[word] = true
		if len(all) < maxTerms {
			all = append(all, word)
		}
		if !strings.Contains(commonWords, " "+word+" ") {
			rare = append(rare, word)
		}
	}
	if len(rare) == 0 {
		return all
	}
	return rare
}

func notInWord(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }

// stem drops the usual endings of English words, so that profile finds profiles and profiling.
func stem(word string) string {
	for _, ending := range []string{"ing", "ed", "es", "s", "e"} {
		if rest, found := strings.CutSuffix(word, ending); found && len(rest) >= 4 {
			return rest
		}
	}
	return word
}

// The weights of a match.
const (
	weightTerm    = 4 // a term that is there at all
	weightHeading = 6 // and in the heading
	maxCount      = 3 // how often a term counts
)

// score says how well a text under a heading matches terms.
func score(terms []string, heading, text string) int {
	inText, inHeading := wordCounts(text), wordCounts(heading)
	lowText, lowHeading := strings.ToLower(text), strings.ToLower(heading)
	total := 0
	for _, term := range terms {
		n, head := inText[stem(term)], inHeading[stem(term)]
		if unspaced(term) {
			n, head = strings.Count(lowText, term), strings.Count(lowHeading, term)
		}
		if n > 0 {
			total += weightTerm + min(n, maxCount)
		}
		if head > 0 {
			total += weightHeading
		}
	}
	return total
}

// unspaced reports whether a word is of a script that is written without spaces, where a word is found inside another.
func unspaced(word string) bool {
	return strings.ContainsFunc(word, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) })
}

func wordCounts(text string) map[string]int {
	counts := map[string]int{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), notInWord) {
		counts[stem(word)]++
	}
	return counts
}
