package sallyport

import (
	"slices"
	"time"
)

// Tenant is the isolation boundary: it owns skills, grants, principals and a trail of its own, and sees nothing of another's.
// Its id is plain ([ValidSlug]) and never used again.
type Tenant struct {
	ID        TenantID    `json:"id"`
	Name      string      `json:"name"`
	CreatedBy PrincipalID `json:"created_by"`
	CreatedAt time.Time   `json:"created_at"`
	// DisabledAt is set while nobody of the tenant is let in and none of its scripts may begin.
	DisabledAt *time.Time `json:"disabled_at,omitempty"`
}

// Disabled reports whether the tenant is shut.
func (t Tenant) Disabled() bool { return t.DisabledAt != nil }

// Team groups principals of one tenant; the skills of a team are theirs. Every principal is in [DefaultTeam].
type Team struct {
	TenantID  TenantID    `json:"-"`
	ID        TeamID      `json:"id"`
	Name      string      `json:"name"`
	CreatedBy PrincipalID `json:"created_by"`
	CreatedAt time.Time   `json:"created_at"`
}

// Member is a principal in a team.
type Member struct {
	TenantID    TenantID    `json:"-"`
	TeamID      TeamID      `json:"team_id"`
	PrincipalID PrincipalID `json:"principal_id"`
	AddedBy     PrincipalID `json:"added_by"`
	AddedAt     time.Time   `json:"added_at"`
}

// Role is a named set of scopes. The built-in ones are the same everywhere; a tenant adds its own.
type Role struct {
	TenantID    TenantID `json:"-"`
	Name        RoleName `json:"name"`
	Description string   `json:"description"`
	Scopes      []Scope  `json:"scopes"`
	// BuiltIn roles cannot be changed or removed.
	BuiltIn   bool        `json:"built_in"`
	UpdatedBy PrincipalID `json:"updated_by,omitempty"`
	UpdatedAt *time.Time  `json:"updated_at,omitempty"`
}

// The built-in roles.
const (
	RoleReader   RoleName = "reader"
	RoleAuthor   RoleName = "author"
	RoleReviewer RoleName = "reviewer"
	RoleAuditor  RoleName = "auditor"
	RoleAdmin    RoleName = "admin"
)

// BuiltInRoles lists the roles that every tenant has, in a fixed order.
func BuiltInRoles() []Role {
	return []Role{
		{Name: RoleReader, Description: "finds and reads skills", Scopes: []Scope{ScopeMemoryRead}, BuiltIn: true},
		{
			Name: RoleAuthor, Description: "writes and publishes skills, and runs what was granted",
			Scopes: []Scope{ScopeMemoryRead, ScopeMemoryWrite}, BuiltIn: true,
		},
		{Name: RoleReviewer, Description: "reads skills and grants them", Scopes: []Scope{ScopeMemoryRead, ScopeGrantsWrite}, BuiltIn: true},
		{Name: RoleAuditor, Description: "reads and verifies the audit trail", Scopes: []Scope{ScopeMemoryRead, ScopeAuditRead}, BuiltIn: true},
		{Name: RoleAdmin, Description: "carries every scope", Scopes: Scopes(), BuiltIn: true},
	}
}

// BuiltInRole returns one of [BuiltInRoles].
func BuiltInRole(name RoleName) (Role, bool) {
	for _, role := range BuiltInRoles() {
		if role.Name == name {
			return role, true
		}
	}
	return Role{}, false
}

// Account is what a tenant knows of one of its principals: that it was seen, or was registered, and the roles that were given
// to it here. A principal without an account may still have scopes of its key or token.
type Account struct {
	TenantID TenantID    `json:"-"`
	ID       PrincipalID `json:"id"`
	// Roles give scopes besides those of the principal's key or token.
	Roles []RoleName `json:"roles"`
	// DisabledAt is set while the principal is refused, whatever it shows.
	DisabledAt   *time.Time  `json:"disabled_at,omitempty"`
	RegisteredBy PrincipalID `json:"registered_by,omitempty"` // empty for one that was only seen
	CreatedAt    time.Time   `json:"created_at"`
	LastSeenAt   *time.Time  `json:"last_seen_at,omitempty"` // at most some minutes old; nil before its first call
}

// Standing is everything that decides whether a principal is let in, and what it may do besides what its key or token says.
// It is read in one piece.
type Standing struct {
	// Tenant has an empty ID when there is no such tenant.
	Tenant  Tenant
	Account *Account // nil when the tenant knows nothing of the principal
	Teams   []TeamID // all teams of the tenant
	Member  []TeamID // those that the principal is a member of
	Roles   []Role   // the tenant's own
}

// ScopesOf returns the scopes of the named roles, each once and in the fixed order. A name that means nothing gives nothing.
func ScopesOf(names []RoleName, own []Role) []Scope {
	has := map[Scope]bool{}
	for _, name := range names {
		role, found := BuiltInRole(name)
		if !found {
			at := slices.IndexFunc(own, func(r Role) bool { return r.Name == name })
			if at < 0 {
				continue
			}
			role = own[at]
		}
		for _, scope := range role.Scopes {
			has[scope] = true
		}
	}
	return slices.DeleteFunc(Scopes(), func(scope Scope) bool { return !has[scope] })
}
