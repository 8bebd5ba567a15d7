package sallyport

import "slices"

// Scope is one right of a [Principal].
type Scope string

// The closed set of scopes.
const (
	ScopeMemoryRead  Scope = "memory:read"  // recall, list, diff
	ScopeMemoryWrite Scope = "memory:write" // save, publish, archive, import, execute, explain
	ScopeGrantsWrite Scope = "grants:write" // issue, revoke and list grants
	ScopeAuditRead   Scope = "audit:read"   // read and verify the audit trail
	ScopeAdmin       Scope = "admin"        // keys, teams, members, roles and policy of the tenant
)

// Scopes lists every scope, in a fixed order.
func Scopes() []Scope {
	return []Scope{ScopeMemoryRead, ScopeMemoryWrite, ScopeGrantsWrite, ScopeAuditRead, ScopeAdmin}
}

// Valid reports whether s is one of [Scopes].
func (s Scope) Valid() bool { return slices.Contains(Scopes(), s) }

// Principal is the authenticated caller. It belongs to exactly one tenant. It is always passed as a
// parameter, never through a context: forgetting it must not compile. The zero value may do nothing.
type Principal struct {
	ID       PrincipalID `json:"id"`
	TenantID TenantID    `json:"tenant_id"`
	// Teams the principal is in; [DefaultTeam] is implied by the tenant and listed explicitly.
	Teams  []TeamID `json:"teams"`
	Scopes []Scope  `json:"scopes"`
	// KeyID is the API key that authenticated the caller, empty for the local operator.
	KeyID KeyID `json:"key_id,omitempty"`
	// Operator marks the owner of the data folder, who makes tenants. No credential that can be sent over a network gives it.
	Operator bool `json:"operator,omitempty"`
}

// Has reports whether p carries scope. A principal without a tenant carries none.
func (p Principal) Has(scope Scope) bool {
	return p.TenantID != "" && p.ID != "" && slices.Contains(p.Scopes, scope)
}

// InTeam reports whether p is in team.
func (p Principal) InTeam(team TeamID) bool { return team != "" && slices.Contains(p.Teams, team) }

// Require returns ACCESS_DENIED naming the missing scope when p does not carry it.
func (p Principal) Require(op string, scope Scope) error {
	if p.Has(scope) {
		return nil
	}
	return &Error{
		Op: op, Code: CodeAccessDenied,
		Message: "this operation needs the scope " + string(scope),
		Details: map[string]any{"scope": string(scope)},
	}
}

// CanSee reports whether p may look at skill: same tenant, and either p's own or in one of p's teams.
func (p Principal) CanSee(skill Skill) bool {
	if p.TenantID == "" || skill.TenantID != p.TenantID {
		return false
	}
	if skill.TeamID == "" {
		return skill.OwnerID != "" && skill.OwnerID == p.ID
	}
	return p.InTeam(skill.TeamID)
}
