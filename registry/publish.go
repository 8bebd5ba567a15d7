package registry

import (
	"cmp"
	"context"

	"github.com/sallyport-dev/sallyport"
)

// Publish moves the published pointer of the skill to the revision (an older one rolls back); an empty id means
// the latest. Needs memory:write. Publishing what is published changes nothing.
//
// Where Config.PublishRequiresClean is set, a revision that is not clean is SKILL_INVALID with its findings in the details;
// see [Service.PublishOverride].
func (s *Service) Publish(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (SkillView, error) {
	return s.publishChecked(ctx, p, ref, id, "")
}

func (s *Service) publishChecked(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, override string) (SkillView, error) {
	skill, err := s.writable(ctx, p, ref)
	if err != nil {
		return SkillView{}, err
	}
	if skill.Archived() {
		return SkillView{}, archived("registry.publish")
	}
	if id = cmp.Or(id, skill.LatestRevisionID); id == "" {
		return SkillView{}, sallyport.Errorf("registry.publish", sallyport.CodeRevisionNotFound, "the skill has no revision yet; save one")
	}
	if id != skill.PublishedRevisionID {
		revision, err := s.cfg.Store.Revision(ctx, p.TenantID, skill.ID, id)
		if err != nil {
			return SkillView{}, err
		}
		if err := s.permit(ctx, p, skill, revision, override); err != nil {
			return SkillView{}, err
		}
		if skill, _, err = s.publish(ctx, p, skill, revision, override != ""); err != nil {
			return SkillView{}, err
		}
	}
	return s.view(ctx, p, skill)
}

// publish records that the pointer moves, unless that is on record already, and moves it. It returns the skill and the revision as they are now.
func (s *Service) publish(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision, recorded bool) (sallyport.Skill, sallyport.Revision, error) {
	at := s.now()
	if !recorded {
		if err := s.announce(ctx, p, sallyport.ActionSkillPublish, skill, &revision, published(skill, revision)); err != nil {
			return skill, revision, err
		}
	}
	now, err := s.cfg.Store.Publish(ctx, p.TenantID, skill.ID, revision.ID, at, p.ID)
	if err != nil {
		return skill, revision, s.unstored(ctx, sallyport.ActionSkillPublish, skill, err)
	}
	if revision.State != sallyport.RevisionPublished {
		revision.State, revision.PublishedAt = sallyport.RevisionPublished, &at
	}
	s.tell(ctx, p, now, revision)
	return now, revision, nil
}

// tell tells that the revision was published.
func (s *Service) tell(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision) {
	if s.cfg.Published != nil {
		s.cfg.Published(context.WithoutCancel(ctx), p, skill, withoutContent(revision))
	}
}

// published is the detail of what was published before, and of what is now.
func published(skill sallyport.Skill, revision sallyport.Revision) map[string]any {
	detail := change(map[string]any{"published_revision_id": skill.PublishedRevisionID}, map[string]any{"published_revision_id": revision.ID})
	if skill.PublishedRevisionID != "" {
		detail["previous_revision_id"] = skill.PublishedRevisionID
	}
	return detail
}

func (s *Service) writable(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	if err := p.Require("registry.write", sallyport.ScopeMemoryWrite); err != nil {
		return sallyport.Skill{}, err
	}
	return s.Resolve(ctx, p, ref)
}

// Archive takes a skill out of lists and runs. Needs memory:write. Archiving twice is not an error.
func (s *Service) Archive(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	skill, err := s.writable(ctx, p, ref)
	if err != nil || skill.Archived() {
		return skill, err
	}
	if err := s.announce(ctx, p, sallyport.ActionSkillArchive, skill, nil, archiving(false, true)); err != nil {
		return sallyport.Skill{}, err
	}
	at := s.now()
	archived, err := s.cfg.Store.SetArchived(ctx, p.TenantID, skill.ID, &at)
	if err != nil {
		return sallyport.Skill{}, s.unstored(ctx, sallyport.ActionSkillArchive, skill, err)
	}
	return archived, nil
}

// Restore undoes Archive. Needs memory:write.
func (s *Service) Restore(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	skill, err := s.writable(ctx, p, ref)
	if err != nil || !skill.Archived() {
		return skill, err
	}
	if err := s.announce(ctx, p, sallyport.ActionSkillRestore, skill, nil, archiving(true, false)); err != nil {
		return sallyport.Skill{}, err
	}
	restored, err := s.cfg.Store.SetArchived(ctx, p.TenantID, skill.ID, nil)
	if err != nil {
		return sallyport.Skill{}, s.unstored(ctx, sallyport.ActionSkillRestore, skill, err)
	}
	return restored, nil
}

func archiving(before, after bool) map[string]any {
	return change(map[string]any{"archived": before}, map[string]any{"archived": after})
}
