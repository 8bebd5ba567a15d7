package mcpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

const (
	taskID = "01a22dd9-4d46-7105-aaf2-d59121df7ded"
	// withTasks is the _meta of a client that declared the extension.
	withTasks = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	noTasks   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

// wire is an answer as it is on the wire.
type wire struct {
	status int
	Result map[string]any
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

func (w wire) code() int {
	if w.Error == nil {
		return 0
	}
	return w.Error.Code
}

// task sends one message of the newest revision about a task, or a call that may become one.
func (f *fixture) task(t *testing.T, p sallyport.Principal, method, name, params string) wire {
	t.Helper()
	got := post(t, serve(t, f.Handler(as(p))), modern, method, name, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`)
	w := wire{status: got.status}
	if err := json.Unmarshal(got.answer(t), &w); err != nil {
		t.Fatalf("%v in %s", err, got.body)
	}
	delete(w.Result, "_meta")
	return w
}

const executeParams = `"name":"execute_cloud_skill","arguments":{"slug":"csv","script_path":"x"},`

func running() sallyport.Execution {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return sallyport.Execution{
		ID: taskID, TenantID: alice().TenantID, PrincipalID: alice().ID, Slug: "csv", ScriptPath: "x", Status: sallyport.StatusRunning, CreatedAt: at, StartedAt: &at,
	}
}

// A run that is not over soon is answered with a task of its id, for clients that declared the extension and for no others.
func TestRunBecomesATask(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs.start = func(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
		if req.IdempotencyKey != "k" {
			t.Errorf("idempotency key %q", req.IdempotencyKey)
		}
		e := running()
		e.Status = sallyport.StatusQueued
		return e, nil
	}
	f.runs.wait = func(_ context.Context, id sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error) {
		if id != taskID || patience != 2*time.Second {
			t.Errorf("waited %s for %s", patience, id)
		}
		return running(), nil
	}
	keyed := strings.Replace(withTasks, `{`, `{"dev.sallyport/idempotency_key":"k",`, 1)
	got := f.task(t, alice(), "tools/call", execute, executeParams+keyed)
	want := map[string]any{
		"resultType": "task", "taskId": taskID, "status": "working", "statusMessage": "x of csv: running", "ttlMs": nil, "pollIntervalMs": 1000.0,
		"createdAt": "2026-11-30T12:00:00Z", "lastUpdatedAt": "2026-11-30T12:00:00Z",
	}
	if got.status != http.StatusOK || fmt.Sprint(got.Result) != fmt.Sprint(want) {
		t.Errorf("%d, got %v, want %v", got.status, got.Result, want)
	}
	// One that is over by then is answered as if nobody had spoken of tasks.
	f.runs.wait = func(context.Context, sallyport.ExecutionID, time.Duration) (sallyport.Execution, error) {
		return finished(), nil
	}
	if got := f.task(t, alice(), "tools/call", execute, executeParams+keyed); got.Result["resultType"] != "complete" || got.Result["structuredContent"] == nil {
		t.Errorf("a short run: %v", got.Result)
	}
	f.runs.run = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) {
		return finished(), nil
	}
	if got := f.task(t, alice(), "tools/call", execute, executeParams+noTasks); got.Result["resultType"] != "complete" {
		t.Errorf("without the extension: %v", got.Result)
	}
	// Whoever may not read executions could not ask for the task.
	writer := alice()
	writer.Scopes = []sallyport.Scope{sallyport.ScopeMemoryWrite}
	if got := f.task(t, writer, "tools/call", execute, executeParams+withTasks); got.Result["resultType"] != "complete" {
		t.Errorf("without memory:read: %v", got.Result)
	}
}

// A caller who leaves before it knows of the task has cancelled the run.
func TestLeavingBeforeTheTaskCancels(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	began, cancelled := make(chan struct{}), make(chan sallyport.ExecutionID, 1)
	f.runs.start = func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error) {
		return running(), nil
	}
	f.runs.wait = func(ctx context.Context, _ sallyport.ExecutionID, _ time.Duration) (sallyport.Execution, error) {
		close(began)
		<-ctx.Done()
		return sallyport.Execution{}, ctx.Err()
	}
	f.runs.cancel = func(_ sallyport.Principal, id sallyport.ExecutionID) error {
		cancelled <- id
		return nil
	}
	url := serve(t, f.Handler(as(alice())))
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-began
		leave()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+executeParams+withTasks+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": modern,
		"Mcp-Method": "tools/call", "Mcp-Name": execute,
	} {
		req.Header.Set(name, value)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
	}
	if id := <-cancelled; id != taskID {
		t.Errorf("cancelled %s", id)
	}
}

// The status of an execution as a task: whatever a script did is completed, with the result of the call.
func TestTaskStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[sallyport.Status]string{
		sallyport.StatusQueued: "working", sallyport.StatusRunning: "working", sallyport.StatusCanceled: "cancelled",
		sallyport.StatusSuccess: "completed", sallyport.StatusError: "completed", sallyport.StatusTimeout: "completed",
		sallyport.StatusResourceExhausted: "completed", sallyport.StatusNotStarted: "completed", sallyport.StatusLost: "completed",
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.runs.get = func(sallyport.Principal, sallyport.ExecutionID) (sallyport.Execution, error) {
				e := running()
				e.Status = status
				if status != sallyport.StatusSuccess {
					e.ErrorKind = sallyport.CodeExecutionLost
				}
				return e, nil
			}
			got := f.task(t, alice(), "tasks/get", taskID, `"taskId":"`+taskID+`",`+withTasks)
			if got.Result["status"] != want || got.Result["resultType"] != "complete" || got.Result["taskId"] != taskID {
				t.Fatalf("got %v", got.Result)
			}
			result, there := got.Result["result"].(map[string]any)
			if there != (want == "completed") {
				t.Fatalf("result %v", got.Result["result"])
			}
			if there && (result["isError"] == true) != (status != sallyport.StatusSuccess) {
				t.Errorf("result %v", result)
			}
		})
	}
}

// A task that is another principal's is as absent, for each method; so is an id that is none.
func TestTasksAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs.get = func(p sallyport.Principal, id sallyport.ExecutionID) (sallyport.Execution, error) {
		if p.TenantID != alice().TenantID || id != taskID {
			return sallyport.Execution{}, &sallyport.Error{Op: "fake", Code: sallyport.CodeExecutionNotFound}
		}
		return running(), nil
	}
	colleague, stranger := alice(), alice()
	colleague.ID, stranger.TenantID = "bob", "other"
	var messages []string
	for _, p := range []sallyport.Principal{colleague, stranger, alice()} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			for _, id := range []string{taskID, "01a22dd9-4d46-7105-aaf2-000000000000", "../etc/passwd"} {
				if p.ID == alice().ID && p.TenantID == alice().TenantID && id == taskID {
					continue
				}
				got := f.task(t, p, method, id, `"taskId":"`+id+`","inputResponses":{},`+withTasks)
				if got.code() != -32602 {
					t.Errorf("%s of %s by %s: %+v", method, id, p.ID, got)
					continue
				}
				messages = append(messages, got.Error.Message)
			}
		}
	}
	for _, message := range messages {
		if message != messages[0] {
			t.Errorf("answers differ: %q and %q", messages[0], message)
		}
	}
}

func TestTaskCancelAndUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	e, stopped := running(), 0
	f.runs.get = func(sallyport.Principal, sallyport.ExecutionID) (sallyport.Execution, error) { return e, nil }
	f.runs.cancel = func(sallyport.Principal, sallyport.ExecutionID) error {
		stopped++
		return nil
	}
	params := `"taskId":"` + taskID + `","inputResponses":{"x":{}},` + withTasks
	for range 2 {
		if got := f.task(t, alice(), "tasks/cancel", taskID, params); got.Result["resultType"] != "complete" || len(got.Result) != 1 {
			t.Errorf("cancel: %+v", got)
		}
		e.Status = sallyport.StatusSuccess // a task that is over is acknowledged, and left
	}
	if stopped != 1 {
		t.Errorf("stopped %d times", stopped)
	}
	if got := f.task(t, alice(), "tasks/update", taskID, params); got.Result["resultType"] != "complete" || len(got.Result) != 1 {
		t.Errorf("update: %+v", got)
	}
}

// The methods are for those who declared the extension, with the header that names the task; those of an earlier draft are gone.
func TestTaskMethodsAreGuarded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs.get = func(sallyport.Principal, sallyport.ExecutionID) (sallyport.Execution, error) { return running(), nil }
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		got := f.task(t, alice(), method, taskID, `"taskId":"`+taskID+`",`+noTasks)
		if got.status != http.StatusBadRequest || got.code() != mcp.CodeMissingRequiredClientCapabilities || !strings.Contains(string(got.Error.Data), "io.modelcontextprotocol/tasks") {
			t.Errorf("%s undeclared: %d %+v", method, got.status, got.Error)
		}
		for _, name := range []string{"", "another"} {
			if got := f.task(t, alice(), method, name, `"taskId":"`+taskID+`",`+withTasks); got.status != http.StatusBadRequest || got.code() != mcp.CodeHeaderMismatch {
				t.Errorf("%s with Mcp-Name %q: %d %+v", method, name, got.status, got.Error)
			}
		}
	}
	for _, method := range []string{"tasks/list", "tasks/result"} {
		if got := f.task(t, alice(), method, "", withTasks); got.code() != -32601 {
			t.Errorf("%s: %+v", method, got)
		}
	}
}

// The key in _meta reaches the run, and a bad one is an envelope.
func TestIdempotencyKeyInMeta(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var key string
	f.runs.run = func(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
		key = req.IdempotencyKey
		return finished(), nil
	}
	meta := func(value string) string {
		return strings.Replace(noTasks, `{`, `{"dev.sallyport/idempotency_key":`+value+`,`, 1)
	}
	if got := f.task(t, alice(), "tools/call", execute, executeParams+meta(`"order-7"`)); key != "order-7" || got.Result["isError"] == true {
		t.Errorf("key %q, %+v", key, got)
	}
	for _, bad := range []string{`7`, `""`, `null`, `{}`} {
		got := f.task(t, alice(), "tools/call", execute, executeParams+meta(bad))
		if text := fmt.Sprint(got.Result["content"]); got.Result["isError"] != true || !strings.Contains(text, "INVALID_ARGUMENT") {
			t.Errorf("%s: %s", bad, text)
		}
	}
}

// The name of a tool that there is none of is not repeated unless it could be one.
func TestUnknownToolNamesAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := serve(t, f.Handler(as(alice())))
	for _, name := range []string{strings.Repeat("a", 129), strings.Repeat("MARKER ", 10000), `MARKER\u0000\n`, `<b>MARKER`, ""} {
		got := post(t, url, legacy, "tools/call", "", callBody(legacy, name, `{}`))
		if len(got.body) > 400 || strings.Contains(string(got.body), "MARKER") || strings.Contains(string(got.body), "aaaa") || !strings.Contains(string(got.body), "-32602") {
			t.Errorf("%.20q: %d bytes, %.300s", name, len(got.body), got.body)
		}
	}
	if got := post(t, url, legacy, "tools/call", "", callBody(legacy, "no_such", `{}`)); !strings.Contains(string(got.body), `no_such`) {
		t.Errorf("a plain name: %s", got.body)
	}
}
