package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

func directoryTests() []test {
	return []test{
		{"the default tenant is there", defaultTenant},
		{"tenants", tenantRecords},
		{"policy compares and swaps", policySwaps},
		{"teams and members", teamsAndMembers},
		{"a team in use stays", teamInUse},
		{"roles", roleRecords},
		{"accounts", accountRecords},
		{"standing", standingReads},
		{"a change that is not kept is undone", notKept},
		{"of two last administrators one stays", twoAdmins},
		{"publishers", publishersAreKept},
	}
}

// found makes the suite's two tenants.
func found(t *trial, b Backend) {
	t.Helper()
	for _, id := range []sallyport.TenantID{tenant, other} {
		must(t, b.AddTenant(t.Context(), id, sallyport.Tenant{ID: id, Name: "name of " + string(id), CreatedBy: owner, CreatedAt: day(0)}))
	}
}

func defaultTenant(t *trial, b Backend) {
	got, err := b.Tenant(t.Context(), sallyport.DefaultTenant)
	must(t, err)
	same(t, "id", got.ID, sallyport.DefaultTenant)
	teams, err := b.Teams(t.Context(), sallyport.DefaultTenant)
	must(t, err)
	same(t, "teams", []any{len(teams), teams[0].ID}, []any{1, sallyport.DefaultTeam})
}

func tenantRecords(t *trial, b Backend) {
	ctx := t.Context()
	found(t, b)
	want := sallyport.Tenant{ID: tenant, Name: "name of acme", CreatedBy: owner, CreatedAt: day(0)}
	got, err := b.Tenant(ctx, tenant)
	must(t, err)
	same(t, "tenant", got, want)
	wantCode(t, b.AddTenant(ctx, tenant, want), sallyport.CodeNameTaken)
	wantCode(t, b.AddTenant(ctx, "", want), sallyport.CodeInternal)
	all, err := b.AllTenants(ctx)
	must(t, err)
	ids := []sallyport.TenantID{}
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	same(t, "all", ids, []sallyport.TenantID{tenant, sallyport.DefaultTenant, other})
	must(t, b.DisableTenant(ctx, tenant, pointer(day(3))))
	got, err = b.Tenant(ctx, tenant)
	must(t, err)
	want.DisabledAt = pointer(day(3))
	same(t, "disabled", got, want)
	must(t, b.DisableTenant(ctx, tenant, nil))
	got, err = b.Tenant(ctx, tenant)
	must(t, err)
	same(t, "enabled", got.DisabledAt, (*time.Time)(nil))
	for _, absent := range []sallyport.TenantID{"", "ACME", "acme ", "аcme", "none"} {
		_, err = b.Tenant(ctx, absent)
		wantCode(t, err, sallyport.CodeTenantNotFound)
		wantCode(t, b.DisableTenant(ctx, absent, nil), sallyport.CodeTenantNotFound)
	}
}

func policySwaps(t *trial, b Backend) {
	ctx := t.Context()
	found(t, b)
	policy, version, err := b.TenantPolicy(ctx, tenant)
	must(t, err)
	same(t, "first", []any{policy, version}, []any{sallyport.Policy{}, int64(0)})
	want := sallyport.Policy{
		ScriptsDisabled: true, RequiredLayers: []sallyport.Layer{sallyport.LayerSeccomp}, Interpreters: []string{}, Runtimes: map[string]string{"py": "python"},
		Limits: sallyport.DefaultLimits(), TenantQuota: sallyport.Quota{RunsPerDay: 3}, PrincipalQuota: sallyport.Quota{RequestsPerSecond: 1},
		Confirm: true, SeparateDuties: true, MaskOutputs: true,
	}
	version, err = b.SetPolicy(ctx, tenant, 0, want)
	must(t, err)
	same(t, "version", version, int64(1))
	policy, version, err = b.TenantPolicy(ctx, tenant)
	must(t, err)
	same(t, "stored", []any{policy, version}, []any{want, int64(1)})
	for _, stale := range []int64{0, 2, -1} {
		_, err = b.SetPolicy(ctx, tenant, stale, sallyport.Policy{})
		wantCode(t, err, sallyport.CodePolicyConflict)
	}
	_, err = b.SetPolicy(ctx, "none", 0, want)
	wantCode(t, err, sallyport.CodeTenantNotFound)
	_, _, err = b.TenantPolicy(ctx, "none")
	wantCode(t, err, sallyport.CodeTenantNotFound)
	policy, _, err = b.TenantPolicy(ctx, other)
	must(t, err)
	same(t, "the other's", policy, sallyport.Policy{})

	// Of several writers with one version, one wins.
	var wg sync.WaitGroup
	won := make(chan error, 8)
	for range cap(won) {
		wg.Go(func() { _, err := b.SetPolicy(ctx, tenant, 1, sallyport.Policy{}); won <- err })
	}
	wg.Wait()
	close(won)
	wins := 0
	for err := range won {
		if err == nil {
			wins++
		} else {
			wantCode(t, err, sallyport.CodePolicyConflict)
		}
	}
	same(t, "winners", wins, 1)
}

