// Package argschema compiles the JSON Schemas that scripts declare for their arguments, and checks arguments against them.
//
// It owns the one set of rules by which such a schema is read: draft 2020-12 unless it names another, every keyword, format
// asserted; and what a check may cost. It leaves what to do about a fault to its callers. Its one invariant: a schema is
// hostile text: compiling loads nothing, and neither compiling nor checking takes more than a bounded amount of work.
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

// maxValues bounds the values (objects, arrays, texts, numbers) of one schema document.
const maxValues = 10_000

var (
	// ErrTooComplex means that a schema cannot be checked within the bounds of this package.
	ErrTooComplex = errors.New("the schema is too complex")
	// ErrNumber means that a number of the arguments has too many digits to be compared.
	ErrNumber = errors.New("a number has too many digits to be checked")
)

// Schema is one compiled schema. It is for one goroutine at a time.
type Schema struct {
	compiled *jsonschema.Schema
	budget   *budget
}

// Compile compiles schema. A reference that leaves the document is a *jsonschema.LoadURLError, and a schema beyond the bounds
// gives ErrTooComplex.
func Compile(schema json.RawMessage) (*Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	if countValues(document) > maxValues {
		return nil, ErrTooComplex
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(refusingLoader{})
	var patterns patternBudget
	compiler.UseRegexpEngine(patterns.compile)
	compiler.RegisterFormat(&jsonschema.Format{Name: "regex", Validate: validateRegex})
	compiler.AssertFormat()
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		if patterns.exceeded {
			err = ErrTooComplex // the library wraps it in a sentence about the pattern
		}
		return nil, err
	}
	b := &budget{}
	b.watch(compiled)
	// Reached by $dynamicRef alone, these are in no field that could be followed.
	for _, pointer := range dynamicAnchors(document, "#") {
		if anchored, err := compiler.Compile(name + pointer); err == nil {
			b.watch(anchored)
		}
	}
	return &Schema{compiled, b}, nil
}

// Validate checks instance, which [jsonschema.UnmarshalJSON] read. A misfit is a *jsonschema.ValidationError; ErrTooComplex and
// ErrNumber mean that nothing is known about it.
func (s *Schema) Validate(instance any) (err error) {
	if !countable(instance) {
		return ErrNumber
	}
	s.budget.start()
	defer func() {
		// The library cannot be told to stop in any other way.
		if p := recover(); p != nil {
			if p != any(exceeded{}) {
				panic(p)
			}
			err = ErrTooComplex
		}
	}()
	return s.compiled.Validate(instance)
}

type refusingLoader struct{}

func (refusingLoader) Load(string) (any, error) {
	return nil, errors.New("remote references are not loaded")
}
