package sallyporttest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/gate"
	"github.com/sallyport-dev/sallyport/sallyporttest"
)

// recorder is a test that fails without failing this one.
type recorder struct {
	testing.TB
	messages []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.messages = append(r.messages, fmt.Sprintf(format, args...))
}

// Fatalf ends the goroutine as testing's does, by a panic that the test catches.
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

func TestAnUnsetFunctionFailsTheTestByName(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call func(context.Context, testing.TB) bool
		want string
	}{
		"capabilities": {func(ctx context.Context, tb testing.TB) bool {
			tb.Helper()
			return !(&sallyporttest.Executor{TB: tb}).Capabilities(ctx).Available
		}, "sallyporttest: Executor.Capabilities was called, and the test set no CapabilitiesFunc"},
		"execute": {func(ctx context.Context, tb testing.TB) bool {
			tb.Helper()
			_, err := (&sallyporttest.Executor{TB: tb}).Execute(ctx, sallyport.ExecRequest{})
			return sallyport.IsNotStarted(err)
		}, "sallyporttest: Executor.Execute was called, and the test set no ExecuteFunc"},
		"check": {func(ctx context.Context, tb testing.TB) bool {
			tb.Helper()
			return (&sallyporttest.Gate{TB: tb}).Check(ctx, nil) != nil
		}, "sallyporttest: Gate.Check was called, and the test set no CheckFunc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			if !test.call(t.Context(), r) {
				t.Error("the fake did not refuse")
			}
			if diff := cmp.Diff([]string{test.want}, r.messages); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFakesCallWhatTheTestSet(t *testing.T) {
	t.Parallel()
	executor := &sallyporttest.Executor{
		TB: t, KindFunc: func() string { return "mine" },
		CapabilitiesFunc: func(context.Context) sallyport.Capabilities { return sallyport.Capabilities{Reason: "why"} },
		ExecuteFunc: func(_ context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
			return sallyporttest.Exited(3, req.Slug), nil
		},
	}
	result, err := executor.Execute(t.Context(), sallyport.ExecRequest{Slug: "x"})
	if executor.Kind() != "mine" || executor.Capabilities(t.Context()).Reason != "why" || err != nil ||
		*result.ExitCode != 3 || string(result.Stdout) != "x" || result.StdoutBytes != 1 {
		t.Errorf("got %q, %+v, %v", executor.Kind(), result, err)
	}
	own := &sallyporttest.Gate{
		TB: t, NameFunc: func() string { return "own" },
		CheckFunc: func(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
			return &sallyport.Refusal{Message: c.Skill.Slug}
		},
	}
	if got := own.Check(t.Context(), sallyporttest.Case{Slug: "y"}.Candidate(t)); own.Name() != "own" || got.Message != "y" {
		t.Errorf("got %q, %+v", own.Name(), got)
	}
	if (&sallyporttest.Executor{TB: t}).Kind() != "fake" || (&sallyporttest.Gate{TB: t}).Name() != "fake" {
		t.Error("a fake without a name must be called fake")
	}
}

// A built candidate passes every standard gate, so a test of an own gate sees that gate alone.
func TestCandidatePassesTheStandardGates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]sallyporttest.Case{
		"zero": {},
		"bash with everything": {
			Slug: "log-triage", Args: `{"n":1}`, Argv: nil, Inputs: map[string]string{"b.txt": "2", "a.txt": "1"},
			Files: map[string]string{
				"SKILL.md": "x", "scripts/a.SH": "echo 1", "references/r.md": "r", "examples/e.txt": "e",
				"templates/t.txt": "t", "assets/a.bin": "\x00",
			},
			Limits: sallyport.Limits{Timeout: sallyport.MinTimeout},
		},
		"a script elsewhere": {Files: map[string]string{"SKILL.md": "x", "tool.mjs": "1"}, ScriptPath: "tool.mjs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			candidate := c.Candidate(t)
			gates := gate.Standard(gate.Deps{
				Unattended: true,
				Enabled:    func(sallyport.TenantID) bool { return true },
				Interpreters: []sallyport.Interpreter{
					{Extension: "py", Runtime: "python", Program: "/usr/bin/python3"},
					{Extension: "sh", Runtime: "bash", Program: "/usr/bin/bash"},
					{Extension: "mjs", Runtime: "node", Program: "/usr/bin/node"},
				},
				Executor: &sallyporttest.Executor{TB: t, CapabilitiesFunc: func(context.Context) sallyport.Capabilities {
					return sallyporttest.AllLayers()
				}},
				MaxArgumentBytes: 1 << 10, MaxInputBytes: 1 << 10, MaxInputFiles: 8, MaxScriptBytes: 1 << 20, MaxRevisionBytes: 1 << 20,
			})
			for _, g := range gates {
				if refusal := g.Check(t.Context(), candidate); refusal != nil {
					t.Fatalf("the gate %s refuses: %s %s", g.Name(), refusal.Code, refusal.Message)
				}
			}
			req := c.ExecRequest(t)
			script := slices.IndexFunc(req.Files, func(f sallyport.Component) bool { return f.Path == req.ScriptPath })
			if script < 0 || string(req.Files[script].Content) != string(req.Content) || req.Limits.Timeout == 0 ||
				req.Digest != candidate.Digest || req.ContentSHA256 != sallyport.DigestOf(req.Content).Hex() {
				t.Errorf("got %+v", req)
			}
			if !slices.IsSortedFunc(req.Inputs, func(a, b sallyport.InputFile) int { return strings.Compare(a.Name, b.Name) }) {
				t.Errorf("inputs are not sorted: %v", req.Inputs)
			}
		})
	}
}

func TestCandidateOfACaseThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]sallyporttest.Case{
		"no such script": {ScriptPath: "scripts/other.py"},
		"no script":      {Files: map[string]string{"SKILL.md": "x"}},
		"unsafe path":    {Files: map[string]string{"../x": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			defer func() {
				if recover() != any(r) || len(r.messages) != 1 {
					t.Errorf("got the messages %q, want one that ends the test", r.messages)
				}
			}()
			c.Candidate(r)
		})
	}
}
