package mcpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
	"github.com/sallyport-dev/sallyport/run"
)

const execute = "execute_cloud_skill"

// finished is an execution as run gives it back.
func finished() sallyport.Execution {
	code, at := 0, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return sallyport.Execution{
		ID: "e1", PrincipalID: "alice", SkillID: "s1", Slug: "csv", RevisionID: "r1",
		RevisionDigest: sallyport.DigestOf(nil), ScriptPath: "scripts/x.py", Runtime: "python",
		Status: sallyport.StatusSuccess, ExitCode: &code, Stdout: "hello\n", StdoutBytes: 6,
		Isolation: sallyport.Isolation{Executor: "bubblewrap", Layers: []sallyport.Layer{sallyport.LayerSeccomp}},
		GrantID:   "g1", CreatedAt: at, StartedAt: &at, FinishedAt: &at,
	}
}

func TestExecutePassesTheRequestOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments string
		want      run.Request
	}{
		"least": {
			`{"slug":"csv","script_path":"scripts/x.py"}`,
			run.Request{Ref: sallyport.SkillRef{Slug: "csv"}, ScriptPath: "scripts/x.py"},
		},
		"everything": {
			`{"slug":"csv","skill_id":"s1","team_id":"t1","revision_id":"r1","script_path":"scripts/x.py","input_args":{"a":1},
			"timeout_seconds":60,"argv":["-v",""],"files":[{"name":"a/b.txt","content":"é"},{"name":"c","content_base64":"AP8="},{"name":"d","content":""}]}`,
			run.Request{
				Ref: sallyport.SkillRef{Slug: "csv", SkillID: "s1", TeamID: "t1"}, RevisionID: "r1", ScriptPath: "scripts/x.py",
				Args: json.RawMessage(`{"a":1}`), Timeout: time.Minute, Argv: []string{"-v", ""},
				Files: []sallyport.InputFile{{Name: "a/b.txt", Content: []byte("é")}, {Name: "c", Content: []byte{0, 0xff}}, {Name: "d", Content: []byte{}}},
			},
		},
		"empty counts as absent": {
			`{"slug":"","skill_id":"s1","team_id":"","revision_id":"","script_path":"c1","argv":[],"files":[]}`,
			run.Request{Ref: sallyport.SkillRef{SkillID: "s1"}, ScriptPath: "c1"},
		},
		"null counts as absent": {
			`{"slug":"csv","skill_id":null,"team_id":null,"revision_id":null,"script_path":"x","input_args":null,"timeout_seconds":null,"argv":null,"files":null}`,
			run.Request{Ref: sallyport.SkillRef{Slug: "csv"}, ScriptPath: "x"},
		},
		"exact bytes": {
			"{\"slug\":\"csv\",\"script_path\":\"x\",\"input_args\": { \"n\" : 12345678901234567890.10,\t\"e\":1e400, \"u\":\"\\u003c<é\",\"z\":-0 } }",
			run.Request{
				Ref: sallyport.SkillRef{Slug: "csv"}, ScriptPath: "x",
				Args: json.RawMessage("{ \"n\" : 12345678901234567890.10,\t\"e\":1e400, \"u\":\"\\u003c<é\",\"z\":-0 }"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			var got run.Request
			f.runs.run = func(_ context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error) {
				if diff := cmp.Diff(alice(), p); diff != "" {
					t.Errorf("principal (-want +got):\n%s", diff)
				}
				got = req
				return finished(), nil
			}
			r := f.call(t, alice(), execute, strings.ReplaceAll(test.arguments, "\n", ""))
			if r.IsError {
				t.Fatalf("got %s", r.Content[0].Text)
			}
			if got.RequestID == "" || got.RequestID != r.envelope.RequestID {
				t.Errorf("request id: got %q, want %q", got.RequestID, r.envelope.RequestID)
			}
			got.RequestID = ""
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// Every bad argument is an envelope of INVALID_ARGUMENT that names it; nothing is run.
func TestExecuteRefusesArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ arguments, want string }{
		"no script":            {`{"slug":"csv"}`, "script_path is required"},
		"empty script":         {`{"slug":"csv","script_path":""}`, "script_path is required"},
		"no skill":             {`{"script_path":"x"}`, "slug or skill_id is required"},
		"empty skill":          {`{"script_path":"x","slug":"","skill_id":""}`, "slug or skill_id is required"},
		"unknown":              {`{"slug":"csv","script_path":"x","timeout":5}`, "unknown field at /timeout; execute_cloud_skill takes argv, files,"},
		"wrong case":           {`{"slug":"csv","Script_path":"x"}`, "unknown field at /Script_path"},
		"number as slug":       {`{"slug":7,"script_path":"x"}`, "wrong type at /slug"},
		"twice":                {`{"slug":"csv","slug":"other","script_path":"x"}`, "duplicate"},
		"twice inside":         {`{"slug":"csv","script_path":"x","input_args":{"a":{"b":1,"b":2}}}`, "duplicate"},
		"twice, escaped":       {`{"slug":"csv","script_path":"x","input_args":{"a":1,"\u0061":2}}`, "duplicate"},
		"not utf-8":            {"{\"slug\":\"csv\",\"script_path\":\"x\",\"input_args\":{\"a\":\"\xff\"}}", "UTF-8"},
		"lone surrogate":       {`{"slug":"csv","script_path":"x","input_args":{"a":"\ud800"}}`, "malformed"},
		"deep":                 {`{"slug":"csv","script_path":"x","input_args":{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`, "nested deeper"},
		"list as arguments":    {`["slug"]`, "must be a JSON object"},
		"text as arguments":    {`"slug"`, "must be a JSON object"},
		"null as arguments":    {`null`, "must be a JSON object"},
		"text as input_args":   {`{"slug":"csv","script_path":"x","input_args":"{}"}`, "input_args must be a JSON object"},
		"list as input_args":   {`{"slug":"csv","script_path":"x","input_args":[]}`, "input_args must be a JSON object"},
		"timeout 0":            {`{"slug":"csv","script_path":"x","timeout_seconds":0}`, "timeout_seconds must be a whole number from 1 to 60"},
		"timeout 61":           {`{"slug":"csv","script_path":"x","timeout_seconds":61}`, "timeout_seconds must be a whole number from 1 to 60"},
		"timeout x":            {`{"slug":"csv","script_path":"x","timeout_seconds":"x"}`, "timeout_seconds must be a whole number from 1 to 60"},
		"timeout 5 as text":    {`{"slug":"csv","script_path":"x","timeout_seconds":"5"}`, "timeout_seconds must be a whole number from 1 to 60"},
		"timeout negative":     {`{"slug":"csv","script_path":"x","timeout_seconds":-1}`, "timeout_seconds must be a whole number from 1 to 60"},
		"timeout 1.5":          {`{"slug":"csv","script_path":"x","timeout_seconds":1.5}`, "timeout_seconds must be a whole number from 1 to 60"},
		"timeout huge":         {`{"slug":"csv","script_path":"x","timeout_seconds":99999999999999999999}`, "timeout_seconds must be a whole number from 1 to 60"},
		"timeout list":         {`{"slug":"csv","script_path":"x","timeout_seconds":[5]}`, "timeout_seconds must be a whole number from 1 to 60"},
		"number in argv":       {`{"slug":"csv","script_path":"x","argv":[1]}`, "wrong type at /argv/0"},
		"text as argv":         {`{"slug":"csv","script_path":"x","argv":"-v"}`, "wrong type at /argv"},
		"file without name":    {`{"slug":"csv","script_path":"x","files":[{"content":"x"}]}`, "files[0]: name is required"},
		"file without content": {`{"slug":"csv","script_path":"x","files":[{"name":"a"}]}`, "files[0]: content or content_base64 is required"},
		"file with both":       {`{"slug":"csv","script_path":"x","files":[{"name":"a","content":"x","content_base64":"eA=="}]}`, "exclude each other"},
		"file not base64":      {`{"slug":"csv","script_path":"x","files":[{"name":"a","content":"x"},{"name":"b","content_base64":"?"}]}`, "files[1]: content_base64 is not standard base64"},
		"file unknown field":   {`{"slug":"csv","script_path":"x","files":[{"name":"a","text":"x"}]}`, "unknown field at /files/0/text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t).call(t, alice(), execute, test.arguments)
			if r.code() != sallyport.CodeInvalidArgument || !r.IsError || string(r.envelope.Data) != "null" || r.envelope.Kind != "execution" {
				t.Errorf("got %s, want an execution envelope of INVALID_ARGUMENT without data", r.Structured)
			}
			if r.envelope.Error != nil && !strings.Contains(r.envelope.Error.Message, test.want) {
				t.Errorf("message: got %q, want it to contain %q", r.envelope.Error.Message, test.want)
			}
			if !strings.HasPrefix(r.Content[0].Text, "INVALID_ARGUMENT: ") {
				t.Errorf("text: got %q, want a sentence that starts with the code", r.Content[0].Text)
			}
		})
	}
}

// An operator may raise the top.
func TestExecuteTimeoutTop(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *mcpapi.Config) { c.MaxTimeout = 2 * time.Minute })
	f.runs.run = func(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
		if req.Timeout != 120*time.Second {
			t.Errorf("timeout: got %v, want 2m", req.Timeout)
		}
		return finished(), nil
	}
	if r := f.call(t, alice(), execute, `{"slug":"csv","script_path":"x","timeout_seconds":120}`); r.IsError {
		t.Errorf("120: got %s", r.Content[0].Text)
	}
	if r := f.call(t, alice(), execute, `{"slug":"csv","script_path":"x","timeout_seconds":121}`); !strings.Contains(r.Content[0].Text, "from 1 to 120") {
		t.Errorf("121: got %s", r.Content[0].Text)
	}
}

