package access_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

// reviews is a tenancy whose skill csv has a published revision r1 by the boss and a draft r2 by ada.
func reviews(t *testing.T, change ...func(*access.Config)) *tenancy {
	t.Helper()
	w := newTenancy(t)
	skills, _ := newWorld()
	skills.revisions[0].Author, skills.revisions[1].Author = w.boss().ID, "ada"
	cfg := access.Config{
		Store: w.store, Trail: w.trail, Skills: skills, Now: func() time.Time { return w.now },
		Installation: access.Installation{GrantsByPublisher: true},
	}
	for _, f := range change {
		f(&cfg)
	}
	w.Service = access.New(cfg)
	return w
}

func (w *tenancy) issue(p sallyport.Principal, revision sallyport.RevisionID, pin sallyport.Digest, expires *time.Time) (sallyport.Grant, error) {
	return w.Issue(w.t.Context(), p, access.IssueRequest{
		Ref: sallyport.SkillRef{Slug: "csv"}, ScriptPath: "scripts/a.py", RevisionID: revision, ExpectedDigest: pin, ExpiresAt: expires,
	})
}

// Where duties are kept apart, who saved or published a revision does not grant it, and nothing is written.
func TestSeparateDuties(t *testing.T) {
	t.Parallel()
	w := reviews(t)
	ctx := t.Context()
	_, err := w.issue(w.boss(), "r1", pinOne, nil)
	must(t, err) // off by default
	_, err = w.SetPolicy(ctx, w.boss(), 0, sallyport.Policy{SeparateDuties: true})
	must(t, err)
	before := len(w.trail.entries)
	_, err = w.issue(w.boss(), "r1", pinOne, nil)
	refusedWith(t, err, sallyport.CodeAccessDenied)
	if public := sallyport.Public(err); !strings.Contains(public.Message, "ask another reviewer") || public.Details["policy"] != "separate_duties" {
		t.Errorf("the refusal %+v", public)
	}
	if len(w.trail.entries) != before {
		t.Error("a refused grant is on record")
	}
	// Of another's revision it may, and another of its own; but not once it published that.
	_, err = w.issue(w.boss(), "r2", pinTwo, nil)
	must(t, err)
	bob := w.boss()
	bob.ID = "oidc:idp:bob"
	_, err = w.issue(bob, "r1", pinOne, nil)
	must(t, err)
}

// A publisher who holds both scopes grants what it publishes, where server.yaml says so and the tenant does not keep duties apart.
func TestGrantPublished(t *testing.T) {
	t.Parallel()
	off := func(cfg *access.Config) { cfg.Installation.GrantsByPublisher = false }
	for name, test := range map[string]struct {
		change []func(*access.Config)
		policy sallyport.Policy
		lacks  []sallyport.Scope
		grants bool
	}{
		"both scopes":          {grants: true},
		"off":                  {change: []func(*access.Config){off}},
		"duties kept apart":    {policy: sallyport.Policy{SeparateDuties: true}},
		"without grants:write": {lacks: []sallyport.Scope{sallyport.ScopeGrantsWrite}},
		"without memory:write": {lacks: []sallyport.Scope{sallyport.ScopeMemoryWrite}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := reviews(t, test.change...)
			_, err := w.SetPolicy(t.Context(), w.boss(), 0, test.policy)
			must(t, err)
			skills, _ := newWorld()
			p := without(w.boss(), test.lacks...)
			for range 2 { // the second time it is covered already
				_, err = w.GrantPublished(t.Context(), p, skills.skills[0], skills.revisions[0])
				must(t, err)
			}
			grants, err := w.store.Grants(t.Context(), "acme", "")
			must(t, err)
			if !test.grants {
				if len(grants) > 0 {
					t.Errorf("granted: %+v", grants)
				}
				return
			}
			if len(grants) != 1 || grants[0].Pin != pinOne || grants[0].ScriptPath != "" || grants[0].IssuedBy != p.ID {
				t.Fatalf("got %+v", grants)
			}
			var detail map[string]any
			must(t, json.Unmarshal(w.trail.entries[len(w.trail.entries)-1].Detail, &detail))
			if detail["by"] != "publishing" {
				t.Errorf("the entry %v", detail)
			}
		})
	}
}

// A publication that cannot be audited grants nothing.
func TestGrantPublishedIsAuditedFirst(t *testing.T) {
	t.Parallel()
	w := reviews(t)
	skills, _ := newWorld()
	w.trail.err = errDisk
	_, err := w.GrantPublished(t.Context(), w.boss(), skills.skills[0], skills.revisions[0])
	refusedWith(t, err, sallyport.CodeAuditUnavailable)
	grants, err := w.store.Grants(t.Context(), "acme", "")
	if err != nil || len(grants) > 0 {
		t.Errorf("%+v, %v", grants, err)
	}
}

