package sallyport

// Identifiers are distinct types so that swapping two does not compile. They are opaque to callers;
// none ever becomes a path on the host.
type (
	// TenantID names a [Tenant], the isolation boundary.
	TenantID string
	// PrincipalID names a [Principal].
	PrincipalID string
	// TeamID names a team within one tenant.
	TeamID string
	// SkillID names a [Skill].
	SkillID string
	// RevisionID names a [Revision].
	RevisionID string
	// ComponentID names a [Component].
	ComponentID string
	// GrantID names a [Grant].
	GrantID string
	// ExecutionID names an [Execution].
	ExecutionID string
	// KeyID names an API key.
	KeyID string
	// RoleName names a [Role] within one tenant.
	RoleName string
)

// DefaultTenant and DefaultTeam exist in every installation; every principal of a tenant joins its
// team DefaultTeam (design: a skill imported without a team lands there).
const (
	DefaultTenant TenantID = "default"
	DefaultTeam   TeamID   = "default"
)
