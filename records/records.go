// Package records removes what has been kept long enough: executions, artifacts, tool calls, drafts, deleted skills.
//
// It owns the policy and the order in which it is applied. It leaves SQL to its Store, and the skills themselves to package
// registry. Its one invariant: a removal is on the audit trail before the first row of it goes, and what cannot be recorded is
// not removed.
package records

import (
	"context"
	"log/slog"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// The periods of a policy that says nothing.
const (
	DefaultExecutions = 30 * 24 * time.Hour
	DefaultArtifacts  = 7 * 24 * time.Hour
	DefaultToolCalls  = 30 * 24 * time.Hour
	DefaultDeleted    = 30 * 24 * time.Hour
	// DefaultKeepDrafts is how many of the newest drafts of a skill stay, however old they are.
	DefaultKeepDrafts = 5
)

// Policy says how long things are kept. Zero keeps them.
type Policy struct {
	// Executions with everything they left. Artifacts alone; the record keeps their names and digests.
	Executions, Artifacts time.Duration
	ToolCalls             time.Duration
	// Drafts that nothing names and that are not among the KeepDrafts newest of their skill.
	Drafts     time.Duration
	KeepDrafts int
	// Deleted skills, from their deletion to their purge.
	Deleted time.Duration
}

// DefaultPolicy is what an installation does that says nothing. Drafts are kept.
func DefaultPolicy() Policy {
	return Policy{
		Executions: DefaultExecutions, Artifacts: DefaultArtifacts, ToolCalls: DefaultToolCalls, Deleted: DefaultDeleted,
		KeepDrafts: DefaultKeepDrafts,
	}
}

// keyLife is how long an idempotency key stands for its execution, which therefore stays: package run promises it.
const keyLife = 24 * time.Hour

// Bounds are the instants before which things go; a zero one keeps them.
type Bounds struct {
	Executions, Artifacts, ToolCalls, Drafts time.Time
	KeepDrafts                               int
	// Keys is when an idempotency key was made that still counts: its execution stays.
	Keys time.Time
	// At is now: when an artifact expired.
	At time.Time
}

// bounds applies the policy at an instant.
func (p Policy) bounds(now time.Time) Bounds {
	before := func(keep time.Duration) time.Time {
		if keep <= 0 {
			return time.Time{}
		}
		return now.Add(-keep)
	}
	return Bounds{
		Executions: before(p.Executions), Artifacts: before(p.Artifacts), ToolCalls: before(p.ToolCalls), Drafts: before(p.Drafts),
		KeepDrafts: p.KeepDrafts, Keys: now.Add(-keyLife), At: now,
	}
}

// Counts is what goes. Artifacts counts those whose content goes, with an execution or alone.
type Counts struct {
	Executions    int64 `json:"executions"`
	Artifacts     int64 `json:"artifacts"`
	ArtifactBytes int64 `json:"artifact_bytes"`
	ToolCalls     int64 `json:"tool_calls"`
	Drafts        int64 `json:"drafts"`
}

func (c Counts) plus(more Counts) Counts {
	return Counts{
		c.Executions + more.Executions, c.Artifacts + more.Artifacts, c.ArtifactBytes + more.ArtifactBytes,
		c.ToolCalls + more.ToolCalls, c.Drafts + more.Drafts,
	}
}

// Store is what this package needs of the database.
type Store interface {
	// Tenants lists the tenants that have anything on record.
	Tenants(ctx context.Context) ([]sallyport.TenantID, error)
	// CountOld says what PurgeOld would remove.
	CountOld(ctx context.Context, tenant sallyport.TenantID, bounds Bounds) (Counts, error)
	// PurgeOld removes a bounded part of what is beyond the bounds, in one transaction that is short enough for others to wait
	// for; more says that something is left. It never removes an execution that is queued or running, one that an idempotency
	// key made after bounds.Keys stands for, or a draft that is the latest, was published, or is named by a grant or an
	// execution. Content goes with its last holder.
	PurgeOld(ctx context.Context, tenant sallyport.TenantID, bounds Bounds) (removed Counts, more bool, err error)
	// PurgeUnheld removes a bounded number of contents that nothing holds; more says that there may be others.
	PurgeUnheld(ctx context.Context) (removed int64, more bool, err error)
	// Compact gives a bounded part of the free space back to the file system; more says that some is left.
	Compact(ctx context.Context) (more bool, err error)
	// DeletedSkills lists the skills that were deleted before an instant and not purged since.
	DeletedSkills(ctx context.Context, tenant sallyport.TenantID, before time.Time) ([]sallyport.SkillID, error)
}

// Trail is the audit trail as this package needs it.
type Trail interface {
	Append(ctx context.Context, entry sallyport.Entry) error
}

// Skills purges a skill; package registry provides it.
type Skills interface {
	PurgeDeleted(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID, before time.Time) error
}

// Config is what a Service needs. Store, Trail and Skills are required.
type Config struct {
	Store  Store
	Trail  Trail
	Skills Skills
	Policy Policy
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Service is safe for concurrent use.
type Service struct{ cfg Config }

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Service{cfg}
}
