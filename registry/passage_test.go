package registry_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/registry"
)

// outline is passages in lines: where, under what, how it begins.
func outline(passages []registry.Passage) []string {
	out := []string{}
	for _, p := range passages {
		first, _, _ := strings.Cut(p.Text, "\n")
		out = append(out, fmt.Sprintf("%d-%d [%s] %s", p.StartLine, p.EndLine, p.Heading, first))
	}
	return out
}

func TestPassages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text  string
		plain bool
		want  []string
	}{
		"nothing":      {"\n \n", false, []string{}},
		"no heading":   {"a\nb\n", false, []string{"5-6 [] a"}},
		"headings":     {"x\n\n# A\na\n\n## B ##\n\nb\n# C\n", false, []string{"5-5 [] x", "7-8 [A] # A", "10-12 [A > B] ## B ##", "13-13 [C] # C"}},
		"a fence":      {"# A\n```sh\n# no heading\n~~~\n```\n# B\n", false, []string{"5-9 [A] # A", "10-10 [B] # B"}},
		"longer fence": {"````\n```\n# no heading\n````\n# A\n", false, []string{"5-8 [] ````", "9-9 [A] # A"}},
		"no headings":  {"#tag\n#######\n", false, []string{"5-6 [] #tag"}},
		"plain text":   {"# A\n# B\n", true, []string{"5-6 [] # A"}},
		"lines":        {strings.Repeat("abc\n", 1000), false, []string{"5-404 [] abc", "405-804 [] abc", "805-1004 [] abc"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, outline(registry.Passages(test.text, 5, !test.plain))); diff != "" {
				t.Errorf("passages (-want +got):\n%s", diff)
			}
		})
	}
}

// A passage that grows too long ends between paragraphs when it can.
func TestPassagesBreakBetweenParagraphs(t *testing.T) {
	t.Parallel()
	paragraph := strings.Repeat("word word word\n", 60) // 900 bytes
	got := outline(registry.Passages(paragraph+"\n"+paragraph+"\n"+paragraph, 1, true))
	want := []string{"1-60 [] word word word", "62-121 [] word word word", "123-182 [] word word word"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("passages (-want +got):\n%s", diff)
	}
}

func squeezed(line string) string { return strings.Join(strings.Fields(line), "") }

// Whatever the text is: passages are bounded, in order, do not overlap, and together they are every line that is not blank.
func TestPassagesAreTheWholeText(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"\n", "\n\n", "# A\n", "## B\n", "```\n", "~~~\n", "word ", "é技能 ", strings.Repeat("long ", 700), "\tx\n", "- item\n", strings.Repeat("z\n", 900)}
	for range 300 {
		var b strings.Builder
		for range random.IntN(30) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := b.String()
		lines := strings.Split(text, "\n")
		covered := map[int]string{}
		last := 0
		for _, p := range registry.Passages(text, 1, random.IntN(2) == 0) {
			if len(p.Text) > 1600 || !utf8.ValidString(p.Text) || p.StartLine < last || p.EndLine < p.StartLine || p.EndLine > len(lines) {
				t.Fatalf("passage %d-%d of %d bytes after line %d, the text has %d lines", p.StartLine, p.EndLine, len(p.Text), last, len(lines))
			}
			last = p.EndLine
			for i, line := range strings.Split(p.Text, "\n") {
				covered[p.StartLine+i] += line
			}
		}
		for i, line := range lines {
			// A long line is cut, and then blanks at the cut are gone.
			if got := squeezed(covered[i+1]); squeezed(line) != got {
				t.Fatalf("line %d is %.40q in the passages, %.40q in the text", i+1, got, line)
			}
		}
	}
}
