package access

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

const (
	opCreateTenant  = "access.create_tenant"
	opTenants       = "access.tenants"
	opDisableTenant = "access.disable_tenant"
)

// operator refuses everybody but the operator of the data folder, the same whether what was asked for exists.
func operator(op string, p sallyport.Principal) error {
	if p.Operator && p.Has(sallyport.ScopeAdmin) {
		return nil
	}
	return sallyport.Errorf(op, sallyport.CodeAccessDenied, "only the operator of the data folder looks after tenants: sallyport --data DIR tenant")
}

// change is the Detail of an administrative entry.
type change struct {
	Before any `json:"before"`
	After  any `json:"after"`
}

// plainName refuses an id that is not plain: what looks or compares like another could be taken for it.
func plainName(op, what, id string) error {
	if sallyport.ValidSlug(id) {
		return nil
	}
	return sallyport.Errorf(op, sallyport.CodeInvalidArgument,
		"the id of a %s is 1 to %d of a-z, 0-9 and single hyphens between them", what, sallyport.SlugMaxLength)
}

// title checks a name for people; an empty one is the id.
func title(op, name, id string) (string, error) {
	if name == "" {
		return id, nil
	}
	if len(name) > maxKeyName || !utf8.ValidString(name) || name != strings.TrimSpace(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", sallyport.Errorf(op, sallyport.CodeInvalidArgument,
			"a name is at most %d bytes of printable text without blanks around it", maxKeyName)
	}
	return name, nil
}

// CreateTenant makes a tenant with its default team. Only the operator may; NAME_TAKEN. It is audited in the trail of the new tenant
// before it is stored.
func (s *Service) CreateTenant(ctx context.Context, p sallyport.Principal, id sallyport.TenantID, name string) (sallyport.Tenant, error) {
	if err := operator(opCreateTenant, p); err != nil {
		return sallyport.Tenant{}, err
	}
	return s.createTenant(ctx, p.ID, id, name)
}

func (s *Service) createTenant(ctx context.Context, by sallyport.PrincipalID, id sallyport.TenantID, name string) (sallyport.Tenant, error) {
	if err := plainName(opCreateTenant, "tenant", string(id)); err != nil {
		return sallyport.Tenant{}, err
	}
	name, err := title(opCreateTenant, name, string(id))
	if err != nil {
		return sallyport.Tenant{}, err
	}
	taken := sallyport.Errorf(opCreateTenant, sallyport.CodeNameTaken, "there is a tenant %s already", id)
	switch _, err := s.cfg.Store.Tenant(ctx, id); sallyport.CodeOf(err) {
	case "":
		return sallyport.Tenant{}, taken
	case sallyport.CodeTenantNotFound:
	default:
		return sallyport.Tenant{}, err
	}
	now := s.now()
	tenant := sallyport.Tenant{ID: id, Name: name, CreatedBy: by, CreatedAt: now}
	author := sallyport.Principal{ID: by, TenantID: id}
	if err := s.record(ctx, author, now, sallyport.ActionTenantCreate, string(id), change{nil, tenant}); err != nil {
		return sallyport.Tenant{}, err
	}
	if err := s.cfg.Store.AddTenant(ctx, id, tenant); err != nil {
		if sallyport.CodeOf(err) == sallyport.CodeNameTaken {
			return sallyport.Tenant{}, taken
		}
		s.unstored(ctx, sallyport.ActionTenantCreate, string(id), err)
		return sallyport.Tenant{}, err
	}
	return tenant, nil
}

// unstored logs that the trail says more than what happened.
func (s *Service) unstored(ctx context.Context, action sallyport.Action, entity string, err error) {
	s.cfg.Logger.ErrorContext(ctx, "a change was audited and then not stored", "action", string(action), "entity", entity, "error", err)
}

// EnsureTenant makes the tenant unless it is there, for an issuer of tokens whose configuration says so; by names the issuer.
func (s *Service) EnsureTenant(ctx context.Context, id sallyport.TenantID, by string) error {
	switch _, err := s.cfg.Store.Tenant(ctx, id); sallyport.CodeOf(err) {
	case sallyport.CodeTenantNotFound:
	default:
		return err
	}
	_, err := s.createTenant(ctx, sallyport.PrincipalID(by), id, "")
	if sallyport.CodeOf(err) == sallyport.CodeNameTaken {
		return nil // another caller was faster
	}
	return err
}

// Tenants lists all tenants, by id. Only the operator may.
func (s *Service) Tenants(ctx context.Context, p sallyport.Principal) ([]sallyport.Tenant, error) {
	if err := operator(opTenants, p); err != nil {
		return nil, err
	}
	return s.cfg.Store.AllTenants(ctx)
}

// Tenant returns one tenant. Only the operator may; TENANT_NOT_FOUND.
func (s *Service) Tenant(ctx context.Context, p sallyport.Principal, id sallyport.TenantID) (sallyport.Tenant, error) {
	if err := operator(opTenants, p); err != nil {
		return sallyport.Tenant{}, err
	}
	return s.cfg.Store.Tenant(ctx, id)
}

// DisableTenant shuts a tenant, or opens it again: its keys and tokens are refused from now on, and no script of it begins. Runs that
// are under way end by themselves. Only the operator may; TENANT_NOT_FOUND. Doing it twice changes nothing.
func (s *Service) DisableTenant(ctx context.Context, p sallyport.Principal, id sallyport.TenantID, disable bool) (sallyport.Tenant, error) {
	if err := operator(opDisableTenant, p); err != nil {
		return sallyport.Tenant{}, err
	}
	before, err := s.cfg.Store.Tenant(ctx, id)
	if err != nil || before.Disabled() == disable {
		return before, err
	}
	now := s.now()
	after, action := before, sallyport.ActionTenantEnable
	after.DisabledAt = nil
	if disable {
		after.DisabledAt, action = &now, sallyport.ActionTenantDisable
	}
	author := sallyport.Principal{ID: p.ID, TenantID: id}
	if err := s.record(ctx, author, now, action, string(id), change{before, after}); err != nil {
		return sallyport.Tenant{}, err
	}
	if err := s.cfg.Store.DisableTenant(ctx, id, after.DisabledAt); err != nil {
		s.unstored(ctx, action, string(id), err)
		return sallyport.Tenant{}, err
	}
	return after, nil
}

// Policy is what narrows the runs of a tenant, read anew for each. A tenant that is absent or disabled is ACCESS_DENIED: none of its
// scripts begins.
func (s *Service) Policy(ctx context.Context, tenant sallyport.TenantID) (sallyport.Policy, error) {
	standing, err := s.cfg.Store.Tenant(ctx, tenant)
	switch {
	case sallyport.CodeOf(err) == sallyport.CodeTenantNotFound:
		return sallyport.Policy{}, &sallyport.Error{Op: opPolicy, Code: sallyport.CodeAccessDenied}
	case err != nil:
		return sallyport.Policy{}, err
	case standing.Disabled():
		return sallyport.Policy{}, sallyport.Errorf(opPolicy, sallyport.CodeAccessDenied, "the tenant is disabled; the operator enables it again")
	}
	policy, _, err := s.cfg.Store.TenantPolicy(ctx, tenant)
	return policy, err
}

// now is the time that is stored: UTC and whole microseconds, which every database keeps.
func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }
