package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/secret"
)

// Authenticator says who sent a request; package auth provides it. UNAUTHENTICATED or ACCESS_DENIED.
type Authenticator interface {
	Principal(r *http.Request) (sallyport.Principal, error)
}

// Skills keeps skills and revisions; registry.Service provides it and checks every scope.
type Skills interface {
	List(ctx context.Context, p sallyport.Principal, req registry.ListRequest) (registry.ListResult, error)
	Show(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (registry.SkillView, error)
	Revisions(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) ([]sallyport.Revision, error)
	Revision(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error)
	Component(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, revision sallyport.RevisionID, pathOrID string) (sallyport.Component, error)
	Save(ctx context.Context, p sallyport.Principal, req registry.SaveRequest) (registry.SaveResult, error)
	Publish(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (registry.SkillView, error)
	Archive(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error)
	Restore(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error)
	Delete(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error)
	Purge(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, dryRun bool) (registry.PurgeReport, error)
	DeleteRevision(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error)
	PublishOverride(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, reason string) (registry.SkillView, error)
	Findings(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, req registry.FindingsRequest) (registry.Findings, error)
	Export(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, format registry.ArchiveFormat) (registry.Export, error)
	Diff(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, from, to sallyport.RevisionID) (registry.RevisionDiff, error)
	ImportURL(ctx context.Context, p sallyport.Principal, url string, opts registry.ImportOptions) (registry.ImportReport, registry.Source, error)
	Import(ctx context.Context, p sallyport.Principal, tree registry.Tree, opts registry.ImportOptions) (registry.ImportReport, error)
}

// Access keeps grants and keys; access.Service provides it and checks every scope.
type Access interface {
	Issue(ctx context.Context, p sallyport.Principal, req access.IssueRequest) (sallyport.Grant, error)
	Revoke(ctx context.Context, p sallyport.Principal, id sallyport.GrantID) (sallyport.Grant, error)
	List(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) ([]sallyport.Grant, error)
	CreateKey(ctx context.Context, p sallyport.Principal, req access.KeyRequest) (access.NewKey, error)
	Keys(ctx context.Context, p sallyport.Principal) ([]sallyport.Key, error)
	RevokeKey(ctx context.Context, p sallyport.Principal, id sallyport.KeyID) error
}

// Secrets keeps the secrets of tenants; secret.Service provides it and checks every scope.
type Secrets interface {
	Set(ctx context.Context, p sallyport.Principal, name string, value sallyport.Secret) (sallyport.SecretInfo, error)
	List(ctx context.Context, p sallyport.Principal) ([]sallyport.SecretInfo, error)
	Remove(ctx context.Context, p sallyport.Principal, name string) error
	RotateKey(ctx context.Context, p sallyport.Principal) (secret.Rotation, error)
}

// Reviews tells what there is to know before and after a grant; access.Service provides it and checks every scope.
type Reviews interface {
	ReviewBasis(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (access.Basis, error)
	Coverage(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision) (access.Coverage, error)
	History(ctx context.Context, p sallyport.Principal, id sallyport.GrantID) (access.GrantHistory, error)
}

// Directory keeps tenants, teams, roles, principals and policies; access.Service provides it and checks who may what.
type Directory interface {
	Tenants(ctx context.Context, p sallyport.Principal) ([]sallyport.Tenant, error)
	Tenant(ctx context.Context, p sallyport.Principal, id sallyport.TenantID) (sallyport.Tenant, error)
	CreateTenant(ctx context.Context, p sallyport.Principal, id sallyport.TenantID, name string) (sallyport.Tenant, error)
	DisableTenant(ctx context.Context, p sallyport.Principal, id sallyport.TenantID, disable bool) (sallyport.Tenant, error)
	Teams(ctx context.Context, p sallyport.Principal) ([]sallyport.Team, error)
	Team(ctx context.Context, p sallyport.Principal, id sallyport.TeamID) (sallyport.Team, error)
	CreateTeam(ctx context.Context, p sallyport.Principal, id sallyport.TeamID, name string) (sallyport.Team, error)
	RemoveTeam(ctx context.Context, p sallyport.Principal, id sallyport.TeamID) error
	Members(ctx context.Context, p sallyport.Principal, team sallyport.TeamID) ([]sallyport.Member, error)
	AddMember(ctx context.Context, p sallyport.Principal, team sallyport.TeamID, principal sallyport.PrincipalID) (sallyport.Member, error)
	RemoveMember(ctx context.Context, p sallyport.Principal, team sallyport.TeamID, principal sallyport.PrincipalID) error
	Roles(ctx context.Context, p sallyport.Principal) ([]sallyport.Role, error)
	Role(ctx context.Context, p sallyport.Principal, name sallyport.RoleName) (sallyport.Role, error)
	SetRole(ctx context.Context, p sallyport.Principal, role sallyport.Role) (sallyport.Role, error)
	RemoveRole(ctx context.Context, p sallyport.Principal, name sallyport.RoleName) error
	Accounts(ctx context.Context, p sallyport.Principal) ([]sallyport.Account, error)
	Account(ctx context.Context, p sallyport.Principal, id sallyport.PrincipalID) (sallyport.Account, error)
	SetAccount(ctx context.Context, p sallyport.Principal, id sallyport.PrincipalID, req access.AccountRequest) (sallyport.Account, error)
	ShowPolicy(ctx context.Context, p sallyport.Principal) (access.PolicyView, error)
	SetPolicy(ctx context.Context, p sallyport.Principal, expected int64, policy sallyport.Policy) (access.PolicyView, error)
}

// Audit reads the trail; audit.Service provides it and checks every scope.
type Audit interface {
	List(ctx context.Context, p sallyport.Principal, filter audit.Filter) ([]sallyport.Entry, error)
	Verify(ctx context.Context, p sallyport.Principal, outside []audit.Checkpoint) (audit.Verdict, error)
	Pruned(ctx context.Context, p sallyport.Principal) (*audit.Checkpoint, error)
	ToolCalls(ctx context.Context, p sallyport.Principal, filter audit.CallFilter) ([]audit.ToolCall, error)
}

// Backup takes a copy of the installation, with its keys or without, and returns what writes it; that is called once.
type Backup func(ctx context.Context, keys bool) (write func(ctx context.Context, w io.Writer) error, err error)

// Records removes what is old; records.Service provides it and checks every scope.
type Records interface {
	Purge(ctx context.Context, p sallyport.Principal, req records.PurgeRequest) (records.PurgeResult, error)
}

// Runs carries out scripts; run.Service provides it and checks every scope.
type Runs interface {
	Run(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error)
	Explain(ctx context.Context, p sallyport.Principal, req run.Request) (run.Explanation, error)
	Start(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error)
	Wait(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error)
	List(ctx context.Context, p sallyport.Principal, req run.ListRequest) (run.ListResult, error)
	Artifact(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error)
	Cancel(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID) error
	Confirmations(ctx context.Context, p sallyport.Principal) ([]sallyport.Confirmation, error)
	Decide(ctx context.Context, p sallyport.Principal, id sallyport.ConfirmationID, yes bool) (sallyport.Confirmation, error)
	Capabilities(ctx context.Context) sallyport.Capabilities
}
