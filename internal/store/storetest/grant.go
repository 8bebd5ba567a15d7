package storetest

import (
	"sync"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport"
)

func grantTests() []test {
	return []test{
		{"round trip", grantRoundTrip},
		{"newest first", grantsNewestFirst},
		{"revoke once", revokeGrantOnce},
		{"revoking one leaves the others", revokeLeavesOthers},
		{"what does not fit is refused", grantRefuses},
	}
}

func grant(id string, skill sallyport.SkillID, at int) sallyport.Grant {
	return sallyport.Grant{
		ID: sallyport.GrantID(id), TenantID: tenant, SkillID: skill, Slug: "slug", Pin: sallyport.DigestOf([]byte(id)),
		RevisionID: "r", IssuedBy: owner, IssuedAt: day(at),
	}
}

func grantRoundTrip(t *trial, b Backend) {
	full := grant("full", "s", 1)
	full.ScriptPath, full.ExpiresAt, full.RevokedAt, full.RevokedBy = "scripts/ä.py", pointer(day(3)), pointer(day(2)), "grace"
	wide := grant("wide", "s", 0)
	for _, want := range []sallyport.Grant{full, wide} {
		must(t, b.AddGrant(t.Context(), tenant, want))
		got, err := b.Grant(t.Context(), tenant, want.ID)
		must(t, err)
		same(t, "grant", got, want)
	}
	got, err := b.Grants(t.Context(), tenant, "s")
	must(t, err)
	same(t, "listed", got, []sallyport.Grant{full, wide})
	for _, id := range []sallyport.GrantID{"none", "", "FULL", "full "} {
		_, err = b.Grant(t.Context(), tenant, id)
		wantCode(t, err, sallyport.CodeGrantNotFound)
	}
}

func grantsNewestFirst(t *trial, b Backend) {
	for _, g := range []sallyport.Grant{grant("1", "s", 1), grant("2", "s", 3), grant("3", "other", 2), grant("4", "s", 3), grant("5", "S", 9)} {
		must(t, b.AddGrant(t.Context(), tenant, g))
	}
	for skill, want := range map[sallyport.SkillID][]sallyport.GrantID{
		"s": {"4", "2", "1"}, "other": {"3"}, "none": {}, "": {"5", "4", "2", "3", "1"},
	} {
		grants, err := b.Grants(t.Context(), tenant, skill)
		must(t, err)
		got := []sallyport.GrantID{}
		for _, g := range grants {
			got = append(got, g.ID)
		}
		same(t, "grants of "+string(skill), got, want)
	}
}

func revokeGrantOnce(t *trial, b Backend) {
	expired := grant("1", "s", 1)
	expired.ExpiresAt = pointer(day(2))
	must(t, b.AddGrant(t.Context(), tenant, expired))
	var (
		wg    sync.WaitGroup
		first atomic.Int32
	)
	for range 8 {
		wg.Go(func() {
			revoked, err := b.RevokeGrant(t.Context(), tenant, "1", "grace", day(5))
			if err != nil {
				t.Error(err)
			}
			if revoked {
				first.Add(1)
			}
		})
	}
	wg.Wait()
	same(t, "revoked", first.Load(), int32(1))
	// A second revoking changes nothing.
	again, err := b.RevokeGrant(t.Context(), tenant, "1", "mallory", day(9))
	must(t, err)
	same(t, "again", again, false)
	got, err := b.Grant(t.Context(), tenant, "1")
	must(t, err)
	want := expired
	want.RevokedAt, want.RevokedBy = pointer(day(5)), "grace"
	same(t, "grant", got, want)
	listed, err := b.Grants(t.Context(), tenant, "s")
	must(t, err)
	same(t, "still listed", listed, []sallyport.Grant{want})
	_, err = b.RevokeGrant(t.Context(), tenant, "none", owner, day(5))
	wantCode(t, err, sallyport.CodeGrantNotFound)
}

func revokeLeavesOthers(t *trial, b Backend) {
	wide, narrow := grant("wide", "s", 1), grant("narrow", "s", 2)
	narrow.ScriptPath = "scripts/run.py"
	must(t, b.AddGrant(t.Context(), tenant, wide))
	must(t, b.AddGrant(t.Context(), tenant, narrow))
	_, err := b.RevokeGrant(t.Context(), tenant, narrow.ID, owner, day(3))
	must(t, err)
	got, err := b.Grant(t.Context(), tenant, wide.ID)
	must(t, err)
	same(t, "wide", got, wide)
}

func grantRefuses(t *trial, b Backend) {
	must(t, b.AddGrant(t.Context(), tenant, grant("1", "s", 1)))
	for name, spoil := range map[string]func(g *sallyport.Grant){
		"an id in use":    func(g *sallyport.Grant) { g.ID = "1" },
		"no id":           func(g *sallyport.Grant) { g.ID = "" },
		"no skill":        func(g *sallyport.Grant) { g.SkillID = "" },
		"no pin":          func(g *sallyport.Grant) { g.Pin = "" },
		"a malformed pin": func(g *sallyport.Grant) { g.Pin = "sha256:00" },
	} {
		g := grant("2", "s", 1)
		spoil(&g)
		if err := b.AddGrant(t.Context(), tenant, g); sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("%s: got %v, want INTERNAL", name, err)
		}
	}
	wantCode(t, b.AddGrant(t.Context(), "", grant("2", "s", 1)), sallyport.CodeInternal)
	grants, err := b.Grants(t.Context(), tenant, "")
	must(t, err)
	same(t, "grants", grants, []sallyport.Grant{grant("1", "s", 1)})
}
