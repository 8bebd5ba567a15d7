package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestExecuteRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got run.Request
	w.runs.run = func(_ context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error) {
		if p.ID != "alice" {
			t.Errorf("principal %q", p.ID)
		}
		got = req
		return sampleExecution(sallyport.StatusSuccess), nil
	}
	answer := w.call(http.MethodPost, "/v1/skills/csv-profiler/execute", `{
		"script_path":"scripts/profile.py","revision_id":"rev-1","team_id":"ops","timeout_seconds":60,
		"input_args":{ "n" : 9007199254740993, "e": 1.50e2, "u":"\u00e9" },"argv":["--x",""],
		"files":[{"name":"in/a.csv","content":"1,2"},{"name":"b.bin","content_base64":"/wA="}]}`,
		"Traceparent", traceparent, "X-Request-Id", "r-1")
	if answer.status != http.StatusOK {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	want := run.Request{
		Ref: sallyport.SkillRef{Slug: "csv-profiler", TeamID: "ops"}, RevisionID: "rev-1", ScriptPath: "scripts/profile.py",
		Args: json.RawMessage(`{ "n" : 9007199254740993, "e": 1.50e2, "u":"\u00e9" }`), // byte for byte
		Argv: []string{"--x", ""},
		Files: []sallyport.InputFile{
			{Name: "in/a.csv", Content: []byte("1,2")}, {Name: "b.bin", Content: []byte{0xff, 0}},
		},
		Timeout: time.Minute, TraceParent: traceparent, RequestID: "r-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if !bytes.Contains(answer.body, []byte(`"n":12345678901234567890`)) {
		t.Errorf("output_data went through a float: %s", answer.body)
	}
	w.call(http.MethodPost, "/v1/skills/"+skillID+"/execute", `{"script_path":"a","argv":[],"files":[]}`, "X-Request-Id", "r-2")
	want = run.Request{Ref: sallyport.SkillRef{SkillID: skillID}, ScriptPath: "a", Argv: []string{}, RequestID: "r-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("least request (-want +got):\n%s", diff)
	}
	// The run judges the range.
	w.call(http.MethodPost, "/v1/skills/x/execute", `{"script_path":"a","timeout_seconds":61}`)
	if got.Timeout != 61*time.Second {
		t.Errorf("timeout %v", got.Timeout)
	}
}

// Whatever the script did is 200, with the execution as data and, unless it succeeded, an error beside it.
func TestExecuteOutcomes(t *testing.T) {
	t.Parallel()
	for status, kind := range map[sallyport.Status]sallyport.Code{
		sallyport.StatusSuccess:           "",
		sallyport.StatusError:             sallyport.CodeScriptExecutionError,
		sallyport.StatusTimeout:           sallyport.CodeExecutionTimeout,
		sallyport.StatusResourceExhausted: sallyport.CodeResourceExhausted,
		sallyport.StatusCanceled:          sallyport.CodeExecutionCanceled,
		sallyport.StatusLost:              sallyport.CodeExecutionLost,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			execution := sampleExecution(status)
			execution.ErrorKind, execution.Artifacts, execution.Isolation.Layers = kind, nil, nil
			w.runs.run = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) {
				return execution, nil
			}
			w.runs.wait = func(sallyport.ExecutionID, time.Duration) (sallyport.Execution, error) { return execution, nil }
			for _, got := range []answered{
				w.call(http.MethodPost, "/v1/skills/x/execute", `{"script_path":"a"}`),
				w.call(http.MethodGet, "/v1/executions/e-1", ""),
			} {
				if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" {
					t.Errorf("%d %s", got.status, got.header.Get("Content-Type"))
				}
				envelope := got.json(t)
				data, _ := envelope["data"].(map[string]any)
				if envelope["kind"] != "execution" || data["status"] != string(status) || data["execution_id"] != "e-1" {
					t.Errorf("got %s", got.body)
				}
				if data["artifacts"] == nil {
					t.Error("artifacts is null, not a list")
				}
				failure, _ := envelope["error"].(map[string]any)
				if kind == "" && failure != nil || kind != "" && failure["code"] != string(kind) {
					t.Errorf("error %v, want %q", failure, kind)
				}
			}
		})
	}
}

func TestExecuteRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refusal := &sallyport.Refusal{Code: sallyport.CodePinMismatch, Gate: "pin"}
	w.runs.run = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) {
		// The record that was opened and closed is no outcome of the script.
		return sampleExecution(sallyport.StatusNotStarted), refusal.Err()
	}
	got := w.call(http.MethodPost, "/v1/skills/x/execute", `{"script_path":"a"}`)
	code, _ := got.refusal(t)
	if got.status != http.StatusForbidden || code != "PIN_MISMATCH" || got.json(t)["kind"] != "execution" || got.json(t)["data"] != nil {
		t.Errorf("%d %s", got.status, got.body)
	}
	failure, _ := got.json(t)["error"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"gate": "pin"}, failure["details"]); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got []string
	w.runs.run = func(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
		got = append(got, req.IdempotencyKey)
		return sampleExecution(sallyport.StatusSuccess), nil
	}
	w.call(http.MethodPost, "/v1/skills/x/execute", `{"script_path":"a"}`)
	w.call(http.MethodPost, "/v1/skills/x/execute", `{"script_path":"a"}`, "Idempotency-Key", "k-1")
	twice := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/skills/x/execute", strings.NewReader(`{"script_path":"a"}`))
	twice.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"a", "b"}}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, twice)
	if diff := cmp.Diff([]string{"", "k-1"}, got); diff != "" || answer.Code != http.StatusBadRequest {
		t.Errorf("two headers: %d; keys (-want +got):\n%s", answer.Code, diff)
	}
}

