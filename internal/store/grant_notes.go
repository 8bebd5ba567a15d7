package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

// Grants that end are looked for in all tenants at once: ?1 now, ?2 until when.
const (
	selectExpiring = `SELECT ` + grantColumns + ` FROM grants WHERE expires_at > ?1 AND expires_at <= ?2 AND revoked_at IS NULL
	AND expiry_noted_at IS NULL ORDER BY expires_at, seq LIMIT ?3`
	countExpiring = `SELECT COUNT(*) FROM grants WHERE expires_at > ?1 AND expires_at <= ?2 AND revoked_at IS NULL`
)

// ExpiringGrants implements access.Store.
func (s *Store) ExpiringGrants(ctx context.Context, now, until time.Time, limit int) ([]sallyport.Grant, int, error) {
	const op = "store.expiring_grants"
	grants, err := all(ctx, s.reader.session(), scanGrant, selectExpiring, micros(now), micros(until), limit)
	if err != nil {
		return nil, 0, s.fault(op, err)
	}
	total, _, err := one(ctx, s.reader.session(), scalar[int], countExpiring, micros(now), micros(until))
	return grants, total, s.fault(op, err)
}

const noteExpiry = `UPDATE grants SET expiry_noted_at = ?3 WHERE tenant_id = ?1 AND id = ?2 AND expiry_noted_at IS NULL AND revoked_at IS NULL`

// NoteExpiring implements access.Store. The mark and the entry are one transaction.
func (s *Store) NoteExpiring(ctx context.Context, tenant sallyport.TenantID, id sallyport.GrantID, entry sallyport.Entry) (bool, error) {
	const op = "store.note_expiring"
	entry, err := prepareEntry(op, tenant, entry)
	if err != nil {
		return false, err
	}
	var noted bool
	err = s.writer.do(ctx, func(ctx context.Context, tx *session) error {
		changed, err := tx.exec(ctx, noteExpiry, tenant, id, micros(entry.At))
		if noted = changed == 1; err != nil || !noted {
			return err
		}
		_, err = appendEntry(ctx, tx, entry)
		return err
	})
	if err != nil {
		return false, s.auditFault(op, err)
	}
	return noted, nil
}

func scanGrantRuns(row scanner) (access.GrantRuns, error) {
	var (
		runs        access.GrantRuns
		first, last sql.NullInt64
	)
	err := row.Scan(&runs.Count, &first, &last)
	runs.FirstAt, runs.LastAt = timeOrNil(first), timeOrNil(last)
	return runs, err
}

const (
	selectGrantRuns    = `SELECT COUNT(*), MIN(created_at), MAX(created_at) FROM executions WHERE tenant_id = ?1 AND grant_id = ?2 AND grant_id <> ''`
	selectGrantEntries = `SELECT ` + entryColumns + ` FROM audit_entries WHERE tenant_id = ?1 AND entity = ?2
	AND action IN ('grant.issue', 'grant.revoke', 'grant.expiring') ORDER BY sequence`
)

// GrantRuns implements access.Store.
func (s *Store) GrantRuns(ctx context.Context, tenant sallyport.TenantID, id sallyport.GrantID) (access.GrantRuns, error) {
	runs, _, err := one(ctx, s.reader.session(), scanGrantRuns, selectGrantRuns, tenant, id)
	return runs, s.fault("store.grant_runs", err)
}

// GrantEntries implements access.Store.
func (s *Store) GrantEntries(ctx context.Context, tenant sallyport.TenantID, entity string) ([]sallyport.Entry, error) {
	entries, err := all(ctx, s.reader.session(), scanEntry, selectGrantEntries, tenant, cleanText(entity))
	return entries, s.fault("store.grant_entries", err)
}
