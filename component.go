package sallyport

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is what a [Component] is for.
type Kind string

// The kinds of component. Only a script can be executed.
const (
	KindScript    Kind = "script"
	KindReference Kind = "reference"
	KindExample   Kind = "example"
	KindTemplate  Kind = "template"
	KindDocument  Kind = "document"
	KindArtifact  Kind = "artifact"
)

// Kinds lists every kind, in a fixed order.
func Kinds() []Kind {
	return []Kind{KindScript, KindReference, KindExample, KindTemplate, KindDocument, KindArtifact}
}

// Valid reports whether k is one of [Kinds].
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// Component is one file of a [Revision].
type Component struct {
	ID        ComponentID `json:"id"`
	Path      string      `json:"path"` // relative, slash-separated, plain: see [CheckPath]
	Kind      Kind        `json:"kind"`
	MediaType string      `json:"media_type"`
	Size      int64       `json:"size"`
	SHA256    string      `json:"sha256"` // 64 lower-case hex digits
	// Mode holds the permission bits of the source file. Recorded, never needed to run.
	Mode uint32 `json:"mode"`
	// Script is set for KindScript only.
	Script *ScriptSettings `json:"script,omitempty"`
	// Content is set only where a method says so.
	Content []byte `json:"-"`
}

// InputMode says how the arguments of a call reach a script.
type InputMode string

// The input modes. The zero value means InputStdin.
const (
	InputStdin InputMode = "stdin" // input_args as JSON on standard input
	InputFlags InputMode = "flags" // input_args as command line flags, standard input empty
	InputNone  InputMode = "none"  // no input_args: they must be empty
)

// ScriptSettings are the settings of a script component, from sallyport.yaml or inferred. They are part
// of the revision's digest.
type ScriptSettings struct {
	// Runtime is python, bash, node or a runtime's name; empty when it could not be inferred.
	Runtime string `json:"runtime,omitempty"`
	// Input is never empty in a stored revision.
	Input InputMode `json:"input,omitempty"`
	// InputSchema is a JSON Schema 2020-12 document for input_args, nil when none is declared.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// Argv is nil when undeclared, else the JSON string "none" or "free", or a JSON Schema for the
	// argument array. Undeclared: free, unless the script has an InputSchema; then none.
	Argv json.RawMessage `json:"argv,omitempty"`
	// Limits are the script's own; zero fields mean unset. They only ever narrow.
	Limits Limits `json:"limits,omitzero"`
	// Confirm wants a person's yes for each run.
	Confirm bool `json:"confirm,omitempty"`
	// Secrets are the names of tenant secrets the script declares, sorted.
	Secrets []string `json:"secrets,omitempty"`
}

// PathMaxLength bounds a component path, in bytes; path segments are bounded by 255 bytes.
const PathMaxLength = 1024

// CheckPath returns nil when path is plain: relative, slash-separated, valid UTF-8, no empty, "." or ".."
// segment, no backslash, NUL, control or bidirectional-override character, no drive colon at the start,
// within [PathMaxLength]. Otherwise an UNSAFE_PATH error that names the fault.
func CheckPath(path string) error {
	fault := ""
	switch {
	case path == "":
		fault = "is empty"
	case len(path) > PathMaxLength:
		fault = "is longer than 1024 bytes"
	case !utf8.ValidString(path):
		fault = "is not valid UTF-8"
	case strings.HasPrefix(path, "/"):
		fault = "is absolute"
	case strings.Contains(path, `\`):
		fault = "contains a backslash"
	case len(path) >= 2 && path[1] == ':' && isASCIILetter(path[0]):
		fault = "names a drive"
	}
	if fault == "" {
		for _, r := range path {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029 {
				fault = "contains a control character"
				break
			}
		}
	}
	if fault == "" {
		for segment := range strings.SplitSeq(path, "/") {
			switch {
			case segment == "":
				fault = "has an empty segment"
			case segment == "." || segment == "..":
				fault = "has a . or .. segment"
			case len(segment) > 255:
				fault = "has a segment longer than 255 bytes"
			}
			if fault != "" {
				break
			}
		}
	}
	if fault == "" {
		return nil
	}
	return &Error{Op: "path", Code: CodeUnsafePath, Message: "the path " + fault}
}

func isASCIILetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
