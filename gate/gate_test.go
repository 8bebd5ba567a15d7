package gate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/gate"
)

// The order of the standard gates is a contract with callers.
func TestOrder(t *testing.T) {
	t.Parallel()
	var got []string
	for _, g := range gate.Standard(gate.Deps{}) {
		got = append(got, g.Name())
	}
	want := []string{
		"feature", "grant", "pin", "interpreter", "argument_size", "argument_schema", "path", "content_size", "secrets", "isolation",
		"confirm",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a gate lacks, it refuses for; no gate of the zero value lets an ordinary run pass but those that judge content alone.
func TestZeroValuesRefuse(t *testing.T) {
	t.Parallel()
	for _, g := range gate.Standard(gate.Deps{}) {
		candidate := &sallyport.Candidate{
			Principal: sallyport.Principal{ID: "p", TenantID: "t"}, Skill: sallyport.Skill{ID: "s", TenantID: "t"},
			Args: json.RawMessage(`{}`), Script: sallyport.Component{Path: "x.py", Content: []byte("1"), Script: &sallyport.ScriptSettings{Secrets: []string{"TOKEN"}}},
			Revision: sallyport.Revision{Components: []sallyport.Component{{Path: "x.py", Content: []byte("1")}}},
		}
		refusal := g.Check(t.Context(), candidate)
		judgesContent := g.Name() == "argument_schema" || g.Name() == "path"
		if (refusal == nil) != judgesContent {
			t.Errorf("%s: got %+v", g.Name(), refusal)
		}
	}
}

func named(t *testing.T, name string, d gate.Deps) sallyport.Gate {
	t.Helper()
	for _, g := range gate.Standard(d) {
		if g.Name() == name {
			return g
		}
	}
	t.Fatalf("no gate %s", name)
	return nil
}

func TestArgumentSize(t *testing.T) {
	t.Parallel()
	words := func(n int, word string) []string {
		argv := make([]string, n)
		for i := range argv {
			argv[i] = word
		}
		return argv
	}
	file := func(name string, bytes int) []sallyport.InputFile {
		return []sallyport.InputFile{{Name: name, Content: make([]byte, bytes)}}
	}
	limits := gate.Deps{MaxArgumentBytes: 100, MaxInputBytes: 50, MaxInputFiles: 2}
	for name, test := range map[string]struct {
		args  string
		argv  []string
		files []sallyport.InputFile
		fits  bool
	}{
		"all of input_args":        {`"` + strings.Repeat("a", 98) + `"`, nil, nil, true},
		"one byte more":            {`"` + strings.Repeat("a", 99) + `"`, nil, nil, false},
		"all of argv":              {`{}`, words(49, "a"), nil, true},
		"a word more":              {`{}`, words(50, "a"), nil, false},
		"words without a byte":     {`{}`, words(98, ""), nil, true},
		"too many of them":         {`{}`, words(99, ""), nil, false},
		"a file":                   {`{}`, nil, file("a", 50), true},
		"a byte too many in it":    {`{}`, nil, file("a", 51), false},
		"a name that is too long":  {`{}`, nil, file(strings.Repeat("a", 98), 0), false},
		"as many files as allowed": {`{}`, nil, append(file("a", 1), file("b", 1)...), true},
		"one more":                 {`{}`, nil, append(file("a", 1), append(file("b", 1), file("c", 1)...)...), false},
	} {
		candidate := &sallyport.Candidate{Args: json.RawMessage(test.args), Argv: test.argv, Files: test.files}
		refusal := named(t, "argument_size", limits).Check(t.Context(), candidate)
		if (refusal == nil) != test.fits || refusal != nil && refusal.Code != sallyport.CodeArgumentsTooLarge {
			t.Errorf("%s: got %+v", name, refusal)
		}
	}
}

func TestInterpreter(t *testing.T) {
	t.Parallel()
	rows := []sallyport.Interpreter{
		{Extension: "py", Runtime: "python", Program: "/usr/bin/python3"},
		{Extension: "py", Runtime: "data-science", Program: "data-science"},
		{Extension: ".SH", Runtime: "bash", Program: "/usr/bin/bash"},
		{Extension: "js", Runtime: "node", Program: "/usr/bin/node"},
	}
	for name, test := range map[string]struct {
		path, content, runtime string
		want                   string // the program, or empty
	}{
		"extension":               {"a.py", "", "", "/usr/bin/python3"},
		"extension upper case":    {"a.PY", "", "", "/usr/bin/python3"},
		"row with dot and case":   {"a.sh", "", "", "/usr/bin/bash"},
		"inferred runtime":        {"a.py", "", "python", "/usr/bin/python3"},
		"declared runtime":        {"a.py", "", "data-science", "data-science"},
		"undeclared runtime":      {"a.py", "", "other", ""},
		"another language":        {"a.py", "", "bash", ""},
		"shebang":                 {"run", "#!/usr/bin/env python3\n", "python", "/usr/bin/python3"},
		"shebang direct":          {"run", "#!/bin/bash -e\n", "bash", "/usr/bin/bash"},
		"shebang env -S":          {"run", "#!/usr/bin/env -S A=1 node --x\n", "node", "/usr/bin/node"},
		"shebang version":         {"run", "#!/usr/bin/python3.11\n", "python", "/usr/bin/python3"},
		"shebang after BOM":       {"run", "\ufeff#!/bin/bash\n", "bash", "/usr/bin/bash"},
		"shebang not allowed":     {"run", "#!/usr/bin/perl\n", "", ""},
		"shebang under extension": {"a.rb", "#!/usr/bin/python3\n", "", ""},
		"nothing":                 {"run", "echo", "", ""},
		"shebang alone":           {"run", "#!", "", ""},
		"shebang env alone":       {"run", "#!/usr/bin/env", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			candidate := &sallyport.Candidate{Script: sallyport.Component{
				Path: test.path, Content: []byte(test.content), Script: &sallyport.ScriptSettings{Runtime: test.runtime},
			}}
			refusal := named(t, "interpreter", gate.Deps{Interpreters: rows}).Check(t.Context(), candidate)
			got := ""
			if candidate.Interpreter != nil {
				got = candidate.Interpreter.Program
			}
			if got != test.want || (refusal == nil) != (test.want != "") {
				t.Errorf("got %q and %+v, want %q", got, refusal, test.want)
			}
		})
	}
}

func TestArgumentSchema(t *testing.T) {
	t.Parallel()
	const person = `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"tags":{"type":"array","items":{"enum":["a","b"]}}},
		"required":["n"],"additionalProperties":false}`
	for name, test := range map[string]struct {
		settings sallyport.ScriptSettings
		args     string
		argv     []string
		fault    string // the path of a fault, or empty
	}{
		"no settings":            {sallyport.ScriptSettings{}, `{"x":1}`, []string{"y"}, ""},
		"fits":                   {sallyport.ScriptSettings{InputSchema: json.RawMessage(person)}, `{"n":1,"tags":["a"]}`, nil, ""},
		"missing":                {sallyport.ScriptSettings{InputSchema: json.RawMessage(person)}, `{}`, nil, "input_args"},
		"nested fault":           {sallyport.ScriptSettings{InputSchema: json.RawMessage(person)}, `{"n":1,"tags":["a","c"]}`, nil, "input_args/tags/1"},
		"fraction is no integer": {sallyport.ScriptSettings{InputSchema: json.RawMessage(person)}, `{"n":1.5}`, nil, "input_args/n"},
		"extra property":         {sallyport.ScriptSettings{InputSchema: json.RawMessage(person)}, `{"n":1,"z":1}`, nil, "input_args"},
		"big integer":            {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{"properties":{"n":{"const":9007199254740993}}}`)}, `{"n":9007199254740992}`, nil, "input_args/n"},
		"dynamic keywords":       {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{"dependentRequired":{"a":["b"]},"unevaluatedProperties":false,"properties":{"a":true,"b":true}}`)}, `{"a":1}`, nil, "input_args"},
		"local reference":        {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{"$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s"}}}`)}, `{"a":1}`, nil, "input_args/a"},
		"remote reference":       {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{"$ref":"http://127.0.0.1/x.json"}`)}, `{}`, nil, "input_args"},
		"file reference":         {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{"$ref":"file:///etc/passwd"}`)}, `{}`, nil, "input_args"},
		"broken schema":          {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{"type":1}`)}, `{}`, nil, "input_args"},
		"schema false":           {sallyport.ScriptSettings{InputSchema: json.RawMessage(`false`)}, `{}`, nil, "input_args"},
		"argv with a schema":     {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{}`)}, `{}`, []string{"x"}, "argv"},
		"empty argv with schema": {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{}`)}, `{}`, []string{}, ""},
		"argv none":              {sallyport.ScriptSettings{Argv: json.RawMessage(`"none"`)}, `{}`, []string{"x"}, "argv"},
		"argv free with schema":  {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{}`), Argv: json.RawMessage(`"free"`)}, `{}`, []string{"x"}, ""},
		"argv schema fits":       {sallyport.ScriptSettings{Argv: json.RawMessage(`{"prefixItems":[{"const":"in"}],"minItems":1}`)}, `{}`, []string{"in"}, ""},
		"argv schema refuses":    {sallyport.ScriptSettings{Argv: json.RawMessage(`{"prefixItems":[{"const":"in"}]}`)}, `{}`, []string{"out"}, "argv/0"},
		"argv schema, none sent": {sallyport.ScriptSettings{Argv: json.RawMessage(`{"minItems":1}`)}, `{}`, nil, "argv"},
		"none takes nothing":     {sallyport.ScriptSettings{Input: sallyport.InputNone}, `{"a":1}`, nil, "input_args"},
		"none with nothing":      {sallyport.ScriptSettings{Input: sallyport.InputNone}, `{ }`, nil, ""},
		"flags":                  {sallyport.ScriptSettings{Input: sallyport.InputFlags}, `{"a":[1,"x"]}`, nil, ""},
		"flags with an object":   {sallyport.ScriptSettings{Input: sallyport.InputFlags}, `{"a":{}}`, nil, "input_args"},
		"flags and argv":         {sallyport.ScriptSettings{Input: sallyport.InputFlags}, `{}`, []string{"x"}, "argv"},
		"a number of a million":  {sallyport.ScriptSettings{InputSchema: json.RawMessage(`{}`)}, `{"a":1e999999}`, nil, "input_args"},
		"a check without end":    {sallyport.ScriptSettings{InputSchema: json.RawMessage(endless())}, `{"a":1}`, nil, "input_args"},
		"unknown input mode":     {sallyport.ScriptSettings{Input: "guess"}, `{}`, nil, "input_args"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			candidate := &sallyport.Candidate{Script: sallyport.Component{Script: &test.settings}, Args: json.RawMessage(test.args), Argv: test.argv}
			refusal := named(t, "argument_schema", gate.Deps{}).Check(t.Context(), candidate)
			if test.fault == "" {
				if refusal != nil {
					t.Errorf("got %+v, want none", refusal)
				}
				return
			}
			if refusal == nil || refusal.Code != sallyport.CodeArgumentsMismatch || !strings.Contains(refusal.Message, test.fault+": ") {
				t.Errorf("got %+v, want a fault at %s", refusal, test.fault)
			}
		})
	}
}

// Nobody learns from a refusal which digest would open the gate.
// endless is a schema whose check doubles with every definition.
func endless() string {
	var schema strings.Builder
	schema.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
	for i := range 60 {
		fmt.Fprintf(&schema, `"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]},`, i, i+1, i+1)
	}
	schema.WriteString(`"60":{"type":"string"}}}`)
	return schema.String()
}

