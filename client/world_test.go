package client_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/internal/auth"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

// The fakes embed their interface: a method that a test does not set panics, which the caller sees as INTERNAL.

type fakeSkills struct {
	httpapi.Skills

	list      func(registry.ListRequest) (registry.ListResult, error)
	show      func(sallyport.SkillRef) (registry.SkillView, error)
	revisions func(sallyport.SkillRef) ([]sallyport.Revision, error)
	revision  func(sallyport.SkillRef, sallyport.RevisionID) (sallyport.Revision, error)
	component func(sallyport.SkillRef, sallyport.RevisionID, string) (sallyport.Component, error)
	save      func(registry.SaveRequest) (registry.SaveResult, error)
	publish   func(sallyport.SkillRef, sallyport.RevisionID) (registry.SkillView, error)
	archive   func(sallyport.SkillRef) (sallyport.Skill, error)
	restore   func(sallyport.SkillRef) (sallyport.Skill, error)
	importAll func(context.Context, registry.Tree, registry.ImportOptions) (registry.ImportReport, error)
}

func (f *fakeSkills) List(_ context.Context, _ sallyport.Principal, req registry.ListRequest) (registry.ListResult, error) {
	return f.list(req)
}

func (f *fakeSkills) Show(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) (registry.SkillView, error) {
	return f.show(ref)
}

func (f *fakeSkills) Revisions(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) ([]sallyport.Revision, error) {
	return f.revisions(ref)
}

func (f *fakeSkills) Revision(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
	return f.revision(ref, id)
}

func (f *fakeSkills) Component(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, path string) (sallyport.Component, error) {
	return f.component(ref, id, path)
}

func (f *fakeSkills) Save(_ context.Context, _ sallyport.Principal, req registry.SaveRequest) (registry.SaveResult, error) {
	return f.save(req)
}

func (f *fakeSkills) Publish(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (registry.SkillView, error) {
	return f.publish(ref, id)
}

func (f *fakeSkills) Archive(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	return f.archive(ref)
}

func (f *fakeSkills) Restore(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	return f.restore(ref)
}

func (f *fakeSkills) Import(ctx context.Context, _ sallyport.Principal, tree registry.Tree, opts registry.ImportOptions) (registry.ImportReport, error) {
	return f.importAll(ctx, tree, opts)
}

type fakeAccess struct {
	httpapi.Access

	issue     func(access.IssueRequest) (sallyport.Grant, error)
	revoke    func(sallyport.GrantID) (sallyport.Grant, error)
	list      func(sallyport.SkillRef) ([]sallyport.Grant, error)
	createKey func(access.KeyRequest) (access.NewKey, error)
	keys      func() ([]sallyport.Key, error)
	revokeKey func(sallyport.KeyID) error
}

func (f *fakeAccess) Issue(_ context.Context, _ sallyport.Principal, req access.IssueRequest) (sallyport.Grant, error) {
	return f.issue(req)
}

func (f *fakeAccess) Revoke(_ context.Context, _ sallyport.Principal, id sallyport.GrantID) (sallyport.Grant, error) {
	return f.revoke(id)
}

func (f *fakeAccess) List(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) ([]sallyport.Grant, error) {
	return f.list(ref)
}

func (f *fakeAccess) CreateKey(_ context.Context, _ sallyport.Principal, req access.KeyRequest) (access.NewKey, error) {
	return f.createKey(req)
}

func (f *fakeAccess) Keys(context.Context, sallyport.Principal) ([]sallyport.Key, error) {
	return f.keys()
}

func (f *fakeAccess) RevokeKey(_ context.Context, _ sallyport.Principal, id sallyport.KeyID) error {
	return f.revokeKey(id)
}

type fakeAudit struct {
	calls  func(audit.CallFilter) ([]audit.ToolCall, error)
	list   func(audit.Filter) ([]sallyport.Entry, error)
	verify func([]audit.Checkpoint) (audit.Verdict, error)
}

func (f *fakeAudit) List(_ context.Context, _ sallyport.Principal, filter audit.Filter) ([]sallyport.Entry, error) {
	return f.list(filter)
}

func (f *fakeAudit) ToolCalls(_ context.Context, _ sallyport.Principal, filter audit.CallFilter) ([]audit.ToolCall, error) {
	return f.calls(filter)
}

func (f *fakeAudit) Verify(_ context.Context, _ sallyport.Principal, outside []audit.Checkpoint) (audit.Verdict, error) {
	return f.verify(outside)
}

type fakeRuns struct {
	httpapi.Runs
	start  func(run.Request) (sallyport.Execution, error)
	waited []time.Duration

	run      func(context.Context, run.Request) (sallyport.Execution, error)
	explain  func(run.Request) (run.Explanation, error)
	get      func(sallyport.ExecutionID) (sallyport.Execution, error)
	list     func(run.ListRequest) (run.ListResult, error)
	artifact func(sallyport.ExecutionID, string) (sallyport.Artifact, []byte, error)
	cancel   func(sallyport.ExecutionID) error
}

func (f *fakeRuns) Run(ctx context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
	return f.run(ctx, req)
}

func (f *fakeRuns) Explain(_ context.Context, _ sallyport.Principal, req run.Request) (run.Explanation, error) {
	return f.explain(req)
}

func (f *fakeRuns) Start(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
	return f.start(req)
}

func (f *fakeRuns) Wait(_ context.Context, _ sallyport.Principal, id sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error) {
	f.waited = append(f.waited, patience)
	return f.get(id)
}

func (f *fakeRuns) Get(_ context.Context, _ sallyport.Principal, id sallyport.ExecutionID) (sallyport.Execution, error) {
	return f.get(id)
}

func (f *fakeRuns) List(_ context.Context, _ sallyport.Principal, req run.ListRequest) (run.ListResult, error) {
	return f.list(req)
}

func (f *fakeRuns) Artifact(_ context.Context, _ sallyport.Principal, id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error) {
	return f.artifact(id, path)
}

func (f *fakeRuns) Cancel(_ context.Context, _ sallyport.Principal, id sallyport.ExecutionID) error {
	return f.cancel(id)
}

func (*fakeRuns) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{Available: true, Layers: []sallyport.Layer{sallyport.LayerSeccomp}, Features: []sallyport.Feature{}}
}