// Publishing new content says which scripts lose their grant.
func TestCoverage(t *testing.T) {
	t.Parallel()
	w := reviews(t)
	ctx := t.Context()
	skills, _ := newWorld()
	grant, err := w.issue(w.boss(), "r1", pinOne, nil)
	must(t, err)
	for n, want := range [][]string{{"scripts/b.sh"}, {"scripts/a.py", "scripts/b.sh"}} {
		got, err := w.Coverage(ctx, w.boss(), skills.skills[0], skills.revisions[n])
		must(t, err)
		if !slices.Equal(got.UncoveredScripts, want) || len(got.UncoveredGrants) != n {
			t.Errorf("revision %d: %+v", n+1, got)
		}
	}
	_, err = w.Revoke(ctx, w.boss(), grant.ID)
	must(t, err)
	got, err := w.Coverage(ctx, w.boss(), skills.skills[0], skills.revisions[1])
	if err != nil || len(got.UncoveredGrants) != 0 {
		t.Errorf("a revoked grant covers nothing and loses nothing: %+v, %v", got, err)
	}
	_, err = w.Coverage(ctx, without(w.boss(), sallyport.ScopeMemoryWrite), skills.skills[0], skills.revisions[0])
	refusedWith(t, err, sallyport.CodeAccessDenied)
	_, err = w.Coverage(ctx, w.boss(), skills.skills[3], skills.revisions[4])
	refusedWith(t, err, sallyport.CodeAccessDenied)
}

// A review starts from the newest active grant, else from the newest of any state.
func TestReviewBasis(t *testing.T) {
	t.Parallel()
	w := reviews(t)
	ctx := t.Context()
	basis := func() access.Basis {
		got, err := w.ReviewBasis(ctx, w.boss(), sallyport.SkillRef{Slug: "csv"}, "r2")
		must(t, err)
		return got
	}
	if got := basis(); got.Last != nil || got.Revision.ID != "r2" {
		t.Errorf("before any: %+v", got)
	}
	first, err := w.issue(w.boss(), "r1", pinOne, nil)
	must(t, err)
	w.now = w.now.Add(time.Minute)
	second, err := w.issue(w.boss(), "r2", pinTwo, nil)
	must(t, err)
	if got := basis(); got.Last.ID != second.ID {
		t.Errorf("the newest active: %+v", got.Last)
	}
	_, err = w.Revoke(ctx, w.boss(), second.ID)
	must(t, err)
	if got := basis(); got.Last.ID != first.ID {
		t.Errorf("an older active one: %+v", got.Last)
	}
	_, err = w.Revoke(ctx, w.boss(), first.ID)
	must(t, err)
	if got := basis(); got.Last.ID != second.ID {
		t.Errorf("the newest of none active: %+v", got.Last)
	}
	_, err = w.ReviewBasis(ctx, without(w.boss(), sallyport.ScopeGrantsWrite, sallyport.ScopeAuditRead), sallyport.SkillRef{Slug: "csv"}, "")
	refusedWith(t, err, sallyport.CodeAccessDenied)
}

// A grant that ends soon is announced once, and one that is revoked, far off or over is not.
func TestExpiringGrantsAreNotedOnce(t *testing.T) {
	t.Parallel()
	w := reviews(t)
	ctx := t.Context()
	day := 24 * time.Hour
	at := func(d time.Duration) *time.Time { end := w.now.Add(d); return &end }
	soon, err := w.issue(w.boss(), "r1", pinOne, at(3*day))
	must(t, err)
	_, err = w.issue(w.boss(), "r1", pinOne, at(30*day))
	must(t, err)
	_, err = w.issue(w.boss(), "r1", pinOne, nil)
	must(t, err)
	gone, err := w.issue(w.boss(), "r1", pinOne, at(3*day))
	must(t, err)
	_, err = w.Revoke(ctx, w.boss(), gone.ID)
	must(t, err)
	for range 2 {
		count, err := w.NoteExpiring(ctx, 7*day)
		if err != nil || count != 1 {
			t.Fatalf("got %d, %v", count, err)
		}
	}
	entries, err := w.store.GrantEntries(ctx, "acme", "csv/scripts/a.py")
	must(t, err)
	if len(entries) != 1 || entries[0].Action != sallyport.ActionGrantExpiring || !strings.Contains(string(entries[0].Detail), string(soon.ID)) {
		t.Errorf("entries %+v", entries)
	}
	history, err := w.History(ctx, w.boss(), soon.ID)
	if err != nil || len(history.Entries) != 1 || history.Runs.Count != 0 {
		t.Errorf("history %+v, %v", history, err)
	}
	w.now = w.now.Add(4 * day)
	if count, err := w.NoteExpiring(ctx, 7*day); err != nil || count != 0 {
		t.Errorf("over: %d, %v", count, err)
	}
	_, err = w.History(ctx, w.boss(), "none")
	refusedWith(t, err, sallyport.CodeGrantNotFound)
}