// Whatever is not success is isError, with the data of the run beside the error.
func TestExecuteOutcomes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*sallyport.Execution)
		code   sallyport.Code
		text   []string
	}{
		"success": {func(*sallyport.Execution) {}, "", []string{"scripts/x.py of csv: success, exit code 0", "Execution e1, revision r1", "stdout:\nhello"}},
		"failed": {func(e *sallyport.Execution) {
			three := 3
			e.Status, e.ExitCode, e.ErrorKind, e.ErrorMessage, e.Stderr = sallyport.StatusError, &three, sallyport.CodeScriptExecutionError, "it ended with exit code 3", "oh no"
		}, sallyport.CodeScriptExecutionError, []string{"error, exit code 3", "SCRIPT_EXECUTION_ERROR: it ended with exit code 3.", "stderr:\noh no"}},
		"timeout": {func(e *sallyport.Execution) {
			e.Status, e.ExitCode, e.ErrorKind, e.Limit = sallyport.StatusTimeout, nil, sallyport.CodeExecutionTimeout, sallyport.LimitWall
		}, sallyport.CodeExecutionTimeout, []string{"timeout, wall limit"}},
		"memory": {func(e *sallyport.Execution) {
			e.Status, e.ExitCode, e.ErrorKind, e.SignalName = sallyport.StatusResourceExhausted, nil, sallyport.CodeResourceExhausted, "SIGKILL"
		}, sallyport.CodeResourceExhausted, []string{"resource_exhausted, SIGKILL"}},
		"canceled": {func(e *sallyport.Execution) {
			e.Status, e.ExitCode, e.ErrorKind = sallyport.StatusCanceled, nil, sallyport.CodeExecutionCanceled
		}, sallyport.CodeExecutionCanceled, nil},
		"lost": {func(e *sallyport.Execution) {
			e.Status, e.ExitCode, e.ErrorKind = sallyport.StatusLost, nil, sallyport.CodeExecutionLost
		}, sallyport.CodeExecutionLost, nil},
		"not closed": {func(e *sallyport.Execution) { e.Status, e.ExitCode = sallyport.StatusRunning, nil }, sallyport.CodeInternal, nil},
		"output data": {func(e *sallyport.Execution) {
			e.OutputData, e.Artifacts = json.RawMessage(`{"n":12345678901234567890.10,"s":"<&>"}`), []sallyport.Artifact{{Path: "r.md", Size: 7, SHA256: "ab", MediaType: "text/markdown", URI: "/v1/executions/e1/artifacts/r.md"}}
		}, "", []string{`output_data:` + "\n" + `{"n":12345678901234567890.10,"s":"<&>"}`, "artifact r.md, 7 bytes, /v1/executions/e1/artifacts/r.md"}},
		"scalar data": {func(e *sallyport.Execution) { e.OutputData = json.RawMessage(`true`) }, "", []string{"output_data:\ntrue"}},
		"long output": {func(e *sallyport.Execution) {
			e.Stdout, e.StdoutTruncated = strings.Repeat("é", 100_000), true
		}, "", []string{"(183616 more bytes of stdout are in structured content)", "(the script wrote more to stdout than its limit keeps)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			want := finished()
			test.change(&want)
			f.runs.run = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) { return want, nil }
			r := f.call(t, alice(), execute, `{"slug":"csv","script_path":"x"}`)
			if r.code() != test.code {
				t.Errorf("code: got %q, want %q", r.code(), test.code)
			}
			var got sallyport.Execution
			if err := json.Unmarshal(r.envelope.Data, &got); err != nil {
				t.Fatalf("data: %v", err)
			}
			if want.Artifacts == nil {
				want.Artifacts = []sallyport.Artifact{}
			}
			if diff := cmp.Diff(want, got, sameJSON(t)); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			for _, part := range test.text {
				if !strings.Contains(r.Content[0].Text, part) {
					t.Errorf("text %.600q lacks %q", r.Content[0].Text, part)
				}
			}
			if size := len(r.Content[0].Text); size > 24<<10 {
				t.Errorf("the text has %d bytes", size)
			}
			calls := f.calls()
			if len(calls) != 1 || calls[0].ExecutionID != "e1" || calls[0].Code != test.code {
				t.Errorf("observed %+v, want one call of e1 with code %q", calls, test.code)
			}
		})
	}
}

