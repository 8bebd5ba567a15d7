package registry_test

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/registry"
)

func TestComposeSkillMD(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ name, description, instructions, body string }{
		"plain":                 {"pdf", "Reads PDF.", "# PDF\n", "# PDF\n"},
		"colons and quotes":     {"a: b", `Use "x": 'y' # z`, "t", "t"},
		"line ends":             {"a", "one\ntwo\r\nthree\rfour", "a\r\nb\rc", "a\nb\nc"},
		"fences in the text":    {"a", "---\nx\n---", "---\nnot: a header we know\n---\nx", "---\nnot: a header we know\n---\nx"},
		"a thematic break":      {"a", "d", "one\n\n---\n\ntwo", "one\n\n---\n\ntwo"},
		"special values":        {"true", "null", "", ""},
		"characters":            {"a\u2028b", "\u0085\u00a0\ufeff\ufffe\uffff\x7f\x00😀\U0001fffe", "x", "x"},
		"private use":           {"\ue000\u2028x", "\ue000\ue001\u0085\u2029", "x", "x"},
		"F3 a whole SKILL.md":   {"new", "new d", "---\nname: old\ndescription: old d\nlicense: MIT\n---\n\n# Body\n", "# Body\n"},
		"F3 with a BOM":         {"new", "new d", bom + "---\r\nname: old\r\ndescription: old d\r\n---\r\n# Body\r\n", "# Body\n"},
		"long":                  {"a", strings.Repeat("word: ", 5000), "x", "x"},
		"what is not UTF-8":     {"a", "x\ufffdy", "\ufffd", "\ufffd"},
		"blanks in description": {"a", "  d  \n", " x ", " x "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			md := registry.ParseSkillMD(registry.ComposeSkillMD(test.name, test.description, test.instructions), "")
			if md.Name != test.name || md.Description != test.description || md.Body != test.body || md.Repaired {
				t.Errorf("got %q, %q, %q (repaired %t), want %q, %q, %q", md.Name, md.Description, md.Body, md.Repaired, test.name, test.description, test.body)
			}
		})
	}
}

func FuzzComposeSkillMD(f *testing.F) {
	f.Add("pdf", "Reads.", "# Body")
	f.Add("---", "\n---\n", "---\nname: x\n---\n")
	f.Add("\u2028\ue000", "\x00\ufffe\U0010ffff", "<!-- -->\n---\ndescription: y\n---")
	f.Add("a\\", "\"", "\ufeff---")
	f.Fuzz(func(t *testing.T, name, description, instructions string) {
		if len(name)+len(description) > 8<<10 {
			return // beyond the bound of a header once escaped
		}
		content := registry.ComposeSkillMD(name, description, instructions)
		md := registry.ParseSkillMD(content, "fallback")
		utf8Description := strings.ToValidUTF8(description, "\ufffd")
		wantName := strings.TrimSpace(strings.ToValidUTF8(name, "\ufffd"))
		if wantName == "" {
			wantName = "fallback"
		}
		if md.Name != wantName || md.Repaired || strings.TrimSpace(utf8Description) != "" && md.Description != utf8Description {
			t.Errorf("%q: got %q and %q, want %q and %q", content, md.Name, md.Description, wantName, utf8Description)
		}
		if again := registry.ComposeSkillMD(name, description, md.Body); string(again) != string(content) && registry.ParseSkillMD([]byte(md.Body), "").Frontmatter == nil {
			t.Errorf("composing again from the body %q gives %q, want %q", md.Body, again, content)
		}
	})
}
