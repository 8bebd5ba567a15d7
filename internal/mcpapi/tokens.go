package mcpapi

import "unicode/utf8"

// unitsPerToken is the fraction of a token that the estimate counts in.
const unitsPerToken = 6

// units is the estimate of a text in sixths of a token: a third of a token for each byte of ASCII, a half for each other byte. It
// is meant to be too high: tokenizers make about one token of four bytes of English, of three bytes of code, and of one or two
// bytes of scripts that they saw little of. The estimate of two texts is the sum of theirs.
func units(text string) int {
	total := 0
	for i := range len(text) {
		if text[i] < utf8.RuneSelf {
			total += unitsPerToken / 3
		} else {
			total += unitsPerToken / 2
		}
	}
	return total
}

// tokens rounds units up.
func tokens(units int) int { return (units + unitsPerToken - 1) / unitsPerToken }