func team(id sallyport.TeamID) sallyport.Team {
	return sallyport.Team{TenantID: tenant, ID: id, Name: "name of " + string(id), CreatedBy: owner, CreatedAt: day(1)}
}

func member(who sallyport.PrincipalID) sallyport.Member {
	return sallyport.Member{TenantID: tenant, TeamID: teamTwo, PrincipalID: who, AddedBy: owner, AddedAt: day(2)}
}

func teamsAndMembers(t *trial, b Backend) {
	ctx := t.Context()
	found(t, b)
	must(t, b.AddTeam(ctx, tenant, team(teamTwo)))
	wantCode(t, b.AddTeam(ctx, tenant, team(teamTwo)), sallyport.CodeNameTaken)
	wantCode(t, b.AddTeam(ctx, "none", team(teamTwo)), sallyport.CodeTenantNotFound)
	teams, err := b.Teams(ctx, tenant)
	must(t, err)
	same(t, "teams", teams[1:], []sallyport.Team{team(teamTwo)})
	for n, first := range []bool{true, false} {
		again := member("bob")
		again.AddedAt = day(2 + n)
		added, err := b.AddMember(ctx, tenant, again)
		must(t, err)
		same(t, "added", added, first)
	}
	members, err := b.Members(ctx, tenant, teamTwo)
	must(t, err)
	same(t, "members", members, []sallyport.Member{member("bob")})
	for _, where := range []struct {
		tenant sallyport.TenantID
		team   sallyport.TeamID
	}{{other, teamTwo}, {tenant, "Research"}, {tenant, ""}, {"", teamTwo}} {
		_, err = b.Members(ctx, where.tenant, where.team)
		wantCode(t, err, sallyport.CodeTeamNotFound)
		_, err = b.RemoveMember(ctx, where.tenant, where.team, "bob")
		wantCode(t, err, sallyport.CodeTeamNotFound)
		wantCode(t, b.RemoveTeam(ctx, where.tenant, where.team), sallyport.CodeTeamNotFound)
	}
	_, err = b.AddMember(ctx, other, member("eve"))
	wantCode(t, err, sallyport.CodeTeamNotFound)
	for _, first := range []bool{true, false} {
		removed, err := b.RemoveMember(ctx, tenant, teamTwo, "bob")
		must(t, err)
		same(t, "removed", removed, first)
	}
	_, err = b.AddMember(ctx, tenant, member("bob"))
	must(t, err)
	must(t, b.RemoveTeam(ctx, tenant, teamTwo))
	must(t, b.AddTeam(ctx, tenant, team(teamTwo)))
	members, err = b.Members(ctx, tenant, teamTwo)
	must(t, err)
	same(t, "members of the next team of that name", members, []sallyport.Member{})
}

func teamInUse(t *trial, b Backend) {
	ctx := t.Context()
	found(t, b)
	must(t, b.AddTeam(ctx, tenant, team(teamTwo)))
	s := create(t, "alpha")
	s.Skill.TeamID = teamTwo
	skill, _ := save(t, b, s)
	_, err := b.SetArchived(ctx, tenant, skill.ID, pointer(day(1)))
	must(t, err)
	wantCode(t, b.RemoveTeam(ctx, tenant, teamTwo), sallyport.CodeInUse)

	must(t, b.AddTeam(ctx, tenant, team("third")))
	k := key("k", 1)
	k.Teams = []sallyport.TeamID{teamOne, "third"}
	must(t, b.AddKey(ctx, tenant, k, secretHash("k")))
	wantCode(t, b.RemoveTeam(ctx, tenant, "third"), sallyport.CodeInUse)
	_, err = b.RevokeKey(ctx, tenant, "k", day(2), nil)
	must(t, err)
	must(t, b.RemoveTeam(ctx, tenant, "third"))
}