// A refusal and a break have no data, and the cause of a break stays here.
func TestExecuteRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err     error
		code    sallyport.Code
		message string
	}{
		"gate":                           {(&sallyport.Refusal{Gate: "pin", Code: sallyport.CodePinMismatch}).Err(), sallyport.CodePinMismatch, "the revision differs from the content the grant pins"},
		"sentence":                       {sallyport.Errorf("x", sallyport.CodeScriptNotFound, "its scripts are a, b"), sallyport.CodeScriptNotFound, "its scripts are a, b"},
		"broke":                          {&sallyport.Error{Op: "store", Code: sallyport.CodeInternal, Message: "MARKER", Err: errors.New("MARKER")}, sallyport.CodeInternal, "internal error"},
		"foreign":                        {errors.New("MARKER"), sallyport.CodeInternal, "internal error"},
		"wrapped":                        {&sallyport.Error{Op: "x", Code: sallyport.CodeAuditUnavailable, Err: errors.New("MARKER")}, sallyport.CodeAuditUnavailable, "the audit trail cannot be written, so nothing was run"},
		"details that cannot be encoded": {&sallyport.Error{Op: "x", Code: sallyport.CodeGrantMissing, Details: map[string]any{"x": func() {}}}, sallyport.CodeGrantMissing, "no grant allows this script for this tenant"},
		"context":                        {context.Canceled, sallyport.CodeCanceled, "the caller cancelled the request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.runs.run = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) {
				return sallyport.Execution{ID: "e9"}, test.err
			}
			r := f.call(t, alice(), execute, `{"slug":"csv","script_path":"x"}`)
			if r.code() != test.code || string(r.envelope.Data) != "null" || r.envelope.Error.Message != test.message {
				t.Errorf("got %s, want %s %q without data", r.Structured, test.code, test.message)
			}
			if strings.Contains(string(r.Structured)+r.Content[0].Text, "MARKER") {
				t.Error("the private cause reached the caller")
			}
			if calls := f.calls(); len(calls) != 1 || calls[0].ExecutionID != "e9" || calls[0].Code != test.code {
				t.Errorf("observed %+v, want the code and the execution", calls)
			}
			if internal := test.code == sallyport.CodeInternal; internal != strings.Contains(f.log.String(), "MARKER") {
				t.Errorf("the log must hold the cause of INTERNAL and of nothing else: %s", f.log)
			}
		})
	}
}

