package store

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

const (
	countGrantsNaming = `SELECT COUNT(*) FROM grants WHERE tenant_id = ?1 AND skill_id = ?2 AND (revision_id = ?3 OR pin = ?4)`
	countRunsNaming   = `SELECT COUNT(*) FROM executions WHERE tenant_id = ?1 AND skill_id = ?2 AND revision_id = ?3`
	deleteComponents  = `DELETE FROM components WHERE tenant_id = ?1 AND revision_id = ?2`
	deleteRevision    = `DELETE FROM revisions WHERE tenant_id = ?1 AND skill_id = ?2 AND id = ?3`
	// deleteUnheldBlob looks at every tenant: one content is stored once for all of them.
	deleteUnheldBlob = `DELETE FROM blobs WHERE sha256 = ?1
	AND NOT EXISTS (SELECT 1 FROM components AS c WHERE c.sha256 = ?1) AND NOT EXISTS (SELECT 1 FROM artifacts AS a WHERE a.sha256 = ?1)`
)

// DeleteRevision implements registry.Store.
func (s *Store) DeleteRevision(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID) error {
	const op = "store.delete_revision"
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		revision, found, err := one(ctx, tx, scanRevision, selectRevision, tenant, skill, id)
		if err == nil && !found {
			err = revisionNotFound(op)
		}
		if err != nil {
			return err
		}
		if err := deletable(ctx, tx, tenant, revision); err != nil {
			return err
		}
		_, err = removeRevision(ctx, tx, tenant, revision)
		return err
	})
}

// deletable is REVISION_CONFLICT for a revision that something names.
func deletable(ctx context.Context, tx *session, tenant sallyport.TenantID, revision sallyport.Revision) error {
	refuse := func(sentence string) error {
		return sallyport.Errorf("store.delete_revision", sallyport.CodeRevisionConflict, "revision %d stays: %s", revision.Number, sentence)
	}
	skill, _, err := one(ctx, tx, scanSkill, selectSkill, tenant, revision.SkillID)
	if err != nil {
		return err
	}
	switch {
	case skill.PublishedRevisionID == revision.ID:
		return refuse("it is the published one; publish another first, or archive the skill")
	case revision.State != sallyport.RevisionDraft:
		return refuse("it was published once, and what was published can be rolled back to")
	case skill.LatestRevisionID == revision.ID:
		return refuse("it is the latest one, which the next save builds on; save another first")
	}
	grants, _, err := one(ctx, tx, scalar[int], countGrantsNaming, tenant, revision.SkillID, revision.ID, revision.Digest)
	if err != nil {
		return err
	}
	runs, _, err := one(ctx, tx, scalar[int], countRunsNaming, tenant, revision.SkillID, revision.ID)
	switch {
	case err != nil:
		return err
	case grants > 0:
		return refuse("a grant names it, and grants keep what they were given for, revoked ones too")
	case runs > 0:
		return refuse("an execution ran it, and its record names these bytes")
	}
	return nil
}
