package httpapi_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/secret"
)

// Fakes are structs with function fields; a call to an unset one fails the test by name.

func unset(t *testing.T, name string) error {
	t.Helper()
	t.Errorf("the handler called %s, which this test does not expect", name)
	return &sallyport.Error{Op: name, Code: sallyport.CodeInternal}
}

type fakeAuth func(r *http.Request) (sallyport.Principal, error)

func (f fakeAuth) Principal(r *http.Request) (sallyport.Principal, error) { return f(r) }

type fakeSkills struct {
	t         *testing.T
	list      func(registry.ListRequest) (registry.ListResult, error)
	show      func(sallyport.SkillRef) (registry.SkillView, error)
	revisions func(sallyport.SkillRef) ([]sallyport.Revision, error)
	revision  func(sallyport.SkillRef, sallyport.RevisionID) (sallyport.Revision, error)
	component func(sallyport.SkillRef, sallyport.RevisionID, string) (sallyport.Component, error)
	save      func(registry.SaveRequest) (registry.SaveResult, error)
	publish   func(sallyport.SkillRef, sallyport.RevisionID) (registry.SkillView, error)
	archive   func(sallyport.SkillRef) (sallyport.Skill, error)
	restore   func(sallyport.SkillRef) (sallyport.Skill, error)
	remove    func(sallyport.SkillRef, sallyport.RevisionID) (sallyport.Revision, error)
	erase     func(sallyport.SkillRef) (sallyport.Skill, error)
	purge     func(ref sallyport.SkillRef, dryRun bool) (registry.PurgeReport, error)
	override  func(ref sallyport.SkillRef, id sallyport.RevisionID, reason string) (registry.SkillView, error)
	findings  func(sallyport.SkillRef, registry.FindingsRequest) (registry.Findings, error)
	export    func(sallyport.SkillRef, sallyport.RevisionID, registry.ArchiveFormat) (registry.Export, error)
	diff      func(ref sallyport.SkillRef, from, to sallyport.RevisionID) (registry.RevisionDiff, error)
	importURL func(url string, opts registry.ImportOptions) (registry.ImportReport, registry.Source, error)
	importAll func(context.Context, registry.Tree, registry.ImportOptions) (registry.ImportReport, error)
}

func (f *fakeSkills) List(_ context.Context, _ sallyport.Principal, req registry.ListRequest) (registry.ListResult, error) {
	if f.list == nil {
		return registry.ListResult{}, unset(f.t, "Skills.List")
	}
	return f.list(req)
}

func (f *fakeSkills) Show(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) (registry.SkillView, error) {
	if f.show == nil {
		return registry.SkillView{}, unset(f.t, "Skills.Show")
	}
	return f.show(ref)
}

func (f *fakeSkills) Revisions(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) ([]sallyport.Revision, error) {
	if f.revisions == nil {
		return nil, unset(f.t, "Skills.Revisions")
	}
	return f.revisions(ref)
}

func (f *fakeSkills) Revision(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
	if f.revision == nil {
		return sallyport.Revision{}, unset(f.t, "Skills.Revision")
	}
	return f.revision(ref, id)
}

func (f *fakeSkills) Component(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, revision sallyport.RevisionID, path string) (sallyport.Component, error) {
	if f.component == nil {
		return sallyport.Component{}, unset(f.t, "Skills.Component")
	}
	return f.component(ref, revision, path)
}

func (f *fakeSkills) Save(_ context.Context, _ sallyport.Principal, req registry.SaveRequest) (registry.SaveResult, error) {
	if f.save == nil {
		return registry.SaveResult{}, unset(f.t, "Skills.Save")
	}
	return f.save(req)
}