func TestExecutePanicIsInternal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs.run = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) { panic("MARKER") }
	r := f.call(t, alice(), execute, `{"slug":"csv","script_path":"x"}`)
	if r.code() != sallyport.CodeInternal || strings.Contains(string(r.Structured), "MARKER") {
		t.Errorf("got %s, want INTERNAL without the cause", r.Structured)
	}
	if !strings.Contains(f.log.String(), "MARKER") {
		t.Error("the log lacks the cause")
	}
}

// Without the scope a caller learns that and nothing about its arguments.
func TestExecuteScopeBeforeArguments(t *testing.T) {
	t.Parallel()
	r := newFixture(t).call(t, bob(), execute, `{"nonsense":1}`)
	if r.code() != sallyport.CodeAccessDenied || !strings.Contains(r.Content[0].Text, "memory:write") {
		t.Errorf("got %s, want ACCESS_DENIED naming the scope", r.Structured)
	}
}

func TestTraceContext(t *testing.T) {
	t.Parallel()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, test := range map[string]struct{ meta, want string }{
		"good":       {`{"traceparent":"` + good + `"}`, good},
		"none":       {`{}`, ""},
		"zeros":      {`{"traceparent":"00-00000000000000000000000000000000-b7ad6b7169203331-01"}`, ""},
		"upper case": {`{"traceparent":"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"}`, ""},
		"injection":  {`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\nx"}`, ""},
		"number":     {`{"traceparent":7}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.runs.run = func(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
				if req.TraceParent != test.want {
					t.Errorf("trace parent: got %q, want %q", req.TraceParent, test.want)
				}
				return finished(), nil
			}
			f.callMeta(t, alice(), execute, `{"slug":"csv","script_path":"x"}`, test.meta)
			if calls := f.calls(); len(calls) != 1 || calls[0].TraceParent != test.want {
				t.Errorf("observed %+v, want trace parent %q", calls, test.want)
			}
		})
	}
}

// The record of a call has the names of the parameters and no value, not even of a parameter that does not exist.
func TestRecordHoldsNoValues(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs.run = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) {
		return finished(), nil
	}
	f.call(t, alice(), execute, `{"slug":"csv","script_path":"x","input_args":{"token":"MARKER"},"argv":["MARKER"]}`)
	f.call(t, alice(), execute, `{"slug":"csv","MARKER":"x"}`)
	calls := f.calls()
	if len(calls) != 2 {
		t.Fatalf("%d calls were observed, want 2", len(calls))
	}
	if diff := cmp.Diff([]string{"argv", "input_args", "script_path", "slug"}, calls[0].Parameters); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"slug"}, calls[1].Parameters); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if calls[0].Tool != execute || calls[0].Principal.ID != "alice" || calls[0].Code != "" || calls[1].Code != sallyport.CodeInvalidArgument {
		t.Errorf("observed %+v", calls)
	}
	if log := f.log.String(); strings.Contains(log, "MARKER") || !strings.Contains(log, `"tool":"execute_cloud_skill"`) {
		t.Errorf("log: %s", log)
	}
}

// A caller that asked for progress hears that its run lives; nothing follows the result.
func TestProgress(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs.run = func(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
		req.Watch(sallyport.Execution{Status: sallyport.StatusQueued})
		req.Watch(sallyport.Execution{Status: sallyport.StatusRunning})
		time.Sleep(1500 * time.Millisecond)
		return finished(), nil
	}
	var out syncBuffer
	in := initializeLine + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_cloud_skill","_meta":{"progressToken":"p1"},"arguments":{"slug":"csv","script_path":"x"}}}` + "\n"
	if err := f.ServeStdio(t.Context(), alice(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1]
	if !strings.Contains(last, `"id":1`) {
		t.Errorf("the last line is %s, want the result", last)
	}
	var values []float64
	var messages []string
	for _, line := range lines {
		var m struct {
			Method string `json:"method"`
			Params struct {
				Token    string  `json:"progressToken"`
				Progress float64 `json:"progress"`
				Message  string  `json:"message"`
			} `json:"params"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.Method == "notifications/progress" {
			if m.Params.Token != "p1" || m.Params.Message == "" {
				t.Errorf("progress: got %s", line)
			}
			values = append(values, m.Params.Progress)
			messages = append(messages, m.Params.Message)
		}
	}
	if len(values) < 3 || values[0] != 0 || values[len(values)-1] < 1 || !slices.IsSorted(values) || len(slices.Compact(slices.Clone(values))) != len(values) {
		t.Errorf("progress: got %v, want values that rise from 0 to about 1", values)
	}
	if want := []string{"x is queued", "x is running"}; !slices.Equal(messages[:2], want) || !strings.HasPrefix(messages[2], "x is running, ") {
		t.Errorf("progress: got %q", messages)
	}
}
