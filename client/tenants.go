package client

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

// TenantList holds all tenants.
type TenantList struct {
	Tenants []sallyport.Tenant `json:"tenants"`
}

// put encodes body.
func put(path string, body any) (request, error) {
	req, err := post(path, nil, body)
	req.method = http.MethodPut
	return req, err
}

// at is the path of one thing that is named by an id; INVALID_ARGUMENT for an empty one, which would name the list.
func at[T ~string](prefix string, id T) (string, error) {
	if id == "" || id == "." || id == ".." {
		return "", invalid("name what is meant by its id")
	}
	return prefix + segment(id), nil
}

// Tenants lists all tenants; for the operator of the data folder.
func (c *Client) Tenants(ctx context.Context) (sallyport.Envelope[TenantList], error) {
	return call[TenantList](ctx, c, get("/v1/tenants", nil))
}

// Tenant returns one tenant; for the operator of the data folder.
func (c *Client) Tenant(ctx context.Context, id sallyport.TenantID) (sallyport.Envelope[sallyport.Tenant], error) {
	return one[sallyport.Tenant](ctx, c, http.MethodGet, "/v1/tenants", id, "")
}

// one calls a route of one thing, without a body.
func one[T any, ID ~string](ctx context.Context, c *Client, method, prefix string, id ID, suffix string) (sallyport.Envelope[T], error) {
	path, err := at(prefix, id)
	if err != nil {
		return sallyport.Envelope[T]{}, err
	}
	return call[T](ctx, c, request{method: method, path: path + suffix})
}

type named[ID ~string] struct {
	ID   ID     `json:"id"`
	Name string `json:"name,omitempty"`
}

// sendBody sends what was encoded.
func sendBody[T any](ctx context.Context, c *Client, req request, err error) (sallyport.Envelope[T], error) {
	if err != nil {
		return sallyport.Envelope[T]{}, err
	}
	return call[T](ctx, c, req)
}

// CreateTenant makes a tenant; for the operator of the data folder. An empty name is the id.
func (c *Client) CreateTenant(ctx context.Context, id sallyport.TenantID, name string) (sallyport.Envelope[sallyport.Tenant], error) {
	req, err := post("/v1/tenants", nil, named[sallyport.TenantID]{id, name})
	return sendBody[sallyport.Tenant](ctx, c, req, err)
}

// DisableTenant shuts a tenant, or opens it again; for the operator of the data folder.
func (c *Client) DisableTenant(ctx context.Context, id sallyport.TenantID, disable bool) (sallyport.Envelope[sallyport.Tenant], error) {
	verb := "/enable"
	if disable {
		verb = "/disable"
	}
	return one[sallyport.Tenant](ctx, c, http.MethodPost, "/v1/tenants", id, verb)
}

// TeamList holds the tenant's teams.
type TeamList struct {
	Teams []sallyport.Team `json:"teams"`
}

// Removal says what is gone.
type Removal struct {
	ID      string `json:"id"`
	Removed bool   `json:"removed"`
}

// Teams lists the tenant's teams.
func (c *Client) Teams(ctx context.Context) (sallyport.Envelope[TeamList], error) {
	return call[TeamList](ctx, c, get("/v1/teams", nil))
}

// Team returns one team.
func (c *Client) Team(ctx context.Context, id sallyport.TeamID) (sallyport.Envelope[sallyport.Team], error) {
	return one[sallyport.Team](ctx, c, http.MethodGet, "/v1/teams", id, "")
}

// CreateTeam makes a team. An empty name is the id.
func (c *Client) CreateTeam(ctx context.Context, id sallyport.TeamID, name string) (sallyport.Envelope[sallyport.Team], error) {
	req, err := post("/v1/teams", nil, named[sallyport.TeamID]{id, name})
	return sendBody[sallyport.Team](ctx, c, req, err)
}

// RemoveTeam removes a team without skills, and its memberships.
func (c *Client) RemoveTeam(ctx context.Context, id sallyport.TeamID) (sallyport.Envelope[Removal], error) {
	return one[Removal](ctx, c, http.MethodDelete, "/v1/teams", id, "")
}

// MemberList holds the members of a team.
type MemberList struct {
	Members []sallyport.Member `json:"members"`
}

// Members lists the members of a team.
func (c *Client) Members(ctx context.Context, team sallyport.TeamID) (sallyport.Envelope[MemberList], error) {
	return one[MemberList](ctx, c, http.MethodGet, "/v1/teams", team, "/members")
}

