package mcpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

// fakeSkills answers with its fields; an unset one fails the test by name.
type fakeSkills struct {
	saveURL func(sallyport.Principal, string, registry.ImportOptions) (registry.SaveResult, registry.Source, error)

	t         *testing.T
	list      func(p sallyport.Principal, req registry.ListRequest) (registry.ListResult, error)
	show      func(p sallyport.Principal, ref sallyport.SkillRef) (registry.SkillView, error)
	revision  func(p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error)
	component func(p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, path string) (sallyport.Component, error)
	save      func(p sallyport.Principal, req registry.SaveRequest) (registry.SaveResult, error)
	context   func(p sallyport.Principal, req registry.ContextRequest) (registry.ContextResult, error)
}

func (f *fakeSkills) unset(name string) error {
	f.t.Errorf("%s was called, and the test does not expect it", name)
	return errors.New("unexpected call")
}

func (f *fakeSkills) List(_ context.Context, p sallyport.Principal, req registry.ListRequest) (registry.ListResult, error) {
	if f.list == nil {
		return registry.ListResult{}, f.unset("List")
	}
	return f.list(p, req)
}

func (f *fakeSkills) Show(_ context.Context, p sallyport.Principal, ref sallyport.SkillRef) (registry.SkillView, error) {
	if f.show == nil {
		return registry.SkillView{}, f.unset("Show")
	}
	return f.show(p, ref)
}

func (f *fakeSkills) Revision(_ context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
	if f.revision == nil {
		return sallyport.Revision{}, f.unset("Revision")
	}
	return f.revision(p, ref, id)
}

func (f *fakeSkills) Component(_ context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, path string) (sallyport.Component, error) {
	if f.component == nil {
		return sallyport.Component{}, f.unset("Component")
	}
	return f.component(p, ref, id, path)
}

func (f *fakeSkills) Save(_ context.Context, p sallyport.Principal, req registry.SaveRequest) (registry.SaveResult, error) {
	if f.save == nil {
		return registry.SaveResult{}, f.unset("Save")
	}
	return f.save(p, req)
}

func (f *fakeSkills) SaveURL(_ context.Context, p sallyport.Principal, url string, opts registry.ImportOptions) (registry.SaveResult, registry.Source, error) {
	if f.saveURL == nil {
		return registry.SaveResult{}, registry.Source{}, f.unset("SaveURL")
	}
	return f.saveURL(p, url, opts)
}

func (f *fakeSkills) Context(_ context.Context, p sallyport.Principal, req registry.ContextRequest) (registry.ContextResult, error) {
	if f.context == nil {
		return registry.ContextResult{}, f.unset("Context")
	}
	return f.context(p, req)
}

type fakeRuns struct {
	t       *testing.T
	run     func(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error)
	explain func(p sallyport.Principal, req run.Request) (run.Explanation, error)
	list    func(p sallyport.Principal, req run.ListRequest) (run.ListResult, error)
	start   func(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error)
	wait    func(ctx context.Context, id sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error)
	get     func(p sallyport.Principal, id sallyport.ExecutionID) (sallyport.Execution, error)
	cancel  func(p sallyport.Principal, id sallyport.ExecutionID) error
	decide  func(p sallyport.Principal, id sallyport.ConfirmationID, request, revision sallyport.Digest, yes bool) error
}

func (f *fakeRuns) DecideInClient(_ context.Context, p sallyport.Principal, id sallyport.ConfirmationID, request, revision sallyport.Digest, yes bool) (sallyport.Confirmation, error) {
	if f.decide == nil {
		f.t.Error("DecideInClient was called, and the test does not expect it")
		return sallyport.Confirmation{}, errors.New("unexpected call")
	}
	return sallyport.Confirmation{}, f.decide(p, id, request, revision, yes)
}

func (f *fakeRuns) Start(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error) {
	if f.start == nil {
		f.t.Error("Start was called, and the test does not expect it")
		return sallyport.Execution{}, errors.New("unexpected call")
	}
	return f.start(ctx, p, req)
}

func (f *fakeRuns) Wait(ctx context.Context, _ sallyport.Principal, id sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error) {
	if f.wait == nil {
		f.t.Error("Wait was called, and the test does not expect it")
		return sallyport.Execution{}, errors.New("unexpected call")
	}
	return f.wait(ctx, id, patience)
}

