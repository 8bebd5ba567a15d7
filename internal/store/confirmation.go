package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const confirmationColumns = `tenant_id, id, principal_id, request_digest, revision_digest, skill_id, slug, revision_id, script_path, request,
	state, created_at, expires_at, decided_at, decided_by, in_client`

func scanConfirmation(row scanner) (sallyport.Confirmation, error) {
	var (
		c                sallyport.Confirmation
		request          string
		created, expires int64
		decided          sql.NullInt64
	)
	err := row.Scan(&c.TenantID, &c.ID, &c.PrincipalID, &c.RequestDigest, &c.RevisionDigest, &c.SkillID, &c.Slug, &c.RevisionID,
		&c.ScriptPath, &request, &c.State, &created, &expires, &decided, &c.DecidedBy, &c.InClient)
	c.Request, c.CreatedAt, c.ExpiresAt, c.DecidedAt = []byte(request), timeOf(created), timeOf(expires), timeOrNil(decided)
	return c, err
}

const (
	// A confirmation that is over for a day is of no use to anybody: the trail tells of it.
	deleteOldConfirmations = `DELETE FROM confirmations WHERE tenant_id = ?1 AND expires_at <= ?2`
	selectSameQuestion     = `SELECT ` + confirmationColumns + ` FROM confirmations WHERE tenant_id = ?1 AND principal_id = ?2
	AND request_digest = ?3 AND revision_digest = ?4 AND state = ?5 AND expires_at > ?6 ORDER BY created_at, id LIMIT 1`
	countQuestions = `SELECT COUNT(*) FROM confirmations WHERE tenant_id = ?1 AND principal_id = ?2 AND state = 'pending' AND expires_at > ?3`
	insertQuestion = `INSERT INTO confirmations (` + confirmationColumns + `)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'pending', ?11, ?12, NULL, '', 0)`
)

// AskConfirmation implements run.Confirmations.
func (s *Store) AskConfirmation(ctx context.Context, tenant sallyport.TenantID, c sallyport.Confirmation, most int, entry sallyport.Entry) (asked sallyport.Confirmation, found bool, err error) {
	const op = "store.ask_confirmation"
	if c.ID == "" || c.PrincipalID == "" || c.RequestDigest == "" || c.RevisionDigest == "" || len(c.Request) == 0 {
		return asked, false, defect(op, "a confirmation is a principal's, for a request and a revision")
	}
	entry, err = prepareEntry(op, tenant, entry)
	if err != nil {
		return asked, false, err
	}
	now := micros(c.CreatedAt)
	err = s.writer.do(ctx, func(ctx context.Context, tx *session) error {
		var err error
		asked, found, err = one(ctx, tx, scanConfirmation, selectSameQuestion, tenant, c.PrincipalID, c.RequestDigest, c.RevisionDigest, sallyport.ConfirmationPending, now)
		if err != nil || found {
			return err
		}
		waiting, _, err := one(ctx, tx, scalar[int], countQuestions, tenant, c.PrincipalID, now)
		if err != nil || waiting >= most {
			return err
		}
		if _, err = tx.exec(ctx, deleteOldConfirmations, tenant, micros(c.CreatedAt.AddDate(0, 0, -1))); err != nil {
			return err
		}
		if _, err = tx.exec(ctx, insertQuestion, tenant, c.ID, c.PrincipalID, c.RequestDigest, c.RevisionDigest, c.SkillID, c.Slug, c.RevisionID,
			c.ScriptPath, string(c.Request), now, micros(c.ExpiresAt)); err != nil {
			return err
		}
		if _, err = appendEntry(ctx, tx, entry); err != nil {
			return err
		}
		asked, found, err = one(ctx, tx, scanConfirmation, selectQuestion, tenant, c.ID, now)
		return err
	})
	return asked, found && err == nil, s.auditFault(op, err)
}

