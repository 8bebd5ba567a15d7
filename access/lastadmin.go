package access

import (
	"context"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// forever is the end of what has none.
var forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// administered says until when the roster has an administrator: a key that is active, or a principal that was here at least once,
// with the scope admin and an account that is not disabled. Zero when it has none now. An administrator whose scope is in its token
// alone does not count: that is for its issuer to give and to take.
func (r Roster) administered(now time.Time) time.Time {
	var until time.Time
	disabled := map[sallyport.PrincipalID]bool{}
	roles := map[sallyport.PrincipalID][]sallyport.RoleName{}
	for _, account := range r.Accounts {
		disabled[account.ID], roles[account.ID] = account.DisabledAt != nil, account.Roles
		keyless := !slices.ContainsFunc(r.Keys, func(k sallyport.Key) bool { return k.PrincipalID == account.ID })
		if keyless && account.LastSeenAt != nil && account.DisabledAt == nil && r.gives(account.Roles) {
			until = forever
		}
	}
	for _, key := range r.Keys {
		if !key.Active(now) || disabled[key.PrincipalID] {
			continue
		}
		if !slices.Contains(key.Scopes, sallyport.ScopeAdmin) && !r.gives(key.Roles) && !r.gives(roles[key.PrincipalID]) {
			continue
		}
		end := forever
		if key.ExpiresAt != nil {
			end = *key.ExpiresAt
		}
		if end.After(until) {
			until = end
		}
	}
	return until
}

func (r Roster) gives(roles []sallyport.RoleName) bool {
	return slices.Contains(sallyport.ScopesOf(roles, r.Roles), sallyport.ScopeAdmin)
}

// guard returns the Keep of a change: the tenant stays administered for at least as long as it is now, so that nobody can take the
// last administrator away by leaving one that ends soon.
func (s *Service) guard(ctx context.Context, op string, tenant sallyport.TenantID, now time.Time) (Roster, Keep, error) {
	before, err := s.cfg.Store.Roster(ctx, tenant)
	if err != nil {
		return Roster{}, nil, err
	}
	until := before.administered(now)
	return before, func(after Roster) error {
		if !after.administered(now).Before(until) {
			return nil
		}
		return sallyport.Errorf(op, sallyport.CodeLastAdmin,
			"no other administrator of the tenant lasts as long; make one first, such as: sallyport key create --name NAME --role admin")
	}, nil
}
