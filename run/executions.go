package run

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// Get returns one execution with its streams. Needs memory:read; an execution of a skill that p cannot see is as absent.
func (s *Service) Get(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID) (sallyport.Execution, error) {
	const op = "run.get"
	if err := p.Require(op, sallyport.ScopeMemoryRead); err != nil {
		return sallyport.Execution{}, err
	}
	e, err := s.cfg.Ledger.Execution(ctx, p.TenantID, id)
	if err != nil {
		return sallyport.Execution{}, err
	}
	if !s.sees(ctx, p, e) {
		return sallyport.Execution{}, &sallyport.Error{Op: op, Code: sallyport.CodeExecutionNotFound}
	}
	return e, nil
}

// sees reports whether p may read e: it is p's own, or p can see its skill.
func (s *Service) sees(ctx context.Context, p sallyport.Principal, e sallyport.Execution) bool {
	if e.TenantID != p.TenantID {
		return false
	}
	if e.PrincipalID == p.ID {
		return true
	}
	_, err := s.cfg.Skills.Resolve(ctx, p, sallyport.SkillRef{SkillID: e.SkillID})
	return err == nil
}

// maxPage bounds a page of executions.
const maxPage = 200

// List returns a page of executions, newest first, without their streams. Needs memory:read. Without a skill it lists the caller's
// own; the operator's scope audit:read lists all of the tenant.
func (s *Service) List(ctx context.Context, p sallyport.Principal, req ListRequest) (ListResult, error) {
	const op = "run.list"
	if err := p.Require(op, sallyport.ScopeMemoryRead); err != nil {
		return ListResult{}, err
	}
	if req.Limit < 0 || req.Limit > maxPage {
		return ListResult{}, sallyport.Errorf(op, sallyport.CodeInvalidArgument, "limit must be between 1 and %d", maxPage)
	}
	filter := ExecutionFilter{Status: req.Status, Limit: req.Limit, Cursor: req.Cursor}
	if filter.Limit == 0 {
		filter.Limit = 50
	}
	if req.Ref != (sallyport.SkillRef{}) {
		skill, err := s.cfg.Skills.Resolve(ctx, p, req.Ref)
		if err != nil {
			return ListResult{}, err
		}
		filter.SkillID = skill.ID
	} else if !p.Has(sallyport.ScopeAuditRead) {
		filter.PrincipalID = p.ID
	}
	executions, next, err := s.cfg.Ledger.Executions(ctx, p.TenantID, filter)
	if err != nil {
		return ListResult{}, err
	}
	return ListResult{Executions: executions, NextCursor: next}, nil
}

// Artifact returns one artifact of an execution with its bytes. Needs memory:read.
func (s *Service) Artifact(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error) {
	if _, err := s.Get(ctx, p, id); err != nil {
		return sallyport.Artifact{}, nil, err
	}
	return s.cfg.Ledger.ArtifactContent(ctx, p.TenantID, id, path)
}

// Cancel stops a queued or running execution. Needs memory:write. An execution that ended already stays as it is and is no error;
// one that p cannot see is EXECUTION_NOT_FOUND.
func (s *Service) Cancel(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID) error {
	const op = "run.cancel"
	if err := p.Require(op, sallyport.ScopeMemoryWrite); err != nil {
		return err
	}
	e, err := s.cfg.Ledger.Execution(ctx, p.TenantID, id)
	if err != nil {
		return err
	}
	if !s.sees(ctx, p, e) {
		return &sallyport.Error{Op: op, Code: sallyport.CodeExecutionNotFound}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if run, ok := s.active[id]; ok && run.tenant == p.TenantID {
		run.cancel(nil)
	}
	return nil
}
