package store

import (
	"context"
	"slices"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

const roleColumns = `tenant_id, name, description, scopes, updated_by, updated_at`

func scanRole(row scanner) (sallyport.Role, error) {
	var (
		role    sallyport.Role
		updated int64
	)
	err := row.Scan(&role.TenantID, &role.Name, &role.Description, asJSON{&role.Scopes}, &role.UpdatedBy, &updated)
	at := timeOf(updated)
	role.UpdatedAt = &at
	return role, err
}

const (
	selectRoles = `SELECT ` + roleColumns + ` FROM roles WHERE tenant_id = ?1 ORDER BY name`
	insertRole  = `INSERT INTO roles (` + roleColumns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
	ON CONFLICT (tenant_id, name) DO UPDATE SET description = excluded.description, scopes = excluded.scopes,
	updated_by = excluded.updated_by, updated_at = excluded.updated_at`
	deleteRole = `DELETE FROM roles WHERE tenant_id = ?1 AND name = ?2`
)

// Roles implements access.Directory.
func (s *Store) Roles(ctx context.Context, tenant sallyport.TenantID) ([]sallyport.Role, error) {
	roles, err := all(ctx, s.reader.session(), scanRole, selectRoles, tenant)
	return roles, s.fault("store.roles", err)
}

// PutRole implements access.Directory.
func (s *Store) PutRole(ctx context.Context, tenant sallyport.TenantID, role sallyport.Role, keep access.Keep) error {
	const op = "store.put_role"
	if tenant == "" || role.Name == "" || role.UpdatedAt == nil {
		return defect(op, "a role needs a tenant, a name and a time")
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		if err := inTenant(ctx, tx, op, tenant); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, insertRole, tenant, role.Name, role.Description, jsonText(orEmpty(role.Scopes)), role.UpdatedBy, micros(*role.UpdatedAt)); err != nil {
			return err
		}
		return kept(ctx, tx, tenant, keep)
	})
}

// RemoveRole implements access.Directory.
func (s *Store) RemoveRole(ctx context.Context, tenant sallyport.TenantID, name sallyport.RoleName) error {
	const op = "store.remove_role"
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		roster, err := rosterOf(ctx, tx, tenant)
		if err != nil {
			return err
		}
		for _, key := range roster.Keys {
			if key.RevokedAt == nil && slices.Contains(key.Roles, name) {
				return sallyport.Errorf(op, sallyport.CodeInUse, "the key %s has the role; revoke it first", key.ID)
			}
		}
		for _, account := range roster.Accounts {
			if slices.Contains(account.Roles, name) {
				return sallyport.Errorf(op, sallyport.CodeInUse, "the principal %s has the role; take it away first", account.ID)
			}
		}
		removed, err := tx.exec(ctx, deleteRole, tenant, name)
		if err == nil && removed == 0 {
			err = &sallyport.Error{Op: op, Code: sallyport.CodeRoleNotFound}
		}
		return err
	})
}

// orEmpty makes a list that is never null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
