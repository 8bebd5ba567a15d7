package registry_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// memory is a Store in memory. A hook of the store's own may fail a save in its middle.
type memory struct {
	mu        sync.Mutex
	skills    map[sallyport.SkillID]sallyport.Skill
	revisions map[sallyport.SkillID][]sallyport.Revision // oldest first, with content
	keys      map[string]registry.Saved                  // by principal and idempotency key
	saves     int
	purged    []sallyport.Entry // entries of purges
	failSave  error
	beforeCAS func() // runs outside the lock, before a save compares
}

func newMemory() *memory {
	return &memory{skills: map[sallyport.SkillID]sallyport.Skill{}, revisions: map[sallyport.SkillID][]sallyport.Revision{}, keys: map[string]registry.Saved{}}
}

func (m *memory) Skill(_ context.Context, tenant sallyport.TenantID, id sallyport.SkillID) (sallyport.Skill, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	skill, found := m.skills[id]
	if !found || skill.TenantID != tenant {
		return sallyport.Skill{}, &sallyport.Error{Op: "memory", Code: sallyport.CodeSkillNotFound}
	}
	return skill, nil
}

func (m *memory) SkillsBySlug(_ context.Context, tenant sallyport.TenantID, slug string) ([]sallyport.Skill, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []sallyport.Skill
	for _, skill := range m.skills {
		if skill.TenantID == tenant && skill.Slug == slug {
			out = append(out, skill)
		}
	}
	return out, nil
}

func (m *memory) ListSkills(_ context.Context, tenant sallyport.TenantID, filter registry.SkillFilter) (registry.SkillPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []sallyport.Skill
	for _, skill := range m.skills {
		seen := skill.TeamID == "" && filter.Owner != "" && skill.OwnerID == filter.Owner || slices.Contains(filter.Teams, skill.TeamID)
		if skill.TenantID == tenant && seen && (filter.IncludeArchived || !skill.Archived()) && strings.Contains(skill.Slug, filter.Query) {
			all = append(all, skill)
		}
	}
	slices.SortFunc(all, func(a, b sallyport.Skill) int { return strings.Compare(a.Slug, b.Slug) })
	page := registry.SkillPage{Total: len(all)}
	for _, skill := range all {
		if skill.Slug <= filter.Cursor {
			continue
		}
		if len(page.Skills) == filter.Limit {
			page.NextCursor = page.Skills[len(page.Skills)-1].Slug
			break
		}
		page.Skills = append(page.Skills, skill)
	}
	return page, nil
}

func (m *memory) Revisions(_ context.Context, tenant sallyport.TenantID, id sallyport.SkillID) ([]sallyport.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []sallyport.Revision
	for _, revision := range slices.Backward(m.revisions[id]) {
		if revision.TenantID == tenant {
			revision.Components = nil
			out = append(out, revision)
		}
	}
	return out, nil
}

func (m *memory) Revision(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID) (sallyport.Revision, error) {
	revision, err := m.RevisionContent(ctx, tenant, skill, id)
	for i := range revision.Components {
		revision.Components[i].Content = nil
	}
	return revision, err
}

func (m *memory) RevisionContent(_ context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID) (sallyport.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, revision := range m.revisions[skill] {
		if revision.ID == id && revision.TenantID == tenant {
			revision.Components = slices.Clone(revision.Components)
			return revision, nil
		}
	}
	return sallyport.Revision{}, &sallyport.Error{Op: "memory", Code: sallyport.CodeRevisionNotFound}
}

func (m *memory) ComponentContent(_ context.Context, tenant sallyport.TenantID, id sallyport.RevisionID, path string) (sallyport.Component, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, revisions := range m.revisions {
		for _, revision := range revisions {
			if component, found := revision.Component(path); found && revision.ID == id && revision.TenantID == tenant {
				return component, nil
			}
		}
	}
	return sallyport.Component{}, &sallyport.Error{Op: "memory", Code: sallyport.CodeComponentNotFound}
}

