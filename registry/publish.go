package registry

import (
	"cmp"
	"context"

	"github.com/sallyport-dev/sallyport"
)

// Publish moves the published pointer of the skill to the revision (an older one rolls back); an empty id means
// the latest. Needs memory:write. Publishing what is published changes nothing.
func (s *Service) Publish(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (SkillView, error) {
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
		if skill, _, err = s.publish(ctx, p, skill, revision); err != nil {
			return SkillView{}, err
		}
	}
	return s.view(ctx, p, skill)
}

// publish moves the pointer and records it. It returns the skill and the revision as they are now.
func (s *Service) publish(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision) (sallyport.Skill, sallyport.Revision, error) {
	at := s.now()
	published, err := s.cfg.Store.Publish(ctx, p.TenantID, skill.ID, revision.ID, at)
	if err != nil {
		return skill, revision, err
	}
	if revision.State != sallyport.RevisionPublished {
		revision.State, revision.PublishedAt = sallyport.RevisionPublished, &at
	}
	var before map[string]any
	if skill.PublishedRevisionID != "" {
		before = map[string]any{"previous_revision_id": skill.PublishedRevisionID}
	}
	s.record(ctx, p, sallyport.ActionSkillPublish, published, &revision, before)
	return published, revision, nil
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
