package store

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/secret"
)

const secretColumns = `name, box, key_id, wrapped_key, created_at, updated_at, updated_by` //nolint:gosec // names of columns

func scanSecret(row scanner) (secret.Sealed, error) {
	var (
		s                secret.Sealed
		created, updated int64
	)
	err := row.Scan(&s.Name, &s.Box, &s.KeyID, &s.WrappedKey, &created, &updated, &s.UpdatedBy)
	s.CreatedAt, s.UpdatedAt = timeOf(created), timeOf(updated)
	return s, err
}

func secretNotFound(op string) error {
	return &sallyport.Error{Op: op, Code: sallyport.CodeSecretNotFound}
}

const (
	countOtherSecrets = `SELECT COUNT(*) FROM secrets WHERE tenant_id = ?1 AND name <> ?2` //nolint:gosec // a statement
	putSecret         = `INSERT INTO secrets (tenant_id, ` + secretColumns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
	ON CONFLICT (tenant_id, name) DO UPDATE SET box = excluded.box, key_id = excluded.key_id, wrapped_key = excluded.wrapped_key,
	updated_at = excluded.updated_at, updated_by = excluded.updated_by`
)

// PutSecret implements secret.Store.
func (s *Store) PutSecret(ctx context.Context, tenant sallyport.TenantID, sealed secret.Sealed, most int) error {
	const op = "store.put_secret"
	if tenant == "" || sealed.Name == "" || sealed.KeyID == "" || len(sealed.Box) == 0 || len(sealed.WrappedKey) == 0 {
		return defect(op, "a secret needs a tenant, a name, and to be encrypted")
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		others, _, err := one(ctx, tx, scalar[int], countOtherSecrets, tenant, sealed.Name)
		if err != nil {
			return err
		}
		if others >= most {
			return sallyport.Errorf(op, sallyport.CodeInvalidArgument, "the tenant has %d secrets, which is the most it can have", most)
		}
		_, err = tx.exec(ctx, putSecret, tenant, sealed.Name, sealed.Box, sealed.KeyID, sealed.WrappedKey,
			micros(sealed.CreatedAt), micros(sealed.UpdatedAt), sealed.UpdatedBy)
		return err
	})
}

const (
	selectSecret  = `SELECT ` + secretColumns + ` FROM secrets WHERE tenant_id = ?1 AND name = ?2`
	selectSecrets = `SELECT ` + secretColumns + ` FROM secrets WHERE tenant_id = ?1 ORDER BY name`
)

// Secret implements secret.Store.
func (s *Store) Secret(ctx context.Context, tenant sallyport.TenantID, name string) (secret.Sealed, error) {
	const op = "store.secret"
	sealed, found, err := one(ctx, s.reader.session(), scanSecret, selectSecret, tenant, name)
	if err == nil && !found {
		err = secretNotFound(op)
	}
	if err != nil {
		return secret.Sealed{}, s.fault(op, err)
	}
	return sealed, nil
}

// Secrets implements secret.Store.
func (s *Store) Secrets(ctx context.Context, tenant sallyport.TenantID) ([]secret.Sealed, error) {
	found, err := all(ctx, s.reader.session(), scanSecret, selectSecrets, tenant)
	return found, s.fault("store.secrets", err)
}

const deleteSecret = `DELETE FROM secrets WHERE tenant_id = ?1 AND name = ?2` //nolint:gosec // a statement

// RemoveSecret implements secret.Store.
func (s *Store) RemoveSecret(ctx context.Context, tenant sallyport.TenantID, name string) error {
	const op = "store.remove_secret"
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		removed, err := tx.exec(ctx, deleteSecret, tenant, name)
		if err == nil && removed == 0 {
			err = secretNotFound(op)
		}
		return err
	})
}

const rewrapSecret = `UPDATE secrets SET key_id = ?4, wrapped_key = ?5 WHERE tenant_id = ?1 AND name = ?2 AND wrapped_key = ?3`

// RewrapSecret implements secret.Store.
func (s *Store) RewrapSecret(
	ctx context.Context, tenant sallyport.TenantID, name string, old []byte, keyID string, wrapped []byte,
) (bool, error) {
	const op = "store.rewrap_secret"
	if keyID == "" || len(wrapped) == 0 {
		return false, defect(op, "a data key stays wrapped")
	}
	var replaced bool
	err := s.write(ctx, op, func(ctx context.Context, tx *session) error {
		changed, err := tx.exec(ctx, rewrapSecret, tenant, name, old, keyID, wrapped)
		replaced = changed == 1
		return err
	})
	return replaced && err == nil, err
}

// selectSecretTenants is about no single tenant: one key encrypts the secrets of all of them.
const selectSecretTenants = `SELECT DISTINCT tenant_id FROM secrets ORDER BY tenant_id`

// SecretTenants implements secret.Store.
func (s *Store) SecretTenants(ctx context.Context) ([]sallyport.TenantID, error) {
	tenants, err := all(ctx, s.reader.session(), scalar[sallyport.TenantID], selectSecretTenants)
	return tenants, s.fault("store.secret_tenants", err)
}
