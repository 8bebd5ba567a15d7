package store

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

// checkpointTime writes a time exactly as encoding/json does: the signature is over that text, zone and all.
const checkpointTime = time.RFC3339Nano

const checkpointColumns = `tenant_id, entries, head, signed_at, public_key, signature, pruned`

func scanCheckpoint(row scanner) (audit.Checkpoint, error) {
	var (
		checkpoint audit.Checkpoint
		at         string
	)
	err := row.Scan(&checkpoint.TenantID, &checkpoint.Count, &checkpoint.Head, &at, &checkpoint.PublicKey, &checkpoint.Signature, &checkpoint.Pruned)
	if err == nil {
		checkpoint.At, err = time.Parse(checkpointTime, at)
	}
	return checkpoint, err
}

const insertCheckpoint = `INSERT INTO audit_checkpoints (` + checkpointColumns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`

// AddCheckpoint implements audit.Store.
func (s *Store) AddCheckpoint(ctx context.Context, tenant sallyport.TenantID, checkpoint audit.Checkpoint) error {
	const op = "store.add_checkpoint"
	if tenant == "" || checkpoint.TenantID != tenant {
		return defect(op, "a checkpoint is of the tenant that it is stored for")
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		return addCheckpoint(ctx, tx, tenant, checkpoint)
	})
}

func addCheckpoint(ctx context.Context, tx *session, tenant sallyport.TenantID, checkpoint audit.Checkpoint) error {
	_, err := tx.exec(ctx, insertCheckpoint, tenant, checkpoint.Count, checkpoint.Head, checkpoint.At.Format(checkpointTime),
		checkpoint.PublicKey, checkpoint.Signature, checkpoint.Pruned)
	return err
}

const selectCheckpoints = `SELECT ` + checkpointColumns + ` FROM audit_checkpoints WHERE tenant_id = ?1 ORDER BY entries, seq`

// Checkpoints implements audit.Store, the shortest chain first.
func (s *Store) Checkpoints(ctx context.Context, tenant sallyport.TenantID) ([]audit.Checkpoint, error) {
	checkpoints, err := all(ctx, s.reader.session(), scanCheckpoint, selectCheckpoints, tenant)
	return checkpoints, s.fault("store.checkpoints", err)
}
