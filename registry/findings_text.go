package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// unicode looks for characters that are not seen. Each rule is reported once for a line.
func (f *fileScan) unicode(content string) {
	if isASCII(content) && !strings.ContainsFunc(content, controlCharacter) {
		return
	}
	lines(content, func(number int, line string) {
		if number == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		for rule, hit := range invisible(line) {
			f.add(rule, number, "%d hidden or deceptive %s, the first is U+%04X; remove them", hit.count, plainNoun(hit.count), hit.first)
		}
	})
}

// escaped looks for the same characters in the header as clients get it: in the file they may be written as escapes of YAML, which
// nobody sees either.
func (f *fileScan) escaped(header json.RawMessage) {
	found := jsontext.NewDecoder(bytes.NewReader(header), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := found.ReadToken()
		if err != nil {
			return // its end: the header is JSON of our own making
		}
		if token.Kind() != '"' {
			continue
		}
		for rule, hit := range invisible(token.String()) {
			if f.fired[rule] == 0 {
				f.add(rule, 0, "%d hidden or deceptive %s in the header, written as an escape, the first is U+%04X; remove them", hit.count, plainNoun(hit.count), hit.first)
			}
		}
	}
}

func plainNoun(count int) string {
	if count == 1 {
		return "character"
	}
	return "characters"
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func controlCharacter(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\r' && r != '\t' && r != '\f' || r >= 0x7f && r < 0xa0
}

type hiddenRunes struct {
	count int
	first rune
}

// invisible finds hidden characters in a line, by rule.
func invisible(line string) map[string]hiddenRunes {
	var out map[string]hiddenRunes
	hit := func(rule string, r rune) {
		if out == nil {
			out = map[string]hiddenRunes{}
		}
		h := out[rule]
		if h.count++; h.count == 1 {
			h.first = r
		}
		out[rule] = h
	}
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case r == 0x1f3f4: // a black flag, which tags may turn into a region's
			i += flagTags(runes[i+1:])
		case r >= 0xe0000 && r <= 0xe007f:
			hit(RuleUnicodeTags, r)
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			hit(RuleUnicodeBidi, r)
		case r >= 0xe0100 && r <= 0xe01ef && (i == 0 || !unicode.Is(unicode.Han, runes[i-1])):
			hit(RuleUnicodeSelectors, r)
		case r >= 0xfe00 && r <= 0xfe0f && (i == 0 || selector(runes[i-1])):
			hit(RuleUnicodeSelectors, r)
		case controlCharacter(r):
			hit(RuleControl, r)
		case invisibleRune(r) && !joins(runes, i):
			hit(RuleUnicodeInvisible, r)
		}
	}
	return out
}

func selector(r rune) bool { return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef }

// flagTags is the number of tags that make a flag of a region that has one: England, Scotland and Wales.
func flagTags(after []rune) int {
	for _, region := range []string{"gbeng", "gbsct", "gbwls"} {
		tags := []rune(region + "\x7f")
		if len(after) >= len(tags) && slices.EqualFunc(after[:len(tags)], tags, func(a, b rune) bool { return a == 0xe0000+b }) {
			return len(tags)
		}
	}
	return 0
}

func invisibleRune(r rune) bool {
	switch {
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x180e, r == 0x3164, r == 0xfeff, r == 0xffa0:
		return true
	case r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029, r >= 0x2060 && r <= 0x2065, r >= 0x206a && r <= 0x206f, r >= 0xfff0 && r <= 0xfffb:
		return true
	}
	return r >= 0x1d173 && r <= 0x1d17a
}

// joins reports whether a joiner stands where writing needs one: between letters that are not ASCII, or in an emoji; or a
// direction mark in a line with letters that are written from right to left.
func joins(runes []rune, i int) bool {
	switch runes[i] {
	case 0x200e, 0x200f, 0x61c:
		return slices.ContainsFunc(runes, func(r rune) bool {
			return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana)
		})
	case 0x200c, 0x200d:
	default:
		return false
	}
	beside := func(r rune) bool {
		return r >= 0x80 && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsSymbol(r) || selector(r))
	}
	return i > 0 && i+1 < len(runes) && beside(runes[i-1]) && beside(runes[i+1])
}

const (
	wallLines  = 50
	wallBlanks = 200
	longLine   = 5000
)

// walls looks for text that is out of sight.
func (f *fileScan) walls(content string) {
	looks := f.prose() || f.program()
	blank, seen := 0, false
	lines(content, func(number int, line string) {
		if strings.TrimSpace(line) == "" {
			blank++
			return
		}
		if blank >= wallLines && seen {
			f.add(RuleWhitespaceWall, number, "text behind %d blank lines; remove them", blank)
		}
		blank, seen = 0, true
		if len(line) >= wallBlanks {
			if n := blankRun(line); n >= wallBlanks && looks {
				f.add(RuleWhitespaceWall, number, "text behind %d blanks in one line; remove them", n)
			}
		}
		if len(line) > longLine && looks {
			f.add(RuleLongLine, number, "a line of %d bytes; break it", len(line))
		}
	})
}

// blankRun is the longest run of blanks in a line that text follows.
func blankRun(line string) int {
	longest, run := 0, 0
	for _, r := range line {
		if unicode.IsSpace(r) {
			run++
			continue
		}
		longest, run = max(longest, run), 0
	}
	return longest
}