func (m *memory) SaveRevision(_ context.Context, tenant sallyport.TenantID, save registry.RevisionSave) (sallyport.Skill, sallyport.Revision, error) {
	if m.beforeCAS != nil {
		m.beforeCAS()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failSave != nil {
		return sallyport.Skill{}, sallyport.Revision{}, m.failSave
	}
	skill := save.Skill
	if save.Create {
		for _, other := range m.skills {
			if other.TenantID == tenant && other.Slug == skill.Slug && other.TeamID == skill.TeamID && other.OwnerID == skill.OwnerID {
				return sallyport.Skill{}, sallyport.Revision{}, &sallyport.Error{Op: "memory", Code: sallyport.CodeSlugTaken}
			}
		}
	} else {
		stored := m.skills[skill.ID]
		if stored.LatestRevisionID != save.ExpectedLatest {
			return sallyport.Skill{}, sallyport.Revision{}, &sallyport.Error{Op: "memory", Code: sallyport.CodeRevisionConflict}
		}
		stored.Name, stored.Description, stored.UpdatedAt = skill.Name, skill.Description, skill.UpdatedAt
		skill = stored
	}
	revision := save.Revision
	revision.Number = len(m.revisions[skill.ID]) + 1
	skill.LatestRevisionID = revision.ID
	if save.Publish {
		skill.PublishedRevisionID = revision.ID
	}
	m.skills[skill.ID] = skill
	m.revisions[skill.ID] = append(m.revisions[skill.ID], revision)
	m.saves++
	if save.Once != nil {
		m.keys[string(revision.Author)+" "+save.Once.Key] = registry.Saved{Request: save.Once.Request, SkillID: skill.ID, RevisionID: revision.ID}
	}
	return skill, revision, nil
}

func (m *memory) SavedOnce(_ context.Context, _ sallyport.TenantID, p sallyport.PrincipalID, key string, _ time.Time) (registry.Saved, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved, found := m.keys[string(p)+" "+key]
	return saved, found, nil
}

func (m *memory) Publish(_ context.Context, tenant sallyport.TenantID, id sallyport.SkillID, revision sallyport.RevisionID, at time.Time, _ sallyport.PrincipalID) (sallyport.Skill, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, stored := range m.revisions[id] {
		if stored.ID == revision && stored.TenantID == tenant {
			m.revisions[id][i].State, m.revisions[id][i].PublishedAt = sallyport.RevisionPublished, &at
			skill := m.skills[id]
			skill.PublishedRevisionID = revision
			m.skills[id] = skill
			return skill, nil
		}
	}
	return sallyport.Skill{}, &sallyport.Error{Op: "memory", Code: sallyport.CodeRevisionNotFound}
}

func (m *memory) DeleteRevision(_ context.Context, tenant sallyport.TenantID, id sallyport.SkillID, revision sallyport.RevisionID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, stored := range m.revisions[id] {
		if stored.ID != revision || stored.TenantID != tenant {
			continue
		}
		if stored.State != sallyport.RevisionDraft || m.skills[id].LatestRevisionID == revision {
			return &sallyport.Error{Op: "memory", Code: sallyport.CodeRevisionConflict}
		}
		m.revisions[id] = slices.Delete(m.revisions[id], i, i+1)
		return nil
	}
	return &sallyport.Error{Op: "memory", Code: sallyport.CodeRevisionNotFound}
}

func (m *memory) SetArchived(_ context.Context, _ sallyport.TenantID, id sallyport.SkillID, at *time.Time) (sallyport.Skill, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	skill := m.skills[id]
	skill.ArchivedAt = at
	m.skills[id] = skill
	return skill, nil
}

// trail keeps entries, or fails.
type trail struct {
	mu      sync.Mutex
	entries []sallyport.Entry
	fail    bool
}

func (t *trail) Append(ctx context.Context, entry sallyport.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fail {
		return errors.New("the disk is full")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t.entries = append(t.entries, entry)
	return nil
}

func (t *trail) actions() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []string{}
	for _, entry := range t.entries {
		out = append(out, string(entry.Action)+" "+entry.Entity)
	}
	return out
}

// bench is a Service over a memory.
type bench struct {
	*registry.Service
	store *memory
	trail *trail
}

func newBench(tb testing.TB) bench {
	tb.Helper()
	b := bench{store: newMemory(), trail: &trail{}}
	b.Service = registry.New(registry.Config{Store: b.store, Trail: b.trail, Logger: slog.New(slog.DiscardHandler)})
	return b
}

var (
	alice = principal("alice", "default", "eng")
	bob   = principal("bob", "default", "eng")
	carol = principal("carol", "default")
)

func principal(id sallyport.PrincipalID, teams ...sallyport.TeamID) sallyport.Principal {
	return sallyport.Principal{
		ID: id, TenantID: "acme", Teams: teams, Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite},
	}
}

// file is a file of a request.
func file(path, content string) registry.File {
	return registry.File{Path: path, Content: []byte(content)}
}

// skillMD is a valid SKILL.md.
func skillMD(name string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + ".\n---\n# " + name + "\n"
}

// save saves or fails the test.
func (b bench) save(tb testing.TB, p sallyport.Principal, req registry.SaveRequest) registry.SaveResult {
	tb.Helper()
	result, err := b.Save(tb.Context(), p, req)
	if err != nil {
		tb.Fatalf("save: %v", err)
	}
	return result
}

// wantCode fails the test unless err has the code.
func wantCode(tb testing.TB, err error, code sallyport.Code) {
	tb.Helper()
	if got := sallyport.CodeOf(err); got != code {
		tb.Errorf("error %v has the code %q, want %q", err, got, code)
	}
}

func (m *memory) SetDeleted(_ context.Context, _ sallyport.TenantID, id sallyport.SkillID, at time.Time) (sallyport.Skill, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	skill := m.skills[id]
	skill.ArchivedAt, skill.DeletedAt = &at, &at
	m.skills[id] = skill
	return skill, nil
}

// PurgeSkill removes an archived skill whole: nothing names anything in memory.
func (m *memory) PurgeSkill(_ context.Context, tenant sallyport.TenantID, id sallyport.SkillID, purge registry.SkillPurge) (registry.PurgeReport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	skill, found := m.skills[id]
	if !found || skill.TenantID != tenant {
		return registry.PurgeReport{}, &sallyport.Error{Op: "memory", Code: sallyport.CodeSkillNotFound}
	}
	if !skill.Archived() || !purge.DeletedBefore.IsZero() && (skill.DeletedAt == nil || !skill.DeletedAt.Before(purge.DeletedBefore)) {
		return registry.PurgeReport{}, &sallyport.Error{Op: "memory", Code: sallyport.CodeRevisionConflict}
	}
	report := registry.PurgeReport{Skill: skill, SkillRemoved: true, DryRun: purge.DryRun}
	entry, err := purge.Entry(report)
	if err != nil || purge.DryRun {
		return report, err
	}
	m.purged = append(m.purged, entry)
	delete(m.skills, id)
	delete(m.revisions, id)
	return report, nil
}