func (f *fakeRuns) Get(_ context.Context, p sallyport.Principal, id sallyport.ExecutionID) (sallyport.Execution, error) {
	if f.get == nil {
		f.t.Error("Get was called, and the test does not expect it")
		return sallyport.Execution{}, errors.New("unexpected call")
	}
	return f.get(p, id)
}

func (f *fakeRuns) Cancel(_ context.Context, p sallyport.Principal, id sallyport.ExecutionID) error {
	if f.cancel == nil {
		f.t.Error("Cancel was called, and the test does not expect it")
		return errors.New("unexpected call")
	}
	return f.cancel(p, id)
}

func (f *fakeRuns) Explain(_ context.Context, p sallyport.Principal, req run.Request) (run.Explanation, error) {
	if f.explain == nil {
		f.t.Error("Explain was called, and the test does not expect it")
		return run.Explanation{}, errors.New("unexpected call")
	}
	return f.explain(p, req)
}

func (f *fakeRuns) List(_ context.Context, p sallyport.Principal, req run.ListRequest) (run.ListResult, error) {
	if f.list == nil {
		f.t.Error("List was called, and the test does not expect it")
		return run.ListResult{}, errors.New("unexpected call")
	}
	return f.list(p, req)
}

func (f *fakeRuns) Run(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error) {
	if f.run == nil {
		f.t.Error("Run was called, and the test does not expect it")
		return sallyport.Execution{}, errors.New("unexpected call")
	}
	return f.run(ctx, p, req)
}

// fixture is an API over fakes, with what it logged and observed.
type fixture struct {
	*mcpapi.API

	skills *fakeSkills
	runs   *fakeRuns
	log    *syncBuffer

	mu       sync.Mutex
	observed []mcpapi.ToolCall
}

func newFixture(t *testing.T, change ...func(*mcpapi.Config)) *fixture {
	t.Helper()
	f := &fixture{skills: &fakeSkills{t: t}, runs: &fakeRuns{t: t}, log: &syncBuffer{}}
	cfg := mcpapi.Config{
		Skills: f.skills, Runs: f.runs, Version: "1.2.3", Logger: slog.New(slog.NewJSONHandler(f.log, nil)),
		Observe: func(_ context.Context, call mcpapi.ToolCall) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.observed = append(f.observed, call)
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	f.API = mcpapi.New(cfg)
	return f
}

// calls returns what was observed so far.
func (f *fixture) calls() []mcpapi.ToolCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]mcpapi.ToolCall(nil), f.observed...)
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// alice may read and write; bob may only read.
func alice() sallyport.Principal {
	return sallyport.Principal{
		ID: "alice", TenantID: "acme", Teams: []sallyport.TeamID{"default"}, KeyID: "k1",
		Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite},
	}
}

func bob() sallyport.Principal {
	p := alice()
	p.ID, p.Scopes = "bob", []sallyport.Scope{sallyport.ScopeMemoryRead}
	return p
}

// envelope is any tool's structured answer.
type envelope struct {
	Kind      string                 `json:"kind"`
	Data      json.RawMessage        `json:"data"`
	Error     *sallyport.PublicError `json:"error"`
	RequestID string                 `json:"request_id"`
}

// toolResult is the result of tools/call as it is on the wire.
type toolResult struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`

	envelope envelope
}

func (r toolResult) code() sallyport.Code {
	if r.envelope.Error == nil {
		return ""
	}
	return r.envelope.Error.Code
}

// call sends one tools/call on stdio and returns its result, which it holds against the tool's own output schema and the rules that
// all results keep.
func (f *fixture) call(t *testing.T, p sallyport.Principal, tool, arguments string) toolResult {
	t.Helper()
	return f.callMeta(t, p, tool, arguments, `{}`)
}

func (f *fixture) callMeta(t *testing.T, p sallyport.Principal, tool, arguments, meta string) toolResult {
	t.Helper()
	line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","_meta":` + meta + `,"arguments":` + arguments + `}}`
	answers := f.stdio(t, p, initializeLine, line)
	return checkResult(t, tool, result(t, answers["1"]))
}

