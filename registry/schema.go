package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sallyport-dev/sallyport/internal/argschema"
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
	if !bytes.HasPrefix(bytes.TrimSpace(schema), []byte("{")) {
		return errors.New("the schema is not an object")
	}
	if _, err := argschema.Compile(schema); err != nil {
		return schemaFault(err)
	}
	return nil
}

// schemaFault makes one short line of the library's error; the places in it are pointers into the schema.
func schemaFault(err error) error {
	if remote, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return fmt.Errorf("the schema refers to %q; only references inside the document are followed", shorten(remote.URL))
	}
	if wrong, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](wrong.Err); ok {
			return fmt.Errorf("the schema is not valid at %q", shorten(deepest(invalid)))
		}
	}
	return errors.New("the schema does not compile: " + shorten(err.Error()))
}

// deepest returns the pointer to the place furthest down that is at fault.
func deepest(fault *jsonschema.ValidationError) string {
	place := ""
	for _, token := range fault.InstanceLocation {
		place += "/" + token
	}
	for _, cause := range fault.Causes {
		if below := deepest(cause); len(below) > len(place) {
			place = below
		}
	}
	return place
}
