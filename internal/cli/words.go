package cli

import (
	"strings"

	"github.com/sallyport-dev/sallyport"
)

func joinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return strings.Join(texts, ", ")
}

// layers names layers as prose: no_new_privs reads no new privs.
func layers(list []sallyport.Layer) string { return strings.ReplaceAll(joinWords(list), "_", " ") }

// cut shortens prose for a column.
func cut(text string, width int) string {
	letters := []rune(strings.Join(strings.Fields(text), " "))
	if len(letters) <= width {
		return string(letters)
	}
	return string(letters[:width-1]) + "…"
}
