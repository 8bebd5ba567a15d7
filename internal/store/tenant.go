package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const tenantColumns = `tenant_id, name, created_by, created_at, disabled_at`

func scanTenant(row scanner) (sallyport.Tenant, error) {
	var (
		tenant   sallyport.Tenant
		created  int64
		disabled sql.NullInt64
	)
	err := row.Scan(&tenant.ID, &tenant.Name, &tenant.CreatedBy, &created, &disabled)
	tenant.CreatedAt, tenant.DisabledAt = timeOf(created), timeOrNil(disabled)
	return tenant, err
}

func tenantNotFound(op string) error {
	return &sallyport.Error{Op: op, Code: sallyport.CodeTenantNotFound}
}

const insertTenant = `INSERT INTO tenants (` + tenantColumns + `) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`

// AddTenant implements access.Directory.
func (s *Store) AddTenant(ctx context.Context, tenant sallyport.TenantID, record sallyport.Tenant) error {
	const op = "store.add_tenant"
	if tenant == "" {
		return defect(op, "a tenant needs an id")
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		added, err := tx.exec(ctx, insertTenant, tenant, record.Name, record.CreatedBy, micros(record.CreatedAt), microsOrNull(record.DisabledAt))
		if err == nil && added == 0 {
			err = &sallyport.Error{Op: op, Code: sallyport.CodeNameTaken}
		}
		if err != nil {
			return err
		}
		_, err = tx.exec(ctx, insertTeam, tenant, sallyport.DefaultTeam, string(sallyport.DefaultTeam), record.CreatedBy, micros(record.CreatedAt))
		return err
	})
}

const (
	// selectAllTenants lists the tenants themselves.
	selectAllTenants = `SELECT ` + tenantColumns + ` FROM tenants ORDER BY tenant_id`
	selectTenant     = `SELECT ` + tenantColumns + ` FROM tenants WHERE tenant_id = ?1`
)

// AllTenants implements access.Directory.
func (s *Store) AllTenants(ctx context.Context) ([]sallyport.Tenant, error) {
	tenants, err := all(ctx, s.reader.session(), scanTenant, selectAllTenants)
	return tenants, s.fault("store.all_tenants", err)
}

// Tenant implements access.Directory.
func (s *Store) Tenant(ctx context.Context, tenant sallyport.TenantID) (sallyport.Tenant, error) {
	const op = "store.tenant"
	record, found, err := one(ctx, s.reader.session(), scanTenant, selectTenant, tenant)
	if err == nil && !found {
		err = tenantNotFound(op)
	}
	return record, s.fault(op, err)
}

const disableTenant = `UPDATE tenants SET disabled_at = ?2 WHERE tenant_id = ?1`

// DisableTenant implements access.Directory.
func (s *Store) DisableTenant(ctx context.Context, tenant sallyport.TenantID, at *time.Time) error {
	const op = "store.disable_tenant"
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		changed, err := tx.exec(ctx, disableTenant, tenant, microsOrNull(at))
		if err == nil && changed == 0 {
			err = tenantNotFound(op)
		}
		return err
	})
}

// versionedPolicy is a policy as it is stored.
type versionedPolicy struct {
	policy  sallyport.Policy
	version int64
}

func scanPolicy(row scanner) (versionedPolicy, error) {
	var v versionedPolicy
	err := row.Scan(asJSON{&v.policy}, &v.version)
	return v, err
}

const (
	selectPolicy = `SELECT policy, policy_version FROM tenants WHERE tenant_id = ?1`
	updatePolicy = `UPDATE tenants SET policy = ?2, policy_version = policy_version + 1 WHERE tenant_id = ?1 AND policy_version = ?3`
)

// TenantPolicy implements access.Directory.
func (s *Store) TenantPolicy(ctx context.Context, tenant sallyport.TenantID) (sallyport.Policy, int64, error) {
	const op = "store.tenant_policy"
	v, found, err := one(ctx, s.reader.session(), scanPolicy, selectPolicy, tenant)
	if err == nil && !found {
		err = tenantNotFound(op)
	}
	return v.policy, v.version, s.fault(op, err)
}

// SetPolicy implements access.Directory.
func (s *Store) SetPolicy(ctx context.Context, tenant sallyport.TenantID, expected int64, policy sallyport.Policy) (int64, error) {
	const op = "store.set_policy"
	err := s.write(ctx, op, func(ctx context.Context, tx *session) error {
		changed, err := tx.exec(ctx, updatePolicy, tenant, jsonText(policy), expected)
		if err != nil || changed == 1 {
			return err
		}
		_, found, err := one(ctx, tx, scanTenant, selectTenant, tenant)
		switch {
		case err != nil:
			return err
		case !found:
			return tenantNotFound(op)
		}
		return &sallyport.Error{Op: op, Code: sallyport.CodePolicyConflict}
	})
	if err != nil {
		return 0, err
	}
	return expected + 1, nil
}
