package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/gate"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/run"
)

// world is one tenant with one skill, a grant for it and an executor that does as a test says.
type world struct {
	principal sallyport.Principal
	skill     sallyport.Skill
	revision  sallyport.Revision
	grants    []sallyport.Grant
	ledger    *ledger
	execute   func(context.Context, sallyport.ExecRequest) (sallyport.Result, error)
	caps      sallyport.Capabilities
	enabled   bool
	calls     []sallyport.ExecRequest
	observer  *observer
	secrets   vault

	mu sync.Mutex // guards calls and execute once a run began
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		principal: sallyport.Principal{ID: "p1", TenantID: "t1", Scopes: sallyport.Scopes(), Teams: []sallyport.TeamID{"default"}},
		skill:     sallyport.Skill{ID: "s1", TenantID: "t1", TeamID: "default", Slug: "demo", PublishedRevisionID: "r1"},
		ledger:    &ledger{executions: map[sallyport.ExecutionID]sallyport.Execution{}},
		enabled:   true,
		caps: sallyport.Capabilities{
			Available: true, Layers: []sallyport.Layer{sallyport.LayerSeccomp},
			Features: []sallyport.Feature{sallyport.FeatureArgv, sallyport.FeatureRevision, sallyport.FeatureFiles},
		},
		observer: &observer{},
	}
	w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) { return exitZero(), nil }
	w.setFiles(t, component("SKILL.md", sallyport.KindDocument, "---\n"), component("scripts/x.py", sallyport.KindScript, "print(1)"))
	w.grants = []sallyport.Grant{{ID: "g1", TenantID: "t1", SkillID: "s1", Pin: w.revision.Digest}}
	return w
}

func component(path string, kind sallyport.Kind, content string) sallyport.Component {
	c := sallyport.Component{
		ID: sallyport.ComponentID("c-" + path), Path: path, Kind: kind, Content: []byte(content), Size: int64(len(content)),
		SHA256: sallyport.DigestOf([]byte(content)).Hex(),
	}
	if kind == sallyport.KindScript {
		c.Script = &sallyport.ScriptSettings{Runtime: "python", Input: sallyport.InputStdin}
	}
	return c
}

func (w *world) setFiles(t *testing.T, components ...sallyport.Component) {
	t.Helper()
	digest, err := canonical.RevisionDigest(components)
	if err != nil {
		t.Fatal(err)
	}
	w.revision = sallyport.Revision{ID: "r1", TenantID: "t1", SkillID: "s1", Digest: digest, Components: components}
}

// setScript replaces the settings of scripts/x.py and pins the result.
func (w *world) setScript(t *testing.T, settings sallyport.ScriptSettings) {
	t.Helper()
	w.revision.Components[1].Script = &settings
	w.setFiles(t, w.revision.Components...)
	w.grants[0].Pin = w.revision.Digest
}

func (w *world) service(change ...func(*run.Config)) *run.Service {
	cfg := run.Config{
		Skills: w, Grants: w, Ledger: w.ledger, Executor: w, Observer: w.observer, Secrets: w.secrets,
		Mask: func(raw json.RawMessage) json.RawMessage { return raw },
		Gates: gate.Standard(gate.Deps{
			Unattended:   true,
			Enabled:      func(sallyport.TenantID) bool { return w.enabled },
			Interpreters: []sallyport.Interpreter{{Extension: "py", Runtime: "python", Program: "/usr/bin/python3"}},
			Secrets:      w.secrets, Executor: w, MaxArgumentBytes: 1 << 10, MaxInputBytes: 1 << 10, MaxInputFiles: 2,
			MaxScriptBytes: 1 << 10, MaxRevisionBytes: 1 << 20,
		}),
	}
	for _, f := range change {
		f(&cfg)
	}
	return run.New(cfg)
}

func request() run.Request {
	return run.Request{Ref: sallyport.SkillRef{Slug: "demo"}, ScriptPath: "scripts/x.py"}
}

func exitZero() sallyport.Result { return sallyport.Result{ExitCode: new(int)} }

// The world is the registry, the grants and the executor.

func (w *world) Resolve(_ context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	if ref.SkillID == w.skill.ID || ref.Slug == w.skill.Slug && p.TenantID == w.skill.TenantID {
		return w.skill, nil
	}
	return sallyport.Skill{}, &sallyport.Error{Op: "fake", Code: sallyport.CodeSkillNotFound}
}

func (w *world) ResolveRevision(_ context.Context, _ sallyport.Principal, _ sallyport.Skill, id sallyport.RevisionID) (sallyport.Revision, error) {
	if id != "" && id != w.revision.ID {
		return sallyport.Revision{}, &sallyport.Error{Op: "fake", Code: sallyport.CodeRevisionNotFound}
	}
	return w.revision, nil
}

func (w *world) Grants(context.Context, sallyport.TenantID, sallyport.SkillID) ([]sallyport.Grant, error) {
	return w.grants, nil
}

func (w *world) Kind() string                                        { return "fake" }
func (w *world) Capabilities(context.Context) sallyport.Capabilities { return w.caps }

func (w *world) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	w.mu.Lock()
	w.calls = append(w.calls, req)
	execute := w.execute
	w.mu.Unlock()
	if !w.ledger.isOpen(req.ExecutionID) {
		return sallyport.Result{}, errors.New("called before the record was open")
	}
	return execute(ctx, req)
}

// becomes replaces what the executor does while a deaf call may still run.
func (w *world) becomes(execute func(context.Context, sallyport.ExecRequest) (sallyport.Result, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.execute = execute
}

func (w *world) called() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}

