package registry

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mediatype"
	"github.com/sallyport-dev/sallyport/internal/shebang"
)

const (
	// maxFileFindings bounds how often one rule is reported for one file; the last report says how many more there are.
	maxFileFindings = 10
	// maxFindings bounds the findings of one revision.
	maxFindings = 2000
)

// Scan applies the static rules to components with Content and executes nothing. It depends on nothing but paths, kinds and bytes, and never
// fails: what it cannot read is in Unscanned. The caller fills in the digest.
func Scan(components []sallyport.Component) Findings {
	found := Findings{RuleSet: FindingRuleSet, Findings: []Finding{}, Unscanned: []Unscanned{}, Exclusions: []Exclusion{}}
	for _, c := range components {
		scan := fileScan{component: c, fired: map[string]int{}, last: map[string]int{}}
		scan.all()
		found.Totals.Files++
		if scan.unscanned != "" {
			found.Unscanned = append(found.Unscanned, Unscanned{c.Path, scan.unscanned})
		}
		found.Findings = append(found.Findings, scan.report()...)
	}
	sortFindings(found.Findings)
	if over := len(found.Findings) - maxFindings; over > 0 {
		// What weighs least is left out.
		slices.SortStableFunc(found.Findings, func(a, b Finding) int { return severityRank(a.Severity) - severityRank(b.Severity) })
		found.Findings = found.Findings[:maxFindings]
		found.Totals.LeftOut = over
		sortFindings(found.Findings)
	}
	return found.counted()
}

func severityRank(severity string) int {
	return slices.Index([]string{SeverityError, SeverityWarning, SeverityNote}, severity)
}

// fileScan is the scan of one file.
type fileScan struct {
	component sallyport.Component
	findings  []Finding
	fired     map[string]int // times that a rule fired
	last      map[string]int // index of a rule's last finding
	unscanned string
}

// add records that a rule fired; line 0 means the whole file.
func (f *fileScan) add(rule string, line int, format string, args ...any) {
	if f.fired[rule]++; f.fired[rule] > maxFileFindings {
		return
	}
	f.last[rule] = len(f.findings)
	f.findings = append(f.findings, Finding{
		Rule: rule, File: f.component.Path, Line: line, Severity: findingSeverity(rule), Message: fmt.Sprintf(format, args...),
	})
}

// report returns the findings, with what was not listed counted in the last one of its rule.
func (f *fileScan) report() []Finding {
	for rule, times := range f.fired {
		if more := times - maxFileFindings; more > 0 {
			f.findings[f.last[rule]].Message += fmt.Sprintf(" (and %d more in this file)", more)
		}
	}
	return f.findings
}

func (f *fileScan) all() {
	f.name()
	if !mediatype.Text(f.component.Content) {
		f.binary()
		return
	}
	f.text()
}

// text applies the rules for text.
func (f *fileScan) text() {
	c := f.component
	content := string(c.Content)
	f.unicode(content)
	if c.Path == SkillFile {
		md := ParseSkillMD(c.Content, "")
		if md.Frontmatter == nil {
			f.unscanned = "its frontmatter cannot be read: " + firstError(md.Problems)
		}
		f.escaped(md.Frontmatter)
	}
	f.walls(content)
	f.comments(content)
	f.links(content)
	f.secrets(content)
	f.code(content)
	f.hooks(content)
}

// program reports whether the file is code.
func (f *fileScan) program() bool {
	c := f.component
	_, known := scriptRuntimes[extensionOf(c.Path)]
	return c.Kind == sallyport.KindScript || known || shebang.Names(c.Content) != nil
}

// prose reports whether the file is what people and models read.
func (f *fileScan) prose() bool {
	switch extensionOf(f.component.Path) {
	case "md", "mdx", "markdown", "txt", "rst", "adoc", "":
		return !f.program()
	}
	return false
}

// markup reports whether the file is rendered, so that its comments disappear.
func (f *fileScan) markup() bool {
	return slices.Contains([]string{"md", "mdx", "markdown"}, extensionOf(f.component.Path))
}

// lines calls each with every line and its number, without the line end.
func lines(content string, each func(number int, line string)) {
	number := 0
	for line := range strings.Lines(content) {
		number++
		each(number, strings.TrimRight(line, "\r\n"))
	}
}

