package store

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

const (
	countGrantsOfSkill = `SELECT COUNT(*) FROM grants WHERE tenant_id = ?1 AND skill_id = ?2`
	countRunsOfSkill   = `SELECT COUNT(*) FROM executions WHERE tenant_id = ?1 AND skill_id = ?2`
	deleteSkill        = `DELETE FROM skills WHERE tenant_id = ?1 AND id = ?2`
	pointAtRest        = `UPDATE skills SET latest_revision_id = ?3, published_revision_id = ?4 WHERE tenant_id = ?1 AND id = ?2`
)

// PurgeSkill implements registry.Store.
func (s *Store) PurgeSkill(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID, purge registry.SkillPurge) (registry.PurgeReport, error) {
	const op = "store.purge_skill"
	var report registry.PurgeReport
	work := func(ctx context.Context, tx *session) error {
		skill, found, err := one(ctx, tx, scanSkill, selectSkill, tenant, id)
		switch {
		case err != nil:
			return err
		case !found:
			return skillNotFound(op)
		case !skill.Archived():
			return sallyport.Errorf(op, sallyport.CodeRevisionConflict,
				"the skill %[1]q is in use; delete it first (sallyport skill delete %[1]s), which can be undone", skill.Slug)
		case !purge.DeletedBefore.IsZero() && (skill.DeletedAt == nil || !skill.DeletedAt.Before(purge.DeletedBefore)):
			return sallyport.Errorf(op, sallyport.CodeRevisionConflict, "the skill was restored meanwhile")
		}
		plan, gone, err := planPurge(ctx, tx, tenant, skill)
		if err != nil {
			return err
		}
		plan.DryRun = purge.DryRun
		report = plan
		if purge.DryRun {
			return nil
		}
		if report.Bytes, err = s.purgeRevisions(ctx, tx, tenant, &plan, gone); err != nil {
			return err
		}
		plan.Bytes, report = report.Bytes, plan
		entry, err := purge.Entry(plan)
		if err == nil {
			entry, err = prepareEntry(op, tenant, entry)
		}
		if err == nil {
			_, err = appendEntry(ctx, tx, entry)
		}
		return err
	}
	var err error
	if purge.DryRun {
		err = s.fault(op, s.reader.snapshot(ctx, func(tx *session) error { return work(ctx, tx) }))
	} else {
		err = s.auditFault(op, s.writer.do(ctx, work))
	}
	if err != nil {
		return registry.PurgeReport{}, err
	}
	return report, nil
}

// planPurge says what goes and what stays, newest first.
func planPurge(ctx context.Context, tx *session, tenant sallyport.TenantID, skill sallyport.Skill) (registry.PurgeReport, []sallyport.Revision, error) {
	report := registry.PurgeReport{Skill: skill, Removed: []registry.PurgedRevision{}, Kept: []registry.RetainedRevision{}}
	revisions, err := all(ctx, tx, scanRevision, selectRevisions, tenant, skill.ID)
	if err != nil {
		return report, nil, err
	}
	var gone []sallyport.Revision
	for _, r := range revisions {
		grants, _, err := one(ctx, tx, scalar[int], countGrantsNaming, tenant, skill.ID, r.ID, r.Digest)
		if err != nil {
			return report, nil, err
		}
		runs, _, err := one(ctx, tx, scalar[int], countRunsNaming, tenant, skill.ID, r.ID)
		if err != nil {
			return report, nil, err
		}
		if grants > 0 || runs > 0 {
			report.Kept = append(report.Kept, registry.RetainedRevision{
				RevisionID: r.ID, Number: r.Number, Digest: r.Digest, Grants: grants, Executions: runs, Reason: registry.RetainedReason(grants, runs),
			})
			continue
		}
		gone = append(gone, r)
		report.Removed = append(report.Removed, registry.PurgedRevision{RevisionID: r.ID, Number: r.Number, Digest: r.Digest})
	}
	named := 0
	for _, statement := range []string{countGrantsOfSkill, countRunsOfSkill} {
		count, _, err := one(ctx, tx, scalar[int], statement, tenant, skill.ID)
		if err != nil {
			return report, nil, err
		}
		named += count
	}
	report.SkillRemoved = named == 0 && len(report.Kept) == 0
	return report, gone, nil
}

// purgeRevisions removes what the plan says, and leaves the skill pointing at what is left.
func (s *Store) purgeRevisions(ctx context.Context, tx *session, tenant sallyport.TenantID, plan *registry.PurgeReport, gone []sallyport.Revision) (int64, error) {
	var bytes int64
	for _, revision := range gone {
		size, err := removeRevision(ctx, tx, tenant, revision)
		if err != nil {
			return 0, err
		}
		bytes += size
	}
	if plan.SkillRemoved {
		seq, _, err := one(ctx, tx, scalar[int64], selectSkillSeq, tenant, plan.Skill.ID)
		if err != nil {
			return 0, err
		}
		if _, err := tx.exec(ctx, s.dialect.unindexSkill, seq); err != nil {
			return 0, err
		}
		_, err = tx.exec(ctx, deleteSkill, tenant, plan.Skill.ID)
		return bytes, err
	}
	var latest, published sallyport.RevisionID
	for i, kept := range plan.Kept { // newest first
		if i == 0 {
			latest = kept.RevisionID
		}
		if kept.RevisionID == plan.Skill.PublishedRevisionID {
			published = kept.RevisionID
		}
	}
	if _, err := tx.exec(ctx, pointAtRest, tenant, plan.Skill.ID, latest, published); err != nil {
		return 0, err
	}
	plan.Skill.LatestRevisionID, plan.Skill.PublishedRevisionID = latest, published
	return bytes, nil
}

const selectSkillSeq = `SELECT s.seq FROM skills AS s WHERE s.tenant_id = ?1 AND s.id = ?2`
