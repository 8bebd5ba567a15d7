package access_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/internal/store"
)

// trail keeps entries, or fails.
type trail struct {
	mu      sync.Mutex
	entries []sallyport.Entry
	err     error
}

func (tr *trail) Append(_ context.Context, entry sallyport.Entry) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.err == nil {
		tr.entries = append(tr.entries, entry)
	}
	return tr.err
}

// tenancy is a service over a real store; the clock stands still until a test moves it.
type tenancy struct {
	*access.Service

	t     *testing.T
	store *store.Store
	trail *trail
	now   time.Time
}

func newTenancy(t *testing.T) *tenancy {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "sallyport.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	w := &tenancy{t: t, store: s, trail: &trail{}, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	skills, _ := newWorld()
	w.Service = access.New(access.Config{
		Store: s, Trail: w.trail, Skills: skills, Now: func() time.Time { return w.now },
		Installation: access.Installation{
			ScriptsEnabled: true, Interpreters: []string{"py", "sh"}, Limits: sallyport.DefaultLimits(),
			TenantQuota: sallyport.Quota{RunsPerDay: 100}, GrantsByPublisher: true, RequiredLayers: []sallyport.Layer{sallyport.LayerSeccomp},
		},
	})
	must(t, w.makeTenant("acme"))
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func theOperator() sallyport.Principal {
	return sallyport.Principal{
		ID: "operator", TenantID: sallyport.DefaultTenant, Teams: []sallyport.TeamID{sallyport.DefaultTeam}, Scopes: sallyport.Scopes(), Operator: true,
	}
}

func (w *tenancy) makeTenant(id sallyport.TenantID) error {
	_, err := w.CreateTenant(w.t.Context(), theOperator(), id, "")
	return err
}

// boss is an administrator of acme.
func (w *tenancy) boss() sallyport.Principal {
	return sallyport.Principal{ID: "oidc:idp:boss", TenantID: "acme", Teams: []sallyport.TeamID{sallyport.DefaultTeam}, Scopes: sallyport.Scopes()}
}

func (w *tenancy) mint(p sallyport.Principal, req access.KeyRequest) access.NewKey {
	w.t.Helper()
	req.Name = "k"
	key, err := w.CreateKey(w.t.Context(), p, req)
	must(w.t, err)
	return key
}

// Only the operator makes tenants; the answer to everybody else does not depend on what there is.
func TestTenantsAreTheOperators(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	ctx := t.Context()
	var sentences []string
	for _, id := range []sallyport.TenantID{"acme", "none"} {
		_, create := w.CreateTenant(ctx, w.boss(), id, "")
		_, list := w.Tenants(ctx, w.boss())
		_, show := w.Tenant(ctx, w.boss(), id)
		_, shut := w.DisableTenant(ctx, w.boss(), id, true)
		_, operate := w.Operate(ctx, w.boss(), id)
		for _, err := range []error{create, list, show, shut} {
			refusedWith(t, err, sallyport.CodeAccessDenied)
			sentences = append(sentences, sallyport.Public(err).Message)
		}
		refusedWith(t, operate, sallyport.CodeAccessDenied)
	}
	if slices.Sort(sentences); len(slices.Compact(sentences)) != 1 {
		t.Errorf("the refusals differ: %q", sentences)
	}
	weak := theOperator()
	weak.Scopes = nil
	_, err := w.Tenants(ctx, weak)
	refusedWith(t, err, sallyport.CodeAccessDenied)

	for _, id := range []sallyport.TenantID{"", "ACME", "Acme", "a b", "acmé", "аcme", "-a", "a--b", "../x", sallyport.TenantID(strings.Repeat("a", 65))} {
		refusedWith(t, w.makeTenant(id), sallyport.CodeInvalidArgument)
	}
	refusedWith(t, w.makeTenant("acme"), sallyport.CodeNameTaken)
	_, err = w.Operate(ctx, theOperator(), "none")
	refusedWith(t, err, sallyport.CodeTenantNotFound)
	p, err := w.Operate(ctx, theOperator(), "acme")
	if err != nil || p.TenantID != "acme" || !p.Operator {
		t.Errorf("got %+v, %v", p, err)
	}
}

// A tenant that is shut lets nobody in and runs nothing, at once; opened, it does again.
func TestDisabledTenant(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	ctx := t.Context()
	key := w.mint(w.boss(), access.KeyRequest{Roles: []sallyport.RoleName{sallyport.RoleAuthor}})
	in := func() [3]sallyport.Code {
		_, byKey := w.Authenticate(ctx, key.Secret)
		_, byToken := w.Admit(ctx, w.boss())
		_, runs := w.Policy(ctx, "acme")
		return [3]sallyport.Code{sallyport.CodeOf(byKey), sallyport.CodeOf(byToken), sallyport.CodeOf(runs)}
	}
	if got := in(); got != [3]sallyport.Code{} {
		t.Fatalf("open: %v", got)
	}
	for range 2 {
		_, err := w.DisableTenant(ctx, theOperator(), "acme", true)
		must(t, err)
	}
	if got := in(); got != [3]sallyport.Code{sallyport.CodeUnauthenticated, sallyport.CodeUnauthenticated, sallyport.CodeAccessDenied} {
		t.Errorf("shut: %v", got)
	}
	_, err := w.DisableTenant(ctx, theOperator(), "acme", false)
	must(t, err)
	if got := in(); got != [3]sallyport.Code{} {
		t.Errorf("open again: %v", got)
	}
	_, err = w.Admit(ctx, sallyport.Principal{ID: "x", TenantID: "none"})
	refusedWith(t, err, sallyport.CodeUnauthenticated)
	_, err = w.Policy(ctx, "none")
	refusedWith(t, err, sallyport.CodeAccessDenied)
	_, err = w.DisableTenant(ctx, theOperator(), "none", true)
	refusedWith(t, err, sallyport.CodeTenantNotFound)
}

// Teams that a token claims count where the tenant has them; members get theirs, and lose them, with the next call.
func TestTeamsOfAPrincipal(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	ctx := t.Context()
	must(t, w.makeTenant("rival"))
	_, err := w.CreateTeam(ctx, w.boss(), "research", "Research")
	must(t, err)
	_, err = w.CreateTeam(ctx, w.boss(), "research", "")
	refusedWith(t, err, sallyport.CodeNameTaken)
	for _, id := range []sallyport.TeamID{"", "Research", "reseаrch", "a b"} {
		_, err := w.CreateTeam(ctx, w.boss(), id, "")
		refusedWith(t, err, sallyport.CodeInvalidArgument)
	}
	bob := sallyport.Principal{ID: "oidc:idp:bob", TenantID: "acme", Teams: []sallyport.TeamID{"research", "Research", "ghosts"}}
	in := func(p sallyport.Principal) []sallyport.TeamID {
		p, err := w.Admit(ctx, p)
		must(t, err)
		return p.Teams
	}
	if got := in(bob); !slices.Equal(got, []sallyport.TeamID{"default", "research"}) {
		t.Errorf("claimed: %v", got)
	}
	bob.TenantID = "rival"
	if got := in(bob); !slices.Equal(got, []sallyport.TeamID{"default"}) {
		t.Errorf("claimed in a tenant without the team: %v", got)
	}
	bob.TenantID, bob.Teams = "acme", nil
	if got := in(bob); !slices.Equal(got, []sallyport.TeamID{"default"}) {
		t.Errorf("before: %v", got)
	}
	for range 2 {
		_, err = w.AddMember(ctx, w.boss(), "research", bob.ID)
		must(t, err)
	}
	if got := in(bob); !slices.Equal(got, []sallyport.TeamID{"default", "research"}) {
		t.Errorf("member: %v", got)
	}
	refusedWith(t, w.RemoveTeam(ctx, w.boss(), "default"), sallyport.CodeInUse)
	must(t, w.RemoveMember(ctx, w.boss(), "research", bob.ID))
	refusedWith(t, w.RemoveMember(ctx, w.boss(), "research", bob.ID), sallyport.CodePrincipalNotFound)
	if got := in(bob); !slices.Equal(got, []sallyport.TeamID{"default"}) {
		t.Errorf("no member any more: %v", got)
	}
	_, err = w.AddMember(ctx, w.boss(), "ghosts", bob.ID)
	refusedWith(t, err, sallyport.CodeTeamNotFound)
	for _, id := range []sallyport.PrincipalID{"", "operator", "loopback", "a b", "é", "a\x00"} {
		_, err = w.AddMember(ctx, w.boss(), "research", id)
		refusedWith(t, err, sallyport.CodeInvalidArgument)
	}
	must(t, w.RemoveTeam(ctx, w.boss(), "research"))
	refusedWith(t, w.RemoveTeam(ctx, w.boss(), "research"), sallyport.CodeTeamNotFound)
}

// Nobody hands out more than they carry: not by a key, not by a role of a key, not by what a role becomes later, not to a principal.
func TestNobodyHandsOutMore(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	ctx := t.Context()
	clerk := w.boss()
	clerk.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeAdmin}
	grants := []sallyport.Scope{sallyport.ScopeGrantsWrite}
	reviewers := []sallyport.RoleName{sallyport.RoleReviewer}
	for name, attempt := range map[string]func() error{
		"a key with the scope": func() error {
			_, err := w.CreateKey(ctx, clerk, access.KeyRequest{Name: "k", Scopes: grants})
			return err
		},
		"a key with the role": func() error {
			_, err := w.CreateKey(ctx, clerk, access.KeyRequest{Name: "k", Roles: reviewers})
			return err
		},
		"a role with the scope": func() error {
			_, err := w.SetRole(ctx, clerk, sallyport.Role{Name: "mine", Scopes: grants})
			return err
		},
		"the role for itself": func() error {
			_, err := w.SetAccount(ctx, clerk, clerk.ID, access.AccountRequest{Roles: &reviewers})
			return err
		},
	} {
		if code := sallyport.CodeOf(attempt()); code != sallyport.CodeAccessDenied {
			t.Errorf("%s: got %q", name, code)
		}
	}
	_, err := w.SetRole(ctx, w.boss(), sallyport.Role{Name: "triage", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}})
	must(t, err)
	key := w.mint(clerk, access.KeyRequest{Roles: []sallyport.RoleName{"triage", "reader"}})
	scopes := func() []sallyport.Scope {
		p, err := w.Authenticate(ctx, key.Secret)
		must(t, err)
		return p.Scopes
	}
	if got := scopes(); !slices.Equal(got, []sallyport.Scope{sallyport.ScopeMemoryRead}) {
		t.Errorf("got %v", got)
	}
	// A role that changes changes everybody who has it.
	_, err = w.SetRole(ctx, w.boss(), sallyport.Role{Name: "triage", Scopes: grants})
	must(t, err)
	if got := scopes(); !slices.Equal(got, []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeGrantsWrite}) {
		t.Errorf("after the change: %v", got)
	}
	refusedWith(t, w.RemoveRole(ctx, w.boss(), "triage"), sallyport.CodeInUse)
	refusedWith(t, w.RemoveRole(ctx, w.boss(), "admin"), sallyport.CodeInUse)
	refusedWith(t, w.RemoveRole(ctx, w.boss(), "none"), sallyport.CodeRoleNotFound)
	_, err = w.SetRole(ctx, w.boss(), sallyport.Role{Name: "admin"})
	refusedWith(t, err, sallyport.CodeNameTaken)
	_, err = w.CreateKey(ctx, w.boss(), access.KeyRequest{Name: "k", Roles: []sallyport.RoleName{"Admin"}})
	refusedWith(t, err, sallyport.CodeRoleNotFound)
	must(t, w.RevokeKey(ctx, w.boss(), key.Key.ID))
	must(t, w.RemoveRole(ctx, w.boss(), "triage"))
}

