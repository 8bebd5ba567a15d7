package registry

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// secretForm is a credential that is known by its form. A file without any of the anchors is not searched. The pattern's first group,
// or all of it, is the credential.
type secretForm struct {
	name    string
	anchors []string
	pattern *regexp.Regexp
}

// secretForms is the documented, bounded set.
var secretForms = []secretForm{
	{"a private key", []string{"PRIVATE KEY"}, regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\\r|\\n|\s|[A-Za-z-]+: [^\n]*\n)*([A-Za-z0-9+/]{40})`)},
	{"an AWS access key id", []string{"AKIA"}, regexp.MustCompile(`\b(AKIA[A-Z2-7]{16})\b`)},
	{"an AWS session key id", []string{"ASIA"}, regexp.MustCompile(`\b(ASIA[A-Z2-7]{16})\b`)},
	{"a GitHub token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36,255})\b`)},
	{"a GitHub token", []string{"github_pat_"}, regexp.MustCompile(`\b(github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b`)},
	{"a GitLab token", []string{"glpat-"}, regexp.MustCompile(`\b(glpat-[A-Za-z0-9_-]{20,})`)},
	{"a Slack token", []string{"xox"}, regexp.MustCompile(`\b(xox[abeoprs]-[0-9A-Za-z-]{20,})`)},
	{"a Slack webhook", []string{"hooks.slack.com"}, regexp.MustCompile(`(hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,})`)},
	{"a Google API key", []string{"AIza"}, regexp.MustCompile(`\b(AIza[0-9A-Za-z_-]{35})`)},
	{"a Google client secret", []string{"GOCSPX-"}, regexp.MustCompile(`\b(GOCSPX-[0-9A-Za-z_-]{28})`)},
	{"a Stripe key", []string{"k_live_"}, regexp.MustCompile(`\b([sr]k_live_[0-9A-Za-z]{24,})\b`)},
	{"an Anthropic key", []string{"sk-ant-"}, regexp.MustCompile(`\b(sk-ant-[0-9A-Za-z_-]{40,})`)},
	{"an OpenAI key", []string{"sk-"}, regexp.MustCompile(`\b(sk-(?:proj-|svcacct-)?[0-9A-Za-z_]{40,})`)},
	{"an npm token", []string{"npm_"}, regexp.MustCompile(`\b(npm_[0-9A-Za-z]{36})\b`)},
	{"a PyPI token", []string{"pypi-AgE"}, regexp.MustCompile(`\b(pypi-AgE[0-9A-Za-z_-]{50,})`)},
	{"a Sallyport key", []string{"spk_"}, regexp.MustCompile(`\b(spk_[0-9A-Za-z]{36})\b`)},
}

var (
	// assignment is a name that stands for a secret, an assignment and a quoted value, or a value to the end of the line.
	assignment = regexp.MustCompile(`(?i)\b[a-z0-9_.-]*(?:passw(?:or)?d|secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|auth[_-]?key|credential)s?["']?\s*(?::|=>?|:=)\s*(?:["']([^"'\s]{20,200})["']|([A-Za-z0-9+/_=-]{24,200})\s*$)`)
	// placeholder is what people write in the place of a secret.
	placeholder = regexp.MustCompile(`(?i)example|sample|your|placeholder|change.?me|dummy|fake|test|xxx|redacted|insert|replace|todo|1234567|abcdef|<|>|\$\{|\{\{|\$\(|env[.\[(]|process\.|getenv|\.\.\.`)
	// secretWords are what one of must be in a file with an assignment, in lower case.
	secretWords = []string{"passw", "secret", "token", "key", "credential"}
)

// minSecret is the shortest line that an assignment of a secret fits in.
const minSecret = 24

// secrets looks for credentials. A message never holds one.
func (f *fileScan) secrets(content string) {
	found := map[int]bool{}
	for _, form := range secretForms {
		if !containsAny(content, form.anchors) {
			continue
		}
		places := places{content: content}
		for _, at := range form.pattern.FindAllStringSubmatchIndex(content, maxMatches) {
			value, line := content[at[2]:at[3]], places.line(at[0])
			if placeholder.MatchString(value) || entropy(value) < 3 || found[line] {
				continue
			}
			found[line] = true
			f.add(RuleSecret, line, "%s (%s); take it out and revoke it: it is in the history now", form.name, masked(value))
		}
	}
	if containsAny(strings.ToLower(content), secretWords) {
		f.assignments(content, found)
	}
}

func containsAny(content string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(content, word) })
}

// assignments looks for random values that are given to names of secrets.
func (f *fileScan) assignments(content string, found map[int]bool) {
	lines(content, func(number int, line string) {
		if found[number] || len(line) < minSecret || len(line) > longLine || !strings.ContainsAny(line, "=:") ||
			!containsAny(strings.ToLower(line), secretWords) {
			return
		}
		for _, match := range assignment.FindAllStringSubmatch(line, -1) {
			value := match[1] + match[2]
			if !random(value) || placeholder.MatchString(value) {
				continue
			}
			f.add(RuleSecretGeneric, number, "what looks like a secret (%s); read it from the environment, or declare it as a secret of the script", masked(value))
			return
		}
	})
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// random reports whether a value is more like a key than like words, a path, an address or an id: letters, digits and cases
// alternate, and hardly a letter comes twice.
func random(value string) bool {
	if !strings.ContainsAny(value, "0123456789") || !strings.ContainsFunc(value, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }) {
		return false
	}
	if strings.Contains(value, "://") || strings.HasPrefix(value, "/") || strings.HasPrefix(value, ".") || uuidForm.MatchString(value) {
		return false
	}
	changes, before := 0, byte(0)
	for i := range len(value) {
		class := byteClass(value[i])
		if i > 0 && class != before && class != 0 && before != 0 {
			changes++
		}
		before = class
	}
	return changes >= len(value)/5 && entropy(value) >= 3.4
}

// byteClass is 1 for a lower-case letter, 2 for an upper-case one, 3 for a digit, else 0.
func byteClass(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return 1
	case c >= 'A' && c <= 'Z':
		return 2
	case c >= '0' && c <= '9':
		return 3
	}
	return 0
}

// entropy is Shannon's, in bits for each byte.
func entropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// masked says enough of a secret to find it, and no more.
func masked(value string) string {
	return shown(value[:min(4, len(value))]) + " and " + plural(len(value)-min(4, len(value)), "byte")
}
