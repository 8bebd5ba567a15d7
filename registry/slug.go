package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/sallyport-dev/sallyport"
)

const slugHashLength = 8

// Slug derives the slug of a skill from its name, always a valid one: compatibility forms folded, accents dropped, lower case,
// every run of other characters one hyphen. When letters or digits were lost on the way, or the result would be empty or too
// long, eight digits of the folded name's SHA-256 keep two names apart.
func Slug(name string) string {
	folded := strings.ToLower(norm.NFKC.String(name))
	var b strings.Builder
	lost, gap := false, false
	for _, r := range norm.NFKD.String(folded) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r) && b.Len() > 0 && !gap:
			// An accent on an ASCII letter goes without a trace.
		default:
			lost = lost || unicode.IsLetter(r) || unicode.IsDigit(r)
			gap = true
		}
	}
	slug := b.String()
	if !lost && slug != "" && len(slug) <= sallyport.SlugMaxLength {
		return slug
	}
	sum := sha256.Sum256([]byte(folded))
	suffix := "-" + hex.EncodeToString(sum[:])[:slugHashLength]
	if slug == "" {
		slug = "skill"
	}
	if most := sallyport.SlugMaxLength - len(suffix); len(slug) > most {
		slug = strings.TrimRight(slug[:most], "-")
	}
	return slug + suffix
}
