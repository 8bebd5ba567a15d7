package run

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// hiddenMark stands for the value of a secret, as it does in the audit trail.
const hiddenMark = "***"

const (
	// hideLeast is the shortest value that is looked for, in bytes: a shorter one would hide what is no secret.
	hideLeast = 4
	// hideLine is the shortest line of a value of many lines that is looked for by itself.
	hideLine = 8
	// hideLines bounds the lines of one value that are.
	hideLines = 1024
	// base64Line is how many bytes the base64 program writes on a line.
	base64Line = 57
)

// secrets opens what the script declares, before anything is recorded or begun.
func (s *Service) secrets(ctx context.Context, c *sallyport.Candidate) (map[string]sallyport.Secret, error) {
	if c.Script.Script == nil || len(c.Script.Script.Secrets) == 0 {
		return nil, nil
	}
	names := c.Script.Script.Secrets
	if s.cfg.Secrets == nil {
		return nil, sallyport.SecretMissing("run.secrets", names)
	}
	values, err := s.cfg.Secrets.Open(ctx, c.Principal.TenantID, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if values[name] == "" {
			return nil, sallyport.SecretMissing("run.secrets", []string{name})
		}
	}
	return values, nil
}

// hides returns what looks for the values in a result; nil when there are none or they may be shown.
func (s *Service) hides(c *sallyport.Candidate, values map[string]sallyport.Secret) *hider {
	if len(values) == 0 || s.cfg.ShowSecrets && !c.Policy.MaskOutputs {
		return nil
	}
	return newHider(values)
}

// hider finds the values of secrets in what a script wrote, as they are and in the forms in which programs usually print them. A
// script that wants to tell a secret can always change it beyond recognition: this is against accidents. A nil hider hides
// nothing. It serves one result.
type hider struct {
	forms map[[hideLeast]byte][]string // by their first bytes
	short int                          // values too short to look for
	found map[string]int               // places by what they were in
}

func newHider(values map[string]sallyport.Secret) *hider {
	h := &hider{forms: map[[hideLeast]byte][]string{}, found: map[string]int{}}
	for _, value := range values {
		if len(value) < hideLeast {
			h.short++
			continue
		}
		for _, form := range formsOf(string(value)) {
			h.add(form)
		}
	}
	return h
}

func (h *hider) add(form string) {
	if len(form) < hideLeast {
		return
	}
	begin := [hideLeast]byte([]byte(form[:hideLeast]))
	if !slices.Contains(h.forms[begin], form) {
		h.forms[begin] = append(h.forms[begin], form)
	}
}

// formsOf lists how a value may look in an output.
func formsOf(value string) []string {
	forms := []string{value, strings.TrimSpace(value)}
	lines := 0
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= hideLine && lines < hideLines {
			lines++
			forms = append(forms, line)
		}
	}
	for _, whole := range []string{value, strings.TrimSpace(value)} {
		if whole == "" {
			continue
		}
		forms = append(forms, encodings(whole)...)
	}
	return forms
}

func encodings(value string) []string {
	forms := []string{
		hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))), url.QueryEscape(value), url.PathEscape(value),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)),
		base64.RawStdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
	}
	for _, escapeHTML := range []bool{true, false} {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(escapeHTML)
		if encoder.Encode(value) == nil {
			quoted := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text.String()), `"`), `"`)
			for _, form := range []string{quoted, asciiJSON(quoted)} {
				forms = append(forms, form, strings.ReplaceAll(form, "/", `\/`))
			}
		}
	}
	// In the middle of something that was encoded as a whole, a value has three looks. Its first and last characters there
	// depend on what is beside it.
	for shift := range 3 {
		padded := append(make([]byte, shift), value...)
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString(padded)
			if len(padded)%3 != 0 {
				text = text[:len(text)-1]
			}
			forms = append(forms, text[min([]int{0, 2, 3}[shift], len(text)):])
		}
	}
	if len(value) > base64Line {
		for chunk := range slices.Chunk([]byte(value), base64Line) {
			if len(chunk) >= hideLine {
				forms = append(forms, base64.StdEncoding.EncodeToString(chunk))
			}
		}
	}
	return forms
}

// asciiJSON returns the inside of a JSON string as writers put it that keep to ASCII, such as Python's.
func asciiJSON(quoted string) string {
	var text strings.Builder
	for _, r := range quoted {
		switch {
		case r < 0x7f:
			text.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&text, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&text, `\u%04x`, r)
		}
	}
	return text.String()
}

// span is where a value was found: [from, to).
type span struct{ from, to int }

