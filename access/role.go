package access

import (
	"context"
	"slices"

	"github.com/sallyport-dev/sallyport"
)

const (
	opRoles    = "access.roles"
	opAccounts = "access.principals"
)

// maxRoles bounds the roles of one principal or key.
const maxRoles = 20

// Roles lists the built-in roles and then the tenant's own. Needs admin.
func (s *Service) Roles(ctx context.Context, p sallyport.Principal) ([]sallyport.Role, error) {
	if err := p.Require(opRoles, sallyport.ScopeAdmin); err != nil {
		return nil, err
	}
	own, err := s.cfg.Store.Roles(ctx, p.TenantID)
	return append(sallyport.BuiltInRoles(), own...), err
}

// Role returns one role. Needs admin; ROLE_NOT_FOUND.
func (s *Service) Role(ctx context.Context, p sallyport.Principal, name sallyport.RoleName) (sallyport.Role, error) {
	roles, err := s.Roles(ctx, p)
	if err != nil {
		return sallyport.Role{}, err
	}
	at := slices.IndexFunc(roles, func(r sallyport.Role) bool { return r.Name == name })
	if at < 0 {
		return sallyport.Role{}, &sallyport.Error{Op: opRoles, Code: sallyport.CodeRoleNotFound}
	}
	return roles[at], nil
}

// SetRole makes a role of the tenant's own or replaces one, for everybody who has it, from their next call on. It is audited before it
// is stored. Needs admin, and every scope that the role has or had: nobody hands out more than they carry. LAST_ADMIN when the
// tenant would lose its last administrator.
func (s *Service) SetRole(ctx context.Context, p sallyport.Principal, role sallyport.Role) (sallyport.Role, error) {
	if err := p.Require(opRoles, sallyport.ScopeAdmin); err != nil {
		return sallyport.Role{}, err
	}
	if err := plainName(opRoles, "role", string(role.Name)); err != nil {
		return sallyport.Role{}, err
	}
	if _, builtIn := sallyport.BuiltInRole(role.Name); builtIn {
		return sallyport.Role{}, sallyport.Errorf(opRoles, sallyport.CodeNameTaken, "%s is built in and the same everywhere; give the role another name", role.Name)
	}
	description, err := title(opRoles, role.Description, string(role.Name))
	if err != nil {
		return sallyport.Role{}, err
	}
	scopes, err := carried(opRoles, p, role.Scopes, "a role")
	if err != nil {
		return sallyport.Role{}, err
	}
	now := s.now()
	roster, keep, err := s.guard(ctx, opRoles, p.TenantID, now)
	if err != nil {
		return sallyport.Role{}, err
	}
	var before any
	at := slices.IndexFunc(roster.Roles, func(r sallyport.Role) bool { return r.Name == role.Name })
	if at >= 0 {
		before = roster.Roles[at]
	}
	role = sallyport.Role{TenantID: p.TenantID, Name: role.Name, Description: description, Scopes: scopes, UpdatedBy: p.ID, UpdatedAt: &now}
	after := roster
	after.Roles = replaced(roster.Roles, at, role)
	if err := keep(after); err != nil {
		return sallyport.Role{}, err
	}
	if err := s.record(ctx, p, now, sallyport.ActionRoleSet, string(role.Name), change{before, role}); err != nil {
		return sallyport.Role{}, err
	}
	if err := s.cfg.Store.PutRole(ctx, p.TenantID, role, keep); err != nil {
		s.unstored(ctx, sallyport.ActionRoleSet, string(role.Name), err)
		return sallyport.Role{}, err
	}
	return role, nil
}

// replaced returns list with value at the place, or behind the last when there is none.
func replaced[T any](list []T, at int, value T) []T {
	list = slices.Clone(list)
	if at < 0 {
		return append(list, value)
	}
	list[at] = value
	return list
}

// RemoveRole removes a role that nobody has and audits that before it is stored. Needs admin; ROLE_NOT_FOUND, IN_USE.
func (s *Service) RemoveRole(ctx context.Context, p sallyport.Principal, name sallyport.RoleName) error {
	role, err := s.Role(ctx, p, name)
	if err != nil {
		return err
	}
	if role.BuiltIn {
		return sallyport.Errorf(opRoles, sallyport.CodeInUse, "%s is built in, so it stays", name)
	}
	if err := s.record(ctx, p, s.now(), sallyport.ActionRoleRemove, string(name), change{role, nil}); err != nil {
		return err
	}
	if err := s.cfg.Store.RemoveRole(ctx, p.TenantID, name); err != nil {
		s.unstored(ctx, sallyport.ActionRoleRemove, string(name), err)
		return err
	}
	return nil
}

