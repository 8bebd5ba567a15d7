package gate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/gate"
	"github.com/sallyport-dev/sallyport/sallyporttest"
)

// Which runtime serves: the script's own word before the tenant's, the tenant's before the installation's, and nothing that the
// installation does not have.
func TestRuntime(t *testing.T) {
	t.Parallel()
	rows := []sallyport.Interpreter{
		{Extension: "py", Runtime: "python", Program: "/usr/bin/python3"},
		{Extension: "sh", Runtime: "bash", Program: "/usr/bin/bash"},
		{Extension: "py", Runtime: "data-science", Program: "/usr/bin/python3", Root: "/srv/secret/ds"},
		{Extension: "py", Runtime: "python-3.12", Program: "/usr/bin/python3.12"},
	}
	for name, test := range map[string]struct {
		path, content, runtime string
		policy                 sallyport.Policy
		want                   string
		message                string
	}{
		"the installation's":                {"a.py", "", "python", sallyport.Policy{}, "python", ""},
		"the script's":                      {"a.py", "", "python-3.12", sallyport.Policy{}, "python-3.12", ""},
		"the tenant's":                      {"a.py", "", "python", sallyport.Policy{Runtimes: map[string]string{"py": "data-science"}}, "data-science", ""},
		"the tenant's, no settings":         {"a.py", "", "", sallyport.Policy{Runtimes: map[string]string{"py": "data-science"}}, "data-science", ""},
		"the tenant's, by shebang":          {"a", "#!/usr/bin/env python3\n", "python", sallyport.Policy{Runtimes: map[string]string{"py": "data-science"}}, "data-science", ""},
		"the script's wins":                 {"a.py", "", "python-3.12", sallyport.Policy{Runtimes: map[string]string{"py": "data-science"}}, "python-3.12", ""},
		"another extension's is no matter":  {"a.sh", "", "bash", sallyport.Policy{Runtimes: map[string]string{"py": "gone"}}, "bash", ""},
		"the script's is not there":         {"a.py", "", "torch", sallyport.Policy{}, "", "the script asks for the runtime torch, which is not among those for such a script here: python, data-science, python-3.12"},
		"the script's is for another kind":  {"a.sh", "", "data-science", sallyport.Policy{}, "", "here: bash"},
		"the tenant's is not there":         {"a.py", "", "python", sallyport.Policy{Runtimes: map[string]string{"py": "gone"}}, "", "the tenant's policy names the runtime gone"},
		"the tenant took the extension":     {"a.py", "", "python", sallyport.Policy{Interpreters: []string{"sh"}}, "", "allowed extensions: sh"},
		"the tenant took every extension":   {"a.py", "", "python", sallyport.Policy{Interpreters: []string{}}, "", "no interpreter is allowed for this kind of script"},
		"the tenant left the extension":     {"a.py", "", "python", sallyport.Policy{Interpreters: []string{"py"}}, "python", ""},
		"taken, and asked for by its name":  {"a.py", "", "data-science", sallyport.Policy{Interpreters: []string{"sh"}}, "", "allowed extensions: sh"},
		"taken, and led to by a first line": {"a", "#!/usr/bin/python3\n", "python", sallyport.Policy{Interpreters: []string{"sh"}}, "", "allowed extensions: sh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			candidate := &sallyport.Candidate{Policy: test.policy, Script: sallyport.Component{
				Path: test.path, Content: []byte(test.content), Script: &sallyport.ScriptSettings{Runtime: test.runtime},
			}}
			refusal := named(t, "interpreter", gate.Deps{Interpreters: rows}).Check(t.Context(), candidate)
			if test.want == "" {
				if refusal == nil || refusal.Code != sallyport.CodeInterpreterNotAllowed || !strings.Contains(refusal.Message, test.message) {
					t.Fatalf("got %+v, want a refusal that says %q", refusal, test.message)
				}
				if strings.Contains(refusal.Message, "/") {
					t.Errorf("a path of the host in %q", refusal.Message)
				}
				return
			}
			if refusal != nil || candidate.Interpreter == nil || candidate.Interpreter.Runtime != test.want {
				t.Errorf("got %+v and %+v, want %s", candidate.Interpreter, refusal, test.want)
			}
		})
	}
}

// A runtime of its own files needs an executor that can use them, and files that can be used.
func TestRuntimeNeedsItsExecutor(t *testing.T) {
	t.Parallel()
	const image = "registry.example.org/ds@sha256:aa"
	for name, test := range map[string]struct {
		interpreter sallyport.Interpreter
		features    []sallyport.Feature
		message     string // empty passes
	}{
		"the host's":             {sallyport.Interpreter{}, nil, ""},
		"a root":                 {sallyport.Interpreter{Root: "/r"}, []sallyport.Feature{sallyport.FeatureRoots}, ""},
		"a root, no roots":       {sallyport.Interpreter{Root: "/r"}, []sallyport.Feature{sallyport.FeatureImages}, "the host's own programs only"},
		"an image":               {sallyport.Interpreter{Image: image}, []sallyport.Feature{sallyport.FeatureImages}, ""},
		"an image, unpacked":     {sallyport.Interpreter{Image: image, Root: "/r"}, []sallyport.Feature{sallyport.FeatureRoots}, ""},
		"an image, not unpacked": {sallyport.Interpreter{Image: image}, []sallyport.Feature{sallyport.FeatureRoots}, "sallyport runtime pull ds"},
		"an image, no means":     {sallyport.Interpreter{Image: image, Root: "/r"}, nil, "the host's own programs only"},
		"a fault":                {sallyport.Interpreter{Root: "/r", Fault: "it was changed"}, []sallyport.Feature{sallyport.FeatureRoots}, "the runtime ds cannot serve: it was changed"},
		"a fault, a container":   {sallyport.Interpreter{Image: image, Fault: "it was changed"}, []sallyport.Feature{sallyport.FeatureImages}, ""},
	} {
		test.interpreter.Runtime, test.interpreter.Program = "ds", "/usr/bin/python3"
		executor := sallyporttest.Executor{TB: t, CapabilitiesFunc: func(context.Context) sallyport.Capabilities {
			return sallyport.Capabilities{Available: true, Features: test.features}
		}}
		candidate := &sallyport.Candidate{Interpreter: &test.interpreter}
		refusal := named(t, "isolation", gate.Deps{Executor: &executor}).Check(t.Context(), candidate)
		switch {
		case test.message == "" && refusal != nil:
			t.Errorf("%s: refused: %s", name, refusal.Message)
		case test.message != "" && (refusal == nil || refusal.Code != sallyport.CodeSandboxUnavailable || !strings.Contains(refusal.Message, test.message)):
			t.Errorf("%s: got %+v, want %q", name, refusal, test.message)
		}
	}
}
