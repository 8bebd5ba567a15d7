package access_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

// world is a service over a store, a trail and skills in memory. Steps is the order in which it wrote.
type world struct {
	access.Directory // a call to a method that is not below panics

	mu      sync.Mutex
	now     time.Time
	steps   []string
	entries []sallyport.Entry
	grants  []sallyport.Grant
	keys    []sallyport.Key
	hashes  map[string]sallyport.KeyID
	touches int
	lookups int
	// faults makes the named method fail.
	faults    map[string]error
	skills    []sallyport.Skill
	revisions []sallyport.Revision
}

const (
	tenant = sallyport.TenantID("acme")
	pinOne = sallyport.Digest("sha256:1111111111111111111111111111111111111111111111111111111111111111")
	pinTwo = sallyport.Digest("sha256:2222222222222222222222222222222222222222222222222222222222222222")
)

var errDisk = errors.New("disk on fire at /srv/secret-path")

func newWorld() (*world, *access.Service) {
	script := func(path string) sallyport.Component {
		return sallyport.Component{ID: sallyport.ComponentID("id of " + path), Path: path, Kind: sallyport.KindScript}
	}
	components := []sallyport.Component{
		{ID: "c1", Path: "SKILL.md", Kind: sallyport.KindDocument}, script("scripts/a.py"), script("scripts/b.sh"),
	}
	archived := time.Unix(1000, 0).UTC()
	w := &world{
		now:    time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC),
		hashes: map[string]sallyport.KeyID{},
		faults: map[string]error{},
		skills: []sallyport.Skill{
			{ID: "s1", TenantID: tenant, TeamID: "default", Slug: "csv", PublishedRevisionID: "r1", LatestRevisionID: "r2"},
			{ID: "s2", TenantID: tenant, TeamID: "default", Slug: "draft", LatestRevisionID: "r3"},
			{ID: "s3", TenantID: tenant, TeamID: "default", Slug: "old", PublishedRevisionID: "r4", ArchivedAt: &archived},
			{ID: "s4", TenantID: tenant, TeamID: "others", Slug: "hidden", PublishedRevisionID: "r5"},
			{ID: "s5", TenantID: "rival", TeamID: "default", Slug: "theirs", PublishedRevisionID: "r6"},
		},
		revisions: []sallyport.Revision{
			{ID: "r1", SkillID: "s1", Number: 1, Digest: pinOne, Components: components},
			{ID: "r2", SkillID: "s1", Number: 2, Digest: pinTwo, Components: components},
			{ID: "r3", SkillID: "s2", Number: 1, Digest: pinOne, Components: components[:1]},
			{ID: "r4", SkillID: "s3", Number: 1, Digest: pinOne, Components: components},
			{ID: "r5", SkillID: "s4", Number: 1, Digest: pinOne, Components: components},
			{ID: "r6", SkillID: "s5", Number: 1, Digest: pinOne, Components: components},
		},
	}
	return w, access.New(access.Config{Store: w, Trail: w, Skills: w, Now: func() time.Time { return w.now }})
}

func admin() sallyport.Principal {
	return sallyport.Principal{
		ID: "root", TenantID: tenant, Teams: []sallyport.TeamID{"default", "blue"}, Scopes: sallyport.Scopes(),
	}
}

func without(p sallyport.Principal, scopes ...sallyport.Scope) sallyport.Principal {
	p.Scopes = slices.DeleteFunc(slices.Clone(p.Scopes), func(s sallyport.Scope) bool { return slices.Contains(scopes, s) })
	return p
}

// step records a write, or fails it.
func (w *world) step(name string) error {
	if err := w.faults[name]; err != nil {
		return err
	}
	w.steps = append(w.steps, name)
	return nil
}

func (w *world) Append(_ context.Context, entry sallyport.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.step("append"); err != nil {
		return err
	}
	w.entries = append(w.entries, entry)
	return nil
}

func (w *world) Resolve(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	for _, skill := range w.skills {
		if skill.Slug == ref.Slug || skill.ID == ref.SkillID {
			return skill, nil
		}
	}
	return sallyport.Skill{}, &sallyport.Error{Op: "fake", Code: sallyport.CodeSkillNotFound}
}

func (w *world) ResolveRevision(
	_ context.Context, _ sallyport.Principal, _ sallyport.Skill, id sallyport.RevisionID,
) (sallyport.Revision, error) {
	for _, revision := range w.revisions {
		if revision.ID == id {
			return revision, nil
		}
	}
	return sallyport.Revision{}, &sallyport.Error{Op: "fake", Code: sallyport.CodeRevisionNotFound}
}

func (w *world) AddGrant(_ context.Context, in sallyport.TenantID, grant sallyport.Grant) error {
	if err := w.step("add grant"); err != nil {
		return err
	}
	grant.TenantID = in
	w.grants = append(w.grants, grant)
	return nil
}

