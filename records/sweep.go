package records

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// sweeper is who a sweep is recorded as.
const sweeper sallyport.PrincipalID = "retention"

// Sweep applies the policy to every tenant and gives free space back. One tenant's failure does not stop the others. What is
// left when ctx ends goes with the next sweep.
func (s *Service) Sweep(ctx context.Context) error {
	tenants, err := s.cfg.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	now := s.cfg.Now().UTC()
	var failures []error
	for _, tenant := range tenants {
		_, err := s.purge(ctx, tenant, sweeper, s.cfg.Policy.bounds(now))
		failures = append(failures, err, s.purgeSkills(ctx, tenant, now))
	}
	failures = append(failures, s.tidy(ctx))
	return errors.Join(failures...)
}

// purgeSkills purges what was deleted long enough ago.
func (s *Service) purgeSkills(ctx context.Context, tenant sallyport.TenantID, now time.Time) error {
	if s.cfg.Policy.Deleted <= 0 {
		return nil
	}
	before := now.Add(-s.cfg.Policy.Deleted)
	skills, err := s.cfg.Store.DeletedSkills(ctx, tenant, before)
	failures := []error{err}
	for _, id := range skills {
		failures = append(failures, s.cfg.Skills.PurgeDeleted(ctx, tenant, id, before))
	}
	return errors.Join(failures...)
}

// tidy removes content that nothing holds, which only a fault can have left, and gives free space back.
func (s *Service) tidy(ctx context.Context) error {
	for {
		removed, more, err := s.cfg.Store.PurgeUnheld(ctx)
		if removed > 0 {
			s.cfg.Logger.WarnContext(ctx, "content that nothing holds was removed", "count", removed)
		}
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	for {
		more, err := s.cfg.Store.Compact(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// PurgeRequest selects the executions to remove.
type PurgeRequest struct {
	// Before is when they were made at the latest. Required.
	Before time.Time
	// DryRun removes nothing and says what would go.
	DryRun bool
}

// PurgeResult is what a purge removed, or would.
type PurgeResult struct {
	Before  time.Time `json:"before"`
	DryRun  bool      `json:"dry_run"`
	Removed Counts    `json:"removed"`
}

// Purge removes the executions of the caller's tenant that were made before an instant, with their artifacts. Those that are
// queued or running stay, and those that an idempotency key of the last 24 hours stands for. Needs admin. An instant that is
// missing or lies ahead is INVALID_ARGUMENT.
func (s *Service) Purge(ctx context.Context, p sallyport.Principal, req PurgeRequest) (PurgeResult, error) {
	const op = "records.purge"
	if err := p.Require(op, sallyport.ScopeAdmin); err != nil {
		return PurgeResult{}, err
	}
	now := s.cfg.Now().UTC()
	if req.Before.IsZero() || req.Before.After(now) {
		return PurgeResult{}, sallyport.Errorf(op, sallyport.CodeInvalidArgument,
			"before must be an instant that has passed: executions made earlier than that go")
	}
	bounds := Bounds{Executions: req.Before.UTC(), Keys: now.Add(-keyLife), At: now}
	result := PurgeResult{Before: bounds.Executions, DryRun: req.DryRun}
	var err error
	if req.DryRun {
		result.Removed, err = s.cfg.Store.CountOld(ctx, p.TenantID, bounds)
		return result, err
	}
	if result.Removed, err = s.purge(ctx, p.TenantID, p.ID, bounds); err != nil {
		return PurgeResult{}, err
	}
	return result, s.tidy(ctx)
}

// purge records what is about to go, and removes it batch by batch. Nothing to remove is nothing to record.
func (s *Service) purge(ctx context.Context, tenant sallyport.TenantID, actor sallyport.PrincipalID, bounds Bounds) (Counts, error) {
	planned, err := s.cfg.Store.CountOld(ctx, tenant, bounds)
	if err != nil || planned == (Counts{}) {
		return planned, err
	}
	if err := s.record(ctx, tenant, actor, bounds, planned); err != nil {
		return Counts{}, err
	}
	var removed Counts
	for {
		batch, more, err := s.cfg.Store.PurgeOld(ctx, tenant, bounds)
		removed = removed.plus(batch)
		if err == nil && more {
			continue
		}
		s.cfg.Logger.InfoContext(ctx, "old records were removed", "tenant_id", string(tenant), "executions", removed.Executions,
			"artifacts", removed.Artifacts, "tool_calls", removed.ToolCalls, "drafts", removed.Drafts)
		return removed, err
	}
}

func (s *Service) record(ctx context.Context, tenant sallyport.TenantID, actor sallyport.PrincipalID, bounds Bounds, planned Counts) error {
	detail := map[string]any{"counts": planned}
	for name, before := range map[string]time.Time{
		"executions_before": bounds.Executions, "artifacts_before": bounds.Artifacts, "tool_calls_before": bounds.ToolCalls,
		"drafts_before": bounds.Drafts,
	} {
		if !before.IsZero() {
			detail[name] = before.Format(time.RFC3339Nano)
		}
	}
	raw, err := json.Marshal(detail)
	if err != nil {
		return &sallyport.Error{Op: "records.record", Code: sallyport.CodeInternal, Err: err}
	}
	return s.cfg.Trail.Append(ctx, sallyport.Entry{
		TenantID: tenant, At: bounds.At, Actor: actor, Action: sallyport.ActionRecordsPurge, Entity: "records", Detail: raw,
	})
}
