package store

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// selectSaved leaves out keys whose revision is gone: the save may be made again.
const selectSaved = `SELECT k.request_digest, k.skill_id, k.revision_id FROM save_keys AS k
	WHERE k.tenant_id = ?1 AND k.principal_id = ?2 AND k.key = ?3 AND k.created_at > ?4 AND EXISTS (
		SELECT 1 FROM revisions AS r WHERE r.tenant_id = ?1 AND r.id = k.revision_id)`

func scanSaved(row scanner) (registry.Saved, error) {
	var saved registry.Saved
	err := row.Scan(&saved.Request, &saved.SkillID, &saved.RevisionID)
	return saved, err
}

// SavedOnce implements registry.Store.
func (s *Store) SavedOnce(ctx context.Context, tenant sallyport.TenantID, principal sallyport.PrincipalID, key string, since time.Time) (registry.Saved, bool, error) {
	var (
		saved registry.Saved
		found bool
	)
	err := s.reader.snapshot(ctx, func(tx *session) (err error) {
		saved, found, err = one(ctx, tx, scanSaved, selectSaved, tenant, principal, key, micros(since))
		return err
	})
	return saved, found, s.fault("store.saved_once", err)
}

const (
	deleteOldSaves = `DELETE FROM save_keys WHERE tenant_id = ?1 AND created_at <= ?2`
	insertSaved    = `INSERT INTO save_keys (tenant_id, principal_id, key, request_digest, skill_id, revision_id, created_at)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`
	deleteSaved = `DELETE FROM save_keys WHERE tenant_id = ?1 AND principal_id = ?2 AND key = ?3`
)

// recordOnce keeps what the idempotency key of a save stands for, with the save. The keys that are over for this tenant go on the way.
func recordOnce(ctx context.Context, tx *session, tenant sallyport.TenantID, save registry.RevisionSave, skill sallyport.SkillID) error {
	once, principal := save.Once, save.Revision.Author
	if principal == "" || once.Key == "" || once.Request == "" {
		return defect(opSave, "an idempotency key belongs to a principal and a request")
	}
	_, taken, err := one(ctx, tx, scanSaved, selectSaved, tenant, principal, once.Key, micros(once.Since))
	if err != nil {
		return err
	}
	if taken {
		return sallyport.Errorf(opSave, sallyport.CodeRevisionConflict, "another save with this idempotency key was faster; send it again to get its answer")
	}
	if _, err := tx.exec(ctx, deleteOldSaves, tenant, micros(once.Since)); err != nil {
		return err
	}
	// One whose revision is gone stands for nothing.
	if _, err := tx.exec(ctx, deleteSaved, tenant, principal, once.Key); err != nil {
		return err
	}
	_, err = tx.exec(ctx, insertSaved, tenant, principal, once.Key, once.Request, skill, save.Revision.ID, micros(savedAt(save)))
	return err
}