func (f *fakeSkills) Publish(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (registry.SkillView, error) {
	if f.publish == nil {
		return registry.SkillView{}, unset(f.t, "Skills.Publish")
	}
	return f.publish(ref, id)
}

func (f *fakeSkills) Archive(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	if f.archive == nil {
		return sallyport.Skill{}, unset(f.t, "Skills.Archive")
	}
	return f.archive(ref)
}

func (f *fakeSkills) Restore(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	if f.restore == nil {
		return sallyport.Skill{}, unset(f.t, "Skills.Restore")
	}
	return f.restore(ref)
}

func (f *fakeSkills) DeleteRevision(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
	if f.remove == nil {
		return sallyport.Revision{}, unset(f.t, "Skills.DeleteRevision")
	}
	return f.remove(ref, id)
}

func (f *fakeSkills) Delete(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	if f.erase == nil {
		return sallyport.Skill{}, unset(f.t, "Skills.Delete")
	}
	return f.erase(ref)
}

func (f *fakeSkills) Purge(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, dryRun bool) (registry.PurgeReport, error) {
	if f.purge == nil {
		return registry.PurgeReport{}, unset(f.t, "Skills.Purge")
	}
	return f.purge(ref, dryRun)
}

func (f *fakeSkills) PublishOverride(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, reason string) (registry.SkillView, error) {
	if f.override == nil {
		return registry.SkillView{}, unset(f.t, "Skills.PublishOverride")
	}
	return f.override(ref, id, reason)
}

func (f *fakeSkills) Findings(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, req registry.FindingsRequest) (registry.Findings, error) {
	if f.findings == nil {
		return registry.Findings{}, unset(f.t, "Skills.Findings")
	}
	return f.findings(ref, req)
}

func (f *fakeSkills) Export(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, format registry.ArchiveFormat) (registry.Export, error) {
	if f.export == nil {
		return registry.Export{}, unset(f.t, "Skills.Export")
	}
	return f.export(ref, id, format)
}

func (f *fakeSkills) Diff(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, from, to sallyport.RevisionID) (registry.RevisionDiff, error) {
	if f.diff == nil {
		return registry.RevisionDiff{}, unset(f.t, "Skills.Diff")
	}
	return f.diff(ref, from, to)
}

func (f *fakeSkills) ImportURL(_ context.Context, _ sallyport.Principal, url string, opts registry.ImportOptions) (registry.ImportReport, registry.Source, error) {
	if f.importURL == nil {
		return registry.ImportReport{}, registry.Source{}, unset(f.t, "Skills.ImportURL")
	}
	return f.importURL(url, opts)
}

func (f *fakeSkills) Import(ctx context.Context, _ sallyport.Principal, tree registry.Tree, opts registry.ImportOptions) (registry.ImportReport, error) {
	if f.importAll == nil {
		return registry.ImportReport{}, unset(f.t, "Skills.Import")
	}
	return f.importAll(ctx, tree, opts)
}

type fakeAccess struct {
	t         *testing.T
	issue     func(access.IssueRequest) (sallyport.Grant, error)
	revoke    func(sallyport.GrantID) (sallyport.Grant, error)
	list      func(sallyport.SkillRef) ([]sallyport.Grant, error)
	createKey func(access.KeyRequest) (access.NewKey, error)
	keys      func() ([]sallyport.Key, error)
	revokeKey func(sallyport.KeyID) error
}

func (f *fakeAccess) Issue(_ context.Context, _ sallyport.Principal, req access.IssueRequest) (sallyport.Grant, error) {
	if f.issue == nil {
		return sallyport.Grant{}, unset(f.t, "Access.Issue")
	}
	return f.issue(req)
}

func (f *fakeAccess) Revoke(_ context.Context, _ sallyport.Principal, id sallyport.GrantID) (sallyport.Grant, error) {
	if f.revoke == nil {
		return sallyport.Grant{}, unset(f.t, "Access.Revoke")
	}
	return f.revoke(id)
}

func (f *fakeAccess) List(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) ([]sallyport.Grant, error) {
	if f.list == nil {
		return nil, unset(f.t, "Access.List")
	}
	return f.list(ref)
}

func (f *fakeAccess) CreateKey(_ context.Context, _ sallyport.Principal, req access.KeyRequest) (access.NewKey, error) {
	if f.createKey == nil {
		return access.NewKey{}, unset(f.t, "Access.CreateKey")
	}
	return f.createKey(req)
}

func (f *fakeAccess) Keys(context.Context, sallyport.Principal) ([]sallyport.Key, error) {
	if f.keys == nil {
		return nil, unset(f.t, "Access.Keys")
	}
	return f.keys()
}

func (f *fakeAccess) RevokeKey(_ context.Context, _ sallyport.Principal, id sallyport.KeyID) error {
	if f.revokeKey == nil {
		return unset(f.t, "Access.RevokeKey")
	}
	return f.revokeKey(id)
}

type fakeSecrets struct {
	t      *testing.T
	set    func(name string, value sallyport.Secret) (sallyport.SecretInfo, error)
	list   func() ([]sallyport.SecretInfo, error)
	remove func(name string) error
	rotate func() (secret.Rotation, error)
}

func (f *fakeSecrets) Set(_ context.Context, _ sallyport.Principal, name string, value sallyport.Secret) (sallyport.SecretInfo, error) {
	if f.set == nil {
		return sallyport.SecretInfo{}, unset(f.t, "Secrets.Set")
	}
	return f.set(name, value)
}

func (f *fakeSecrets) List(context.Context, sallyport.Principal) ([]sallyport.SecretInfo, error) {
	if f.list == nil {
		return nil, unset(f.t, "Secrets.List")
	}
	return f.list()
}

func (f *fakeSecrets) Remove(_ context.Context, _ sallyport.Principal, name string) error {
	if f.remove == nil {
		return unset(f.t, "Secrets.Remove")
	}
	return f.remove(name)
}

func (f *fakeSecrets) RotateKey(context.Context, sallyport.Principal) (secret.Rotation, error) {
	if f.rotate == nil {
		return secret.Rotation{}, unset(f.t, "Secrets.RotateKey")
	}
	return f.rotate()
}

type fakeAudit struct {
	t      *testing.T
	list   func(audit.Filter) ([]sallyport.Entry, error)
	calls  func(audit.CallFilter) ([]audit.ToolCall, error)
	verify func([]audit.Checkpoint) (audit.Verdict, error)
	pruned *audit.Checkpoint
}

func (f *fakeAudit) Pruned(context.Context, sallyport.Principal) (*audit.Checkpoint, error) {
	return f.pruned, nil
}

func (f *fakeAudit) List(_ context.Context, _ sallyport.Principal, filter audit.Filter) ([]sallyport.Entry, error) {
	if f.list == nil {
		return nil, unset(f.t, "Audit.List")
	}
	return f.list(filter)
}

func (f *fakeAudit) Verify(_ context.Context, _ sallyport.Principal, outside []audit.Checkpoint) (audit.Verdict, error) {
	if f.verify == nil {
		return audit.Verdict{}, unset(f.t, "Audit.Verify")
	}
	return f.verify(outside)
}

func (f *fakeAudit) ToolCalls(_ context.Context, _ sallyport.Principal, filter audit.CallFilter) ([]audit.ToolCall, error) {
	if f.calls == nil {
		return nil, unset(f.t, "Audit.ToolCalls")
	}
	return f.calls(filter)
}

type fakeRecords struct {
	t     *testing.T
	purge func(records.PurgeRequest) (records.PurgeResult, error)
}

func (f *fakeRecords) Purge(_ context.Context, _ sallyport.Principal, req records.PurgeRequest) (records.PurgeResult, error) {
	if f.purge == nil {
		return records.PurgeResult{}, unset(f.t, "Records.Purge")
	}
	return f.purge(req)
}

type fakeRuns struct {
	t            *testing.T
	run          func(context.Context, sallyport.Principal, run.Request) (sallyport.Execution, error)
	explain      func(run.Request) (run.Explanation, error)
	confirms     func() ([]sallyport.Confirmation, error)
	decide       func(sallyport.ConfirmationID, bool) (sallyport.Confirmation, error)
	start        func(run.Request) (sallyport.Execution, error)
	wait         func(sallyport.ExecutionID, time.Duration) (sallyport.Execution, error)
	list         func(run.ListRequest) (run.ListResult, error)
	artifact     func(sallyport.ExecutionID, string) (sallyport.Artifact, []byte, error)
	cancel       func(sallyport.ExecutionID) error
	capabilities func() sallyport.Capabilities
}

func (f *fakeRuns) Run(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error) {
	if f.run == nil {
		return sallyport.Execution{}, unset(f.t, "Runs.Run")
	}
	return f.run(ctx, p, req)
}

func (f *fakeRuns) Explain(_ context.Context, _ sallyport.Principal, req run.Request) (run.Explanation, error) {
	if f.explain == nil {
		return run.Explanation{}, unset(f.t, "Runs.Explain")
	}
	return f.explain(req)
}

func (f *fakeRuns) Confirmations(context.Context, sallyport.Principal) ([]sallyport.Confirmation, error) {
	if f.confirms == nil {
		return nil, unset(f.t, "Runs.Confirmations")
	}
	return f.confirms()
}

func (f *fakeRuns) Decide(_ context.Context, _ sallyport.Principal, id sallyport.ConfirmationID, yes bool) (sallyport.Confirmation, error) {
	if f.decide == nil {
		return sallyport.Confirmation{}, unset(f.t, "Runs.Decide")
	}
	return f.decide(id, yes)
}

func (f *fakeRuns) Start(_ context.Context, _ sallyport.Principal, req run.Request) (sallyport.Execution, error) {
	if f.start == nil {
		return sallyport.Execution{}, unset(f.t, "Runs.Start")
	}
	return f.start(req)
}

func (f *fakeRuns) Wait(_ context.Context, _ sallyport.Principal, id sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error) {
	if f.wait == nil {
		return sallyport.Execution{}, unset(f.t, "Runs.Wait")
	}
	return f.wait(id, patience)
}

func (f *fakeRuns) List(_ context.Context, _ sallyport.Principal, req run.ListRequest) (run.ListResult, error) {
	if f.list == nil {
		return run.ListResult{}, unset(f.t, "Runs.List")
	}
	return f.list(req)
}

func (f *fakeRuns) Artifact(_ context.Context, _ sallyport.Principal, id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error) {
	if f.artifact == nil {
		return sallyport.Artifact{}, nil, unset(f.t, "Runs.Artifact")
	}
	return f.artifact(id, path)
}

func (f *fakeRuns) Cancel(_ context.Context, _ sallyport.Principal, id sallyport.ExecutionID) error {
	if f.cancel == nil {
		return unset(f.t, "Runs.Cancel")
	}
	return f.cancel(id)
}

func (f *fakeRuns) Capabilities(context.Context) sallyport.Capabilities {
	if f.capabilities == nil {
		_ = unset(f.t, "Runs.Capabilities")
		return sallyport.Capabilities{}
	}
	return f.capabilities()
}
