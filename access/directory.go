package access

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Directory is the part of the Store that knows who may do what. Every method takes the tenant first, and sees no other's rows.
type Directory interface {
	// AddTenant stores a tenant with its default team; NAME_TAKEN.
	AddTenant(ctx context.Context, tenant sallyport.TenantID, record sallyport.Tenant) error
	// AllTenants lists all tenants, by id.
	AllTenants(ctx context.Context) ([]sallyport.Tenant, error)
	// Tenant returns one; TENANT_NOT_FOUND.
	Tenant(ctx context.Context, tenant sallyport.TenantID) (sallyport.Tenant, error)
	// DisableTenant shuts a tenant (at non-nil) or opens it; TENANT_NOT_FOUND.
	DisableTenant(ctx context.Context, tenant sallyport.TenantID, at *time.Time) error

	// TenantPolicy returns the policy and its version, which counts its changes; TENANT_NOT_FOUND.
	TenantPolicy(ctx context.Context, tenant sallyport.TenantID) (sallyport.Policy, int64, error)
	// SetPolicy replaces the policy when its version is expected, and returns the new one; POLICY_CONFLICT, TENANT_NOT_FOUND.
	SetPolicy(ctx context.Context, tenant sallyport.TenantID, expected int64, policy sallyport.Policy) (int64, error)

	// Teams lists all teams of the tenant, by id.
	Teams(ctx context.Context, tenant sallyport.TenantID) ([]sallyport.Team, error)
	// AddTeam stores a team; NAME_TAKEN, TENANT_NOT_FOUND.
	AddTeam(ctx context.Context, tenant sallyport.TenantID, team sallyport.Team) error
	// RemoveTeam removes a team and its members; TEAM_NOT_FOUND, and IN_USE while it owns skills or is on a key that is not
	// revoked.
	RemoveTeam(ctx context.Context, tenant sallyport.TenantID, id sallyport.TeamID) error
	// Members lists the members of a team, by principal; TEAM_NOT_FOUND.
	Members(ctx context.Context, tenant sallyport.TenantID, team sallyport.TeamID) ([]sallyport.Member, error)
	// AddMember returns false for one that is a member already; TEAM_NOT_FOUND.
	AddMember(ctx context.Context, tenant sallyport.TenantID, member sallyport.Member) (bool, error)
	// RemoveMember returns false for one that is none; TEAM_NOT_FOUND.
	RemoveMember(ctx context.Context, tenant sallyport.TenantID, team sallyport.TeamID, principal sallyport.PrincipalID) (bool, error)

	// Roles lists the tenant's own roles, by name.
	Roles(ctx context.Context, tenant sallyport.TenantID) ([]sallyport.Role, error)
	// PutRole makes or replaces a role.
	PutRole(ctx context.Context, tenant sallyport.TenantID, role sallyport.Role, keep Keep) error
	// RemoveRole removes a role; ROLE_NOT_FOUND, and IN_USE while an account or a key that is not revoked has it.
	RemoveRole(ctx context.Context, tenant sallyport.TenantID, name sallyport.RoleName) error

	// Accounts lists the accounts of the tenant, by id.
	Accounts(ctx context.Context, tenant sallyport.TenantID) ([]sallyport.Account, error)
	// Account returns one; PRINCIPAL_NOT_FOUND.
	Account(ctx context.Context, tenant sallyport.TenantID, id sallyport.PrincipalID) (sallyport.Account, error)
	// PutAccount makes an account, or replaces the roles of one and whether it is disabled.
	PutAccount(ctx context.Context, tenant sallyport.TenantID, account sallyport.Account, keep Keep) error
	// SeeAccount records that the principal was here, and makes an account of one that has none.
	SeeAccount(ctx context.Context, tenant sallyport.TenantID, id sallyport.PrincipalID, at time.Time) error

	// Standing reads all that decides about a principal in one piece. An unknown tenant is no error.
	Standing(ctx context.Context, tenant sallyport.TenantID, id sallyport.PrincipalID) (sallyport.Standing, error)
	// Roster reads all that decides who administers the tenant in one piece.
	Roster(ctx context.Context, tenant sallyport.TenantID) (Roster, error)
	// Publishers lists who ever published the revision.
	Publishers(ctx context.Context, tenant sallyport.TenantID, id sallyport.RevisionID) ([]sallyport.PrincipalID, error)
}

// Roster is everything that decides who administers a tenant.
type Roster struct {
	Keys     []sallyport.Key
	Accounts []sallyport.Account
	Roles    []sallyport.Role // the tenant's own
}

// Keep judges the roster that a change would leave. The store calls it in the transaction of the change, perhaps more than once;
// its error undoes the change and is what the caller gets. Nil allows everything.
type Keep func(after Roster) error
