package argschema

import (
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPatternSize bounds the steps of all compiled patterns of one schema together. Repeats multiply them: x{1000} has
	// a thousand.
	maxPatternSize = 50_000
	// maxNumberSize bounds the digits of a number of the arguments, and its exponent. A number is compared exactly, and
	// 1e1000000 has a million digits.
	maxNumberSize = 4096
)

// patternBudget compiles the patterns of one schema.
type patternBudget struct {
	size     int
	exceeded bool
}

func (p *patternBudget) compile(pattern string) (jsonschema.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	p.size += patternSize(parsed)
	if p.size > maxPatternSize {
		p.exceeded = true
		return nil, ErrTooComplex
	}
	return regexp.Compile(pattern)
}

// validateRegex is the format "regex" under the same bound: the library's own compiles whatever text the arguments have.
func validateRegex(v any) error {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	var p patternBudget
	_, err := p.compile(text)
	return err
}

// patternSize is about how many steps re compiles to.
func patternSize(re *syntax.Regexp) int {
	size := 1
	if re.Op == syntax.OpLiteral {
		size += len(re.Rune)
	}
	for _, sub := range re.Sub {
		size += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, 1<<30) // far above the limit, far below an overflow
}

// countValues counts every value of a document.
func countValues(v any) int {
	total := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			total += countValues(item)
		}
	case map[string]any:
		for _, member := range v {
			total += countValues(member)
		}
	}
	return total
}

// countable reports whether every number of v is short enough to be compared exactly.
func countable(v any) bool {
	switch v := v.(type) {
	case json.Number:
		digits, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		if exponent == "" {
			return len(digits) <= maxNumberSize
		}
		n, err := strconv.Atoi(exponent)
		return err == nil && len(digits) <= maxNumberSize && -maxNumberSize <= n && n <= maxNumberSize
	case []any:
		for _, item := range v {
			if !countable(item) {
				return false
			}
		}
	case map[string]any:
		for _, member := range v {
			if !countable(member) {
				return false
			}
		}
	}
	return true
}

// dynamicAnchors are the pointers, below at, of the objects that $dynamicRef or $recursiveRef may jump to.
func dynamicAnchors(v any, at string) []string {
	var found []string
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			found = append(found, dynamicAnchors(item, at+"/"+strconv.Itoa(i))...)
		}
	case map[string]any:
		_, dynamic := v["$dynamicAnchor"]
		_, recursive := v["$recursiveAnchor"]
		if dynamic || recursive {
			found = append(found, at)
		}
		for key, member := range v {
			token := strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
			found = append(found, dynamicAnchors(member, at+"/"+pathEscape(token))...)
		}
	}
	return found
}

// pathEscape writes token as part of a URL's fragment.
func pathEscape(token string) string {
	var b strings.Builder
	for _, c := range []byte(token) {
		if c == '%' || c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>\^{}|#`+"`", c) >= 0 {
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c)|0x100, 16)[1:]))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
