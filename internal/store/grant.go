package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const grantColumns = `tenant_id, id, skill_id, slug, script_path, pin, revision_id, issued_by, issued_at, expires_at, revoked_at, revoked_by`

func scanGrant(row scanner) (sallyport.Grant, error) {
	var (
		grant            sallyport.Grant
		issued           int64
		expires, revoked sql.NullInt64
	)
	err := row.Scan(&grant.TenantID, &grant.ID, &grant.SkillID, &grant.Slug, &grant.ScriptPath, &grant.Pin, &grant.RevisionID,
		&grant.IssuedBy, &issued, &expires, &revoked, &grant.RevokedBy)
	grant.IssuedAt, grant.ExpiresAt, grant.RevokedAt = timeOf(issued), timeOrNil(expires), timeOrNil(revoked)
	return grant, err
}

const insertGrant = `INSERT INTO grants (` + grantColumns + `)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING`

// AddGrant implements access.Store. A grant without a tenant, an id, a skill or a pin is INTERNAL: it would allow more
// than anyone decided.
func (s *Store) AddGrant(ctx context.Context, tenant sallyport.TenantID, grant sallyport.Grant) error {
	const op = "store.add_grant"
	if _, err := sallyport.ParseDigest(string(grant.Pin)); err != nil || tenant == "" || grant.ID == "" || grant.SkillID == "" {
		return defect(op, "a grant needs a tenant, an id, a skill and a pin")
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		if err := notRemoved(ctx, tx, op, tenant, grant.RevisionID); err != nil {
			return err
		}
		added, err := tx.exec(ctx, insertGrant, tenant, grant.ID, grant.SkillID, grant.Slug, grant.ScriptPath, grant.Pin,
			grant.RevisionID, grant.IssuedBy, micros(grant.IssuedAt), microsOrNull(grant.ExpiresAt), microsOrNull(grant.RevokedAt), grant.RevokedBy)
		if err == nil && added == 0 {
			err = defect(op, "the grant id is in use")
		}
		return err
	})
}

const selectGrant = `SELECT ` + grantColumns + ` FROM grants WHERE tenant_id = ?1 AND id = ?2`

// Grant implements access.Store.
func (s *Store) Grant(ctx context.Context, tenant sallyport.TenantID, id sallyport.GrantID) (sallyport.Grant, error) {
	const op = "store.grant"
	grant, found, err := one(ctx, s.reader.session(), scanGrant, selectGrant, tenant, id)
	if err == nil && !found {
		err = &sallyport.Error{Op: op, Code: sallyport.CodeGrantNotFound}
	}
	if err != nil {
		return sallyport.Grant{}, s.fault(op, err)
	}
	return grant, nil
}

const (
	selectGrants        = `SELECT ` + grantColumns + ` FROM grants WHERE tenant_id = ?1 ORDER BY issued_at DESC, seq DESC`
	selectGrantsOfSkill = `SELECT ` + grantColumns + ` FROM grants WHERE tenant_id = ?1 AND skill_id = ?2 ORDER BY issued_at DESC, seq DESC`
)

// Grants implements access.Store and run.Grants.
func (s *Store) Grants(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID) ([]sallyport.Grant, error) {
	query, args := selectGrants, []any{tenant}
	if skill != "" {
		query, args = selectGrantsOfSkill, append(args, skill)
	}
	grants, err := all(ctx, s.reader.session(), scanGrant, query, args...)
	return grants, s.fault("store.grants", err)
}

const revokeGrant = `UPDATE grants SET revoked_at = ?3, revoked_by = ?4 WHERE tenant_id = ?1 AND id = ?2 AND revoked_at IS NULL`

// RevokeGrant implements access.Store.
func (s *Store) RevokeGrant(ctx context.Context, tenant sallyport.TenantID, id sallyport.GrantID, by sallyport.PrincipalID, at time.Time) (bool, error) {
	const op = "store.revoke_grant"
	var revoked bool
	err := s.write(ctx, op, func(ctx context.Context, tx *session) error {
		changed, err := tx.exec(ctx, revokeGrant, tenant, id, micros(at), by)
		if err != nil {
			return err
		}
		revoked = changed == 1
		_, found, err := one(ctx, tx, scanGrant, selectGrant, tenant, id)
		if err == nil && !found {
			err = &sallyport.Error{Op: op, Code: sallyport.CodeGrantNotFound}
		}
		return err
	})
	return revoked && err == nil, err
}