var markupComment = regexp.MustCompile(`(?s)<!--(.*?)-->`)

// comments looks for text that disappears when the file is rendered.
func (f *fileScan) comments(content string) {
	if !f.markup() || !strings.Contains(content, "<!--") {
		return
	}
	places := places{content: content}
	for _, at := range markupComment.FindAllStringSubmatchIndex(content, maxMatches) {
		if text := strings.Join(strings.Fields(content[at[2]:at[3]]), " "); text != "" {
			f.add(RuleHiddenComment, places.line(at[0]), "a comment of %d bytes that is not shown when rendered: %s", at[3]-at[2], shown(text))
		}
	}
}

// shown is a bit of a file's text, fit for a message.
func shown(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return fmt.Sprintf("%+q", text)
}

var (
	webAddress   = regexp.MustCompile(`(?i)\b(?:https?|ftp|wss?)://[^\s<>"'` + "`" + `\\^{}|]+`)
	relativeLink = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)
	fileAddress  = regexp.MustCompile(`(?i)\bfile://[^\s<>"')]+`)
)

// services that hide where an address leads, or take in what is sent to them. A host is one of them or below one.
var (
	shorteners = []string{"bit.ly", "tinyurl.com", "t.co", "goo.gl", "is.gd", "ow.ly", "buff.ly", "cutt.ly", "rb.gy", "rebrand.ly", "shorturl.at", "t.ly", "v.gd"}
	dropPlaces = []string{
		"pastebin.com", "paste.ee", "hastebin.com", "ghostbin.com", "rentry.co", "transfer.sh", "0x0.st", "file.io", "webhook.site", "requestbin.com", "pipedream.net",
		"ngrok.io", "ngrok-free.app", "ngrok.app", "trycloudflare.com", "loca.lt", "serveo.net", "burpcollaborator.net", "oastify.com", "interact.sh", "oast.fun", "oast.pro",
	}
)

// links looks for addresses that lead out of the revision. Every host is reported once for a file.
func (f *fileScan) links(content string) {
	if strings.Contains(content, "://") {
		hosts, web, own := map[string]bool{}, places{content: content}, places{content: content}
		for _, at := range webAddress.FindAllStringIndex(content, maxMatches) {
			f.address(content[at[0]:at[1]], web.line(at[0]), hosts)
		}
		for _, at := range fileAddress.FindAllStringIndex(content, maxMatches) {
			f.add(RuleLinkLeaves, own.line(at[0]), "an address on the reader's own machine: %s", shown(content[at[0]:at[1]]))
		}
	}
	if !f.markup() {
		return
	}
	links := places{content: content}
	for _, at := range relativeLink.FindAllStringSubmatchIndex(content, maxMatches) {
		target := content[at[2]:at[3]]
		if strings.Contains(target, ":") || strings.HasPrefix(target, "#") {
			continue
		}
		target, _, _ = strings.Cut(target, "#")
		// Links are meant from the file, or from the skill's root.
		beside, root := path.Join(path.Dir(f.component.Path), target), path.Clean(target)
		if strings.HasPrefix(target, "/") || escapesRoot(beside) && escapesRoot(root) {
			f.add(RuleLinkLeaves, links.line(at[0]), "a link out of the skill: %s", shown(target))
		}
	}
}

func escapesRoot(name string) bool { return name == ".." || strings.HasPrefix(name, "../") }

func (f *fileScan) address(text string, line int, hosts map[string]bool) {
	text = strings.TrimRight(text, ".,;:!?)]*_")
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	why := suspicion(u, host)
	if local(host) && why == "" {
		return
	}
	key := host + why
	if hosts[key] {
		return
	}
	hosts[key] = true
	if why != "" {
		f.add(RuleLinkSuspicious, line, "%s: %s", why, shown(text))
		return
	}
	f.add(RuleLinkOutside, line, "an address at %s", shown(host))
}

// local reports whether a host leads nowhere: the reader's own machine, one reserved for examples, a name of a vocabulary.
func local(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsUnspecified()
	}
	switch host {
	case "localhost", "example.com", "example.org", "example.net":
		return true
	case "www.w3.org", "json-schema.org", "schemas.openxmlformats.org", "schemas.microsoft.com", "purl.org":
		return true // names of vocabularies, which nobody fetches
	}
	return slices.ContainsFunc([]string{".example", ".example.com", ".example.org", ".example.net", ".localhost", ".test", ".invalid"},
		func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

func suspicion(u *url.URL, host string) string {
	ip, err := netip.ParseAddr(host)
	switch {
	case u.User != nil && !local(host) && (strings.Contains(u.User.Username(), ".") || err == nil):
		return "user information before the host makes the address look like another"
	case err == nil && !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsPrivate():
		return "a bare IP address says nothing about who answers"
	case strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--"):
		return "the host is written in punycode and may look like another"
	case below(host, shorteners):
		return "a shortened address hides where it leads"
	case below(host, dropPlaces):
		return "a service for pastes, tunnels or collecting requests"
	}
	return ""
}

func below(host string, domains []string) bool {
	return slices.ContainsFunc(domains, func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) })
}