func role(scopes ...sallyport.Scope) sallyport.Role {
	return sallyport.Role{TenantID: tenant, Name: "boss", Description: "what boss does", Scopes: scopes, UpdatedBy: owner, UpdatedAt: pointer(day(1))}
}

func roleRecords(t *trial, b Backend) {
	ctx := t.Context()
	found(t, b)
	must(t, b.PutRole(ctx, tenant, role(sallyport.ScopeAdmin), nil))
	want := role(sallyport.ScopeMemoryRead, sallyport.ScopeAuditRead)
	want.UpdatedAt = pointer(day(2))
	must(t, b.PutRole(ctx, tenant, want, nil))
	roles, err := b.Roles(ctx, tenant)
	must(t, err)
	same(t, "roles", roles, []sallyport.Role{want})
	wantCode(t, b.PutRole(ctx, "none", want, nil), sallyport.CodeTenantNotFound)

	k := key("k", 1)
	k.Roles = []sallyport.RoleName{"boss"}
	must(t, b.AddKey(ctx, tenant, k, secretHash("k")))
	stored, err := b.KeyByHash(ctx, secretHash("k"))
	must(t, err)
	same(t, "roles of the key", stored.Roles, k.Roles)
	wantCode(t, b.RemoveRole(ctx, tenant, "boss"), sallyport.CodeInUse)
	_, err = b.RevokeKey(ctx, tenant, "k", day(2), nil)
	must(t, err)
	must(t, b.PutAccount(ctx, tenant, sallyport.Account{ID: "bob", Roles: []sallyport.RoleName{"boss"}, CreatedAt: day(1)}, nil))
	wantCode(t, b.RemoveRole(ctx, tenant, "boss"), sallyport.CodeInUse)
	must(t, b.PutAccount(ctx, tenant, sallyport.Account{ID: "bob", CreatedAt: day(1)}, nil))
	wantCode(t, b.RemoveRole(ctx, other, "boss"), sallyport.CodeRoleNotFound)
	must(t, b.RemoveRole(ctx, tenant, "boss"))
	wantCode(t, b.RemoveRole(ctx, tenant, "boss"), sallyport.CodeRoleNotFound)
}

func accountRecords(t *trial, b Backend) {
	ctx := t.Context()
	found(t, b)
	must(t, b.SeeAccount(ctx, tenant, "bob", day(1)))
	want := sallyport.Account{TenantID: tenant, ID: "bob", Roles: []sallyport.RoleName{}, CreatedAt: day(1), LastSeenAt: pointer(day(1))}
	got, err := b.Account(ctx, tenant, "bob")
	must(t, err)
	same(t, "seen", got, want)
	must(t, b.SeeAccount(ctx, tenant, "bob", day(0))) // never back
	set := want
	set.Roles, set.DisabledAt, set.RegisteredBy, set.CreatedAt, set.LastSeenAt = []sallyport.RoleName{"admin"}, pointer(day(4)), owner, day(9), nil
	must(t, b.PutAccount(ctx, tenant, set, nil))
	want.Roles, want.DisabledAt, want.RegisteredBy = set.Roles, set.DisabledAt, owner
	accounts, err := b.Accounts(ctx, tenant)
	must(t, err)
	same(t, "set", accounts, []sallyport.Account{want})
	must(t, b.SeeAccount(ctx, tenant, "bob", day(5)))
	got, err = b.Account(ctx, tenant, "bob")
	must(t, err)
	want.LastSeenAt = pointer(day(5))
	same(t, "seen again", got, want)
	for _, id := range []sallyport.PrincipalID{"", "Bob", "bob "} {
		_, err = b.Account(ctx, tenant, id)
		wantCode(t, err, sallyport.CodePrincipalNotFound)
	}
	_, err = b.Account(ctx, other, "bob")
	wantCode(t, err, sallyport.CodePrincipalNotFound)
	wantCode(t, b.SeeAccount(ctx, "none", "bob", day(1)), sallyport.CodeTenantNotFound)
	wantCode(t, b.PutAccount(ctx, "none", set, nil), sallyport.CodeTenantNotFound)
}