// ledger keeps records in memory.
type ledger struct {
	openErr, closeErr, denyErr error
	beforeOnce                 func()

	mu         sync.Mutex // guards the fields below
	executions map[sallyport.ExecutionID]sallyport.Execution
	artifacts  []sallyport.ArtifactFile
	entries    []sallyport.Entry
	keys       map[string]kept // by principal and idempotency key
}

type kept struct {
	run.Recorded

	at time.Time
}

func (l *ledger) add(e sallyport.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
}

func (l *ledger) isOpen(id sallyport.ExecutionID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.executions[id]
	return ok && !e.Status.Terminal()
}

func (l *ledger) actions() []sallyport.Action {
	l.mu.Lock()
	defer l.mu.Unlock()
	var actions []sallyport.Action
	for _, e := range l.entries {
		actions = append(actions, e.Action)
	}
	return actions
}

func (l *ledger) only(t *testing.T) sallyport.Execution {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.executions) != 1 {
		t.Fatalf("executions: got %d, want 1", len(l.executions))
	}
	for _, e := range l.executions {
		return e
	}
	panic("unreachable")
}

func (l *ledger) Open(_ context.Context, tenant sallyport.TenantID, e sallyport.Execution, entry sallyport.Entry) error {
	if l.openErr != nil {
		return l.openErr
	}
	l.add(entry)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.executions[e.ID] = e
	return nil
}

func (l *ledger) OpenOnce(ctx context.Context, tenant sallyport.TenantID, e sallyport.Execution, entry sallyport.Entry, once run.Once) (bool, error) {
	if l.beforeOnce != nil {
		l.beforeOnce()
	}
	if _, taken, err := l.Recorded(ctx, tenant, e.PrincipalID, once.Key, once.Since); taken || err != nil {
		return taken, err
	}
	if err := l.Open(ctx, tenant, e, entry); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil {
		l.keys = map[string]kept{}
	}
	l.keys[string(e.PrincipalID)+" "+once.Key] = kept{run.Recorded{Request: once.Request, ExecutionID: e.ID}, e.CreatedAt}
	return false, nil
}

func (l *ledger) Recorded(_ context.Context, _ sallyport.TenantID, principal sallyport.PrincipalID, key string, since time.Time) (run.Recorded, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, found := l.keys[string(principal)+" "+key]
	return k.Recorded, found && k.at.After(since) && l.executions[k.ExecutionID].Status != sallyport.StatusNotStarted, nil
}

func (l *ledger) Start(_ context.Context, _ sallyport.TenantID, id sallyport.ExecutionID, at time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.executions[id]; e.Status == sallyport.StatusQueued {
		e.Status, e.StartedAt = sallyport.StatusRunning, &at
		l.executions[id] = e
	}
	return nil
}

func (l *ledger) Close(ctx context.Context, _ sallyport.TenantID, e sallyport.Execution, artifacts []sallyport.ArtifactFile, entry sallyport.Entry) error {
	l.mu.Lock()
	broken := l.closeErr
	l.mu.Unlock()
	if broken != nil {
		return broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.add(entry)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.executions[e.ID].Status.Terminal() {
		return errors.New("closed twice")
	}
	l.executions[e.ID], l.artifacts = e, artifacts
	return nil
}

func (l *ledger) Deny(_ context.Context, _ sallyport.TenantID, entry sallyport.Entry) error {
	if l.denyErr != nil {
		return l.denyErr
	}
	l.add(entry)
	return nil
}

func (l *ledger) Unfinished(context.Context) ([]sallyport.Execution, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []sallyport.Execution
	for _, e := range l.executions {
		if !e.Status.Terminal() {
			open = append(open, e)
		}
	}
	return open, nil
}

func (l *ledger) Execution(_ context.Context, tenant sallyport.TenantID, id sallyport.ExecutionID) (sallyport.Execution, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.executions[id]
	if !ok || e.TenantID != tenant {
		return e, &sallyport.Error{Op: "fake", Code: sallyport.CodeExecutionNotFound}
	}
	return e, nil
}

func (l *ledger) Executions(context.Context, sallyport.TenantID, run.ExecutionFilter) ([]sallyport.Execution, string, error) {
	return nil, "", nil
}

func (l *ledger) ArtifactContent(context.Context, sallyport.TenantID, sallyport.ExecutionID, string) (sallyport.Artifact, []byte, error) {
	return sallyport.Artifact{}, nil, &sallyport.Error{Op: "fake", Code: sallyport.CodeArtifactNotFound}
}

// observer counts.
type observer struct {
	mu                              sync.Mutex
	refused                         []string
	finished, unrecorded, abandoned int
}

func (o *observer) Span(ctx context.Context, _, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}
func (o *observer) TraceParent(context.Context) string { return "" }
func (o *observer) SandboxStarted(context.Context, time.Time, time.Time, sallyport.Isolation) {
}
func (o *observer) Resolved(context.Context, *sallyport.Candidate) {}
func (o *observer) Slots(int)                                      {}
func (o *observer) Refused(_ context.Context, name string, code sallyport.Code) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refused = append(o.refused, name+" "+string(code))
}

func (o *observer) DenyUnrecorded(context.Context)   { o.mu.Lock(); defer o.mu.Unlock(); o.unrecorded++ }
func (o *observer) FinishUnrecorded(context.Context) {}
func (o *observer) Finished(context.Context, sallyport.Execution) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished++
}
func (o *observer) Abandoned(d int) { o.mu.Lock(); defer o.mu.Unlock(); o.abandoned += d }