// The library repeats the value that does not fit; a refusal stays small.
func TestArgumentFaultsAreShort(t *testing.T) {
	t.Parallel()
	settings := sallyport.ScriptSettings{InputSchema: json.RawMessage(`{"additionalProperties":{"pattern":"^a$"}}`)}
	args := `{"` + strings.Repeat("k", 5000) + `":"` + strings.Repeat("\u00fc", 5000) + `"}`
	candidate := &sallyport.Candidate{Script: sallyport.Component{Script: &settings}, Args: json.RawMessage(args)}
	refusal := named(t, "argument_schema", gate.Deps{}).Check(t.Context(), candidate)
	if refusal == nil || len(refusal.Message) > 1000 || !utf8.ValidString(refusal.Message) {
		t.Errorf("got %+v", refusal)
	}
}

func TestPinMismatchTellsNoDigest(t *testing.T) {
	t.Parallel()
	pin := sallyport.DigestOf([]byte("reviewed"))
	candidate := &sallyport.Candidate{
		Principal: sallyport.Principal{ID: "p", TenantID: "t"}, Skill: sallyport.Skill{ID: "s"}, Digest: sallyport.DigestOf([]byte("other")),
		Grants: []sallyport.Grant{{TenantID: "t", SkillID: "s", Pin: pin}},
	}
	refusal := named(t, "pin", gate.Deps{}).Check(t.Context(), candidate)
	wire, err := json.Marshal(sallyport.Public(refusal.Err()))
	if err != nil || refusal.Code != sallyport.CodePinMismatch || strings.Contains(string(wire), pin.Hex()) {
		t.Errorf("got %s (%v)", wire, err)
	}
}

