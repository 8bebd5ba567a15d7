package sallyport

import "time"

// Grant is an administrator's permission for a tenant to run one script, or every script, of a skill,
// of exactly the bytes its Pin names, until ExpiresAt. Rows are never deleted: revoked and expired ones
// stay visible.
type Grant struct {
	ID       GrantID  `json:"id"`
	TenantID TenantID `json:"-"`
	SkillID  SkillID  `json:"skill_id"`
	Slug     string   `json:"slug"` // of the skill, for readers
	// ScriptPath is empty for a skill-wide (wide) grant, else the one script it covers (narrow).
	ScriptPath string `json:"script_path,omitempty"`
	// Pin is the digest of the revision the reviewer read.
	Pin        Digest      `json:"pin"`
	RevisionID RevisionID  `json:"revision_id,omitempty"`
	IssuedBy   PrincipalID `json:"issued_by"`
	IssuedAt   time.Time   `json:"issued_at"`
	ExpiresAt  *time.Time  `json:"expires_at,omitempty"`
	RevokedAt  *time.Time  `json:"revoked_at,omitempty"`
	RevokedBy  PrincipalID `json:"revoked_by,omitempty"`
}

// GrantState is derived from a grant's times.
type GrantState string

// The states of a grant.
const (
	GrantActive  GrantState = "active"
	GrantExpired GrantState = "expired"
	GrantRevoked GrantState = "revoked"
)

// State at the instant now. A grant whose ExpiresAt is exactly now is expired; revoked wins over expired.
func (g Grant) State(now time.Time) GrantState {
	switch {
	case g.RevokedAt != nil:
		return GrantRevoked
	case g.ExpiresAt != nil && !g.ExpiresAt.After(now):
		return GrantExpired
	default:
		return GrantActive
	}
}

// Covers reports whether g is about this script: narrow on its path, or wide.
func (g Grant) Covers(scriptPath string) bool {
	return g.ScriptPath == "" || g.ScriptPath == scriptPath
}