// maxMatches bounds how many places of one pattern are looked at in one file.
const maxMatches = 2000

// places are matches in a text, asked for their lines from front to back.
type places struct {
	content string
	offset  int
	lines   int
}

// line is the number of the line that holds an offset. Offsets only grow.
func (p *places) line(offset int) int {
	if offset > p.offset {
		p.lines += strings.Count(p.content[p.offset:offset], "\n")
		p.offset = offset
	}
	return 1 + p.lines
}

// binary looks at a file that is not UTF-8 text.
func (f *fileScan) binary() {
	c := f.component
	switch what := binaryKind(c.Path, c.Content); what {
	case binaryCode:
		f.add(RuleCodeBinary, 0, "compiled code; ship its source instead, and build it where it is reviewed")
	case binaryImage:
		f.image()
	case binaryMedia:
	case binaryOffice:
		f.office()
	case binaryText:
		f.unscanned = "it should be text and is not UTF-8; save it as UTF-8"
	case binaryOther:
		f.add(RuleOpaqueFile, 0, "a binary file (%s) that the rules do not read; open it yourself, or leave it out", c.MediaType)
	}
}

type binaryClass string

const (
	binaryCode   binaryClass = "code"
	binaryImage  binaryClass = "image"
	binaryMedia  binaryClass = "media" // fonts, sound and film, by their first bytes
	binaryOffice binaryClass = "office"
	binaryText   binaryClass = "text" // by its name
	binaryOther  binaryClass = "other"
)

var (
	codeExtensions = []string{
		"pyc", "pyo", "pyd", "so", "dll", "dylib", "exe", "com", "msi", "class", "jar", "war", "wasm", "node", "o", "a", "lib", "elf", "apk", "deb", "rpm", "whl", "egg",
	}
	officeExtensions = []string{"docx", "docm", "dotx", "dotm", "xlsx", "xlsm", "xltx", "xltm", "xlam", "xlsb", "pptx", "pptm", "potx", "potm", "ppam", "ppsm", "odt", "ods", "odp", "doc", "xls", "ppt", "dot", "xlt", "pot"}
	codeMagic        = []string{"\x7fELF", "MZ", "\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\x00asm", "!<arch>\n", "dex\n"}
	imageMagic       = []string{pngMagic, jpegMagic, "GIF87a", "GIF89a", "\x00\x00\x01\x00", "II*\x00", "MM\x00*"}
	mediaMagic       = []string{"\x00\x01\x00\x00", "OTTO", "wOFF", "wOF2", "true\x00", "ttcf", "ID3", "\xff\xfb", "\xff\xf3", "fLaC", "OggS", "\x1aE\xdf\xa3"}
)

const (
	pngMagic  = "\x89PNG\r\n\x1a\n"
	jpegMagic = "\xff\xd8\xff"
	oleMagic  = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
)

// binaryKind tells what a binary file is: by its first bytes, which decide over what its name says, except that a name that stands for
// code is believed.
func binaryKind(name string, content []byte) binaryClass {
	extension := extensionOf(name)
	begins := func(magics []string) bool {
		return slices.ContainsFunc(magics, func(magic string) bool { return bytes.HasPrefix(content, []byte(magic)) })
	}
	riff := len(content) >= 12 && bytes.HasPrefix(content, []byte("RIFF"))
	switch {
	case begins(codeMagic), slices.Contains(codeExtensions, extension):
		return binaryCode
	case begins(imageMagic), riff && string(content[8:12]) == "WEBP":
		return binaryImage
	case begins(mediaMagic), riff, len(content) >= 12 && string(content[4:8]) == "ftyp":
		return binaryMedia
	case bytes.HasPrefix(content, []byte(oleMagic)), slices.Contains(officeExtensions, extension):
		return binaryOffice
	case textName(name):
		return binaryText
	}
	return binaryOther
}

// textName reports whether a file of this name is text or nothing.
func textName(name string) bool {
	_, known := scriptRuntimes[extensionOf(name)]
	return known || dataExtensions[extensionOf(name)] || dataNames[strings.ToLower(path.Base(name))] || kindFolder(name) == sallyport.KindScript
}