// text returns raw without values. cut says that raw is the beginning of something longer: a value that the end of raw splits is
// hidden too.
func (h *hider) text(where string, raw []byte, cut bool) []byte {
	var spans []span
	mark := func(from, to int) {
		if n := len(spans); n > 0 && from <= spans[n-1].to {
			spans[n-1].to = max(spans[n-1].to, to)
			return
		}
		spans = append(spans, span{from, to})
	}
	for i := 0; i+hideLeast <= len(raw); i++ {
		longest := 0
		for _, form := range h.forms[[hideLeast]byte(raw[i:])] {
			if len(form) > longest && len(form) <= len(raw)-i && string(raw[i:i+len(form)]) == form {
				longest = len(form)
			}
		}
		if longest > 0 {
			mark(i, i+longest)
		}
	}
	if cut {
		if begun := h.begun(raw); begun > 0 {
			from := len(raw) - begun
			for n := len(spans); n > 0 && spans[n-1].from >= from; n = len(spans) {
				spans = spans[:n-1]
			}
			mark(from, len(raw))
		}
	}
	if len(spans) == 0 {
		return raw
	}
	h.found[where] += len(spans)
	out := make([]byte, 0, len(raw))
	at := 0
	for _, s := range spans {
		out = append(append(out, raw[at:s.from]...), hiddenMark...)
		at = s.to
	}
	return append(out, raw[at:]...)
}

// begun is how many bytes at the end of raw are the beginning of a value.
func (h *hider) begun(raw []byte) int {
	most := 0
	for begin, forms := range h.forms {
		if !bytes.Contains(raw, begin[:]) {
			continue
		}
		for _, form := range forms {
			for n := min(len(form)-1, len(raw)); n >= hideLeast && n > most; n-- {
				if string(raw[len(raw)-n:]) == form[:n] {
					most = n
				}
			}
		}
	}
	return most
}

func (h *hider) string(where, text string) string { return string(h.text(where, []byte(text), false)) }

func (h *hider) strings(where string, texts []string) []string {
	hidden := make([]string, len(texts))
	for i, text := range texts {
		hidden[i] = h.string(where, text)
	}
	return hidden
}

// result returns r without values.
func (h *hider) result(r sallyport.Result) sallyport.Result {
	if h == nil {
		return r
	}
	r.Stdout = h.text("stdout", r.Stdout, r.StdoutTruncated)
	r.Stderr = h.text("stderr", r.Stderr, r.StderrTruncated)
	r.OutputData = h.json("output_data", r.OutputData)
	r.StartError = h.string("the start", r.StartError)
	r.ArtifactNotes = h.strings("artifacts", r.ArtifactNotes)
	r.Isolation.Notes = h.strings("isolation", r.Isolation.Notes)
	r.Artifacts = slices.Clone(r.Artifacts)
	for i := range r.Artifacts {
		r.Artifacts[i].Path = h.string("artifacts", r.Artifacts[i].Path)
	}
	return r
}

// json hides values in the names, texts and numbers of a JSON value, however its texts are escaped. What is no JSON is text.
func (h *hider) json(where string, raw []byte) []byte {
	if len(bytes.TrimSpace(raw)) == 0 || strictjson.Check(raw) != nil {
		return h.text(where, raw, false)
	}
	before := h.found[where]
	var out bytes.Buffer
	decoder := jsontext.NewDecoder(bytes.NewReader(raw))
	encoder := jsontext.NewEncoder(&out, jsontext.Multiline(false), jsontext.AllowDuplicateNames(true))
	for started := false; !started || decoder.StackDepth() > 0; started = true {
		token, err := decoder.ReadToken()
		if err != nil {
			return h.text(where, raw, false)
		}
		switch token.Kind() {
		case '"', '0':
			text := token.String()
			if hidden := h.string(where, text); hidden != text {
				token = jsontext.String(hidden)
			}
		}
		if err := encoder.WriteToken(token); err != nil {
			return h.text(where, raw, false)
		}
	}
	if h.found[where] == before {
		return raw
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// notes says what was hidden, and what could not be.
func (h *hider) notes() []string {
	if h == nil {
		return nil
	}
	var notes []string
	for _, where := range slices.Sorted(maps.Keys(h.found)) {
		if n := h.found[where]; n > 0 {
			notes = append(notes, where+": the value of a secret was hidden in "+plural(n, "place"))
		}
	}
	if h.short > 0 {
		notes = append(notes, fmt.Sprintf("%s of fewer than %d bytes could not be hidden", plural(h.short, "secret"), hideLeast))
	}
	return notes
}

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}
