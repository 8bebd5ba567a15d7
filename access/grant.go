package access

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sallyport-dev/sallyport"
)

const (
	opIssue  = "access.issue"
	opRevoke = "access.revoke"
	opList   = "access.list"
)

// maxNamedScripts bounds how many scripts an error names.
const maxNamedScripts = 20

// grantDetail is the Detail of grant.issue and grant.revoke.
type grantDetail struct {
	GrantID    sallyport.GrantID    `json:"grant_id"`
	SkillID    sallyport.SkillID    `json:"skill_id"`
	Slug       string               `json:"slug"`
	ScriptPath string               `json:"script_path,omitempty"`
	Pin        sallyport.Digest     `json:"pin"`
	RevisionID sallyport.RevisionID `json:"revision_id,omitempty"`
	ExpiresAt  *time.Time           `json:"expires_at,omitempty"`
	// By is publishing for a grant that came with it; empty for one that a reviewer issued.
	By     string       `json:"by,omitempty"`
	Before *stateDetail `json:"before"`
	After  *stateDetail `json:"after"`
}

// stateDetail is a grant or key before or after a change; nil when there is none.
type stateDetail struct {
	State sallyport.GrantState `json:"state"`
}

func stated(state sallyport.GrantState) *stateDetail { return &stateDetail{state} }

func detailOf(g sallyport.Grant, before, after *stateDetail) grantDetail {
	return grantDetail{g.ID, g.SkillID, g.Slug, g.ScriptPath, g.Pin, g.RevisionID, g.ExpiresAt, "", before, after}
}

// entityOf names what a grant is about: "slug" when it is skill-wide, else "slug/script".
func entityOf(g sallyport.Grant) string {
	if g.ScriptPath == "" {
		return g.Slug
	}
	return g.Slug + "/" + g.ScriptPath
}

// Issue stores a grant after auditing it. Needs grants:write.
//
// It refuses, in this order and before anything is written: a missing or malformed ExpectedDigest and an ExpiresAt that
// is not ahead (INVALID_ARGUMENT), a skill p cannot see (ACCESS_DENIED, SKILL_NOT_FOUND), an archived one
// (SKILL_ARCHIVED), no revision named and none published (INVALID_ARGUMENT), a script the revision does not have
// (UNSAFE_PATH, SCRIPT_NOT_FOUND, INVALID_COMPONENT_TYPE), a digest that is not the revision's (GRANT_CONFLICT), a revision
// that p saved or published where the tenant keeps duties apart (ACCESS_DENIED) and a trail that cannot be written (AUDIT_UNAVAILABLE). Several active grants for one script may exist.
func (s *Service) Issue(ctx context.Context, p sallyport.Principal, req IssueRequest) (sallyport.Grant, error) {
	if err := p.Require(opIssue, sallyport.ScopeGrantsWrite); err != nil {
		return sallyport.Grant{}, err
	}
	now := s.now()
	expected, err := sallyport.ParseDigest(string(req.ExpectedDigest))
	if err != nil {
		return sallyport.Grant{}, sallyport.Errorf(opIssue, sallyport.CodeInvalidArgument,
			"expected_digest must be the digest of the revision that was reviewed: sha256: and 64 hex digits")
	}
	expires, err := s.checkExpiry(opIssue, req.ExpiresAt, now)
	if err != nil {
		return sallyport.Grant{}, err
	}
	skill, revision, err := s.reviewed(ctx, p, req)
	if err != nil {
		return sallyport.Grant{}, err
	}
	scriptPath, err := scriptOf(skill, revision, req.ScriptPath)
	if err != nil {
		return sallyport.Grant{}, err
	}
	if !revision.Digest.Equal(expected) {
		return sallyport.Grant{}, sallyport.Errorf(opIssue, sallyport.CodeGrantConflict,
			"the digest of revision %d of %q is not the expected one; review the revision again and send the digest you read",
			revision.Number, skill.Slug)
	}
	policy, _, err := s.cfg.Store.TenantPolicy(ctx, p.TenantID)
	if err != nil {
		return sallyport.Grant{}, err
	}
	if err := s.separate(ctx, p, policy, revision); err != nil {
		return sallyport.Grant{}, err
	}
	id, err := newID(opIssue)
	if err != nil {
		return sallyport.Grant{}, err
	}
	grant := sallyport.Grant{
		ID: sallyport.GrantID(id), TenantID: p.TenantID, SkillID: skill.ID, Slug: skill.Slug, ScriptPath: scriptPath,
		Pin: expected, RevisionID: revision.ID, IssuedBy: p.ID, IssuedAt: now, ExpiresAt: expires,
	}
	if err := s.record(ctx, p, now, sallyport.ActionGrantIssue, entityOf(grant), detailOf(grant, nil, stated(sallyport.GrantActive))); err != nil {
		return sallyport.Grant{}, err
	}
	if err := s.cfg.Store.AddGrant(ctx, p.TenantID, grant); err != nil {
		s.cfg.Logger.ErrorContext(ctx, "a grant was audited and then not stored", "grant_id", string(grant.ID), "error", err)
		return sallyport.Grant{}, err
	}
	return grant, nil
}