func (w *world) Grant(_ context.Context, in sallyport.TenantID, id sallyport.GrantID) (sallyport.Grant, error) {
	for _, grant := range w.grants {
		if grant.TenantID == in && grant.ID == id {
			return grant, nil
		}
	}
	return sallyport.Grant{}, &sallyport.Error{Op: "fake", Code: sallyport.CodeGrantNotFound}
}

func (w *world) Grants(_ context.Context, in sallyport.TenantID, skill sallyport.SkillID) ([]sallyport.Grant, error) {
	var found []sallyport.Grant
	for _, grant := range slices.Backward(w.grants) {
		if grant.TenantID == in && (skill == "" || grant.SkillID == skill) {
			found = append(found, grant)
		}
	}
	return found, nil
}

func (w *world) RevokeGrant(
	_ context.Context, in sallyport.TenantID, id sallyport.GrantID, by sallyport.PrincipalID, at time.Time,
) (bool, error) {
	if err := w.step("revoke grant"); err != nil {
		return false, err
	}
	for i, grant := range w.grants {
		if grant.TenantID == in && grant.ID == id && grant.RevokedAt == nil {
			w.grants[i].RevokedAt, w.grants[i].RevokedBy = &at, by
			return true, nil
		}
	}
	return false, nil
}

func (w *world) AddKey(_ context.Context, in sallyport.TenantID, key sallyport.Key, secretHash []byte) error {
	if err := w.step("add key"); err != nil {
		return err
	}
	key.TenantID = in
	w.keys = append(w.keys, key)
	w.hashes[string(secretHash)] = key.ID
	return nil
}

func (w *world) Keys(_ context.Context, in sallyport.TenantID) ([]sallyport.Key, error) {
	var found []sallyport.Key
	for _, key := range w.keys {
		if key.TenantID == in {
			found = append(found, key)
		}
	}
	return found, nil
}

func (w *world) RevokeKey(_ context.Context, in sallyport.TenantID, id sallyport.KeyID, at time.Time, _ access.Keep) (bool, error) {
	if err := w.step("revoke key"); err != nil {
		return false, err
	}
	for i, key := range w.keys {
		if key.TenantID == in && key.ID == id && key.RevokedAt == nil {
			w.keys[i].RevokedAt = &at
			return true, nil
		}
	}
	return false, nil
}

func (w *world) KeyByHash(_ context.Context, secretHash []byte) (sallyport.Key, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups++
	if err := w.faults["key by hash"]; err != nil {
		return sallyport.Key{}, err
	}
	for hash, id := range w.hashes {
		if bytes.Equal([]byte(hash), secretHash) {
			at := slices.IndexFunc(w.keys, func(k sallyport.Key) bool { return k.ID == id })
			return w.keys[at], nil
		}
	}
	return sallyport.Key{}, &sallyport.Error{Op: "fake", Code: sallyport.CodeKeyNotFound}
}

func (w *world) TouchKey(_ context.Context, _ sallyport.TenantID, id sallyport.KeyID, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touches++
	if err := w.faults["touch"]; err != nil {
		return err
	}
	for i := range w.keys {
		if w.keys[i].ID == id {
			w.keys[i].LastUsedAt = &at
		}
	}
	return nil
}

// refusedWith fails unless err has the code, and returns what a caller may read.
func refusedWith(tb testing.TB, err error, want sallyport.Code) string {
	tb.Helper()
	if got := sallyport.CodeOf(err); got != want {
		tb.Fatalf("code: got %q (%v), want %q", got, err, want)
	}
	return sallyport.Public(err).Message
}

// Standing is that of an open tenant which knows nothing of the principal.
func (w *world) Standing(_ context.Context, in sallyport.TenantID, _ sallyport.PrincipalID) (sallyport.Standing, error) {
	return sallyport.Standing{Tenant: sallyport.Tenant{ID: in}, Teams: []sallyport.TeamID{"default", "blue"}}, nil
}

func (w *world) SeeAccount(context.Context, sallyport.TenantID, sallyport.PrincipalID, time.Time) error {
	return nil
}

func (w *world) Roster(ctx context.Context, in sallyport.TenantID) (access.Roster, error) {
	keys, err := w.Keys(ctx, in)
	return access.Roster{Keys: keys}, err
}

func (w *world) TenantPolicy(context.Context, sallyport.TenantID) (sallyport.Policy, int64, error) {
	return sallyport.Policy{}, 0, nil
}

func (w *world) GrantRuns(context.Context, sallyport.TenantID, sallyport.GrantID) (access.GrantRuns, error) {
	return access.GrantRuns{}, nil
}

func (w *world) GrantEntries(context.Context, sallyport.TenantID, string) ([]sallyport.Entry, error) {
	return w.entries, nil
}

func (w *world) ExpiringGrants(context.Context, time.Time, time.Time, int) ([]sallyport.Grant, int, error) {
	return nil, 0, nil
}

func (w *world) NoteExpiring(context.Context, sallyport.TenantID, sallyport.GrantID, sallyport.Entry) (bool, error) {
	return false, nil
}
