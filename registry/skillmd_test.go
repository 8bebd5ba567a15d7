package registry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/registry"
)

// codes lists the codes of problems as "severity CODE".
func codes(problems []registry.Problem) []string {
	out := []string{}
	for _, p := range problems {
		out = append(out, p.Severity+" "+p.Code)
	}
	return out
}

const bom = "\ufeff"

// Every row is a SKILL.md as people write it. The reading is complete: name, description, verdicts, problems.
func TestParseSkillMD(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 65)
	for name, test := range map[string]struct {
		content     string
		directory   string
		wantName    string
		description string
		body        string
		usable      bool
		codes       []string
	}{
		"plain": {
			content: "---\nname: pdf\ndescription: Reads PDF files.\n---\n# PDF\n", directory: "pdf",
			wantName: "pdf", description: "Reads PDF files.", body: "# PDF\n", usable: true, codes: []string{},
		},
		"F2 F3 byte order mark": {
			content: bom + "---\nname: pdf\ndescription: d\n---\nbody", wantName: "pdf", description: "d", body: "body", usable: true,
			codes: []string{"warning BYTE_ORDER_MARK"},
		},
		"F5 CRLF and a folded description": {
			content: "---\r\nname: pdf\r\ndescription: >\r\n  one\r\n  two\r\n---\r\nbody\r\nmore\r\n", wantName: "pdf", description: "one two\n",
			body: "body\nmore\n", usable: true, codes: []string{},
		},
		"CR alone": {
			content: "---\rname: pdf\rdescription: d\r---\rbody", wantName: "pdf", description: "d", body: "body", usable: true, codes: []string{},
		},
		"F6 closing fence is the last byte": {
			content: "---\nname: pdf\ndescription: d\n---", wantName: "pdf", description: "d", usable: true, codes: []string{},
		},
		"blanks behind the fences": {
			content: "--- \t\nname: pdf\ndescription: d\n---  \nbody", wantName: "pdf", description: "d", body: "body", usable: true, codes: []string{},
		},
		"F7 colon in a sentence": {
			content:  "---\nname: pdf\ndescription: Use when: the user says PDF\n---\n",
			wantName: "pdf", description: "Use when: the user says PDF", usable: true, codes: []string{"warning YAML_REPAIRED"},
		},
		"F7 colon in a sentence over several lines": {
			content:  "---\nname: pdf\ndescription: Use when: the user\n  says PDF: or\n\n  else # really\nlicense: MIT\n---\n",
			wantName: "pdf", description: "Use when: the user says PDF: or\nelse # really", usable: true, codes: []string{"warning YAML_REPAIRED"},
		},
		"F9 folded description beside a version": {
			content:  "---\nname: pdf\nversion: 1.3\ndescription: >-\n  a\n  b\n---\n",
			wantName: "pdf", description: "a b", usable: true, codes: []string{"warning FIELD_UNKNOWN"},
		},
		"F11 nested metadata and a float version": {
			content:  "---\nname: pdf\ndescription: d\nversion: 1.3\nmetadata:\n  tags: [a, b]\n  deep: {x: {y: 1}}\n  n: 3\n---\n",
			wantName: "pdf", description: "d", usable: true,
			codes: []string{"warning FIELD_UNKNOWN", "warning METADATA_NOT_TEXT", "warning METADATA_NOT_TEXT", "note METADATA_COERCED"},
		},
		"F14 not ASCII": {
			content: "---\nname: pdf\ndescription: Liest Ünïcode – 技能 😀\n---\nø", wantName: "pdf", description: "Liest Ünïcode – 技能 😀", body: "ø", usable: true, codes: []string{},
		},
		"F15 Chinese name": {
			content: "---\nname: 技能\ndescription: d\n---\n", directory: "技能", wantName: "技能", description: "d", usable: true, codes: []string{"warning NAME_NOT_ASCII"},
		},
		"F16 no frontmatter": {
			content: "# PDF\n\nText.\n", body: "# PDF\n\nText.\n", codes: []string{"error FRONTMATTER_MISSING"},
		},
		"F17 alias expansion": {
			content: "---\nname: pdf\ndescription: d\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n---\n",
			codes:   []string{"error YAML_ALIASES"},
		},
		"F17 alias cycle":     {content: "---\nname: pdf\ndescription: &d [*d]\n---\n", codes: []string{"error YAML_TOO_DEEP"}},
		"F17 a few aliases":   {content: "---\nname: &n pdf\ndescription: *n\n---\n", wantName: "pdf", description: "pdf", usable: true, codes: []string{}},
		"F17 megabytes":       {content: "---\nname: pdf\ndescription: " + strings.Repeat("x", 1<<20) + "\n---\n", codes: []string{"error FRONTMATTER_TOO_LARGE"}},
		"F17 deep nesting":    {content: "---\n" + strings.Repeat("[", 5000) + "\n---\n", codes: []string{"error YAML_INVALID"}},
		"F17 deep and closed": {content: "---\na: " + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "\n---\n", codes: []string{"error YAML_TOO_DEEP"}},
		"F33 a path as name":  {content: "---\nname: ../../evil\ndescription: d\n---\n", wantName: "../../evil", description: "d", codes: []string{"error NAME_UNSAFE"}},
		"absolute name":       {content: "---\nname: /evil\ndescription: d\n---\n", wantName: "/evil", description: "d", codes: []string{"error NAME_UNSAFE"}},
		"backslash name":      {content: "---\nname: a\\b\ndescription: d\n---\n", wantName: "a\\b", description: "d", codes: []string{"error NAME_UNSAFE"}},

		"S3 no closing fence":   {content: "---\nname: pdf\ndescription: d\n", codes: []string{"error FRONTMATTER_UNCLOSED"}},
		"S3 opening fence only": {content: "---", codes: []string{"error FRONTMATTER_UNCLOSED"}},
		"S3 empty file":         {codes: []string{"error FRONTMATTER_MISSING"}},
		"S3 text before":        {content: "Hello\n---\nname: pdf\n---\n", body: "Hello\n---\nname: pdf\n---\n", codes: []string{"error FRONTMATTER_MISSING"}},
		"S3 blank lines before": {content: "\n\n---\nname: pdf\ndescription: d\n---\nb", wantName: "pdf", description: "d", body: "b", usable: true, codes: []string{"warning TEXT_BEFORE_FENCE"}},
		"S3 a stretched closing fence": {
			content: "---\n\nname: pdf\ndescription: >\nOne\ntwo.\nversion: 1.0\n------------\n\n# B\n\n---\n", wantName: "pdf", description: "One two.", body: "\n# B\n\n---\n", usable: true,
			codes: []string{"warning FENCE_LONG", "warning YAML_REPAIRED", "warning FIELD_UNKNOWN"},
		},
		"S3 a heading in place of the fence": {
			content: "---\n\n## name: pdf\ndescription: d\n\n# B\n\n---\n", codes: []string{"error FRONTMATTER_UNCLOSED"},
		},
		"S3 a block of code": {
			content: "````skill\n---\nname: pdf\ndescription: d\n---\nb\n````\n", wantName: "pdf", description: "d", body: "b\n````\n", usable: true,
			codes: []string{"warning TEXT_BEFORE_FENCE"},
		},
		"S3 a block of another language": {
			content: "```sh\n---\nname: pdf\ndescription: d\n---\n```\n", wantName: "", body: "```sh\n---\nname: pdf\ndescription: d\n---\n```\n",
			codes: []string{"error FRONTMATTER_MISSING"},
		},
		"S3 a comment before":    {content: "<!-- SPDX\n MIT -->\n\n---\nname: pdf\ndescription: d\n---\nb", wantName: "pdf", description: "d", body: "b", usable: true, codes: []string{"warning TEXT_BEFORE_FENCE"}},
		"S3 four dashes":         {content: "----\nname: pdf\n----\n", body: "----\nname: pdf\n----\n", codes: []string{"error FRONTMATTER_MISSING"}},
		"S4 a list":              {content: "---\n- a\n- b\n---\n", codes: []string{"error FRONTMATTER_NOT_MAPPING"}},
		"S4 a bare text":         {content: "---\njust text\n---\n", codes: []string{"error FRONTMATTER_NOT_MAPPING"}},
		"S4 empty":               {content: "---\n---\n", directory: "pdf", wantName: "pdf", codes: []string{"warning NAME_MISSING", "error DESCRIPTION_MISSING"}},
		"S4 two documents":       {content: "---\nname: a\n...\nname: b\n---\n", codes: []string{"error YAML_MULTIPLE_DOCUMENTS"}},
		"S5 absent":              {content: "---\ndescription: d\n---\n", description: "d", codes: []string{"error NAME_MISSING"}},
		"S5 absent with folder":  {content: "---\ndescription: d\n---\n", directory: "pdf", wantName: "pdf", description: "d", usable: true, codes: []string{"warning NAME_MISSING"}},
		"S5 empty":               {content: "---\nname:\ndescription: d\n---\n", directory: "pdf", wantName: "pdf", description: "d", usable: true, codes: []string{"warning NAME_MISSING"}},
		"S5 blanks":              {content: "---\nname: '  '\ndescription: d\n---\n", directory: "pdf", wantName: "pdf", description: "d", usable: true, codes: []string{"warning NAME_MISSING"}},
		"S5 64 characters":       {content: "---\nname: " + long[1:] + "\ndescription: d\n---\n", wantName: long[1:], description: "d", usable: true, codes: []string{}},
		"S5 65 characters":       {content: "---\nname: " + long + "\ndescription: d\n---\n", wantName: long, description: "d", usable: true, codes: []string{"warning NAME_TOO_LONG"}},
		"S5 a number":            {content: "---\nname: 007\ndescription: d\n---\n", wantName: "007", description: "d", usable: true, codes: []string{"warning NAME_NOT_TEXT"}},
		"S5 a list":              {content: "---\nname: [a]\ndescription: d\n---\n", description: "d", codes: []string{"error NAME_NOT_TEXT"}},
		"S6 upper case":          {content: "---\nname: Pdf\ndescription: d\n---\n", wantName: "Pdf", description: "d", usable: true, codes: []string{"warning NAME_CHARACTERS"}},
		"S6 underscore":          {content: "---\nname: a_b\ndescription: d\n---\n", wantName: "a_b", description: "d", usable: true, codes: []string{"warning NAME_CHARACTERS"}},
		"S6 blank":               {content: "---\nname: a b\ndescription: d\n---\n", wantName: "a b", description: "d", usable: true, codes: []string{"warning NAME_CHARACTERS"}},
		"S6 dot":                 {content: "---\nname: a.b\ndescription: d\n---\n", wantName: "a.b", description: "d", usable: true, codes: []string{"warning NAME_CHARACTERS"}},
		"S6 accents":             {content: "---\nname: données\ndescription: d\n---\n", wantName: "données", description: "d", usable: true, codes: []string{"warning NAME_NOT_ASCII"}},
		"S7 one character":       {content: "---\nname: a\ndescription: d\n---\n", wantName: "a", description: "d", usable: true, codes: []string{}},
		"S7 hyphen first":        {content: "---\nname: -a\ndescription: d\n---\n", wantName: "-a", description: "d", usable: true, codes: []string{"warning NAME_HYPHENS"}},
		"S7 hyphen last":         {content: "---\nname: a-\ndescription: d\n---\n", wantName: "a-", description: "d", usable: true, codes: []string{"warning NAME_HYPHENS"}},
		"S7 double hyphen":       {content: "---\nname: a--b\ndescription: d\n---\n", wantName: "a--b", description: "d", usable: true, codes: []string{"warning NAME_HYPHENS"}},
		"S8 another directory":   {content: "---\nname: pdf-tools\ndescription: d\n---\n", directory: "pdf", wantName: "pdf-tools", description: "d", usable: true, codes: []string{"warning NAME_NOT_DIRECTORY"}},
		"S8 NFD equals NFC":      {content: "---\nname: donne\u0301es\ndescription: d\n---\n", directory: "données", wantName: "donne\u0301es", description: "d", usable: true, codes: []string{"warning NAME_NOT_ASCII"}},
		"S9 1024 two-byte":       {content: "---\nname: a\ndescription: " + strings.Repeat("é", 1024) + "\n---\n", wantName: "a", description: strings.Repeat("é", 1024), usable: true, codes: []string{}},
		"S9 1025":                {content: "---\nname: a\ndescription: " + strings.Repeat("é", 1025) + "\n---\n", wantName: "a", description: strings.Repeat("é", 1025), usable: true, codes: []string{"warning DESCRIPTION_TOO_LONG"}},
		"S9 blank":               {content: "---\nname: a\ndescription: ' '\n---\n", wantName: "a", codes: []string{"error DESCRIPTION_MISSING"}},
		"S9 absent":              {content: "---\nname: a\n---\n", wantName: "a", codes: []string{"error DESCRIPTION_MISSING"}},
		"S9 a list":              {content: "---\nname: a\ndescription:\n- a\n---\n", wantName: "a", codes: []string{"error DESCRIPTION_NOT_TEXT"}},
		"S9 a truth value":       {content: "---\nname: a\ndescription: True\n---\n", wantName: "a", description: "True", usable: true, codes: []string{"warning DESCRIPTION_NOT_TEXT"}},
		"S10 license a number":   {content: "---\nname: a\ndescription: d\nlicense: 2\n---\n", wantName: "a", description: "d", usable: true, codes: []string{"warning LICENSE_NOT_TEXT"}},
		"S11 empty":              {content: "---\nname: a\ndescription: d\ncompatibility: ''\n---\n", wantName: "a", description: "d", usable: true, codes: []string{"warning COMPATIBILITY_INVALID"}},
		"S11 500":                {content: "---\nname: a\ndescription: d\ncompatibility: " + strings.Repeat("é", 500) + "\n---\n", wantName: "a", description: "d", usable: true, codes: []string{}},
		"S11 501":                {content: "---\nname: a\ndescription: d\ncompatibility: " + strings.Repeat("é", 501) + "\n---\n", wantName: "a", description: "d", usable: true, codes: []string{"warning COMPATIBILITY_INVALID"}},
		"S12 a truth value":      {content: "---\nname: a\ndescription: d\nmetadata: {x: true, y: z}\n---\n", wantName: "a", description: "d", usable: true, codes: []string{"note METADATA_COERCED"}},
		"S12 nothing":            {content: "---\nname: a\ndescription: d\nmetadata:\n---\n", wantName: "a", description: "d", usable: true, codes: []string{}},
		"S12 null":               {content: "---\nname: a\ndescription: d\nmetadata: null\n---\n", wantName: "a", description: "d", usable: true, codes: []string{}},
		"S12 not a mapping":      {content: "---\nname: a\ndescription: d\nmetadata: x\n---\n", wantName: "a", description: "d", usable: true, codes: []string{"warning METADATA_NOT_TEXT"}},
		"S13 a text":             {content: "---\nname: a\ndescription: d\nallowed-tools: Read Bash(git:*)\n---\n", wantName: "a", description: "d", usable: true, codes: []string{}},
		"S13 a list":             {content: "---\nname: a\ndescription: d\nallowed-tools: [Read, Bash]\n---\n", wantName: "a", description: "d", usable: true, codes: []string{"warning ALLOWED_TOOLS_NOT_TEXT"}},
		"S14 a seventh field":    {content: "---\nname: a\ndescription: d\nversion: 1\n---\n", wantName: "a", description: "d", usable: true, codes: []string{"warning FIELD_UNKNOWN"}},
		"S15 angle brackets":     {content: "---\nname: a\ndescription: a <b>\n---\n", wantName: "a", description: "a <b>", usable: true, codes: []string{"note DESCRIPTION_MARKUP"}},
		"S16 reserved word":      {content: "---\nname: claude-x\ndescription: d\n---\n", wantName: "claude-x", description: "d", usable: true, codes: []string{"note NAME_RESERVED"}},
		"S17 long body":          {content: "---\nname: a\ndescription: d\n---\n" + strings.Repeat("x\n", 501), wantName: "a", description: "d", body: strings.Repeat("x\n", 501), usable: true, codes: []string{"note BODY_LONG"}},
		"duplicate key":          {content: "---\nname: a\ndescription: d\nname: b\n---\n", codes: []string{"error YAML_DUPLICATE_KEY"}},
		"merge key is plain":     {content: "---\nname: a\ndescription: d\nmetadata: {<<: x}\n---\n", wantName: "a", description: "d", usable: true, codes: []string{}},
		"not UTF-8 in the body":  {content: "---\nname: a\ndescription: d\n---\n\xff", wantName: "a", description: "d", body: "\ufffd", usable: true, codes: []string{"warning NOT_UTF8"}},
		"UTF-16":                 {content: "\xff\xfe-\x00-\x00-\x00\n\x00", body: "\ufffd-\x00-\x00-\x00\n\x00", codes: []string{"warning NOT_UTF8", "error FRONTMATTER_MISSING"}},
		"list as key":            {content: "---\nname: a\ndescription: d\n? [x]\n: y\n---\n", codes: []string{"error YAML_KEY_NOT_TEXT"}},
		"a fence within a block": {content: "---\nname: a\ndescription: |\n  one\n  ---\n  two\n---\nb", wantName: "a", description: "one\n---\ntwo\n", body: "b", usable: true, codes: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			md := registry.ParseSkillMD([]byte(test.content), test.directory)
			type reading struct {
				Name, Description, Body string
				Usable                  bool
				Codes                   []string
			}
			got := reading{md.Name, md.Description, md.Body, md.Usable, codes(md.Problems)}
			want := reading{test.wantName, test.description, test.body, test.usable, test.codes}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reading (-want +got):\n%s\nproblems: %+v", diff, md.Problems)
			}
			clean := true
			for _, code := range test.codes {
				clean = clean && strings.HasPrefix(code, registry.SeverityNote)
			}
			if md.SpecClean != clean {
				t.Errorf("spec clean is %t, want %t", md.SpecClean, clean)
			}
		})
	}
}

