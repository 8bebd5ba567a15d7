// Package access issues, revokes and lists grants, and keeps who may do what: tenants, teams, roles, policies, and the API keys that
// turn a caller into a principal.
//
// It leaves the judgement of a grant at run time to package gate and SQL to its Store. Its one invariant: what it
// stores was audited first, and is refused when it cannot be.
package access

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Config is what a Service needs. Store, Trail and Skills are required.
type Config struct {
	Store  Store
	Trail  Trail
	Skills Skills
	// Installation is what server.yaml allows, to say what a policy comes to; the zero value allows nothing.
	Installation Installation
	Logger       *slog.Logger     // nil discards
	Now          func() time.Time // nil means time.Now
}

// Trail is the audit trail as this package needs it.
type Trail interface {
	Append(ctx context.Context, entry sallyport.Entry) error
}

// Skills resolves what a grant is about; package registry provides it.
type Skills interface {
	Resolve(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error)
	ResolveRevision(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, id sallyport.RevisionID) (sallyport.Revision, error)
}

// Store is what this package needs of the database. Every method takes the tenant first, except the look-up of a
// key by its hash, which is how the tenant is learned.
type Store interface {
	Directory

	AddGrant(ctx context.Context, tenant sallyport.TenantID, grant sallyport.Grant) error
	// Grant returns one grant; GRANT_NOT_FOUND.
	Grant(ctx context.Context, tenant sallyport.TenantID, id sallyport.GrantID) (sallyport.Grant, error)
	// Grants returns the tenant's grants, newest first; an empty skill means all. Expired and revoked ones too.
	Grants(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID) ([]sallyport.Grant, error)
	// RevokeGrant sets RevokedAt and RevokedBy once; false when it was revoked already. GRANT_NOT_FOUND.
	RevokeGrant(ctx context.Context, tenant sallyport.TenantID, id sallyport.GrantID, by sallyport.PrincipalID, at time.Time) (bool, error)
	// ExpiringGrants lists the active grants of every tenant that end after now and not after until and were not noted yet, the next
	// to end first, and counts those that were noted, too.
	ExpiringGrants(ctx context.Context, now, until time.Time, limit int) ([]sallyport.Grant, int, error)
	// NoteExpiring marks a grant as noted and appends the entry, in one transaction; false when it was noted or revoked already.
	NoteExpiring(ctx context.Context, tenant sallyport.TenantID, id sallyport.GrantID, entry sallyport.Entry) (bool, error)
	// GrantRuns counts the executions under a grant.
	GrantRuns(ctx context.Context, tenant sallyport.TenantID, id sallyport.GrantID) (GrantRuns, error)
	// GrantEntries lists the entries of the trail about grants of this entity, oldest first.
	GrantEntries(ctx context.Context, tenant sallyport.TenantID, entity string) ([]sallyport.Entry, error)
	// AddKey stores a key with the SHA-256 of its secret.
	AddKey(ctx context.Context, tenant sallyport.TenantID, key sallyport.Key, secretHash []byte) error
	Keys(ctx context.Context, tenant sallyport.TenantID) ([]sallyport.Key, error)
	// RevokeKey sets RevokedAt once; false when it was revoked already. KEY_NOT_FOUND.
	RevokeKey(ctx context.Context, tenant sallyport.TenantID, id sallyport.KeyID, at time.Time, keep Keep) (bool, error)
	// KeyByHash returns the key and its stored hash for a secret's hash; KEY_NOT_FOUND.
	KeyByHash(ctx context.Context, secretHash []byte) (sallyport.Key, error)
	// TouchKey records a use, best effort.
	TouchKey(ctx context.Context, tenant sallyport.TenantID, id sallyport.KeyID, at time.Time) error
}

// Service is safe for concurrent use.
type Service struct {
	cfg Config

	mu      sync.Mutex
	touched map[sallyport.KeyID]time.Time // when this process last recorded a use of a key
	seen    map[string]time.Time          // and a visit of a principal
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Service{cfg: cfg, touched: map[sallyport.KeyID]time.Time{}, seen: map[string]time.Time{}}
}

// IssueRequest asks for a grant.
type IssueRequest struct {
	Ref sallyport.SkillRef
	// ScriptPath is empty for a skill-wide grant.
	ScriptPath string
	// RevisionID is the revision that was reviewed; empty means the published one (refused when none is).
	RevisionID sallyport.RevisionID
	// ExpectedDigest is the digest the reviewer read; it must be the revision's, else GRANT_CONFLICT, nothing is
	// written and the current digest is not revealed. Required.
	ExpectedDigest sallyport.Digest
	// ExpiresAt must lie ahead; nil never expires.
	ExpiresAt *time.Time
}

// KeyRequest asks for a key.
type KeyRequest struct {
	Name string
	// Scopes must all be the caller's own: a key mints only what its maker carries.
	Scopes []sallyport.Scope
	// Roles give further scopes, those that each has when the key is used; the caller must carry all of them, too.
	Roles     []sallyport.RoleName
	Teams     []sallyport.TeamID // empty means the default team
	ExpiresAt *time.Time
}

// NewKey is a key with its secret, shown once.
type NewKey struct {
	Key    sallyport.Key `json:"key"`
	Secret string        `json:"secret"`
}
