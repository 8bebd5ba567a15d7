package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// PurgeReport says what a purge removed, or would remove, and what stays and why.
type PurgeReport struct {
	// Skill as it is left, or as it was when nothing of it is.
	Skill sallyport.Skill `json:"skill"`
	// SkillRemoved says that nothing of the skill is left and its slug is free.
	SkillRemoved bool               `json:"skill_removed"`
	DryRun       bool               `json:"dry_run"`
	Removed      []PurgedRevision   `json:"removed"`
	Kept         []RetainedRevision `json:"kept"`
	// Bytes is what the removed revisions held; content that something else holds stays.
	Bytes int64 `json:"bytes"`
}

// PurgedRevision is a revision that is gone. Its number is never used again.
type PurgedRevision struct {
	RevisionID sallyport.RevisionID `json:"revision_id"`
	Number     int                  `json:"number"`
	Digest     sallyport.Digest     `json:"digest"`
}

// RetainedRevision is a revision that something names: grants, revoked and expired ones too, and executions on record.
type RetainedRevision struct {
	RevisionID sallyport.RevisionID `json:"revision_id"`
	Number     int                  `json:"number"`
	Digest     sallyport.Digest     `json:"digest"`
	Grants     int                  `json:"grants"`
	Executions int                  `json:"executions"`
	Reason     string               `json:"reason"`
}

// SkillPurge is what the store is asked to purge.
type SkillPurge struct {
	// DeletedBefore, when set, purges only a skill that was deleted before that.
	DeletedBefore time.Time
	DryRun        bool
	// Entry makes the audit entry of the purge; it is written in the same transaction.
	Entry func(report PurgeReport) (sallyport.Entry, error)
}

// Delete archives a skill and marks it for the purge that follows when the installation's retention says so; until then Restore
// brings it back whole. Needs memory:write. Deleting twice keeps the first time.
func (s *Service) Delete(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	skill, err := s.writable(ctx, p, ref)
	if err != nil || skill.DeletedAt != nil {
		return skill, err
	}
	if skill, err = s.cfg.Store.SetDeleted(ctx, p.TenantID, skill.ID, s.now()); err != nil {
		return sallyport.Skill{}, err
	}
	s.record(ctx, p, sallyport.ActionSkillDelete, skill, nil, nil)
	return skill, nil
}

// Purge removes an archived skill for good: every revision that neither a grant nor an execution names, and the skill itself when
// nothing of it is named. It is one transaction together with its audit entry. Needs admin. A skill that is not archived is
// REVISION_CONFLICT; with dryRun nothing is removed.
func (s *Service) Purge(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, dryRun bool) (PurgeReport, error) {
	if err := p.Require("registry.purge", sallyport.ScopeAdmin); err != nil {
		return PurgeReport{}, err
	}
	skill, err := s.writable(ctx, p, ref)
	if err != nil {
		return PurgeReport{}, err
	}
	return s.cfg.Store.PurgeSkill(ctx, p.TenantID, skill.ID, SkillPurge{DryRun: dryRun, Entry: s.purgeEntry(p.TenantID, p.ID)})
}

// PurgeDeleted purges a skill that was deleted before an instant. One that was restored meanwhile stays, and is no error.
func (s *Service) PurgeDeleted(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID, before time.Time) error {
	_, err := s.cfg.Store.PurgeSkill(ctx, tenant, id, SkillPurge{DeletedBefore: before, Entry: s.purgeEntry(tenant, "retention")})
	switch sallyport.CodeOf(err) {
	case sallyport.CodeRevisionConflict, sallyport.CodeSkillNotFound:
		return nil
	}
	return err
}

func (s *Service) purgeEntry(tenant sallyport.TenantID, actor sallyport.PrincipalID) func(PurgeReport) (sallyport.Entry, error) {
	return func(r PurgeReport) (sallyport.Entry, error) {
		detail, err := json.Marshal(map[string]any{
			"skill_id": r.Skill.ID, "skill_removed": r.SkillRemoved, "removed": r.Removed, "kept": r.Kept, "bytes": r.Bytes,
		})
		if err != nil {
			return sallyport.Entry{}, &sallyport.Error{Op: "registry.purge", Code: sallyport.CodeInternal, Err: err}
		}
		return sallyport.Entry{
			TenantID: tenant, At: s.now(), Actor: actor, Action: sallyport.ActionSkillPurge, Entity: r.Skill.Slug, Detail: detail,
		}, nil
	}
}

// RetainedReason is the sentence about a revision that stays.
func RetainedReason(grants, executions int) string {
	switch {
	case grants > 0 && executions > 0:
		return fmt.Sprintf("named by %d grants, which keep what they were given for, and by %d executions on record", grants, executions)
	case grants > 0:
		return fmt.Sprintf("named by %d grants, which keep what they were given for, revoked ones too", grants)
	}
	return fmt.Sprintf("named by %d executions on record; it can go when they have expired", executions)
}
