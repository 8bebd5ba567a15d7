package argschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sallyport-dev/sallyport/internal/argschema"
)

// doubling is a schema whose check doubles at each of 40 definitions: step is how one definition uses the next, twice.
func doubling(step, leaf, start string) string {
	var defs []string
	for i := range 40 {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, strings.ReplaceAll(step, "NEXT", next)))
	}
	defs = append(defs, `"d40":`+leaf)
	return `{"$defs":{` + strings.Join(defs, ",") + `},` + start + `}`
}

// None of these may take the time, or the memory, that the library would spend on it.
func TestHostileSchemasAreGivenUp(t *testing.T) {
	t.Parallel()
	const start = `"$ref":"#/$defs/d0"`
	for name, test := range map[string]struct{ schema, instance string }{
		"alternatives that fail": {doubling(`{"anyOf":[NEXT,NEXT]}`, `{"type":"string"}`, start), `{"a":1}`},
		"alternatives that fit":  {doubling(`{"allOf":[NEXT,NEXT]}`, `true`, start), `{"a":1}`},
		"exactly one":            {doubling(`{"oneOf":[NEXT,NEXT]}`, `{}`, start), `1`},
		"conditions":             {doubling(`{"if":NEXT,"then":NEXT,"else":NEXT}`, `{"type":"string"}`, start), `1`},
		"without error texts": {
			doubling(`{"dependentSchemas":{"a":NEXT,"b":NEXT}}`, `{"type":"string"}`, `"not":{"$ref":"#/$defs/d0"}`), `{"a":1,"b":1}`,
		},
		"an older draft": {
			`{"$schema":"http://json-schema.org/draft-07/schema#",` +
				doubling(`{"dependencies":{"a":NEXT,"b":NEXT}}`, `{"type":"string"}`, `"allOf":[{"$ref":"#/$defs/d0"}]`)[1:], `{"a":1,"b":1}`,
		},
		"names of members": {doubling(`{"allOf":[NEXT,NEXT]}`, `{"type":"number"}`, `"propertyNames":{"$ref":"#/$defs/d0"}`), `{"a":1}`},
		"behind a dynamic reference": {
			`{"$dynamicAnchor":"n","$defs":{"o":{"$id":"o","$dynamicRef":"#n","$defs":{"n":{"$dynamicAnchor":"n"}}}},` +
				`"properties":{"a":{"$ref":"o"},"b":{"$ref":"o"}},"anyOf":[` + strings.Repeat(`{"properties":{"a":{"$ref":"o"}}},`, 9) + `false]}`,
			strings.Repeat(`{"a":`, 30) + `1` + strings.Repeat(`}`, 30),
		},
		"a long list against a long enumeration": {
			`{"items":{"enum":[` + strings.TrimSuffix(strings.Repeat("1.5,", 9000), ",") + `]}}`,
			`[` + strings.TrimSuffix(strings.Repeat("1,", 8000), ",") + `]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, err := argschema.Compile(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(test.instance))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := schema.Validate(instance); !errors.Is(err, argschema.ErrTooComplex) {
				t.Errorf("got %v, want ErrTooComplex", err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestHostilePatternsAreNotCompiled(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x{1000}", 100)
	for name, schema := range map[string]string{
		"one":      `{"pattern":"` + large + `"}`,
		"together": `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":"`+large[:70]+`"},`, 10), ",") + `]}`,
		"a key":    `{"patternProperties":{"` + large + `":{}}}`,
		"values":   `{"enum":[` + strings.TrimSuffix(strings.Repeat("1,", 10_001), ",") + `]}`,
	} {
		if _, err := argschema.Compile(json.RawMessage(schema)); !errors.Is(err, argschema.ErrTooComplex) {
			t.Errorf("%s: got %v, want ErrTooComplex", name, err)
		}
	}
	schema, err := argschema.Compile(json.RawMessage(`{"format":"regex"}`))
	if err != nil {
		t.Fatal(err)
	}
	if schema.Validate("^a+$") != nil || schema.Validate("(") == nil || schema.Validate(large) == nil {
		t.Error("the format regex is not bounded as patterns are")
	}
}

func TestNumbersTooLongToCompare(t *testing.T) {
	t.Parallel()
	schema, err := argschema.Compile(json.RawMessage(`{"items":{"multipleOf":0.5}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]error{
		`[1e999999]`:                          argschema.ErrNumber,
		`[1E-999999]`:                         argschema.ErrNumber,
		`[1e99999999999999999999]`:            argschema.ErrNumber,
		`[{"a":[` + nines(5000) + `]}]`:       argschema.ErrNumber,
		`[` + nines(30) + `.5, 1e+300, -2.5]`: nil,
	} {
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); !errors.Is(err, want) {
			t.Errorf("%.40s: got %v, want %v", text, err, want)
		}
	}
}

func nines(n int) string { return strings.Repeat("9", n) }

// What people write stays far inside the bounds, and one schema can be used again.
func TestOrdinarySchemasFit(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"kind":"branch","children":[`, 30) + `{"kind":"leaf","value":"x"}` + strings.Repeat(`]}`, 30)
	var rows []string
	for i := range 400 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"row %d","tags":["a","b"]}`, i, i))
	}
	for name, test := range map[string]struct{ schema, instance string }{
		"a tree": {
			`{"$ref":"#/$defs/node","$defs":{"node":{"oneOf":[
			{"properties":{"kind":{"const":"leaf"},"value":{"type":"string"}},"required":["value"]},
			{"properties":{"kind":{"const":"branch"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["children"]}]}}}`,
			deep,
		},
		"many rows": {
			`{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"id":{"type":"integer","minimum":0},
			"name":{"type":"string","maxLength":100,"pattern":"^[\\p{L}\\p{N} ]{1,100}$"},"tags":{"type":"array","uniqueItems":true,"items":{"enum":["a","b","c"]}}}}}`,
			`[` + strings.Join(rows, ",") + `]`,
		},
		"its own metaschema": {`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"type":"string"}}}`},
	} {
		schema, err := argschema.Compile(json.RawMessage(test.schema))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(test.instance))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := schema.Validate(instance); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
