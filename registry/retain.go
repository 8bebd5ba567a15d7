package registry

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// DeleteRevision removes a draft that nothing names: no publication, no grant, no execution, and not the skill as its latest revision.
// Anything else is REVISION_CONFLICT with the reason; numbers are never used again. Needs memory:write.
func (s *Service) DeleteRevision(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
	const op = "registry.delete_revision"
	if id == "" {
		return sallyport.Revision{}, sallyport.Errorf(op, sallyport.CodeInvalidArgument, "no revision is named; send its id")
	}
	skill, err := s.writable(ctx, p, ref)
	if err != nil {
		return sallyport.Revision{}, err
	}
	revision, err := s.cfg.Store.Revision(ctx, p.TenantID, skill.ID, id)
	if err != nil {
		return sallyport.Revision{}, err
	}
	// Whether anything names it is the store's to say, so this is on record once it is done.
	if err := s.cfg.Store.DeleteRevision(ctx, p.TenantID, skill.ID, id); err != nil {
		return sallyport.Revision{}, err
	}
	s.record(ctx, p, sallyport.ActionRevisionDelete, skill, &revision, change(map[string]any{"state": revision.State, "digest": revision.Digest}, nil))
	return revision, nil
}