func TestTraceParent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got string
	w.runs.explain = func(req run.Request) (run.Explanation, error) {
		got = req.TraceParent
		return run.Explanation{}, nil
	}
	for name, test := range map[string]struct {
		sent string
		kept bool
	}{
		"good":           {traceparent, true},
		"absent":         {"", false},
		"capitals":       {strings.ToUpper(traceparent), false},
		"another form":   {"01" + traceparent[2:], false},
		"longer":         {traceparent + "-x", false},
		"no trace":       {"00-00000000000000000000000000000000-b7ad6b7169203331-01", false},
		"no span":        {"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false},
		"dashes astray":  {"00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01", false},
		"not hex":        {"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", false},
		"dashes instead": {strings.Repeat("-", 55), false},
	} {
		w.call(http.MethodPost, "/v1/skills/x/explain", `{"script_path":"a"}`, "Traceparent", test.sent)
		want := ""
		if test.kept {
			want = test.sent
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.explain = func(run.Request) (run.Explanation, error) {
		return run.Explanation{
			Runnable: false, SkillID: skillID, Slug: "x", RevisionID: "rev-1", RevisionDigest: digest, ScriptPath: "a", Runtime: "python",
			GrantID: "g", Limits: sallyport.DefaultLimits(), Remedy: "sallyport grant issue x",
			Steps: []run.Step{
				{Name: "feature", Result: "passed"},
				{Name: "grant", Result: "refused", Code: sallyport.CodeGrantMissing, Message: "m"},
				{Name: "pin", Result: "not_reached"},
			},
			Refusal: sallyport.Public((&sallyport.Refusal{Code: sallyport.CodeGrantMissing, Gate: "grant"}).Err()),
		}, nil
	}
	got := w.call(http.MethodPost, "/v1/skills/x/explain", `{"script_path":"a"}`)
	if got.status != http.StatusOK || got.json(t)["kind"] != "explanation" || got.json(t)["error"] != nil {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestExecutions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got run.ListRequest
	w.runs.list = func(req run.ListRequest) (run.ListResult, error) {
		got = req
		return run.ListResult{Executions: []sallyport.Execution{sampleExecution(sallyport.StatusError)}, NextCursor: "n"}, nil
	}
	answer := w.call(http.MethodGet, "/v1/executions?slug=x&skill_id="+skillID+"&team_id=ops&status=error&limit=1&cursor=c", "")
	if answer.status != http.StatusOK {
		t.Errorf("%d %s", answer.status, answer.body)
	}
	want := run.ListRequest{
		Ref: sallyport.SkillRef{SkillID: skillID, Slug: "x", TeamID: "ops"}, Status: sallyport.StatusError, Limit: 1, Cursor: "c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	w.runs.list = func(run.ListRequest) (run.ListResult, error) { return run.ListResult{}, nil }
	if answer := w.call(http.MethodGet, "/v1/executions", ""); !bytes.Contains(answer.body, []byte(`"executions":[]`)) {
		t.Errorf("none: %s", answer.body)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.cancel = func(id sallyport.ExecutionID) error {
		if id != "e-1" {
			return &sallyport.Error{Op: "x", Code: sallyport.CodeExecutionNotFound, Err: errors.New("cause")}
		}
		return nil
	}
	got := w.call(http.MethodPost, "/v1/executions/e-1/cancel", "")
	want := map[string]any{"execution_id": "e-1", "requested": true}
	if diff := cmp.Diff(want, got.json(t)["data"]); diff != "" || got.status != http.StatusOK {
		t.Errorf("%d (-want +got):\n%s", got.status, diff)
	}
	if got := w.call(http.MethodPost, "/v1/executions/e-2/cancel", ""); got.status != http.StatusNotFound {
		t.Errorf("unknown: %d", got.status)
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.capabilities = func() sallyport.Capabilities {
		return sallyport.Capabilities{
			Available: true, Reason: "r", Remedy: "m", Layers: []sallyport.Layer{sallyport.LayerSeccomp},
			Missing: []sallyport.Layer{sallyport.LayerLandlock}, Features: []sallyport.Feature{sallyport.FeatureArgv},
		}
	}
	got := w.call(http.MethodGet, "/v1/capabilities", "")
	data, _ := got.json(t)["data"].(map[string]any)
	who, _ := data["principal"].(map[string]any)
	if data["version"] != "test" || who["id"] != "alice" {
		t.Errorf("got %s", got.body)
	}
	w.runs.capabilities = func() sallyport.Capabilities { return sallyport.Capabilities{} }
	if got := w.call(http.MethodGet, "/v1/capabilities", ""); !bytes.Contains(got.body, []byte(`"layers":[]`)) {
		t.Errorf("nothing: %s", got.body)
	}
}

// With async the answer is 202 and names where the execution is; a run that is over by then is answered as any other.
func TestExecuteAsync(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status := sallyport.StatusQueued
	var key string
	w.runs.start = func(req run.Request) (sallyport.Execution, error) {
		key = req.IdempotencyKey
		return sampleExecution(status), nil
	}
	got := w.call(http.MethodPost, "/v1/skills/x/execute", `{"script_path":"a","async":true}`, "Idempotency-Key", "k")
	data, _ := got.json(t)["data"].(map[string]any)
	if got.status != http.StatusAccepted || got.header.Get("Location") != "/v1/executions/e-1" || data["status"] != "queued" || got.json(t)["error"] != nil {
		t.Errorf("%d, Location %q, %s", got.status, got.header.Get("Location"), got.body)
	}
	if key != "k" {
		t.Errorf("the idempotency key %q", key)
	}
	status = sallyport.StatusSuccess
	if got := w.call(http.MethodPost, "/v1/skills/x/execute", `{"script_path":"a","async":true}`); got.status != http.StatusOK || got.header.Get("Location") != "" {
		t.Errorf("one that is over: %d, Location %q", got.status, got.header.Get("Location"))
	}
	w.runs.start = func(run.Request) (sallyport.Execution, error) {
		return sallyport.Execution{}, (&sallyport.Refusal{Code: sallyport.CodeGrantMissing, Gate: "grant"}).Err()
	}
	if got := w.call(http.MethodPost, "/v1/skills/x/execute", `{"script_path":"a","async":true}`); got.status != http.StatusForbidden {
		t.Errorf("refused: %d", got.status)
	}
	if got := w.call(http.MethodPost, "/v1/skills/x/explain", `{"script_path":"a","async":true}`); got.status != http.StatusBadRequest {
		t.Errorf("explain: %d", got.status)
	}
}

func TestShowExecutionWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var waited time.Duration
	w.runs.wait = func(_ sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error) {
		waited = patience
		return sampleExecution(sallyport.StatusRunning), nil
	}
	for query, want := range map[string]time.Duration{"": 0, "?wait=0": 0, "?wait=60": time.Minute} {
		waited = -1
		if got := w.call(http.MethodGet, "/v1/executions/e-1"+query, ""); got.status != http.StatusOK || waited != want || got.json(t)["error"] != nil {
			t.Errorf("%q: %d, waited %s, %s", query, got.status, waited, got.body)
		}
	}
	for _, query := range []string{"?wait=61", "?wait=-1", "?wait=x", "?wait=1&wait=2"} {
		if got := w.call(http.MethodGet, "/v1/executions/e-1"+query, ""); got.status != http.StatusBadRequest {
			t.Errorf("%q: %d", query, got.status)
		}
	}
}