// keys knows one key.
type keys struct{}

const secret = "spk_secret"

func (keys) Authenticate(_ context.Context, sent string) (sallyport.Principal, error) {
	if sent == secret {
		return sallyport.Principal{ID: "alice", TenantID: "acme", Scopes: sallyport.Scopes()}, nil
	}
	return sallyport.Principal{}, &sallyport.Error{Op: "test", Code: sallyport.CodeUnauthenticated}
}

// world is the real HTTP API with fakes behind it.
type world struct {
	skills  *fakeSkills
	access  *fakeAccess
	audit   *fakeAudit
	runs    *fakeRuns
	handler http.Handler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{skills: &fakeSkills{}, access: &fakeAccess{}, audit: &fakeAudit{}, runs: &fakeRuns{}}
	w.handler = httpapi.New(httpapi.Config{
		Auth: auth.New(auth.Config{Keys: keys{}}), Skills: w.skills, Access: w.access, Audit: w.audit, Runs: w.runs,
		SpoolDir: t.TempDir(), Now: now, Version: "test",
	})
	return w
}

func (w *world) client(t *testing.T) *client.Client {
	t.Helper()
	return connect(t, client.Config{Key: secret, Transport: client.InProcess(w.handler)})
}

func connect(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// transports are the ways to one handler.
func transports(t *testing.T, handler http.Handler) map[string]client.Config {
	t.Helper()
	tcp := httptest.NewServer(handler)
	t.Cleanup(tcp.Close)
	socket := filepath.Join(t.TempDir(), "s.sock")
	var plain net.ListenConfig
	listener, err := plain.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	file := httptest.NewUnstartedServer(handler)
	_ = file.Listener.Close()
	file.Listener = listener
	file.Start()
	t.Cleanup(file.Close)
	return map[string]client.Config{
		"in process":  {Key: secret, Transport: client.InProcess(handler)},
		"tcp":         {Key: secret, URL: tcp.URL},
		"socket file": {Key: secret, Transport: client.Unix(socket)},
	}
}

func now() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func (f *fakeAudit) Pruned(context.Context, sallyport.Principal) (*audit.Checkpoint, error) {
	return nil, nil
}
