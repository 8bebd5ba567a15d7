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

// publish moves the pointer and records it, unless that is on record already. It returns the skill and the revision as they are now.
func (s *Service) publish(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision, recorded bool) (sallyport.Skill, sallyport.Revision, error) {
	at := s.now()
	now, err := s.cfg.Store.Publish(ctx, p.TenantID, skill.ID, revision.ID, at, p.ID)
	if err != nil {
		return skill, revision, err
	}
	if revision.State != sallyport.RevisionPublished {
		revision.State, revision.PublishedAt = sallyport.RevisionPublished, &at
	}
	if !recorded {
		s.record(ctx, p, sallyport.ActionSkillPublish, now, &revision, published(skill))
	}
	return now, revision, nil
}

// published is the detail of what was published before.
func published(skill sallyport.Skill) map[string]any {
	detail := map[string]any{}
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
	at := s.now()
	if skill, err = s.cfg.Store.SetArchived(ctx, p.TenantID, skill.ID, &at); err != nil {
		return sallyport.Skill{}, err
	}
	s.record(ctx, p, sallyport.ActionSkillArchive, skill, nil, nil)
	return skill, nil
}

// Restore undoes Archive. Needs memory:write.
func (s *Service) Restore(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	skill, err := s.writable(ctx, p, ref)
	if err != nil || !skill.Archived() {
		return skill, err
	}
	if skill, err = s.cfg.Store.SetArchived(ctx, p.TenantID, skill.ID, nil); err != nil {
		return sallyport.Skill{}, err
	}
	s.record(ctx, p, sallyport.ActionSkillRestore, skill, nil, nil)
	return skill, nil
}
