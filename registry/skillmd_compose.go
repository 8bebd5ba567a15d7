package registry

import (
	"strings"
)

// ComposeSkillMD makes a SKILL.md of a name, a description and instructions. Whatever the texts are, [ParseSkillMD] gives them
// back: the name without surrounding blanks, the others whole, with LF line ends and U+FFFD for what is not UTF-8.
// Instructions that are a SKILL.md themselves lose their frontmatter, so that it is not there twice.
func ComposeSkillMD(name, description, instructions string) []byte {
	body := normaliseText([]byte(strings.TrimPrefix(instructions, "\ufeff")))
	if inner := ParseSkillMD([]byte(body), ""); len(inner.Frontmatter) > 0 && (inner.Name != "" || inner.Description != "") {
		body = strings.TrimLeft(inner.Body, "\n")
	}
	var b strings.Builder
	b.WriteString("---\nname: ")
	b.WriteString(quoteYAML(strings.TrimSpace(strings.ToValidUTF8(name, "\ufffd"))))
	b.WriteString("\ndescription: ")
	b.WriteString(quoteYAML(strings.ToValidUTF8(description, "\ufffd")))
	b.WriteString("\n---\n")
	b.WriteString(body)
	return []byte(b.String())
}