// The last administrator of a tenant stays: it cannot be revoked, demoted or disabled, and one that ends sooner is no replacement.
func TestLastAdminStays(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	ctx := t.Context()
	boss := w.boss()
	_, err := w.SetRole(ctx, boss, sallyport.Role{Name: "chief", Scopes: []sallyport.Scope{sallyport.ScopeAdmin}})
	must(t, err)
	first := w.mint(boss, access.KeyRequest{Roles: []sallyport.RoleName{"chief"}})
	soon := w.now.Add(time.Hour)
	w.mint(boss, access.KeyRequest{Scopes: []sallyport.Scope{sallyport.ScopeAdmin}, ExpiresAt: &soon})
	// A registered principal that was never here is nobody yet.
	admins, none, yes := []sallyport.RoleName{"admin"}, []sallyport.RoleName{}, true
	_, err = w.SetAccount(ctx, boss, "oidc:idp:ghost", access.AccountRequest{Roles: &admins})
	must(t, err)

	last := func(attempt string, err error) {
		t.Helper()
		if code := sallyport.CodeOf(err); code != sallyport.CodeLastAdmin {
			t.Errorf("%s: got %q, want LAST_ADMIN", attempt, code)
		}
	}
	before := len(w.trail.entries)
	last("revoke", w.RevokeKey(ctx, boss, first.Key.ID))
	last("the operator revokes", func() error {
		p, err := w.Operate(ctx, theOperator(), "acme")
		must(t, err)
		return w.RevokeKey(ctx, p, first.Key.ID)
	}())
	_, err = w.SetRole(ctx, boss, sallyport.Role{Name: "chief", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}})
	last("change its role", err)
	_, err = w.SetAccount(ctx, boss, first.Key.PrincipalID, access.AccountRequest{Disabled: &yes})
	last("disable its principal", err)
	if len(w.trail.entries) != before {
		t.Errorf("what was refused is on record as done: %v", w.trail.entries[before:])
	}

	// The ghost comes: now there is another one, and the key may go.
	_, err = w.Admit(ctx, sallyport.Principal{ID: "oidc:idp:ghost", TenantID: "acme"})
	must(t, err)
	must(t, w.RevokeKey(ctx, boss, first.Key.ID))
	_, err = w.SetAccount(ctx, boss, "oidc:idp:ghost", access.AccountRequest{Roles: &none})
	last("demote", err)
	_, err = w.SetAccount(ctx, boss, "oidc:idp:ghost", access.AccountRequest{Disabled: &yes})
	last("disable", err)
	// A key that lasts takes over.
	w.mint(boss, access.KeyRequest{Scopes: []sallyport.Scope{sallyport.ScopeAdmin}})
	_, err = w.SetAccount(ctx, boss, "oidc:idp:ghost", access.AccountRequest{Roles: &none})
	must(t, err)
}

