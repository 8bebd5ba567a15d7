// Package run is the governed run: it resolves a request to exact bytes, asks every gate, records, takes a slot and
// calls the executor once.
//
// It owns the order of these steps (pipeline.go), the slots (slot.go), the bounding and normalising of results and
// the closing of what a crash left open. It leaves gates to package gate, execution to an Executor and SQL to
// its Ledger. Its one invariant: no process starts before its audit entry is durable, and no entry stays without an
// ending.
package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Request is one call to run a script.
type Request struct {
	Ref        sallyport.SkillRef
	RevisionID sallyport.RevisionID // empty: published, else latest
	// ScriptPath is a component's path or its id.
	ScriptPath string
	// Args is input_args exactly as received; nil when absent.
	Args json.RawMessage
	// Argv is nil when absent.
	Argv  []string
	Files []sallyport.InputFile
	// Timeout is zero when absent; else within the installation's bounds, or INVALID_ARGUMENT.
	Timeout time.Duration
	// TraceParent is the caller's W3C trace context.
	TraceParent string
	RequestID   string
	// IdempotencyKey makes the call safe to repeat for 24 hours: the same key of the same principal runs once, and every other call
	// with it waits for that run and gets its record. Empty runs each call.
	IdempotencyKey string
	// Watch is told of the record when it is open (queued) and when its script starts (running); nil is nobody. It must not block.
	Watch func(sallyport.Execution)
}

func (r Request) watch(e sallyport.Execution) {
	if r.Watch != nil {
		r.Watch(e)
	}
}

// Explanation is what Explain found: the gates in order, and which one would refuse.
type Explanation struct {
	Runnable       bool                   `json:"runnable"`
	SkillID        sallyport.SkillID      `json:"skill_id,omitempty"`
	Slug           string                 `json:"slug,omitempty"`
	RevisionID     sallyport.RevisionID   `json:"revision_id,omitempty"`
	RevisionDigest sallyport.Digest       `json:"revision_digest,omitempty"`
	ScriptPath     string                 `json:"script_path,omitempty"`
	Runtime        string                 `json:"runtime,omitempty"`
	GrantID        sallyport.GrantID      `json:"grant_id,omitempty"`
	Limits         sallyport.Limits       `json:"limits,omitzero"`
	Steps          []Step                 `json:"steps"`
	Refusal        *sallyport.PublicError `json:"refusal,omitempty"`
	// Remedy says what opens the gate that refuses, naming the command.
	Remedy string `json:"remedy,omitempty"`
	// Packages are those that the script says it needs, held against the runtime. They refuse nothing.
	Packages []sallyport.Need `json:"packages,omitempty"`
	// Warnings are sentences about what is not met.
	Warnings []string `json:"warnings,omitempty"`
}

// Step is one step of an Explanation. Result is passed, refused or not_reached.
type Step struct {
	Name    string         `json:"name"`
	Result  string         `json:"result"`
	Code    sallyport.Code `json:"code,omitempty"`
	Message string         `json:"message,omitempty"`
}

// ListRequest selects executions of the caller's tenant; zero fields select all.
type ListRequest struct {
	Ref    sallyport.SkillRef
	Status sallyport.Status
	Limit  int // 1..200, 0 means 50
	Cursor string
}

// ListResult is a page of executions, newest first, without their streams.
type ListResult struct {
	Executions []sallyport.Execution `json:"executions"`
	NextCursor string                `json:"next_cursor,omitempty"`
}

// Ledger is what this package needs of the database. Every method takes the tenant first.
type Ledger interface {
	// Open stores the execution (status queued) and its script.run entry in one durable transaction; it returns
	// after the commit is on disk. AUDIT_UNAVAILABLE.
	Open(ctx context.Context, tenant sallyport.TenantID, execution sallyport.Execution, entry sallyport.Entry) error
	// OpenOnce is Open for a call with an idempotency key, and keeps in the same transaction what the key of the execution's principal
	// stands for. taken says that it stands for something already, by the rules of Recorded; then nothing was stored.
	OpenOnce(ctx context.Context, tenant sallyport.TenantID, execution sallyport.Execution, entry sallyport.Entry, once Once) (taken bool, err error)
	// Recorded returns what a principal's idempotency key stands for, when it was recorded after since. A key whose execution is gone
	// or was not_started stands for nothing.
	Recorded(ctx context.Context, tenant sallyport.TenantID, principal sallyport.PrincipalID, key string, since time.Time) (Recorded, bool, error)
	// Start marks the execution running.
	Start(ctx context.Context, tenant sallyport.TenantID, id sallyport.ExecutionID, at time.Time) error
	// Close stores the outcome, the artifacts' content and the script.finished entry in one durable transaction. An
	// execution that is closed already stays as it is, and Close returns nil without an entry.
	Close(ctx context.Context, tenant sallyport.TenantID, execution sallyport.Execution, artifacts []sallyport.ArtifactFile, entry sallyport.Entry) error
	// Deny appends a script.denied entry.
	Deny(ctx context.Context, tenant sallyport.TenantID, entry sallyport.Entry) error
	// Unfinished lists every execution of every tenant that is queued or running.
	Unfinished(ctx context.Context) ([]sallyport.Execution, error)
	// Execution returns one execution with its streams; EXECUTION_NOT_FOUND.
	Execution(ctx context.Context, tenant sallyport.TenantID, id sallyport.ExecutionID) (sallyport.Execution, error)
	// Executions returns a page, newest first, without streams. An empty cursor is the first page.
	Executions(ctx context.Context, tenant sallyport.TenantID, filter ExecutionFilter) ([]sallyport.Execution, string, error)
	// ArtifactContent returns one artifact's bytes; ARTIFACT_NOT_FOUND.
	ArtifactContent(ctx context.Context, tenant sallyport.TenantID, id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error)
}

// ExecutionFilter selects executions.
type ExecutionFilter struct {
	SkillID sallyport.SkillID
	Status  sallyport.Status
	// PrincipalID restricts to one caller's own executions; empty means all.
	PrincipalID sallyport.PrincipalID
	Limit       int
	Cursor      string
}

// Policies gives the policy of a tenant, read anew for each run. An error refuses the run.
type Policies interface {
	Policy(ctx context.Context, tenant sallyport.TenantID) (sallyport.Policy, error)
}

// Secrets gives the values of a tenant's secrets for one run. SECRET_MISSING names those that are not set.
type Secrets interface {
	Open(ctx context.Context, tenant sallyport.TenantID, names []string) (map[string]sallyport.Secret, error)
}

// Skills resolves what a request names; package registry provides it.
type Skills interface {
	Resolve(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error)
	ResolveRevision(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, id sallyport.RevisionID) (sallyport.Revision, error)
}

// Grants finds the grants of a tenant for a skill, newest first, expired and revoked ones included.
type Grants interface {
	Grants(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID) ([]sallyport.Grant, error)
}
