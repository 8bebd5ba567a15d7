package mcpapi

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// skillFile is the path of a skill's instructions.
const skillFile = "SKILL.md"

// instructionsOf returns what follows the header of a SKILL.md.
func instructionsOf(content []byte) string {
	text := strings.ReplaceAll(string(bytes.TrimPrefix(content, []byte("\uFEFF"))), "\r\n", "\n")
	rest, found := strings.CutPrefix(text, "---\n")
	if !found {
		return text
	}
	for offset := 0; ; {
		line, after, more := strings.Cut(rest[offset:], "\n")
		if strings.TrimRight(line, " \t") == "---" {
			return strings.TrimLeft(after, "\n")
		}
		if !more {
			return text
		}
		offset += len(line) + 1
	}
}

// composeSkillMD makes a SKILL.md.
func composeSkillMD(name, description, instructions string) []byte {
	return fmt.Appendf(nil, "---\nname: %s\ndescription: %s\n---\n\n%s\n", strconv.Quote(name), strconv.Quote(description), strings.TrimSpace(instructions))
}
