package run_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// What a script says it needs is held against its runtime, and refuses nothing.
func TestExplainPackages(t *testing.T) {
	t.Parallel()
	const source = "# /// script\n# requires-python = \">=3.12\"\n# dependencies = [\"numpy>=2\", \"torch\", \"requests\"]\n# ///\nprint(1)\n"
	has := []sallyport.Package{
		{Language: "python", Name: "python", Version: "3.11"}, {Language: "python", Name: "numpy", Version: "1.26.4"}, {Language: "python", Name: "requests", Version: "2.31.0"},
	}
	for name, test := range map[string]struct {
		source   string
		packages func(context.Context, sallyport.Interpreter) ([]sallyport.Package, error)
		states   []sallyport.NeedState
		warnings []string
	}{
		"held against": {
			source, func(context.Context, sallyport.Interpreter) ([]sallyport.Package, error) { return has, nil },
			[]sallyport.NeedState{sallyport.NeedOtherVersion, sallyport.NeedOtherVersion, sallyport.NeedMissing, sallyport.NeedPresent},
			[]string{
				"it needs python >=3.12, and the runtime python has 3.11", "it needs numpy >=2, and the runtime python has 1.26.4",
				"it needs torch, which the runtime python does not have",
			},
		},
		"nobody knows": {source, nil, []sallyport.NeedState{"unknown", "unknown", "unknown", "unknown"}, nil},
		"it cannot be told": {
			source, func(context.Context, sallyport.Interpreter) ([]sallyport.Package, error) {
				return nil, errors.New("/secret")
			},
			[]sallyport.NeedState{"unknown", "unknown", "unknown", "unknown"},
			nil,
		},
		"nothing needed": {"print(1)\n", func(context.Context, sallyport.Interpreter) ([]sallyport.Package, error) {
			t.Error("asked for nothing")
			return nil, nil
		}, nil, nil},
		"cannot be read": {"# /// script\n# dependencies = 1\n# ///\n", nil, nil, []string{
			"scripts/x.py: the block # /// script cannot be read: it is not TOML with requires-python: text and dependencies: list of texts",
		}},
	} {
		w := newWorld(t)
		w.setFiles(t, component("SKILL.md", sallyport.KindDocument, "---\n"), component("scripts/x.py", sallyport.KindScript, test.source))
		w.grants[0].Pin = w.revision.Digest
		x, err := w.service(func(c *run.Config) { c.Packages = test.packages }).Explain(t.Context(), w.principal, request())
		if err != nil || !x.Runnable {
			t.Errorf("%s: got %+v, %v", name, x.Refusal, err)
		}
		var states []sallyport.NeedState
		for _, need := range x.Packages {
			states = append(states, need.State)
		}
		if diff := cmp.Diff(test.states, states); diff != "" {
			t.Errorf("%s: states (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.warnings, x.Warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", name, diff)
		}
	}
}
