package access

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const (
	opReview   = "access.review"
	opHistory  = "access.history"
	opCoverage = "access.coverage"
	opExpiring = "access.expiring"
)

// reviewer refuses a principal who neither grants nor reads the trail.
func reviewer(op string, p sallyport.Principal) error {
	if p.Has(sallyport.ScopeAuditRead) {
		return nil
	}
	return p.Require(op, sallyport.ScopeGrantsWrite)
}

// Basis is what a review of a revision starts from.
type Basis struct {
	Skill    sallyport.Skill
	Revision sallyport.Revision
	// Last is the newest active grant of the skill, else its newest of any state; nil when there was never one.
	Last *sallyport.Grant
}

// ReviewBasis returns the revision that is to be reviewed (the published one when id is empty) and what was granted before it. Needs
// grants:write or audit:read.
func (s *Service) ReviewBasis(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (Basis, error) {
	if err := reviewer(opReview, p); err != nil {
		return Basis{}, err
	}
	skill, revision, err := s.reviewed(ctx, p, IssueRequest{Ref: ref, RevisionID: id})
	if err != nil {
		return Basis{}, err
	}
	grants, err := s.cfg.Store.Grants(ctx, p.TenantID, skill.ID)
	if err != nil {
		return Basis{}, err
	}
	basis := Basis{Skill: skill, Revision: revision}
	now := s.now()
	for _, g := range grants {
		if basis.Last == nil || g.State(now) == sallyport.GrantActive && basis.Last.State(now) != sallyport.GrantActive {
			basis.Last = &g
		}
	}
	return basis, nil
}

// Coverage says which scripts of a revision nobody has granted.
type Coverage struct {
	// UncoveredScripts are the paths of the scripts that no active grant pins in this content.
	UncoveredScripts []string `json:"uncovered_scripts"`
	// UncoveredGrants are the active grants of the skill that pin other content: the revision is not covered by them.
	UncoveredGrants []sallyport.Grant `json:"uncovered_grants"`
}

// Coverage holds the active grants of a skill against one of its revisions. Needs memory:write, as publishing does.
func (s *Service) Coverage(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision) (Coverage, error) {
	if err := p.Require(opCoverage, sallyport.ScopeMemoryWrite); err != nil {
		return Coverage{}, err
	}
	if !p.CanSee(skill) {
		return Coverage{}, &sallyport.Error{Op: opCoverage, Code: sallyport.CodeAccessDenied}
	}
	grants, err := s.cfg.Store.Grants(ctx, p.TenantID, skill.ID)
	if err != nil {
		return Coverage{}, err
	}
	now := s.now()
	grants = slices.DeleteFunc(grants, func(g sallyport.Grant) bool { return g.State(now) != sallyport.GrantActive })
	coverage := Coverage{UncoveredScripts: []string{}, UncoveredGrants: []sallyport.Grant{}}
	for _, g := range grants {
		if !g.Pin.Equal(revision.Digest) {
			coverage.UncoveredGrants = append(coverage.UncoveredGrants, g)
		}
	}
	for _, c := range revision.Components {
		covered := func(g sallyport.Grant) bool { return g.Pin.Equal(revision.Digest) && g.Covers(c.Path) }
		if c.Kind == sallyport.KindScript && !slices.ContainsFunc(grants, covered) {
			coverage.UncoveredScripts = append(coverage.UncoveredScripts, c.Path)
		}
	}
	return coverage, nil
}

// separate refuses a principal who saved or published the revision, where the tenant keeps the two duties apart.
func (s *Service) separate(ctx context.Context, p sallyport.Principal, policy sallyport.Policy, revision sallyport.Revision) error {
	if !policy.SeparateDuties {
		return nil
	}
	publishers, err := s.cfg.Store.Publishers(ctx, p.TenantID, revision.ID)
	if err != nil {
		return err
	}
	if revision.Author != p.ID && !slices.Contains(publishers, p.ID) {
		return nil
	}
	return &sallyport.Error{
		Op: opIssue, Code: sallyport.CodeAccessDenied, Details: map[string]any{"policy": "separate_duties"},
		Message: "the tenant keeps duties apart: who saved or published a revision does not grant it; ask another reviewer",
	}
}

// GrantPublished grants every script of a revision that p has just published, where server.yaml says grants: publisher. It does
// nothing, and returns nil, unless p carries memory:write and grants:write, the tenant does not keep the two duties apart, and there is
// a script that no active grant covers. It is audited as a grant by publishing before it is stored.
func (s *Service) GrantPublished(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision) (*sallyport.Grant, error) {
	if !s.cfg.Installation.GrantsByPublisher || !p.Has(sallyport.ScopeMemoryWrite) || !p.Has(sallyport.ScopeGrantsWrite) {
		return nil, nil //nolint:nilnil // nothing to grant is not an error
	}
	policy, _, err := s.cfg.Store.TenantPolicy(ctx, p.TenantID)
	if err != nil || policy.SeparateDuties {
		return nil, err
	}
	coverage, err := s.Coverage(ctx, p, skill, revision)
	if err != nil || len(coverage.UncoveredScripts) == 0 {
		return nil, err
	}
	id, err := newID(opIssue)
	if err != nil {
		return nil, err
	}
	now := s.now()
	grant := sallyport.Grant{
		ID: sallyport.GrantID(id), TenantID: p.TenantID, SkillID: skill.ID, Slug: skill.Slug, Pin: revision.Digest, RevisionID: revision.ID,
		IssuedBy: p.ID, IssuedAt: now,
	}
	detail := detailOf(grant, nil, stated(sallyport.GrantActive))
	detail.By = "publishing"
	if err := s.record(ctx, p, now, sallyport.ActionGrantIssue, entityOf(grant), detail); err != nil {
		return nil, err
	}
	if err := s.cfg.Store.AddGrant(ctx, p.TenantID, grant); err != nil {
		s.unstored(ctx, sallyport.ActionGrantIssue, entityOf(grant), err)
		return nil, err
	}
	return &grant, nil
}

// GrantRuns counts what ran under a grant.
type GrantRuns struct {
	Count   int        `json:"count"`
	FirstAt *time.Time `json:"first_at,omitempty"`
	LastAt  *time.Time `json:"last_at,omitempty"`
}

// GrantHistory is a grant with everything that is on record about it.
type GrantHistory struct {
	Grant sallyport.Grant
	// Entries are those of the trail, oldest first.
	Entries []sallyport.Entry
	Runs    GrantRuns
}

// History returns the history of a grant. Needs grants:write or audit:read; GRANT_NOT_FOUND.
func (s *Service) History(ctx context.Context, p sallyport.Principal, id sallyport.GrantID) (GrantHistory, error) {
	if err := reviewer(opHistory, p); err != nil {
		return GrantHistory{}, err
	}
	grant, err := s.visibleGrant(ctx, opHistory, p, id)
	if err != nil {
		return GrantHistory{}, err
	}
	history := GrantHistory{Grant: grant}
	if history.Runs, err = s.cfg.Store.GrantRuns(ctx, p.TenantID, id); err != nil {
		return GrantHistory{}, err
	}
	entries, err := s.cfg.Store.GrantEntries(ctx, p.TenantID, entityOf(grant))
	if err != nil {
		return GrantHistory{}, err
	}
	for _, entry := range entries {
		var about struct {
			GrantID sallyport.GrantID `json:"grant_id"`
		}
		if json.Unmarshal(entry.Detail, &about) == nil && about.GrantID == id {
			history.Entries = append(history.Entries, entry)
		}
	}
	return history, nil
}

// visibleGrant returns a grant that p may know of: one of a skill that p can see, or any for who reads the whole trail anyway.
// GRANT_NOT_FOUND for every other, the same as for none.
func (s *Service) visibleGrant(ctx context.Context, op string, p sallyport.Principal, id sallyport.GrantID) (sallyport.Grant, error) {
	grant, err := s.cfg.Store.Grant(ctx, p.TenantID, id)
	if err != nil {
		return sallyport.Grant{}, err
	}
	seen, err := s.seesGrant(ctx, p, grant, map[sallyport.SkillID]bool{})
	if err == nil && !seen {
		err = &sallyport.Error{Op: op, Code: sallyport.CodeGrantNotFound}
	}
	if err != nil {
		return sallyport.Grant{}, err
	}
	return grant, nil
}

// seesGrant reports whether p may know of the grant; known is what was asked before.
func (s *Service) seesGrant(ctx context.Context, p sallyport.Principal, grant sallyport.Grant, known map[sallyport.SkillID]bool) (bool, error) {
	if p.Has(sallyport.ScopeAuditRead) {
		return true, nil
	}
	if seen, asked := known[grant.SkillID]; asked {
		return seen, nil
	}
	skill, err := s.cfg.Skills.Resolve(ctx, p, sallyport.SkillRef{SkillID: grant.SkillID})
	switch sallyport.CodeOf(err) {
	case "":
		known[grant.SkillID] = p.CanSee(skill)
	case sallyport.CodeAccessDenied, sallyport.CodeSkillNotFound:
		known[grant.SkillID] = false
	default:
		return false, err
	}
	return known[grant.SkillID], nil
}

// expiringBatch bounds the grants of one round.
const expiringBatch = 500

// NoteExpiring writes grant.expiring to the trail of each tenant, once for each active grant that ends within notice, and logs it. It
// returns how many active grants end within notice, noted before or now.
func (s *Service) NoteExpiring(ctx context.Context, notice time.Duration) (int, error) {
	now := s.now()
	expiring, total, err := s.cfg.Store.ExpiringGrants(ctx, now, now.Add(notice), expiringBatch)
	if err != nil {
		return 0, err
	}
	for _, grant := range expiring {
		detail, err := json.Marshal(detailOf(grant, stated(sallyport.GrantActive), stated(sallyport.GrantActive)))
		if err != nil {
			return total, &sallyport.Error{Op: opExpiring, Code: sallyport.CodeInternal, Err: err}
		}
		noted, err := s.cfg.Store.NoteExpiring(ctx, grant.TenantID, grant.ID, sallyport.Entry{
			At: now, Action: sallyport.ActionGrantExpiring, Entity: entityOf(grant), Detail: detail,
		})
		if err != nil {
			return total, err
		}
		if noted {
			s.cfg.Logger.WarnContext(ctx, "a grant ends soon", "tenant_id", string(grant.TenantID), "grant_id", string(grant.ID), "expires_at", grant.ExpiresAt)
		}
	}
	return total, nil
}