// A principal whose account is disabled is refused, whatever it shows.
func TestDisabledPrincipal(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	ctx := t.Context()
	key := w.mint(w.boss(), access.KeyRequest{Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}})
	yes, no := true, false
	account, err := w.SetAccount(ctx, w.boss(), key.Key.PrincipalID, access.AccountRequest{Disabled: &yes})
	if err != nil || account.DisabledAt == nil {
		t.Fatal(account, err)
	}
	_, err = w.Authenticate(ctx, key.Secret)
	refusedWith(t, err, sallyport.CodeUnauthenticated)
	_, err = w.SetAccount(ctx, w.boss(), key.Key.PrincipalID, access.AccountRequest{Disabled: &no})
	must(t, err)
	_, err = w.Authenticate(ctx, key.Secret)
	must(t, err)
	for _, id := range []sallyport.PrincipalID{"operator", "loopback"} {
		_, err = w.SetAccount(ctx, w.boss(), id, access.AccountRequest{Disabled: &yes})
		refusedWith(t, err, sallyport.CodeInvalidArgument)
	}
	_, err = w.Account(ctx, w.boss(), "oidc:idp:nobody")
	refusedWith(t, err, sallyport.CodePrincipalNotFound)
}

// A policy narrows, whatever it says, and of two who change it one is told so.
func TestPolicyNarrows(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	ctx := t.Context()
	wide := sallyport.Policy{
		Interpreters: []string{"py", "exe"}, RequiredLayers: []sallyport.Layer{sallyport.LayerLandlock},
		Limits:      sallyport.Limits{MemoryBytes: 1 << 40, Processes: 3},
		TenantQuota: sallyport.Quota{RunsPerDay: 1_000_000, RunsPerMinute: 5}, SeparateDuties: true, ScriptsDisabled: true,
	}
	view, err := w.SetPolicy(ctx, w.boss(), 0, wide)
	must(t, err)
	limits := sallyport.DefaultLimits()
	limits.Processes = 3
	want := access.PolicyView{Version: 1, Policy: wide, Effective: access.Effective{
		RequiredLayers: []sallyport.Layer{sallyport.LayerLandlock, sallyport.LayerSeccomp}, Interpreters: []string{"py"}, Limits: limits,
		TenantQuota: sallyport.Quota{RunsPerDay: 100, RunsPerMinute: 5}, SeparateDuties: true,
	}}
	if diff := cmp.Diff(want, view); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	shown, err := w.ShowPolicy(ctx, w.boss())
	if diff := cmp.Diff(want, shown); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = w.SetPolicy(ctx, w.boss(), 0, sallyport.Policy{})
	refusedWith(t, err, sallyport.CodePolicyConflict)
	for name, bad := range map[string]sallyport.Policy{
		"unknown layer": {RequiredLayers: []sallyport.Layer{"moat"}}, "dot": {Interpreters: []string{".py"}}, "case": {Interpreters: []string{"PY"}},
		"negative limit": {Limits: sallyport.Limits{Processes: -1}}, "tiny CPU budget": {Limits: sallyport.Limits{CPUTime: sallyport.MinCPUTime - 1}}, "tiny memory": {Limits: sallyport.Limits{MemoryBytes: 1}},
		"negative quota": {PrincipalQuota: sallyport.Quota{RunsPerDay: -1}}, "no runtime": {Runtimes: map[string]string{"py": ""}},
	} {
		if _, err := w.SetPolicy(ctx, w.boss(), 1, bad); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the installation wants of every tenant holds under an empty policy too, and is shown so.
func TestEffectiveShowsTheInstallation(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	skills, _ := newWorld()
	service := access.New(access.Config{
		Store: w.store, Trail: w.trail, Skills: skills, Now: func() time.Time { return w.now },
		Installation: access.Installation{Confirm: true, MaskOutputs: true},
	})
	view, err := service.ShowPolicy(t.Context(), w.boss())
	must(t, err)
	if !view.Effective.Confirm || !view.Effective.MaskOutputs {
		t.Errorf("confirm %v, mask_outputs %v", view.Effective.Confirm, view.Effective.MaskOutputs)
	}
}

// Every administrative change needs admin, is on record with what was before and after, and does not happen when it cannot be.
func TestChangesAreAuditedFirst(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	ctx := t.Context()
	boss := w.boss()
	roles := []sallyport.RoleName{"reader"}
	_, err := w.CreateTeam(ctx, boss, "blue", "")
	must(t, err)
	_, err = w.AddMember(ctx, boss, "blue", "key:x")
	must(t, err)
	_, err = w.SetRole(ctx, boss, sallyport.Role{Name: "mine"})
	must(t, err)
	changes := []struct {
		action sallyport.Action
		do     func(p sallyport.Principal) error
	}{
		{sallyport.ActionTeamCreate, func(p sallyport.Principal) error { _, err := w.CreateTeam(ctx, p, "red", ""); return err }},
		{sallyport.ActionMemberAdd, func(p sallyport.Principal) error { _, err := w.AddMember(ctx, p, "blue", "key:y"); return err }},
		{sallyport.ActionMemberRemove, func(p sallyport.Principal) error { return w.RemoveMember(ctx, p, "blue", "key:x") }},
		{sallyport.ActionTeamRemove, func(p sallyport.Principal) error { return w.RemoveTeam(ctx, p, "blue") }},
		{sallyport.ActionRoleSet, func(p sallyport.Principal) error {
			_, err := w.SetRole(ctx, p, sallyport.Role{Name: "yours"})
			return err
		}},
		{sallyport.ActionRoleRemove, func(p sallyport.Principal) error { return w.RemoveRole(ctx, p, "mine") }},
		{sallyport.ActionPrincipalSet, func(p sallyport.Principal) error {
			_, err := w.SetAccount(ctx, p, "key:z", access.AccountRequest{Roles: &roles})
			return err
		}},
		{sallyport.ActionPolicySet, func(p sallyport.Principal) error {
			_, err := w.SetPolicy(ctx, p, 0, sallyport.Policy{Confirm: true})
			return err
		}},
	}
	state := func() any {
		roster, err := w.store.Roster(ctx, "acme")
		must(t, err)
		standing, err := w.store.Standing(ctx, "acme", "key:x")
		must(t, err)
		policy, version, err := w.store.TenantPolicy(ctx, "acme")
		must(t, err)
		return []any{roster, standing, policy, version}
	}
	before := state()
	w.trail.err = errDisk
	for _, c := range changes {
		refusedWith(t, c.do(without(boss, sallyport.ScopeAdmin)), sallyport.CodeAccessDenied)
		refusedWith(t, c.do(boss), sallyport.CodeAuditUnavailable)
	}
	refusedWith(t, w.makeTenant("globex"), sallyport.CodeAuditUnavailable)
	_, err = w.DisableTenant(ctx, theOperator(), "acme", true)
	refusedWith(t, err, sallyport.CodeAuditUnavailable)
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("something changed without an entry:\n%s", diff)
	}
	w.trail.err = nil
	for _, c := range changes {
		must(t, c.do(boss))
		entry := w.trail.entries[len(w.trail.entries)-1]
		var detail struct{ Before, After json.RawMessage }
		if err := json.Unmarshal(entry.Detail, &detail); err != nil || entry.Action != c.action || entry.Actor != boss.ID || entry.TenantID != "acme" {
			t.Errorf("got %+v, %v", entry, err)
		}
		if detail.Before == nil || detail.After == nil || string(detail.Before) == string(detail.After) {
			t.Errorf("%s: before and after: %s", c.action, entry.Detail)
		}
	}
}
