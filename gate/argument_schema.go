package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/argschema"
)

// argumentSchemaGate: input_args and argv fit what the script declares. Schemas are JSON Schema 2020-12 with every keyword;
// a reference that leaves the document is refused.
type argumentSchemaGate struct{}

func (argumentSchemaGate) Name() string { return "argument_schema" }

func (g argumentSchemaGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	var settings sallyport.ScriptSettings
	if c.Script.Script != nil {
		settings = *c.Script.Script
	}
	faults := checkInput(settings, c)
	faults = append(faults, checkArgv(settings, c)...)
	if len(faults) == 0 {
		return nil
	}
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.Path + ": " + f.Message
	}
	return &sallyport.Refusal{
		Code: sallyport.CodeArgumentsMismatch, Gate: g.Name(),
		Message: "the arguments do not fit what the script declares: " + strings.Join(texts, "; "),
		Details: map[string]any{"faults": faults},
	}
}

// fault is one place where the arguments do not fit. Path is a JSON pointer below input_args or argv.
type fault struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

const maxFaults = 16

func checkInput(settings sallyport.ScriptSettings, c *sallyport.Candidate) []fault {
	var faults []fault
	switch settings.Input {
	case "", sallyport.InputStdin:
	case sallyport.InputFlags:
		if _, err := sallyport.Flags(c.Args); err != nil {
			faults = append(faults, fault{"input_args", sallyport.Public(err).Message})
		}
	case sallyport.InputNone:
		if !emptyObject(c.Args) {
			faults = append(faults, fault{"input_args", "the script takes no input_args"})
		}
	default:
		faults = append(faults, fault{"input_args", "the script declares an input mode that is not known"})
	}
	if settings.InputSchema != nil {
		faults = append(faults, validate("input_args", settings.InputSchema, c.Args)...)
	}
	return faults
}

func emptyObject(args json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(args, &members) == nil && len(members) == 0
}

func checkArgv(settings sallyport.ScriptSettings, c *sallyport.Candidate) []fault {
	var word string
	if json.Unmarshal(settings.Argv, &word) != nil {
		word = ""
	}
	switch {
	case word == "free":
		return nil
	case settings.Argv == nil && settings.InputSchema == nil && settings.Input != sallyport.InputFlags:
		return nil
	case settings.Argv == nil, word == "none":
		if len(c.Argv) == 0 {
			return nil
		}
		return []fault{{"argv", "the script declares no argv; send input_args"}}
	default:
		argv := c.Argv
		if argv == nil {
			argv = []string{}
		}
		instance, err := json.Marshal(argv)
		if err != nil {
			return []fault{{"argv", "is not text"}}
		}
		return validate("argv", settings.Argv, instance)
	}
}

// validate returns the faults of instance under schema. A schema that does not compile fails closed.
func validate(root string, schema, instance json.RawMessage) []fault {
	compiled, err := argschema.Compile(schema)
	if err != nil {
		return []fault{{root, "the script's own schema is not valid, so nothing fits it"}}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(instance))
	if err != nil {
		return []fault{{root, "is not JSON"}}
	}
	err = compiled.Validate(value)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, argschema.ErrTooComplex):
		return []fault{{root, "cannot be checked: the script's own schema is too complex for them; its author simplifies it"}}
	case errors.Is(err, argschema.ErrNumber):
		return []fault{{root, "has a number with too many digits to be checked"}}
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []fault{{root, "cannot be checked against the script's schema"}}
	}
	return leaves(root, invalid, nil)
}

func leaves(root string, e *jsonschema.ValidationError, faults []fault) []fault {
	if len(faults) >= maxFaults {
		return faults
	}
	if len(e.Causes) == 0 {
		var path strings.Builder
		path.WriteString(root)
		for _, token := range e.InstanceLocation {
			path.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
		}
		text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		return append(faults, fault{shorten(path.String()), shorten(text)})
	}
	for _, cause := range e.Causes {
		faults = leaves(root, cause, faults)
	}
	return faults
}

// shorten keeps a fault readable: the library repeats the whole value that does not fit.
func shorten(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
