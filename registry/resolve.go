package registry

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

const opResolve = "registry.resolve"

// Resolve finds the skill that ref names for p. An ID that is absent or not p's is ACCESS_DENIED either way; an
// unknown slug is SKILL_NOT_FOUND. Archived skills resolve; callers that must not use one check.
func (s *Service) Resolve(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	switch {
	case p.ID == "" || p.TenantID == "":
		return sallyport.Skill{}, &sallyport.Error{Op: opResolve, Code: sallyport.CodeAccessDenied}
	case ref.SkillID != "":
		return s.resolveID(ctx, p, ref)
	case ref.Slug != "":
		return s.resolveSlug(ctx, p, ref)
	}
	return sallyport.Skill{}, sallyport.Errorf(opResolve, sallyport.CodeInvalidArgument, "no skill is named; send slug or skill_id")
}

func (s *Service) resolveID(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	skill, err := s.cfg.Store.Skill(ctx, p.TenantID, ref.SkillID)
	if err != nil && sallyport.CodeOf(err) != sallyport.CodeSkillNotFound {
		return sallyport.Skill{}, err
	}
	if err != nil || !p.CanSee(skill) {
		// One answer for what is not there and what is not yours.
		return sallyport.Skill{}, sallyport.Errorf(opResolve, sallyport.CodeAccessDenied, "no skill of yours has this skill_id; list the skills to see those you can use")
	}
	if ref.Slug != "" && ref.Slug != skill.Slug || ref.TeamID != "" && ref.TeamID != skill.TeamID {
		return sallyport.Skill{}, sallyport.Errorf(opResolve, sallyport.CodeInvalidArgument, "skill_id names another skill than slug and team_id; send one of them")
	}
	return skill, nil
}

func (s *Service) resolveSlug(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	if ref.TeamID != "" && !p.InTeam(ref.TeamID) {
		return sallyport.Skill{}, notInTeam(opResolve)
	}
	all, err := s.cfg.Store.SkillsBySlug(ctx, p.TenantID, ref.Slug)
	if err != nil {
		return sallyport.Skill{}, err
	}
	var teams []sallyport.TeamID
	var found sallyport.Skill
	for _, skill := range all {
		switch {
		case !p.CanSee(skill) || ref.TeamID != "" && skill.TeamID != ref.TeamID:
		case skill.TeamID == "":
			return skill, nil // personal first
		default:
			teams = append(teams, skill.TeamID)
			found = skill
		}
	}
	switch len(teams) {
	case 0:
		return sallyport.Skill{}, sallyport.Errorf(opResolve, sallyport.CodeSkillNotFound, "no skill of yours has the slug %q; list the skills to see those you can use", shorten(ref.Slug))
	case 1:
		return found, nil
	}
	slices.Sort(teams)
	names := make([]string, len(teams))
	for i, team := range teams {
		names[i] = string(team)
	}
	return sallyport.Skill{}, &sallyport.Error{
		Op: opResolve, Code: sallyport.CodeSkillAmbiguous,
		Message: "the slug names a skill in more than one team (" + strings.Join(names, ", ") + "); send team_id",
		Details: map[string]any{"teams": teams},
	}
}

// ResolveRevision returns the named revision of skill, else the published, else the latest, with its manifest
// and every component's Content, read in one transaction and checked against their digests. Another skill's revision is
// REVISION_NOT_FOUND.
func (s *Service) ResolveRevision(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, id sallyport.RevisionID) (sallyport.Revision, error) {
	id, err := chooseRevision(p, skill, id)
	if err != nil {
		return sallyport.Revision{}, err
	}
	revision, err := s.cfg.Store.RevisionContent(ctx, p.TenantID, skill.ID, id)
	if err != nil {
		return sallyport.Revision{}, err
	}
	digest, err := Digest(revision.Components)
	if err == nil && !digest.Equal(revision.Digest) {
		err = &sallyport.Error{Op: opResolve, Code: sallyport.CodeInternal, Message: "the stored revision is not what its digest says"}
	}
	return revision, err
}

// chooseRevision returns id, else the published, else the latest revision of a skill that p can see.
func chooseRevision(p sallyport.Principal, skill sallyport.Skill, id sallyport.RevisionID) (sallyport.RevisionID, error) {
	if !p.CanSee(skill) {
		return "", &sallyport.Error{Op: opResolve, Code: sallyport.CodeAccessDenied}
	}
	if id = cmp.Or(id, skill.PublishedRevisionID, skill.LatestRevisionID); id == "" {
		return "", sallyport.Errorf(opResolve, sallyport.CodeRevisionNotFound, "the skill has no revision yet; save one")
	}
	return id, nil
}
