package canonical

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// revisionPrefix separates the digests of revisions from every other SHA-256.
const revisionPrefix = "sallyport.revision.v1\n"

const opRevision = "canonical.revision"

type revisionForm struct {
	Components []componentForm `json:"components"`
}

type componentForm struct {
	Path   string         `json:"path"`
	Kind   sallyport.Kind `json:"kind"`
	Size   int64          `json:"size"`
	SHA256 string         `json:"sha256"`
	Script *scriptForm    `json:"script,omitempty"`
}

type scriptForm struct {
	Runtime           string              `json:"runtime,omitempty"`
	Input             sallyport.InputMode `json:"input"`
	InputSchemaSHA256 string              `json:"input_schema_sha256,omitempty"`
	Argv              json.RawMessage     `json:"argv,omitempty"`
	Limits            sallyport.Limits    `json:"limits,omitzero"`
	Secrets           []string            `json:"secrets,omitempty"`
	Confirm           bool                `json:"confirm,omitempty"`
}

// RevisionDigest returns the digest of a revision made of these components, in whatever order they come. Path, kind,
// size, sha256 and script settings count; ids, media types and modes do not.
//
// A component that carries Content is checked against its Size and SHA256, so a digest from components with
// content proves that content. The components are not modified. Two components with one path, a malformed sha256
// and content that differs are INTERNAL errors.
func RevisionDigest(components []sallyport.Component) (sallyport.Digest, error) {
	form := revisionForm{Components: make([]componentForm, 0, len(components))}
	for _, component := range components {
		one, err := formOf(component)
		if err != nil {
			return "", err
		}
		form.Components = append(form.Components, one)
	}
	slices.SortFunc(form.Components, func(a, b componentForm) int { return cmp.Compare(a.Path, b.Path) })
	for i := 1; i < len(form.Components); i++ {
		if form.Components[i].Path == form.Components[i-1].Path {
			return "", fault(opRevision, fmt.Sprintf("two components have the path %q", form.Components[i].Path), nil)
		}
	}
	body, err := JSON(form)
	if err != nil {
		return "", err
	}
	return sallyport.DigestOf(append([]byte(revisionPrefix), body...)), nil
}

func formOf(c sallyport.Component) (componentForm, error) {
	if err := checkText(opRevision, c.Path); err != nil {
		return componentForm{}, err
	}
	switch {
	case !c.Kind.Valid():
		return componentForm{}, fault(opRevision, fmt.Sprintf("the component %q has no kind", c.Path), nil)
	case c.Size < 0 || !validSHA256(c.SHA256):
		return componentForm{}, fault(opRevision, fmt.Sprintf("the component %q has no valid size and sha256", c.Path), nil)
	}
	if c.Content != nil {
		if sum := sha256.Sum256(c.Content); int64(len(c.Content)) != c.Size || hex.EncodeToString(sum[:]) != c.SHA256 {
			return componentForm{}, fault(opRevision, fmt.Sprintf("the content of the component %q is not what its sha256 says", c.Path), nil)
		}
	}
	form := componentForm{Path: c.Path, Kind: c.Kind, Size: c.Size, SHA256: c.SHA256}
	if c.Script == nil {
		return form, nil
	}
	script, err := scriptFormOf(*c.Script)
	if err != nil {
		return componentForm{}, err
	}
	form.Script = &script
	return form, nil
}

func scriptFormOf(s sallyport.ScriptSettings) (scriptForm, error) {
	if err := checkText(opRevision, append([]string{s.Runtime, string(s.Input)}, s.Secrets...)...); err != nil {
		return scriptForm{}, err
	}
	if s.Limits.Timeout%time.Millisecond != 0 {
		return scriptForm{}, fault(opRevision, "a script's timeout is not a whole number of milliseconds", nil)
	}
	form := scriptForm{
		Runtime: s.Runtime,
		Input:   cmp.Or(s.Input, sallyport.InputStdin),
		Argv:    s.Argv,
		Limits:  s.Limits,
		Secrets: slices.Sorted(slices.Values(s.Secrets)),
		Confirm: s.Confirm,
	}
	if len(s.InputSchema) > 0 {
		schema, err := JSON(s.InputSchema)
		if err != nil {
			return scriptForm{}, err
		}
		sum := sha256.Sum256(schema)
		form.InputSchemaSHA256 = hex.EncodeToString(sum[:])
	}
	return form, nil
}

func validSHA256(s string) bool {
	if len(s) != hex.EncodedLen(sha256.Size) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
