package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

// touchInterval is how exactly the last use of a key is known. Writing every use would cost an fsync per request.
const touchInterval = time.Minute

const keyColumns = `tenant_id, id, principal_id, name, prefix, scopes, teams, created_by, created_at, expires_at, last_used_at, revoked_at, roles`

func scanKey(row scanner) (sallyport.Key, error) {
	var (
		key                    sallyport.Key
		created                int64
		expires, used, revoked sql.NullInt64
	)
	err := row.Scan(&key.TenantID, &key.ID, &key.PrincipalID, &key.Name, &key.Prefix, asJSON{&key.Scopes}, asJSON{&key.Teams},
		&key.CreatedBy, &created, &expires, &used, &revoked, asJSON{&key.Roles})
	if len(key.Roles) == 0 {
		key.Roles = nil
	}
	key.CreatedAt, key.ExpiresAt, key.LastUsedAt, key.RevokedAt = timeOf(created), timeOrNil(expires), timeOrNil(used), timeOrNil(revoked)
	return key, err
}

func keyNotFound(op string) error { return &sallyport.Error{Op: op, Code: sallyport.CodeKeyNotFound} }

const insertKey = `INSERT INTO api_keys (` + keyColumns + `, secret_hash)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING`

// AddKey implements access.Store.
func (s *Store) AddKey(ctx context.Context, tenant sallyport.TenantID, key sallyport.Key, secretHash []byte) error {
	const op = "store.add_key"
	if tenant == "" || key.ID == "" || key.PrincipalID == "" || len(secretHash) != sha256.Size {
		return defect(op, "a key needs a tenant, an id, a principal and the SHA-256 of its secret")
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		added, err := tx.exec(ctx, insertKey, tenant, key.ID, key.PrincipalID, key.Name, key.Prefix, jsonText(key.Scopes), jsonText(key.Teams),
			key.CreatedBy, micros(key.CreatedAt), microsOrNull(key.ExpiresAt), microsOrNull(key.LastUsedAt), microsOrNull(key.RevokedAt), jsonText(orEmpty(key.Roles)), secretHash)
		if err == nil && added == 0 {
			err = defect(op, "the key id or secret is in use")
		}
		return err
	})
}

const (
	selectKeys = `SELECT ` + keyColumns + ` FROM api_keys WHERE tenant_id = ?1 ORDER BY created_at DESC, seq DESC`
	selectKey  = `SELECT ` + keyColumns + ` FROM api_keys WHERE tenant_id = ?1 AND id = ?2`
	// selectKeyByHash knows no tenant: the key is how the tenant is learned. Nobody guesses a SHA-256.
	selectKeyByHash = `SELECT ` + keyColumns + ` FROM api_keys WHERE secret_hash = ?1`
)

// Keys implements access.Store, newest first.
func (s *Store) Keys(ctx context.Context, tenant sallyport.TenantID) ([]sallyport.Key, error) {
	keys, err := all(ctx, s.reader.session(), scanKey, selectKeys, tenant)
	return keys, s.fault("store.keys", err)
}

// KeyByHash implements access.Store.
func (s *Store) KeyByHash(ctx context.Context, secretHash []byte) (sallyport.Key, error) {
	return s.key(ctx, "store.key_by_hash", selectKeyByHash, secretHash)
}

func (s *Store) key(ctx context.Context, op, query string, args ...any) (sallyport.Key, error) {
	key, found, err := one(ctx, s.reader.session(), scanKey, query, args...)
	if err == nil && !found {
		err = keyNotFound(op)
	}
	if err != nil {
		return sallyport.Key{}, s.fault(op, err)
	}
	return key, nil
}

const revokeKey = `UPDATE api_keys SET revoked_at = ?3 WHERE tenant_id = ?1 AND id = ?2 AND revoked_at IS NULL`

// RevokeKey implements access.Store.
func (s *Store) RevokeKey(ctx context.Context, tenant sallyport.TenantID, id sallyport.KeyID, at time.Time, keep access.Keep) (bool, error) {
	const op = "store.revoke_key"
	var revoked bool
	err := s.write(ctx, op, func(ctx context.Context, tx *session) error {
		changed, err := tx.exec(ctx, revokeKey, tenant, id, micros(at))
		if err != nil {
			return err
		}
		revoked = changed == 1
		_, found, err := one(ctx, tx, scanKey, selectKey, tenant, id)
		if err == nil && !found {
			err = keyNotFound(op)
		}
		if err == nil && revoked {
			err = kept(ctx, tx, tenant, keep)
		}
		return err
	})
	return revoked && err == nil, err
}

const touchKey = `UPDATE api_keys SET last_used_at = ?3 WHERE tenant_id = ?1 AND id = ?2 AND (last_used_at IS NULL OR last_used_at < ?3)`

// TouchKey implements access.Store. A use within a minute of the one on record is not written.
func (s *Store) TouchKey(ctx context.Context, tenant sallyport.TenantID, id sallyport.KeyID, at time.Time) error {
	const op = "store.touch_key"
	key, err := s.key(ctx, op, selectKey, tenant, id)
	if err != nil {
		return err
	}
	if key.LastUsedAt != nil && at.Sub(*key.LastUsedAt) < touchInterval {
		return nil
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		_, err := tx.exec(ctx, touchKey, tenant, id, micros(at))
		return err
	})
}