// What people write that is not YAML, and what they meant.
func TestRepair(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ value, want string }{
		"colon":                     {"Use when: x", "Use when: x"},
		"colon last":                {"Triggers:", "Triggers:"},
		"at":                        {"@mention things", "@mention things"},
		"backtick":                  {"`code` does it", "`code` does it"},
		"percent":                   {"%d things", "%d things"},
		"bold":                      {"**Bold** text: yes", "**Bold** text: yes"},
		"star":                      {"*all* things", "*all* things"},
		"ampersand":                 {"& more: this", "& more: this"},
		"unbalanced bracket":        {"[WIP it works", "[WIP it works"},
		"bracket then text":         {"[link](url) and more", "[link](url) and more"},
		"braces then text":          {"{x} then y", "{x} then y"},
		"double braces":             {"{{template}} text", "{{template}} text"},
		"quote then text":           {`"PDF" tools: all`, `"PDF" tools: all`},
		"quotes within quotes":      {`"He said "hi" to me"`, `He said "hi" to me`},
		"apostrophe within":         {`'It's great'`, `It's great`},
		"unclosed quote":            {`"Open`, `"Open`},
		"exclamation":               {"!important do: it", "!important do: it"},
		"goes on at the margin":     {"First line\nsecond line without blanks", "First line second line without blanks"},
		"goes on with a tab":        {"First: line\n\tsecond", "First: line second"},
		"block sign then text":      {"> Use when: asked", "Use when: asked"},
		"strip sign then text":      {">- Use when asked\n  or told: so", "Use when asked or told: so"},
		"pipe then text":            {"| One line\n  - two\n\n  three", "One line\n- two\n\nthree"},
		"block sign then quotes":    {`>- "Use when asked"`, "Use when asked"},
		"greater than a number":     {"> 10 files", "> 10 files"},
		"a comma first":             {", what", ", what"},
		"dash first":                {"- what: ever", "- what: ever"},
		"question first":            {"? what: ever", "? what: ever"},
		"escapes stay":              {`C:\new: \table`, `C:\new: \table`},
		"control character":         {"a\x07b", "ab"},
		"a colon within block text": {"Use: it |", "Use: it |"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := "---\nname: pdf\ndescription: " + test.value + "\nlicense: MIT\n---\nbody"
			md := registry.ParseSkillMD([]byte(content), "")
			if md.Description != test.want || !md.Usable || !md.Repaired || md.Name != "pdf" || md.Body != "body" {
				t.Errorf("got %q usable %t repaired %t %+v, want %q", md.Description, md.Usable, md.Repaired, md.Problems, test.want)
			}
			if md.SpecClean {
				t.Error("a repaired header is not spec-clean")
			}
			if want := `"license":"MIT"`; !strings.Contains(string(md.Frontmatter), want) {
				t.Errorf("frontmatter %s lost %s", md.Frontmatter, want)
			}
			if line := md.Problems[0].Line; line != 3 && line != 4 {
				t.Errorf("the problem is on line %d", line)
			}
		})
	}
}