// carried returns the wanted scopes, each once and in the fixed order, when all of them are p's own.
func carried(op string, p sallyport.Principal, wanted []sallyport.Scope, what string) ([]sallyport.Scope, error) {
	for _, scope := range wanted {
		if !scope.Valid() {
			return nil, sallyport.Errorf(op, sallyport.CodeInvalidArgument, "%.40q is no scope; the scopes are %s", scope, joinScopes(sallyport.Scopes()))
		}
		if !p.Has(scope) {
			return nil, sallyport.Errorf(op, sallyport.CodeAccessDenied, "%s can have only the scopes of its maker, and %s is not one of them", what, scope)
		}
	}
	return slices.DeleteFunc(sallyport.Scopes(), func(scope sallyport.Scope) bool { return !slices.Contains(wanted, scope) }), nil
}

// carriedRoles returns the wanted roles, each once and sorted, when they exist and all their scopes are p's own.
func (s *Service) carriedRoles(ctx context.Context, op string, p sallyport.Principal, wanted []sallyport.RoleName, what string) ([]sallyport.RoleName, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	if len(wanted) > maxRoles {
		return nil, sallyport.Errorf(op, sallyport.CodeInvalidArgument, "%s has at most %d roles", what, maxRoles)
	}
	roles, err := s.Roles(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, name := range wanted {
		at := slices.IndexFunc(roles, func(r sallyport.Role) bool { return r.Name == name })
		if at < 0 {
			return nil, sallyport.Errorf(op, sallyport.CodeRoleNotFound, "there is no role %.64q; see: sallyport role list", name)
		}
		if _, err := carried(op, p, roles[at].Scopes, what); err != nil {
			return nil, err
		}
	}
	names := slices.Clone(wanted)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Accounts lists the principals that the tenant has seen or registered. Needs admin.
func (s *Service) Accounts(ctx context.Context, p sallyport.Principal) ([]sallyport.Account, error) {
	if err := p.Require(opAccounts, sallyport.ScopeAdmin); err != nil {
		return nil, err
	}
	return s.cfg.Store.Accounts(ctx, p.TenantID)
}

// Account returns one of them. Needs admin; PRINCIPAL_NOT_FOUND.
func (s *Service) Account(ctx context.Context, p sallyport.Principal, id sallyport.PrincipalID) (sallyport.Account, error) {
	if err := p.Require(opAccounts, sallyport.ScopeAdmin); err != nil {
		return sallyport.Account{}, err
	}
	return s.cfg.Store.Account(ctx, p.TenantID, id)
}

// AccountRequest says what a principal is to be. What is nil stays.
type AccountRequest struct {
	// Roles replace those that the principal was given. The caller must carry every scope of them.
	Roles *[]sallyport.RoleName
	// Disabled refuses the principal from its next call on, whatever it shows.
	Disabled *bool
}

// SetAccount registers a principal, or changes one, and audits that before it is stored. Needs admin. LAST_ADMIN when the tenant would
// lose its last administrator.
func (s *Service) SetAccount(ctx context.Context, p sallyport.Principal, id sallyport.PrincipalID, req AccountRequest) (sallyport.Account, error) {
	if err := p.Require(opAccounts, sallyport.ScopeAdmin); err != nil {
		return sallyport.Account{}, err
	}
	if err := plainPrincipal(opAccounts, id); err != nil {
		return sallyport.Account{}, err
	}
	now := s.now()
	roster, keep, err := s.guard(ctx, opAccounts, p.TenantID, now)
	if err != nil {
		return sallyport.Account{}, err
	}
	account, before := sallyport.Account{TenantID: p.TenantID, ID: id, Roles: []sallyport.RoleName{}, CreatedAt: now}, any(nil)
	at := slices.IndexFunc(roster.Accounts, func(a sallyport.Account) bool { return a.ID == id })
	if at >= 0 {
		account, before = roster.Accounts[at], roster.Accounts[at]
	}
	account.RegisteredBy = p.ID
	if req.Roles != nil {
		if account.Roles, err = s.carriedRoles(ctx, opAccounts, p, *req.Roles, "a principal"); err != nil {
			return sallyport.Account{}, err
		}
		if account.Roles == nil {
			account.Roles = []sallyport.RoleName{}
		}
	}
	switch {
	case req.Disabled == nil:
	case !*req.Disabled:
		account.DisabledAt = nil
	case account.DisabledAt == nil:
		account.DisabledAt = &now
	}
	after := roster
	after.Accounts = replaced(roster.Accounts, at, account)
	if err := keep(after); err != nil {
		return sallyport.Account{}, err
	}
	if err := s.record(ctx, p, now, sallyport.ActionPrincipalSet, string(id), change{before, account}); err != nil {
		return sallyport.Account{}, err
	}
	if err := s.cfg.Store.PutAccount(ctx, p.TenantID, account, keep); err != nil {
		s.unstored(ctx, sallyport.ActionPrincipalSet, string(id), err)
		return sallyport.Account{}, err
	}
	return account, nil
}