func TestGrantStateByNewest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	past := now.Add(-time.Minute)
	expired := sallyport.Grant{TenantID: "t", SkillID: "s", IssuedAt: now.Add(-time.Hour), ExpiresAt: &past}
	revoked := sallyport.Grant{TenantID: "t", SkillID: "s", IssuedAt: now.Add(-2 * time.Hour), RevokedAt: &past}
	check := func(grants ...sallyport.Grant) sallyport.Code {
		candidate := &sallyport.Candidate{
			Principal: sallyport.Principal{ID: "p", TenantID: "t"}, Skill: sallyport.Skill{ID: "s"}, Grants: grants,
		}
		return named(t, "grant", gate.Deps{}).Check(t.Context(), candidate).Code
	}
	if got := check(expired, revoked); got != sallyport.CodeGrantExpired {
		t.Errorf("newest expired: got %q", got)
	}
	revoked.IssuedAt = now
	if got := check(revoked, expired); got != sallyport.CodeGrantRevoked {
		t.Errorf("newest revoked: got %q", got)
	}
}

// A yes is wanted by the installation, the tenant or the script, and one is enough for all of them.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		unattended, tenant, script, given, passes bool
	}{
		"nobody wants one":               {true, false, false, false, true},
		"the installation does":          {false, false, false, false, false},
		"the tenant does":                {true, true, false, false, false},
		"the script does":                {true, false, true, false, false},
		"all do, and there is one":       {false, true, true, true, true},
		"none wants it, and it is there": {true, false, false, true, true},
	} {
		candidate := &sallyport.Candidate{Policy: sallyport.Policy{Confirm: test.tenant}}
		candidate.Script.Script = &sallyport.ScriptSettings{Confirm: test.script}
		if test.given {
			candidate.Confirmation = &sallyport.Confirmation{}
		}
		refusal := named(t, "confirm", gate.Deps{Unattended: test.unattended}).Check(t.Context(), candidate)
		if (refusal == nil) != test.passes || refusal != nil && (refusal.Code != sallyport.CodeConfirmationRequired || refusal.Gate != "confirm") {
			t.Errorf("%s: got %+v", name, refusal)
		}
	}
}