// Repair of lines other than the description.
func TestRepairOfTheWholeHeader(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ header, want string }{
		"tools in a list":      {"name: a\ndescription: d\nallowed-tools:\n  - Bash(git: *)\n  - Read", `{"name":"a","description":"d","allowed-tools":["Bash(git: *)","Read"]}`},
		"no blank after colon": {"name:a\ndescription:b c", `{"name":"a","description":"b c"}`},
		"indented key":         {"name: a\n  description: d", `{"name":"a","description":"d"}`},
		"tabs in metadata":     {"name: a\ndescription: d\nmetadata:\n\tx: y\n\tz: 1", `{"name":"a","description":"d","metadata":{"x":"y","z":1}}`},
		"block scalar kept":    {"name: a: b\ndescription: |\n  one: two: three\n    @four\nmetadata:\n  k: v", `{"name":"a: b","description":"one: two: three\n  @four\n","metadata":{"k":"v"}}`},
		"good values kept":     {"name: a\ndescription: x: y\nmetadata: {n: 1, l: [1, two]}\nquoted: \"a: b\" # note", `{"name":"a","description":"x: y","metadata":{"n":1,"l":[1,"two"]},"quoted":"a: b"}`},
		"alias kept":           {"base: &b v\nname: *b\ndescription: x: y", `{"base":"v","name":"v","description":"x: y"}`},
		"no-break space":       {"name: a\ndescription: d: e\nmetadata:\n\u00a0 x: y", `{"name":"a","description":"d: e","metadata":{"x":"y"}}`},
		"text below its key":   {"name: a\ndescription:\n  Multi line: with colon\n  and more\nlicense: MIT", `{"name":"a","description":"Multi line: with colon and more","license":"MIT"}`},
		"one line below":       {"name: a\ndescription:\n  Use: when\nlicense: MIT", `{"name":"a","description":"Use: when","license":"MIT"}`},
		"inline list":          {"name: a\ndescription: [TODO]", `{"name":"a","description":"[TODO]"}`},
		"folded at the margin": {"name: a\ndescription: >\n\nFolded\nmore text\nlicense: MIT", `{"name":"a","description":"Folded more text","license":"MIT"}`},
		"block at the margin":  {"name: a\ndescription: |\nOne\n\nTwo\nlicense: MIT", `{"name":"a","description":"One\n\nTwo","license":"MIT"}`},
		"block with tabs":      {"name: a\ndescription: |\n\tone\n\ttwo", `{"name":"a","description":"one\ntwo\n"}`},
		"two pairs of quotes":  {"name: a\ndescription: d\nwhen:\n- \"a\" or \"b\"\n- *glob*", `{"name":"a","description":"d","when":["\"a\" or \"b\"","*glob*"]}`},
		"text in brackets":     {"name: a\ndescription: d\nargument-hint: [file] [opts]", `{"name":"a","description":"d","argument-hint":"[file] [opts]"}`},
		"nested entry":         {"name: a\ndescription: d\nmetadata:\n  x: y: z\n  list:\n    - k: v: w\n      l: m", `{"name":"a","description":"d","metadata":{"x":"y: z","list":[{"k":"v: w","l":"m"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			md := registry.ParseSkillMD([]byte("---\n"+test.header+"\n---\n"), "dir")
			if got := string(md.Frontmatter); got != test.want || !md.Repaired {
				t.Errorf("got  %s (repaired %t, %+v)\nwant %s", got, md.Repaired, md.Problems, test.want)
			}
		})
	}
}

// Plain scalars resolve by the core schema of YAML 1.2, as every other reader of the frontmatter does.
func TestScalars(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"2024-01-01": `"2024-01-01"`, "0777": "777", "1_000": `"1_000"`, "yes": `"yes"`, "on": `"on"`, "0o17": "15", "1.10": "1.1",
		"'1.10'": `"1.10"`, `"0777"`: `"0777"`, ".inf": `".inf"`, "-.INF": `"-.INF"`, ".nan": `".nan"`, "true": "true", "True": "true",
		"FALSE": "false", "~": "null", "": "null", "Null": "null", "nULL": `"nULL"`, "0x1F": "31", "+12": "12", "-0": "0", "1e3": "1e3",
		"1.": "1", ".5": "0.5", "-.5": "-0.5", "1.0": "1", "00": "0", "1E+2": "1e2", "1e999": `"1e999"`, "12e03": "12e3", "0b11": `"0b11"`,
		"123456789012345678901234567890": "123456789012345678901234567890", "!!str 12": `"12"`, "!!int '12'": "12", "!custom x": `"x"`,
		"1:30": `"1:30"`, "0o8": `"0o8"`, "1.2.3": `"1.2.3"`, "<<": `"<<"`, "=": `"="`, "null x": `"null x"`,
		"[1, 0x10, a]": `[1,16,"a"]`, "{a: {b: 1.50}}": `{"a":{"b":1.5}}`, "|\n  x\n  y": `"x\ny\n"`, "\u2028x\u0085": `"` + `\u2028` + "x\u0085\"",
		"{1: a, true: b, ~: c, 0x10: d}": `{"1":"a","true":"b","":"c","16":"d"}`, "1e-400": "1e-400", "-": `"-"`,
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			md := registry.ParseSkillMD([]byte("---\nv: "+source+"\n---\n"), "")
			want := `{"v":` + want + `}`
			if got := string(md.Frontmatter); got != want {
				t.Errorf("%q: got %s, want %s (%+v)", source, got, want, md.Problems)
			}
		})
	}
}

