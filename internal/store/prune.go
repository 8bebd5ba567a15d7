package store

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

const (
	selectFirstYoung = `SELECT COALESCE(MIN(sequence), 0) FROM audit_entries WHERE tenant_id = ?1 AND at >= ?2`
	selectFirstOpen  = `SELECT COALESCE(MIN(e.sequence), 0) FROM audit_entries AS e WHERE e.tenant_id = ?1 AND e.execution_id IN
	(SELECT x.id FROM executions AS x WHERE x.tenant_id = ?1 AND x.status IN ('queued', 'running'))`
	selectEntryAt  = `SELECT ` + entryColumns + ` FROM audit_entries WHERE tenant_id = ?1 AND sequence = ?2`
	deleteEntries  = `DELETE FROM audit_entries WHERE tenant_id = ?1 AND sequence <= ?2`
	deleteOldMarks = `DELETE FROM audit_checkpoints WHERE tenant_id = ?1 AND entries < ?2`
	selectPruned   = `SELECT ` + checkpointColumns + ` FROM audit_checkpoints WHERE tenant_id = ?1 AND pruned = 1 ORDER BY entries DESC, seq DESC LIMIT 1`
)

// Prunable implements audit.Store.
func (s *Store) Prunable(ctx context.Context, tenant sallyport.TenantID, before time.Time) (int64, error) {
	var through int64
	err := s.reader.snapshot(ctx, func(tx *session) error {
		head, found, err := one(ctx, tx, scanEntry, selectHead, tenant)
		if err != nil || !found {
			return err
		}
		through = head.Sequence - 1
		young, _, err := one(ctx, tx, scalar[int64], selectFirstYoung, tenant, micros(before))
		if err != nil {
			return err
		}
		open, _, err := one(ctx, tx, scalar[int64], selectFirstOpen, tenant)
		for _, first := range []int64{young, open} {
			if first > 0 {
				through = min(through, first-1)
			}
		}
		return err
	})
	return through, s.fault("store.prunable", err)
}

// Pruned implements audit.Store.
func (s *Store) Pruned(ctx context.Context, tenant sallyport.TenantID) (audit.Checkpoint, bool, error) {
	checkpoint, found, err := one(ctx, s.reader.session(), scanCheckpoint, selectPruned, tenant)
	return checkpoint, found, s.fault("store.pruned", err)
}

// Prune implements audit.Store.
func (s *Store) Prune(ctx context.Context, tenant sallyport.TenantID, proof audit.Checkpoint) (int64, error) {
	const op = "store.prune"
	if tenant == "" || proof.TenantID != tenant || !proof.Pruned || proof.Count < 1 {
		return 0, defect(op, "entries are removed with a statement about it, of their tenant")
	}
	var removed int64
	err := s.write(ctx, op, func(ctx context.Context, tx *session) error {
		last, found, err := one(ctx, tx, scanEntry, selectEntryAt, tenant, proof.Count)
		if err != nil {
			return err
		}
		head, _, err := one(ctx, tx, scanEntry, selectHead, tenant)
		if err != nil {
			return err
		}
		if !found || !last.Hash.Equal(proof.Head) || head.Sequence <= proof.Count {
			return defect(op, "the statement is not about an entry of this trail that others follow")
		}
		if removed, err = tx.exec(ctx, deleteEntries, tenant, proof.Count); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, deleteOldMarks, tenant, proof.Count); err != nil {
			return err
		}
		return addCheckpoint(ctx, tx, tenant, proof)
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
