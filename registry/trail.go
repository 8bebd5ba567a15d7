package registry

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// trailTimeout bounds one write to the trail.
const trailTimeout = 10 * time.Second

// record appends to the audit trail what was already stored. It is best effort: a failure is logged and the caller's success
// stands. It outlives the caller's context, so that a hung-up client leaves a record too.
func (s *Service) record(ctx context.Context, p sallyport.Principal, action sallyport.Action, skill sallyport.Skill, revision *sallyport.Revision, more map[string]any) {
	if err := s.append(ctx, p, action, skill, revision, more); err != nil {
		s.cfg.Logger.ErrorContext(ctx, "audit entry not written",
			"action", action, "skill_id", skill.ID, "error", err)
	}
}

// announce appends to the audit trail what is about to be stored. An act that cannot be put on record is refused:
// AUDIT_UNAVAILABLE.
func (s *Service) announce(ctx context.Context, p sallyport.Principal, action sallyport.Action, skill sallyport.Skill, revision *sallyport.Revision, more map[string]any) error {
	if err := s.append(ctx, p, action, skill, revision, more); err != nil {
		return &sallyport.Error{
			Op: "registry." + string(action), Code: sallyport.CodeAuditUnavailable, Err: err,
			Message: "the audit trail cannot be written, so nothing was changed",
		}
	}
	return nil
}

// unstored logs that an act is on record and was not stored, and returns err.
func (s *Service) unstored(ctx context.Context, action sallyport.Action, skill sallyport.Skill, err error) error {
	s.cfg.Logger.ErrorContext(ctx, "an act was audited and then not stored", "action", action, "skill_id", skill.ID, "error", err)
	return err
}

// change is the part of a detail that says what an act changes; nil means that there is nothing.
func change(before, after map[string]any) map[string]any {
	return map[string]any{"before": before, "after": after}
}

// append appends to the audit trail.
func (s *Service) append(ctx context.Context, p sallyport.Principal, action sallyport.Action, skill sallyport.Skill, revision *sallyport.Revision, more map[string]any) error {
	if s.cfg.Trail == nil {
		return nil
	}
	detail := map[string]any{"skill_id": skill.ID}
	if skill.TeamID != "" {
		detail["team_id"] = skill.TeamID
	}
	if revision != nil {
		detail["revision_id"], detail["number"], detail["digest"] = revision.ID, revision.Number, revision.Digest
	}
	maps.Copy(detail, more)
	form, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trailTimeout)
	defer cancel()
	return s.cfg.Trail.Append(ctx, sallyport.Entry{
		TenantID: p.TenantID, At: s.now(), Actor: p.ID, Action: action, Entity: skill.Slug, Detail: form,
	})
}

// now is the time that is stored: UTC, whole microseconds.
func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }
