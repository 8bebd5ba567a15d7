package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// maxSchemaBytes bounds one schema.
const maxSchemaBytes = 256 << 10

// checkSchema returns nil when schema is a JSON Schema object, 2020-12 unless it names another draft, that compiles without
// loading anything. The error's text is for the author of the schema.
func checkSchema(schema json.RawMessage) error {
	if len(schema) > maxSchemaBytes {
		return fmt.Errorf("the schema has more than %d bytes", maxSchemaBytes)
	}
	if err := strictjson.Check(schema); err != nil {
		return errors.New("the schema is not plain JSON: duplicate keys, broken text or deep nesting")
	}
	if _, err := canonical.JSON(schema); err != nil {
		return errors.New("the schema has a number that is out of range")
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return errors.New("the schema is not JSON")
	}
	if _, isObject := document.(map[string]any); !isObject {
		return errors.New("the schema is not an object")
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(refusingLoader{})
	compiler.AssertFormat()
	const name = "schema.json"
	if err := compiler.AddResource(name, document); err != nil {
		return schemaFault(err)
	}
	if _, err := compiler.Compile(name); err != nil {
		return schemaFault(err)
	}
	return nil
}

// schemaFault makes one short line of the library's error; the places in it are pointers into the schema.
func schemaFault(err error) error {
	if remote, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return fmt.Errorf("the schema refers to %q; only references inside the document are followed", shorten(remote.URL))
	}
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		for len(invalid.Causes) > 0 {
			invalid = invalid.Causes[0]
		}
		place := ""
		for _, token := range invalid.InstanceLocation {
			place += "/" + token
		}
		return fmt.Errorf("the schema is not valid at %q", shorten(place))
	}
	return errors.New("the schema does not compile: " + shorten(err.Error()))
}

type refusingLoader struct{}

func (refusingLoader) Load(string) (any, error) {
	return nil, errors.New("remote references are not loaded")
}