// initializeLine opens a session of the older revision; its answer has the id 0.
const initializeLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// stdio runs one whole session: it sends the lines, ends the input and returns the answers by id.
func (f *fixture) stdio(t *testing.T, p sallyport.Principal, lines ...string) map[string]json.RawMessage {
	t.Helper()
	var out syncBuffer
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if err := f.ServeStdio(ctx, p, strings.NewReader(strings.Join(lines, "\n")+"\n"), &out); err != nil {
		t.Fatalf("ServeStdio: %v", err)
	}
	answers := map[string]json.RawMessage{}
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("the output %q is no JSON: %v", line, err)
		}
		answers[string(m.ID)] = json.RawMessage(line)
	}
	return answers
}

// result takes the result out of an answer.
func result(t *testing.T, answer json.RawMessage) toolResult {
	t.Helper()
	var m struct {
		Result *toolResult     `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		t.Fatalf("the answer %q is no JSON: %v", answer, err)
	}
	if m.Result == nil {
		t.Fatalf("the answer is a protocol error, want a result: %s", answer)
	}
	return *m.Result
}

// checkResult holds a result against what every result keeps.
func checkResult(t *testing.T, tool string, r toolResult) toolResult {
	t.Helper()
	if err := json.Unmarshal(r.Structured, &r.envelope); err != nil {
		t.Fatalf("structuredContent %q is no envelope: %v", r.Structured, err)
	}
	if len(r.Content) != 1 || r.Content[0].Type != "text" || r.Content[0].Text == "" {
		t.Errorf("content: got %+v, want one text", r.Content)
	}
	if (r.envelope.Error != nil) != r.IsError {
		t.Errorf("isError is %v beside error %+v", r.IsError, r.envelope.Error)
	}
	if r.envelope.RequestID == "" {
		t.Error("request_id is empty")
	}
	if err := outputSchema(t, tool).Validate(mustDecode(t, r.Structured)); err != nil {
		t.Errorf("structuredContent does not fit the output schema: %v\n%s", err, r.Structured)
	}
	return r
}

func mustDecode(t *testing.T, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sameJSON compares raw JSON by value: the SDK writes < as an escape, and numbers as they are.
func sameJSON(t *testing.T) cmp.Option {
	t.Helper()
	decode := func(raw json.RawMessage) any {
		if len(raw) == 0 {
			return nil
		}
		return mustDecode(t, raw)
	}
	return cmp.Comparer(func(a, b json.RawMessage) bool { return cmp.Equal(decode(a), decode(b)) })
}

// outputSchemas compiles the output schemas that tools/list shows, once for all tests.
var outputSchemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	tools, err := listTools()
	schemas := map[string]*jsonschema.Schema{}
	for _, tool := range tools {
		document, unread := jsonschema.UnmarshalJSON(bytes.NewReader(tool.OutputSchema))
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		unread = errors.Join(unread, compiler.AddResource("mem:///schema", document))
		schema, uncompiled := compiler.Compile("mem:///schema")
		err = errors.Join(err, unread, uncompiled)
		schemas[tool.Name] = schema
	}
	return schemas, err
})

func outputSchema(t *testing.T, tool string) *jsonschema.Schema {
	t.Helper()
	schemas, err := outputSchemas()
	if err != nil {
		t.Fatal(err)
	}
	if schemas[tool] == nil {
		t.Fatalf("tools/list has no %s", tool)
	}
	return schemas[tool]
}

type listedTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  json.RawMessage `json:"annotations"`
}

// listedTools is tools/list as a client sees it.
func listedTools(t *testing.T) []listedTool {
	t.Helper()
	tools, err := listTools()
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func listTools() ([]listedTool, error) {
	var out bytes.Buffer
	in := initializeLine + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
	if err := mcpapi.New(mcpapi.Config{}).ServeStdio(context.Background(), alice(), strings.NewReader(in), &out); err != nil {
		return nil, err
	}
	for line := range bytes.Lines(out.Bytes()) {
		var m struct {
			ID     int `json:"id"`
			Result struct {
				Tools []listedTool `json:"tools"`
			} `json:"result"`
		}
		if err := json.Unmarshal(line, &m); err != nil || m.ID == 2 {
			return m.Result.Tools, err
		}
	}
	return nil, errors.New("tools/list was not answered")
}
