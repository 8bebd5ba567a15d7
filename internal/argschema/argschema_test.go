package argschema_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sallyport-dev/sallyport/internal/argschema"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	for schema, compiles := range map[string]bool{
		`{}`:              true,
		`true`:            true,
		`{"type":"text"}`: false,
		`{`:               false,
		`{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}`:       true,
		`{"$defs":{"a":{"$anchor":"x"}},"$ref":"#x"}`:                true,
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`:      true,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`: true,
		`{"$schema":"https://example.test/own"}`:                     false,
		`{"$ref":"other.json"}`:                                      false,
		`{"$ref":"file:///etc/passwd"}`:                              false,
		`{"$ref":"http://127.0.0.1:1/x"}`:                            false,
		`{"$id":"https://example.test/a","$ref":"b"}`:                false,
		`{"pattern":"("}`:                                            false,
	} {
		if _, err := argschema.Compile(json.RawMessage(schema)); (err == nil) != compiles {
			t.Errorf("%s: got %v, compiles should be %t", schema, err, compiles)
		}
	}
}

// An error names neither a file nor the folder of this host.
func TestErrorsTellNoPath(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	_, err = argschema.Compile(json.RawMessage(`{"$ref":"other.json"}`))
	if _, remote := errors.AsType[*jsonschema.LoadURLError](err); !remote || strings.Contains(err.Error(), here) {
		t.Errorf("got %v", err)
	}
}

func TestFormatIsAsserted(t *testing.T) {
	t.Parallel()
	compiled, err := argschema.Compile(json.RawMessage(`{"format":"date"}`))
	if err != nil {
		t.Fatal(err)
	}
	if compiled.Validate("2026-11-30") != nil || compiled.Validate("tomorrow") == nil {
		t.Error("a date is not told from other text")
	}
}