func standingReads(t *trial, b Backend) {
	ctx := t.Context()
	nothing, err := b.Standing(ctx, tenant, "bob")
	must(t, err)
	same(t, "of no tenant", nothing, sallyport.Standing{})
	found(t, b)
	must(t, b.AddTeam(ctx, tenant, team(teamTwo)))
	must(t, b.AddTeam(ctx, other, team("theirs")))
	_, err = b.AddMember(ctx, tenant, member("bob"))
	must(t, err)
	must(t, b.PutRole(ctx, tenant, role(sallyport.ScopeAdmin), nil))
	must(t, b.SeeAccount(ctx, tenant, "bob", day(1)))
	got, err := b.Standing(ctx, tenant, "bob")
	must(t, err)
	same(t, "standing", got, sallyport.Standing{
		Tenant: sallyport.Tenant{ID: tenant, Name: "name of acme", CreatedBy: owner, CreatedAt: day(0)},
		Account: &sallyport.Account{
			TenantID: tenant, ID: "bob", Roles: []sallyport.RoleName{}, CreatedAt: day(1), LastSeenAt: pointer(day(1)),
		},
		Teams: []sallyport.TeamID{teamOne, teamTwo}, Member: []sallyport.TeamID{teamTwo}, Roles: []sallyport.Role{role(sallyport.ScopeAdmin)},
	})
	got, err = b.Standing(ctx, other, "bob")
	must(t, err)
	same(t, "elsewhere", []any{got.Account == nil, got.Member, len(got.Roles)}, []any{true, []sallyport.TeamID{}, 0})
}

var errUnkept = errors.New("not kept")

func notKept(t *trial, b Backend) {
	ctx := t.Context()
	found(t, b)
	must(t, b.AddKey(ctx, tenant, key("k", 1), secretHash("k")))
	must(t, b.PutRole(ctx, tenant, role(sallyport.ScopeAdmin), nil))
	before, err := b.Roster(ctx, tenant)
	must(t, err)
	refuse := func(access.Roster) error {
		return &sallyport.Error{Op: "keep", Code: sallyport.CodeLastAdmin, Err: errUnkept}
	}
	_, err = b.RevokeKey(ctx, tenant, "k", day(2), refuse)
	wantCode(t, err, sallyport.CodeLastAdmin)
	wantCode(t, b.PutRole(ctx, tenant, role(), refuse), sallyport.CodeLastAdmin)
	wantCode(t, b.PutAccount(ctx, tenant, sallyport.Account{ID: "bob", CreatedAt: day(1)}, refuse), sallyport.CodeLastAdmin)
	after, err := b.Roster(ctx, tenant)
	must(t, err)
	same(t, "roster", after, before)
}

func twoAdmins(t *trial, b Backend) {
	ctx := t.Context()
	found(t, b)
	for _, id := range []string{"1", "2"} {
		must(t, b.AddKey(ctx, tenant, key(id, 1), secretHash(id)))
	}
	keep := func(after access.Roster) error {
		if slices.ContainsFunc(after.Keys, func(k sallyport.Key) bool { return k.RevokedAt == nil }) {
			return nil
		}
		return &sallyport.Error{Op: "keep", Code: sallyport.CodeLastAdmin}
	}
	var wg sync.WaitGroup
	for _, id := range []sallyport.KeyID{"1", "2"} {
		wg.Go(func() { _, _ = b.RevokeKey(ctx, tenant, id, day(2), keep) })
	}
	wg.Wait()
	roster, err := b.Roster(ctx, tenant)
	must(t, err)
	left := 0
	for _, k := range roster.Keys {
		if k.RevokedAt == nil {
			left++
		}
	}
	same(t, "left", left, 1)
}

func publishersAreKept(t *trial, b Backend) {
	ctx := t.Context()
	found(t, b)
	s := create(t, "alpha")
	s.Publish = true
	skill, saved := save(t, b, s)
	for range 2 {
		_, err := b.Publish(ctx, tenant, skill.ID, saved.ID, day(2), "zoe")
		must(t, err)
	}
	got, err := b.Publishers(ctx, tenant, saved.ID)
	must(t, err)
	same(t, "publishers", got, []sallyport.PrincipalID{owner, "zoe"})
	got, err = b.Publishers(ctx, other, saved.ID)
	must(t, err)
	same(t, "elsewhere", got, []sallyport.PrincipalID{})
	_, err = b.Publish(ctx, tenant, skill.ID, saved.ID, day(2), "")
	wantCode(t, err, sallyport.CodeInternal)
}