// Confirmed implements run.Confirmations.
func (s *Store) Confirmed(ctx context.Context, tenant sallyport.TenantID, principal sallyport.PrincipalID, request, revision sallyport.Digest, now time.Time) (sallyport.Confirmation, bool, error) {
	c, found, err := one(ctx, s.reader.session(), scanConfirmation, selectSameQuestion, tenant, principal, request, revision, sallyport.ConfirmationApproved, micros(now))
	return c, found, s.fault("store.confirmed", err)
}

const useConfirmation = `UPDATE confirmations SET state = 'used' WHERE tenant_id = ?1 AND id = ?2 AND state = 'approved' AND expires_at > ?3`

// UseConfirmation implements run.Confirmations.
func (s *Store) UseConfirmation(ctx context.Context, tenant sallyport.TenantID, id sallyport.ConfirmationID, now time.Time) (bool, error) {
	var used int64
	err := s.write(ctx, "store.use_confirmation", func(ctx context.Context, tx *session) (err error) {
		used, err = tx.exec(ctx, useConfirmation, tenant, id, micros(now))
		return err
	})
	return used == 1 && err == nil, err
}

const decideConfirmation = `UPDATE confirmations SET state = ?3, expires_at = ?4, decided_at = ?5, decided_by = ?6, in_client = ?7
	WHERE tenant_id = ?1 AND id = ?2 AND state = 'pending' AND expires_at > ?8`

// DecideConfirmation implements run.Confirmations.
func (s *Store) DecideConfirmation(ctx context.Context, tenant sallyport.TenantID, c sallyport.Confirmation, now time.Time, entry sallyport.Entry) (bool, error) {
	const op = "store.decide_confirmation"
	if c.State != sallyport.ConfirmationApproved && c.State != sallyport.ConfirmationDenied || c.DecidedBy == "" || c.DecidedAt == nil {
		return false, defect(op, "a decision is a yes or a no of somebody")
	}
	entry, err := prepareEntry(op, tenant, entry)
	if err != nil {
		return false, err
	}
	var decided int64
	err = s.writer.do(ctx, func(ctx context.Context, tx *session) error {
		var err error
		decided, err = tx.exec(ctx, decideConfirmation, tenant, c.ID, c.State, micros(c.ExpiresAt), micros(*c.DecidedAt), c.DecidedBy, c.InClient, micros(now))
		if err == nil && decided == 1 {
			_, err = appendEntry(ctx, tx, entry)
		}
		return err
	})
	return decided == 1 && err == nil, s.auditFault(op, err)
}

const (
	selectQuestion  = `SELECT ` + confirmationColumns + ` FROM confirmations WHERE tenant_id = ?1 AND id = ?2 AND state = 'pending' AND expires_at > ?3`
	selectQuestions = `SELECT ` + confirmationColumns + ` FROM confirmations WHERE tenant_id = ?1 AND state = 'pending' AND expires_at > ?2
	ORDER BY created_at, id LIMIT ?3`
)

// PendingConfirmation implements run.Confirmations.
func (s *Store) PendingConfirmation(ctx context.Context, tenant sallyport.TenantID, id sallyport.ConfirmationID, now time.Time) (sallyport.Confirmation, error) {
	const op = "store.pending_confirmation"
	c, found, err := one(ctx, s.reader.session(), scanConfirmation, selectQuestion, tenant, id, micros(now))
	if err == nil && !found {
		err = &sallyport.Error{Op: op, Code: sallyport.CodeConfirmationNotFound}
	}
	return c, s.fault(op, err)
}

// PendingConfirmations implements run.Confirmations.
func (s *Store) PendingConfirmations(ctx context.Context, tenant sallyport.TenantID, now time.Time, limit int) ([]sallyport.Confirmation, error) {
	found, err := all(ctx, s.reader.session(), scanConfirmation, selectQuestions, tenant, micros(now), limit)
	return found, s.fault("store.pending_confirmations", err)
}