func TestProblemLines(t *testing.T) {
	t.Parallel()
	md := registry.ParseSkillMD([]byte("\n---\nname: Bad Name\ndescription: fine\nversion: 2\n---\none\n"), "dir")
	got := map[string]int{}
	for _, p := range md.Problems {
		got[p.Code] = p.Line
		if p.File != "SKILL.md" || p.Message == "" || !strings.Contains(p.Message, " ") {
			t.Errorf("problem %+v names no file or says nothing", p)
		}
	}
	want := map[string]int{"TEXT_BEFORE_FENCE": 1, "NAME_CHARACTERS": 3, "NAME_NOT_DIRECTORY": 3, "FIELD_UNKNOWN": 5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if md.BodyLine != 7 {
		t.Errorf("the body begins on line %d, want 7", md.BodyLine)
	}
	broken := registry.ParseSkillMD([]byte("---\nname: a\ndescription: b\nx: [\n---\n"), "")
	if len(broken.Problems) == 0 {
		t.Fatal("no problem")
	}
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("---\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "k%d: v\n", i)
	}
	b.WriteString("name: [x]\n---\n")
	md := registry.ParseSkillMD([]byte(b.String()), "")
	if len(md.Problems) > 70 || md.Usable {
		t.Errorf("%d problems, usable %t", len(md.Problems), md.Usable)
	}
}

// Every code has one row and is found by it.
func TestProblemCatalogue(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range registry.ProblemCatalogue() {
		if seen[row.Code] || row.Rule == "" || row.Code != strings.ToUpper(row.Code) {
			t.Errorf("row %+v is twice, says nothing or is not upper case", row)
		}
		seen[row.Code] = true
		switch row.Severity {
		case registry.SeverityError, registry.SeverityWarning, registry.SeverityNote:
		default:
			t.Errorf("%s has the severity %q", row.Code, row.Severity)
		}
	}
}

func FuzzParseSkillMD(f *testing.F) {
	for _, seed := range []string{
		"", "---", "---\n---", "---\nname: a\ndescription: b\n---\nc", bom + "---\r\nname: a\r\n---\r\n", "---\na: &a [*a]\n---\n",
		"---\ndescription: x: y: z\n  more\nname:\tb\n---\n", "---\n\tname: 'x\n---\n", "---\n{{a}}: b\n---\n", "<!-- x -->\n---\nname: 1\n---\n",
		"---\nk: |\n a\n---\n", "---\n\u2028: \u0085\n---\n", "---\n- - - a: b: c\n---\n", "\xff\xfe",
	} {
		f.Add([]byte(seed), "dir")
	}
	f.Fuzz(func(t *testing.T, content []byte, directory string) {
		defer time.AfterFunc(4*time.Second, func() { panic(fmt.Sprintf("slow: %q", content)) }).Stop()
		md := registry.ParseSkillMD(content, directory)
		if md.Usable && (md.Name == "" || strings.TrimSpace(md.Description) == "") {
			t.Errorf("usable without name or description: %+v", md)
		}
		if md.SpecClean && !md.Usable {
			t.Errorf("spec-clean and not usable: %+v", md)
		}
		if len(md.Frontmatter) > 0 {
			var fields map[string]any
			if err := json.Unmarshal(md.Frontmatter, &fields); err != nil {
				t.Errorf("frontmatter %q is not a JSON object: %v", md.Frontmatter, err)
			}
		}
		if md.Usable && !strings.HasPrefix(md.Name, "x") && registry.Slug(md.Name) == "" {
			t.Errorf("no slug for %q", md.Name)
		}
	})
}

// Headers made to be slow are read, or refused, at once.
func TestHostileHeadersAreQuick(t *testing.T) {
	t.Parallel()
	fill := func(s string) string { return strings.Repeat(s, 60_000/len(s)) }
	for name, header := range map[string]string{
		"broken entries": fill("k: v: w\n"), "open quotes": "a: b: c\n" + fill("k: \"\n"), "items": fill("- a: b: c\n"), "anchors": fill("&a "),
		"brackets": fill("["), "braces": fill("{a: "), "commas": "[" + fill("a,"), "questions": fill("? "), "loose lines": "a: b: c\n" + fill("x\n"),
		"line separators": fill("\u2028\ue000"), "aliases": "a: &a [" + fill("x,") + "]\nb: [" + strings.Repeat("*a,", 60) + "]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			registry.ParseSkillMD([]byte("---\n"+header+"\n---\n"), "")
			if took := time.Since(begun); took > 10*time.Second { // milliseconds, but for a machine under load
				t.Errorf("took %v", took)
			}
		})
	}
}
