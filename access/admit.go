package access

import (
	"context"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const (
	opAdmit   = "access.admit"
	opOperate = "access.operate"
)

// seenInterval is how often it is recorded at most that a principal was here.
const seenInterval = 5 * time.Minute

// maxSeen bounds the principals whose last visit is remembered in memory.
const maxSeen = 10_000

// Reserved reports whether a principal is one of this server's own, which no account can change: the operator of the data folder and
// the caller without a key on this machine.
func Reserved(id sallyport.PrincipalID) bool { return id == "operator" || id == "loopback" }

// Admit completes a principal that its credential has proved: who may be let in, in which teams, with which scopes. The tenant must
// exist and be open, and the principal's account must not be disabled, else UNAUTHENTICATED, the same for each. Teams that p comes
// with count where the tenant has them; teams that it is a member of, and scopes of the roles of its account, come on top.
func (s *Service) Admit(ctx context.Context, p sallyport.Principal) (sallyport.Principal, error) {
	return s.admit(ctx, p, nil)
}

// admit also gives the scopes of the roles of a key.
func (s *Service) admit(ctx context.Context, p sallyport.Principal, roles []sallyport.RoleName) (sallyport.Principal, error) {
	refused := &sallyport.Error{Op: opAdmit, Code: sallyport.CodeUnauthenticated}
	if p.ID == "" || p.TenantID == "" {
		return sallyport.Principal{}, refused
	}
	standing, err := s.cfg.Store.Standing(ctx, p.TenantID, p.ID)
	if err != nil {
		return sallyport.Principal{}, err
	}
	account := standing.Account
	if standing.Tenant.ID != p.TenantID || standing.Tenant.Disabled() || account != nil && account.DisabledAt != nil {
		return sallyport.Principal{}, refused
	}
	if account != nil && !Reserved(p.ID) {
		roles = slices.Concat(roles, account.Roles)
	}
	given := sallyport.ScopesOf(roles, standing.Roles)
	p.Scopes = slices.DeleteFunc(sallyport.Scopes(), func(scope sallyport.Scope) bool {
		return !slices.Contains(p.Scopes, scope) && !slices.Contains(given, scope)
	})
	p.Teams = teamsOf(p.Teams, standing)
	p.Operator = false
	s.see(ctx, p, account)
	return p, nil
}

// teamsOf returns the default team, those of claimed that exist, and those of the membership, sorted.
func teamsOf(claimed []sallyport.TeamID, standing sallyport.Standing) []sallyport.TeamID {
	teams := append([]sallyport.TeamID{sallyport.DefaultTeam}, standing.Member...)
	for _, team := range claimed {
		if slices.Contains(standing.Teams, team) {
			teams = append(teams, team)
		}
	}
	slices.Sort(teams)
	return slices.Compact(teams)
}

// see records, best effort and now and then, that p was here.
func (s *Service) see(ctx context.Context, p sallyport.Principal, account *sallyport.Account) {
	if Reserved(p.ID) {
		return
	}
	now := s.now()
	if account != nil && account.LastSeenAt != nil && now.Sub(*account.LastSeenAt) < seenInterval {
		return
	}
	name := string(p.TenantID) + "\x00" + string(p.ID)
	s.mu.Lock()
	last, known := s.seen[name]
	due := !known || now.Sub(last) >= seenInterval
	if due {
		if len(s.seen) >= maxSeen {
			clear(s.seen)
		}
		s.seen[name] = now // before the write: many callers at once, or a failing store, cost one write
	}
	s.mu.Unlock()
	if !due {
		return
	}
	if err := s.cfg.Store.SeeAccount(ctx, p.TenantID, p.ID, now); err != nil {
		s.cfg.Logger.WarnContext(ctx, "the visit of a principal was not recorded", "principal_id", string(p.ID), "error", err)
	}
}

// Operate puts the operator of the data folder into a tenant: p with every team of it. A tenant that is disabled can be looked after,
// too. TENANT_NOT_FOUND.
func (s *Service) Operate(ctx context.Context, p sallyport.Principal, tenant sallyport.TenantID) (sallyport.Principal, error) {
	if !p.Operator {
		return sallyport.Principal{}, &sallyport.Error{Op: opOperate, Code: sallyport.CodeAccessDenied}
	}
	standing, err := s.cfg.Store.Standing(ctx, tenant, p.ID)
	if err != nil {
		return sallyport.Principal{}, err
	}
	if tenant == "" || standing.Tenant.ID != tenant {
		return sallyport.Principal{}, &sallyport.Error{Op: opOperate, Code: sallyport.CodeTenantNotFound}
	}
	p.TenantID, p.Teams = tenant, teamsOf(standing.Teams, standing)
	return p, nil
}
