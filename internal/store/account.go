package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

const accountColumns = `tenant_id, id, roles, disabled_at, registered_by, created_at, last_seen_at`

func scanAccount(row scanner) (sallyport.Account, error) {
	var (
		account        sallyport.Account
		created        int64
		disabled, seen sql.NullInt64
	)
	err := row.Scan(&account.TenantID, &account.ID, asJSON{&account.Roles}, &disabled, &account.RegisteredBy, &created, &seen)
	account.CreatedAt, account.DisabledAt, account.LastSeenAt = timeOf(created), timeOrNil(disabled), timeOrNil(seen)
	return account, err
}

const (
	selectAccounts = `SELECT ` + accountColumns + ` FROM accounts WHERE tenant_id = ?1 ORDER BY id`
	selectAccount  = `SELECT ` + accountColumns + ` FROM accounts WHERE tenant_id = ?1 AND id = ?2`
	insertAccount  = `INSERT INTO accounts (` + accountColumns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
	ON CONFLICT (tenant_id, id) DO UPDATE SET roles = excluded.roles, disabled_at = excluded.disabled_at, registered_by = excluded.registered_by`
	insertSeen = `INSERT INTO accounts (` + accountColumns + `) VALUES (?1, ?2, '[]', NULL, '', ?3, ?3)
	ON CONFLICT (tenant_id, id) DO UPDATE SET last_seen_at = excluded.last_seen_at
	WHERE accounts.last_seen_at IS NULL OR accounts.last_seen_at < excluded.last_seen_at`
)

// Accounts implements access.Directory.
func (s *Store) Accounts(ctx context.Context, tenant sallyport.TenantID) ([]sallyport.Account, error) {
	accounts, err := all(ctx, s.reader.session(), scanAccount, selectAccounts, tenant)
	return accounts, s.fault("store.accounts", err)
}

// Account implements access.Directory.
func (s *Store) Account(ctx context.Context, tenant sallyport.TenantID, id sallyport.PrincipalID) (sallyport.Account, error) {
	const op = "store.account"
	account, found, err := one(ctx, s.reader.session(), scanAccount, selectAccount, tenant, id)
	if err == nil && !found {
		err = &sallyport.Error{Op: op, Code: sallyport.CodePrincipalNotFound}
	}
	return account, s.fault(op, err)
}

// PutAccount implements access.Directory.
func (s *Store) PutAccount(ctx context.Context, tenant sallyport.TenantID, account sallyport.Account, keep access.Keep) error {
	const op = "store.put_account"
	if tenant == "" || account.ID == "" {
		return defect(op, "an account needs a tenant and a principal")
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		if err := inTenant(ctx, tx, op, tenant); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, insertAccount, tenant, account.ID, jsonText(orEmpty(account.Roles)), microsOrNull(account.DisabledAt),
			account.RegisteredBy, micros(account.CreatedAt), microsOrNull(account.LastSeenAt)); err != nil {
			return err
		}
		return kept(ctx, tx, tenant, keep)
	})
}

// SeeAccount implements access.Directory.
func (s *Store) SeeAccount(ctx context.Context, tenant sallyport.TenantID, id sallyport.PrincipalID, at time.Time) error {
	const op = "store.see_account"
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		if err := inTenant(ctx, tx, op, tenant); err != nil {
			return err
		}
		_, err := tx.exec(ctx, insertSeen, tenant, id, micros(at))
		return err
	})
}

// Standing implements access.Directory.
func (s *Store) Standing(ctx context.Context, tenant sallyport.TenantID, id sallyport.PrincipalID) (sallyport.Standing, error) {
	var standing sallyport.Standing
	err := s.reader.snapshot(ctx, func(tx *session) error {
		record, found, err := one(ctx, tx, scanTenant, selectTenant, tenant)
		if err != nil || !found {
			return err
		}
		standing.Tenant = record
		account, found, err := one(ctx, tx, scanAccount, selectAccount, tenant, id)
		if err != nil {
			return err
		}
		if found {
			standing.Account = &account
		}
		teams, err := all(ctx, tx, scanTeam, selectTeams, tenant)
		if err != nil {
			return err
		}
		for _, team := range teams {
			standing.Teams = append(standing.Teams, team.ID)
		}
		if standing.Member, err = all(ctx, tx, scalar[sallyport.TeamID], selectMemberships, tenant, id); err != nil {
			return err
		}
		standing.Roles, err = all(ctx, tx, scanRole, selectRoles, tenant)
		return err
	})
	return standing, s.fault("store.standing", err)
}

func rosterOf(ctx context.Context, tx *session, tenant sallyport.TenantID) (access.Roster, error) {
	var (
		roster access.Roster
		err    error
	)
	if roster.Keys, err = all(ctx, tx, scanKey, selectKeys, tenant); err != nil {
		return roster, err
	}
	if roster.Accounts, err = all(ctx, tx, scanAccount, selectAccounts, tenant); err != nil {
		return roster, err
	}
	roster.Roles, err = all(ctx, tx, scanRole, selectRoles, tenant)
	return roster, err
}

// Roster implements access.Directory.
func (s *Store) Roster(ctx context.Context, tenant sallyport.TenantID) (access.Roster, error) {
	var roster access.Roster
	err := s.reader.snapshot(ctx, func(tx *session) (err error) {
		roster, err = rosterOf(ctx, tx, tenant)
		return err
	})
	return roster, s.fault("store.roster", err)
}

// kept asks keep about what the transaction leaves.
func kept(ctx context.Context, tx *session, tenant sallyport.TenantID, keep access.Keep) error {
	if keep == nil {
		return nil
	}
	roster, err := rosterOf(ctx, tx, tenant)
	if err != nil {
		return err
	}
	return keep(roster)
}

const (
	insertPublication = `INSERT INTO publications (tenant_id, revision_id, principal_id, published_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING`
	selectPublishers  = `SELECT principal_id FROM publications WHERE tenant_id = ?1 AND revision_id = ?2 ORDER BY principal_id`
)

// addPublication keeps who published a revision.
func addPublication(ctx context.Context, tx *session, tenant sallyport.TenantID, id sallyport.RevisionID, by sallyport.PrincipalID, at time.Time) error {
	if by == "" {
		return defect("store.publish", "a publication needs a principal")
	}
	_, err := tx.exec(ctx, insertPublication, tenant, id, by, micros(at))
	return err
}

// Publishers implements access.Directory.
func (s *Store) Publishers(ctx context.Context, tenant sallyport.TenantID, id sallyport.RevisionID) ([]sallyport.PrincipalID, error) {
	publishers, err := all(ctx, s.reader.session(), scalar[sallyport.PrincipalID], selectPublishers, tenant, id)
	return publishers, s.fault("store.publishers", err)
}