// reviewed returns the skill and the revision that req is about: the one it names, else the published one, and never the
// latest: what nobody named or published, nobody reviewed.
func (s *Service) reviewed(ctx context.Context, p sallyport.Principal, req IssueRequest) (sallyport.Skill, sallyport.Revision, error) {
	skill, err := s.cfg.Skills.Resolve(ctx, p, req.Ref)
	if err != nil {
		return sallyport.Skill{}, sallyport.Revision{}, err
	}
	id := req.RevisionID
	switch {
	case !p.CanSee(skill):
		err = &sallyport.Error{Op: opIssue, Code: sallyport.CodeAccessDenied}
	case skill.Archived():
		err = sallyport.Errorf(opIssue, sallyport.CodeSkillArchived, "the skill %q is archived; restore it before granting it", skill.Slug)
	case id == "" && skill.PublishedRevisionID == "":
		err = sallyport.Errorf(opIssue, sallyport.CodeInvalidArgument,
			"no revision of %[1]q is published and the request names none; publish one with: sallyport skill publish %[1]s", skill.Slug)
	case id == "":
		id = skill.PublishedRevisionID
	}
	if err != nil {
		return sallyport.Skill{}, sallyport.Revision{}, err
	}
	revision, err := s.cfg.Skills.ResolveRevision(ctx, p, skill, id)
	if err != nil {
		return sallyport.Skill{}, sallyport.Revision{}, err
	}
	if revision.ID != id || revision.SkillID != skill.ID {
		return sallyport.Skill{}, sallyport.Revision{}, &sallyport.Error{Op: opIssue, Code: sallyport.CodeRevisionNotFound}
	}
	return skill, revision, nil
}

// scriptOf returns the path of the script that name (a path, else a component id) means in revision; an empty name is
// the whole skill and stays empty.
func scriptOf(skill sallyport.Skill, revision sallyport.Revision, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if err := sallyport.CheckPath(name); err != nil {
		return "", err
	}
	component, found := revision.Component(name)
	if !found {
		for _, c := range revision.Components {
			if c.ID != "" && string(c.ID) == name {
				component, found = c, true
			}
		}
	}
	switch {
	case !found:
		return "", sallyport.Errorf(opIssue, sallyport.CodeScriptNotFound,
			"revision %d of %q has no script %q; %s", revision.Number, skill.Slug, name, scriptsOf(revision))
	case component.Kind != sallyport.KindScript:
		return "", sallyport.Errorf(opIssue, sallyport.CodeInvalidComponentType,
			"%q is a component of kind %s, and only a script can be granted; %s", name, component.Kind, scriptsOf(revision))
	}
	return component.Path, nil
}

// scriptsOf is the part of an error that names the scripts there are.
func scriptsOf(revision sallyport.Revision) string {
	var paths []string
	for _, c := range revision.Components {
		if c.Kind == sallyport.KindScript {
			paths = append(paths, c.Path)
		}
	}
	switch {
	case len(paths) == 0:
		return "it has no scripts"
	case len(paths) > maxNamedScripts:
		return fmt.Sprintf("its scripts are %s and %d more",
			strings.Join(paths[:maxNamedScripts], ", "), len(paths)-maxNamedScripts)
	}
	return "its scripts are " + strings.Join(paths, ", ")
}

// Revoke ends a grant for every run that begins after it. Needs grants:write. Revoking twice is GRANT_NOT_FOUND.
func (s *Service) Revoke(ctx context.Context, p sallyport.Principal, id sallyport.GrantID) (sallyport.Grant, error) {
	if err := p.Require(opRevoke, sallyport.ScopeGrantsWrite); err != nil {
		return sallyport.Grant{}, err
	}
	grant, err := s.visibleGrant(ctx, opRevoke, p, id)
	if err != nil {
		return sallyport.Grant{}, err
	}
	alreadyRevoked := sallyport.Errorf(opRevoke, sallyport.CodeGrantNotFound, "the grant is revoked already")
	if grant.RevokedAt != nil {
		return sallyport.Grant{}, alreadyRevoked
	}
	now := s.now()
	if err := s.record(ctx, p, now, sallyport.ActionGrantRevoke, entityOf(grant), detailOf(grant, stated(grant.State(now)), stated(sallyport.GrantRevoked))); err != nil {
		return sallyport.Grant{}, err
	}
	revoked, err := s.cfg.Store.RevokeGrant(ctx, p.TenantID, id, p.ID, now)
	if err != nil {
		s.cfg.Logger.ErrorContext(ctx, "a revocation was audited and then not stored", "grant_id", string(id), "error", err)
		return sallyport.Grant{}, err
	}
	if !revoked {
		return sallyport.Grant{}, alreadyRevoked
	}
	grant.RevokedAt, grant.RevokedBy = &now, p.ID
	return grant, nil
}

// List returns the grants of the skills that p can see, or of one of them when ref is not zero, newest first; with audit:read those
// of the whole tenant. Needs grants:write or audit:read.
func (s *Service) List(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) ([]sallyport.Grant, error) {
	if err := p.Require(opList, sallyport.ScopeGrantsWrite); err != nil && !p.Has(sallyport.ScopeAuditRead) {
		return nil, err
	}
	var skillID sallyport.SkillID
	if ref != (sallyport.SkillRef{}) {
		skill, err := s.cfg.Skills.Resolve(ctx, p, ref)
		if err != nil {
			return nil, err
		}
		skillID = skill.ID
	}
	grants, err := s.cfg.Store.Grants(ctx, p.TenantID, skillID)
	if err != nil {
		return nil, err
	}
	known := map[sallyport.SkillID]bool{}
	var shown []sallyport.Grant
	for _, grant := range grants {
		seen, err := s.seesGrant(ctx, p, grant, known)
		if err != nil {
			return nil, err
		}
		if seen {
			shown = append(shown, grant)
		}
	}
	return shown, nil
}

// newID returns an id that sorts by the time it was made.
func newID(op string) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", &sallyport.Error{Op: op, Code: sallyport.CodeInternal, Err: err}
	}
	return id.String(), nil
}
