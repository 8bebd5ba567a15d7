package registry

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/sallyport-dev/sallyport"
)

const opSave = "registry.save"

// place is where a skill lives: in a team, or with one principal.
type place struct {
	team  sallyport.TeamID
	owner sallyport.PrincipalID
}

func newPlace(op string, p sallyport.Principal, team sallyport.TeamID, personal bool) (place, error) {
	switch {
	case personal && team != "":
		return place{}, sallyport.Errorf(op, sallyport.CodeInvalidArgument, "a skill is personal or of a team; send one of personal and team_id")
	case personal:
		return place{owner: p.ID}, nil
	case team == "":
		team = sallyport.DefaultTeam
	}
	if !p.InTeam(team) {
		return place{}, notInTeam(op)
	}
	return place{team: team}, nil
}

func notInTeam(op string) error {
	return sallyport.Errorf(op, sallyport.CodeAccessDenied, "you are not in this team; use a team of yours, or personal")
}

func (at place) holds(skill sallyport.Skill) bool {
	return skill.TeamID == at.team && (at.team != "" || skill.OwnerID == at.owner)
}

// Save creates a skill or adds a revision. Needs memory:write.
//
// Every path of the request is checked before anything is read: one that is not plain refuses the whole request. Equal content
// makes no new revision; Publish still publishes it. Of two writers racing one slug or one revision one wins, the
// other gets SLUG_TAKEN or REVISION_CONFLICT. A skill that is not usable is SKILL_INVALID with details.problems.
func (s *Service) Save(ctx context.Context, p sallyport.Principal, req SaveRequest) (SaveResult, error) {
	if err := p.Require(opSave, sallyport.ScopeMemoryWrite); err != nil {
		return SaveResult{}, err
	}
	if req.IdempotencyKey != "" {
		return s.saveOnce(ctx, p, req)
	}
	return s.save(ctx, p, req, nil)
}

func (s *Service) save(ctx context.Context, p sallyport.Principal, req SaveRequest, once *SaveOnce) (SaveResult, error) {
	if err := checkRequest(req); err != nil {
		return SaveResult{}, err
	}
	d, err := s.locate(ctx, p, req)
	if err != nil {
		return SaveResult{}, err
	}
	files, err := s.base(ctx, p, &d, req.ReplaceAll)
	if err != nil {
		return SaveResult{}, err
	}
	if err := merge(files, req); err != nil {
		return SaveResult{}, err
	}
	if d.manifest, err = s.assemble(files, d.slug); err != nil {
		return SaveResult{}, err
	}
	if err := refusal(d.manifest.problems); err != nil {
		return SaveResult{}, err
	}
	if Slug(d.manifest.md.Name) == d.slug {
		// The slug stood in for a directory; a name that gives this very slug fits it.
		d.manifest.problems = slices.DeleteFunc(d.manifest.problems, func(p Problem) bool { return p.Code == ProblemNameDirectory })
	}
	d.once = once
	return s.commit(ctx, p, d)
}

// draft is a save on its way.
type draft struct {
	op       string
	existing *sallyport.Skill // nil creates
	// latest is the newest revision of existing; its ID is what the save builds on.
	latest   sallyport.Revision
	place    place
	slug     string
	manifest manifest
	publish  bool
	message  string
	once     *SaveOnce
}

