package registry

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// commit stores a draft that was found usable, in one transaction, and records it.
func (s *Service) commit(ctx context.Context, p sallyport.Principal, d draft) (SaveResult, error) {
	same, err := s.compare(ctx, p, &d)
	if err != nil {
		return SaveResult{}, err
	}
	if same {
		return s.unchanged(ctx, p, d)
	}
	if err := s.cleanDraft(d); err != nil {
		return SaveResult{}, err
	}
	save := s.revisionSave(p, d)
	skill, revision, err := s.cfg.Store.SaveRevision(ctx, p.TenantID, save)
	if err != nil {
		return SaveResult{}, saveFault(d, err)
	}
	s.record(ctx, p, sallyport.ActionSkillSave, skill, &revision, saved(d, save, skill))
	if d.publish {
		s.record(ctx, p, sallyport.ActionSkillPublish, skill, &revision, published(d.before(), revision))
		s.tell(ctx, p, skill, revision)
	}
	return d.result(skill, revision, save.Create, false), nil
}

// before is the skill as it was; the zero skill when there was none.
func (d draft) before() sallyport.Skill {
	if d.existing == nil {
		return sallyport.Skill{}
	}
	return *d.existing
}

// saved is the detail of a save.
func saved(d draft, save RevisionSave, skill sallyport.Skill) map[string]any {
	detail := change(nil, map[string]any{"latest_revision_id": skill.LatestRevisionID})
	if d.existing != nil {
		detail["before"] = map[string]any{"latest_revision_id": d.existing.LatestRevisionID}
	}
	detail["created"] = save.Create
	return detail
}

// cleanDraft refuses a draft that is to be published and is not clean, where that is demanded.
func (s *Service) cleanDraft(d draft) error {
	if !d.publish || !s.cfg.PublishRequiresClean {
		return nil
	}
	return s.clean(d.op, Scan(d.manifest.components))
}

// rehearse says what commit would do.
func (s *Service) rehearse(ctx context.Context, p sallyport.Principal, d draft) (SaveResult, error) {
	same, err := s.compare(ctx, p, &d)
	if err != nil {
		return SaveResult{}, err
	}
	if !same {
		if err := s.cleanDraft(d); err != nil {
			return SaveResult{}, err
		}
	}
	var skill sallyport.Skill
	if d.existing != nil {
		skill = *d.existing
	}
	revision := sallyport.Revision{Digest: d.manifest.digest}
	if same {
		revision = d.latest
	}
	return d.result(skill, revision, d.existing == nil, same), nil
}

// compare reports whether the newest revision has the same content, and sees to it that d.latest is known.
func (s *Service) compare(ctx context.Context, p sallyport.Principal, d *draft) (bool, error) {
	if d.existing == nil {
		return false, nil
	}
	if d.existing.Archived() {
		return false, archived(d.op)
	}
	if d.existing.LatestRevisionID == "" {
		return false, nil
	}
	if d.latest.ID == "" {
		latest, err := s.cfg.Store.Revision(ctx, p.TenantID, d.existing.ID, d.existing.LatestRevisionID)
		if err != nil {
			return false, err
		}
		d.latest = latest
	}
	return d.latest.Digest.Equal(d.manifest.digest), nil
}

// unchanged answers a save of what is already there, and publishes it when asked to.
func (s *Service) unchanged(ctx context.Context, p sallyport.Principal, d draft) (SaveResult, error) {
	skill, revision := *d.existing, d.latest
	if d.publish && skill.PublishedRevisionID != revision.ID {
		err := s.permit(ctx, p, skill, revision, "")
		if err != nil {
			return SaveResult{}, err
		}
		if skill, revision, err = s.publish(ctx, p, skill, revision, false); err != nil {
			return SaveResult{}, err
		}
	}
	return d.result(skill, revision, false, true), nil
}

func (d draft) result(skill sallyport.Skill, revision sallyport.Revision, created, unchanged bool) SaveResult {
	problems := d.manifest.problems
	if problems == nil {
		problems = []Problem{}
	}
	return SaveResult{
		Skill: skill, Revision: withoutContent(revision), Created: created, Unchanged: unchanged, Problems: problems,
	}
}

func (s *Service) revisionSave(p sallyport.Principal, d draft) RevisionSave {
	now := s.now()
	revision := sallyport.Revision{
		ID: sallyport.RevisionID(newID()), TenantID: p.TenantID, State: sallyport.RevisionDraft, Digest: d.manifest.digest,
		Frontmatter: d.manifest.frontmatter(), Message: d.message, Author: p.ID, CreatedAt: now, Components: d.manifest.components,
	}
	if d.publish {
		revision.State, revision.PublishedAt = sallyport.RevisionPublished, &now
	}
	for i := range revision.Components {
		revision.Components[i].ID = sallyport.ComponentID(newID())
	}
	save := RevisionSave{Create: d.existing == nil, Publish: d.publish, Instructions: d.manifest.md.Body, Once: d.once}
	if d.existing == nil {
		save.Skill = sallyport.Skill{
			ID: sallyport.SkillID(newID()), TenantID: p.TenantID, TeamID: d.place.team, OwnerID: d.place.owner,
			Slug: d.slug, CreatedAt: now,
		}
	} else {
		save.Skill, save.ExpectedLatest = *d.existing, d.existing.LatestRevisionID
	}
	save.Skill.Name, save.Skill.Description, save.Skill.UpdatedAt = d.manifest.md.Name, d.manifest.md.Description, now
	revision.SkillID = save.Skill.ID
	save.Revision = revision
	return save
}

// saveFault gives the two conflicts of the store a sentence that says what to do.
func saveFault(d draft, err error) error {
	switch sallyport.CodeOf(err) {
	case sallyport.CodeSlugTaken:
		return &sallyport.Error{
			Op: d.op, Code: sallyport.CodeSlugTaken, Err: err,
			Message: "another skill took the slug meanwhile; save again to add a revision to it, or choose another slug",
		}
	case sallyport.CodeRevisionConflict:
		return &sallyport.Error{
			Op: d.op, Code: sallyport.CodeRevisionConflict, Err: err,
			Message: "the skill changed meanwhile; read the latest revision, apply your change to it and save again",
		}
	}
	return err
}

func archived(op string) error {
	return sallyport.Errorf(op, sallyport.CodeSkillArchived, "the skill is archived; restore it first")
}

// withoutContent drops the bytes from a manifest.
func withoutContent(revision sallyport.Revision) sallyport.Revision {
	components := make([]sallyport.Component, len(revision.Components))
	copy(components, revision.Components)
	for i := range components {
		components[i].Content = nil
	}
	revision.Components = components
	return revision
}
