package store

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// selectRecorded leaves out keys whose execution never began: the call may be made again.
const selectRecorded = `SELECT request_digest, execution_id FROM idempotency_keys AS k
	WHERE k.tenant_id = ?1 AND principal_id = ?2 AND key = ?3 AND created_at > ?4 AND EXISTS (
		SELECT 1 FROM executions AS e WHERE e.tenant_id = ?1 AND e.id = k.execution_id AND e.status <> 'not_started')`

func scanRecorded(row scanner) (run.Recorded, error) {
	var r run.Recorded
	err := row.Scan(&r.Request, &r.ExecutionID)
	return r, err
}

// Recorded implements run.Ledger.
func (s *Store) Recorded(ctx context.Context, tenant sallyport.TenantID, principal sallyport.PrincipalID, key string, since time.Time) (run.Recorded, bool, error) {
	var (
		recorded run.Recorded
		found    bool
	)
	err := s.reader.snapshot(ctx, func(tx *session) (err error) {
		recorded, found, err = one(ctx, tx, scanRecorded, selectRecorded, tenant, principal, key, micros(since))
		return err
	})
	return recorded, found, s.fault("store.recorded", err)
}

const (
	deleteOldKeys = `DELETE FROM idempotency_keys WHERE tenant_id = ?1 AND created_at <= ?2`
	insertKeyOnce = `INSERT INTO idempotency_keys (tenant_id, principal_id, key, request_digest, execution_id, created_at)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (tenant_id, principal_id, key) DO UPDATE
	SET request_digest = excluded.request_digest, execution_id = excluded.execution_id, created_at = excluded.created_at`
)

// OpenOnce implements run.Ledger. The keys that are over for this tenant go on the way.
func (s *Store) OpenOnce(ctx context.Context, tenant sallyport.TenantID, execution sallyport.Execution, entry sallyport.Entry, once run.Once) (taken bool, err error) {
	const op = "store.open_once"
	if execution.PrincipalID == "" || once.Key == "" || once.Request == "" {
		return false, defect(op, "an idempotency key belongs to a principal and a request")
	}
	opening, err := prepareOpening(op, tenant, execution, entry)
	if err != nil {
		return false, err
	}
	err = s.writer.do(ctx, func(ctx context.Context, tx *session) error {
		var err error
		if _, taken, err = one(ctx, tx, scanRecorded, selectRecorded, tenant, execution.PrincipalID, once.Key, micros(once.Since)); err != nil || taken {
			return err
		}
		if _, err = tx.exec(ctx, deleteOldKeys, tenant, micros(once.Since)); err != nil {
			return err
		}
		if err = opening(ctx, tx); err != nil {
			return err
		}
		_, err = tx.exec(ctx, insertKeyOnce, tenant, execution.PrincipalID, once.Key, once.Request, execution.ID, micros(execution.CreatedAt))
		return err
	})
	return taken && err == nil, s.auditFault(op, err)
}
