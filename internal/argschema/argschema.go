// Package argschema compiles the JSON Schemas that scripts declare for their arguments.
//
// It owns the one set of rules by which such a schema is read: draft 2020-12 unless it names another, every keyword, format
// asserted. It leaves what to do about a fault to its callers. Its one invariant: compiling loads nothing; a schema is judged
// by its own bytes.
package argschema

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// name of the document inside the compiler. Not a relative one: the library would put this host's current directory before it.
// Three slashes: with one, references inside the document resolve to another name and are taken for remote.
const name = "sallyport:///schema.json"

// Compile compiles schema. A reference that leaves the document is a *jsonschema.LoadURLError.
func Compile(schema json.RawMessage) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(refusingLoader{})
	compiler.AssertFormat()
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

type refusingLoader struct{}

func (refusingLoader) Load(string) (any, error) {
	return nil, errors.New("remote references are not loaded")
}