// locate finds the skill that a request is about, or where a new one goes.
func (s *Service) locate(ctx context.Context, p sallyport.Principal, req SaveRequest) (draft, error) {
	d := draft{op: opSave, publish: req.Publish, message: req.Message, slug: req.Ref.Slug}
	skill, found, err := s.lookFor(ctx, p, req, &d)
	switch {
	case err != nil:
		return d, err
	case found && req.CreateOnly:
		return d, sallyport.Errorf(opSave, sallyport.CodeSlugTaken, "the slug %q is taken; choose another, or save without create_only to add a revision", skill.Slug)
	case found && skill.Archived():
		return d, archived(opSave)
	case found && req.ExpectedRevisionID != "" && req.ExpectedRevisionID != skill.LatestRevisionID:
		return d, &sallyport.Error{
			Op: opSave, Code: sallyport.CodeRevisionConflict,
			Message: "the skill changed since the revision you expected; read the latest revision, apply your change to it and save again",
			Details: map[string]any{"latest_revision_id": skill.LatestRevisionID},
		}
	case found:
		d.existing, d.slug = &skill, skill.Slug
		return d, nil
	case req.ExpectedRevisionID != "":
		return d, sallyport.Errorf(opSave, sallyport.CodeSkillNotFound, "no such skill to add a revision to; leave the expected revision out to create it")
	case !sallyport.ValidSlug(d.slug):
		return d, sallyport.Errorf(opSave, sallyport.CodeInvalidArgument,
			"%q is no slug for a new skill; use a-z, 0-9 and single hyphens, at most %d characters, such as %q", shorten(d.slug), sallyport.SlugMaxLength, Slug(d.slug))
	}
	return d, nil
}

// lookFor looks the skill of a request up and fills in place and slug for when there is none.
func (s *Service) lookFor(ctx context.Context, p sallyport.Principal, req SaveRequest, d *draft) (sallyport.Skill, bool, error) {
	ref := req.Ref
	if ref.SkillID != "" {
		if req.CreateOnly {
			return sallyport.Skill{}, false, sallyport.Errorf(opSave, sallyport.CodeInvalidArgument, "create_only and skill_id contradict each other; send a slug to create a skill")
		}
		skill, err := s.Resolve(ctx, p, ref)
		if err == nil && req.Personal && skill.TeamID != "" {
			err = sallyport.Errorf(opSave, sallyport.CodeInvalidArgument, "the skill belongs to a team; leave personal out")
		}
		return skill, err == nil, err
	}
	var err error
	if d.slug == "" {
		if d.slug, err = slugOfRequest(req); err != nil {
			return sallyport.Skill{}, false, err
		}
	}
	if !req.Personal && ref.TeamID == "" && !req.CreateOnly {
		skill, err := s.Resolve(ctx, p, sallyport.SkillRef{Slug: d.slug})
		if sallyport.CodeOf(err) != sallyport.CodeSkillNotFound {
			return skill, err == nil, err
		}
	}
	if d.place, err = newPlace(opSave, p, ref.TeamID, req.Personal); err != nil {
		return sallyport.Skill{}, false, err
	}
	return s.skillIn(ctx, p, d.place, d.slug)
}

// skillIn returns the skill with this slug at a place.
func (s *Service) skillIn(ctx context.Context, p sallyport.Principal, at place, slug string) (sallyport.Skill, bool, error) {
	skills, err := s.cfg.Store.SkillsBySlug(ctx, p.TenantID, slug)
	if err != nil {
		return sallyport.Skill{}, false, err
	}
	for _, skill := range skills {
		if p.CanSee(skill) && at.holds(skill) {
			return skill, true, nil
		}
	}
	return sallyport.Skill{}, false, nil
}

// base returns the files that the new revision starts from.
func (s *Service) base(ctx context.Context, p sallyport.Principal, d *draft, replaceAll bool) (map[string]stagedFile, error) {
	files := map[string]stagedFile{}
	if d.existing == nil || d.existing.LatestRevisionID == "" {
		return files, nil
	}
	read := s.cfg.Store.RevisionContent
	if replaceAll {
		read = s.cfg.Store.Revision
	}
	latest, err := read(ctx, p.TenantID, d.existing.ID, d.existing.LatestRevisionID)
	if err != nil {
		return nil, err
	}
	d.latest = latest
	if !replaceAll {
		for _, c := range latest.Components {
			files[c.Path] = stagedFile{content: c.Content, mode: c.Mode, mediaType: c.MediaType}
		}
	}
	return files, nil
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
