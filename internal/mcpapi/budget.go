package mcpapi

import "unicode/utf8"

// cut returns at most budget bytes of s, whole characters only, and how many bytes it left.
func cut(s string, budget int) (kept string, left int) {
	if len(s) <= budget {
		return s, 0
	}
	end := budget
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end], len(s) - end
}