// AddMember puts a principal into a team.
func (c *Client) AddMember(ctx context.Context, team sallyport.TeamID, principal sallyport.PrincipalID) (sallyport.Envelope[sallyport.Member], error) {
	path, err := at("/v1/teams", team)
	if err != nil {
		return sallyport.Envelope[sallyport.Member]{}, err
	}
	req, err := post(path+"/members", nil, map[string]any{"principal_id": principal})
	return sendBody[sallyport.Member](ctx, c, req, err)
}

// RemoveMember takes a principal out of a team.
func (c *Client) RemoveMember(ctx context.Context, team sallyport.TeamID, principal sallyport.PrincipalID) (sallyport.Envelope[Removal], error) {
	path, err := at("/v1/teams", team)
	if err != nil {
		return sallyport.Envelope[Removal]{}, err
	}
	return one[Removal](ctx, c, http.MethodDelete, path+"/members", principal, "")
}

// RoleList holds the built-in roles and the tenant's own.
type RoleList struct {
	Roles []sallyport.Role `json:"roles"`
}

// Roles lists the roles.
func (c *Client) Roles(ctx context.Context) (sallyport.Envelope[RoleList], error) {
	return call[RoleList](ctx, c, get("/v1/roles", nil))
}

// Role returns one role.
func (c *Client) Role(ctx context.Context, name sallyport.RoleName) (sallyport.Envelope[sallyport.Role], error) {
	return one[sallyport.Role](ctx, c, http.MethodGet, "/v1/roles", name, "")
}

// SetRole makes or replaces a role of the tenant's own.
func (c *Client) SetRole(ctx context.Context, role sallyport.Role) (sallyport.Envelope[sallyport.Role], error) {
	path, err := at("/v1/roles", role.Name)
	if err != nil {
		return sallyport.Envelope[sallyport.Role]{}, err
	}
	scopes := role.Scopes
	if scopes == nil {
		scopes = []sallyport.Scope{}
	}
	req, err := put(path, map[string]any{"description": role.Description, "scopes": scopes})
	return sendBody[sallyport.Role](ctx, c, req, err)
}

// RemoveRole removes a role that nobody has.
func (c *Client) RemoveRole(ctx context.Context, name sallyport.RoleName) (sallyport.Envelope[Removal], error) {
	return one[Removal](ctx, c, http.MethodDelete, "/v1/roles", name, "")
}

// AccountList holds the principals that the tenant has seen or registered.
type AccountList struct {
	Principals []sallyport.Account `json:"principals"`
}

// Principals lists them.
func (c *Client) Principals(ctx context.Context) (sallyport.Envelope[AccountList], error) {
	return call[AccountList](ctx, c, get("/v1/principals", nil))
}

// Principal returns one of them.
func (c *Client) Principal(ctx context.Context, id sallyport.PrincipalID) (sallyport.Envelope[sallyport.Account], error) {
	return one[sallyport.Account](ctx, c, http.MethodGet, "/v1/principals", id, "")
}

// SetPrincipal registers a principal or changes one; what is nil stays.
func (c *Client) SetPrincipal(ctx context.Context, id sallyport.PrincipalID, req access.AccountRequest) (sallyport.Envelope[sallyport.Account], error) {
	path, err := at("/v1/principals", id)
	if err != nil {
		return sallyport.Envelope[sallyport.Account]{}, err
	}
	body := map[string]any{}
	if req.Roles != nil {
		body["roles"] = append([]sallyport.RoleName{}, *req.Roles...)
	}
	if req.Disabled != nil {
		body["disabled"] = *req.Disabled
	}
	r, err := put(path, body)
	return sendBody[sallyport.Account](ctx, c, r, err)
}

// Policy returns the tenant's policy and what it comes to.
func (c *Client) Policy(ctx context.Context) (sallyport.Envelope[access.PolicyView], error) {
	return call[access.PolicyView](ctx, c, get("/v1/policy", nil))
}

// SetPolicy replaces the tenant's policy while it is at the expected version, else POLICY_CONFLICT.
func (c *Client) SetPolicy(ctx context.Context, expected int64, policy json.RawMessage) (sallyport.Envelope[access.PolicyView], error) {
	req, err := put("/v1/policy", map[string]any{"expected_version": expected, "policy": policy})
	return sendBody[access.PolicyView](ctx, c, req, err)
}
