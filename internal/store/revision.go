package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const revisionColumns = `tenant_id, id, skill_id, number, state, digest, frontmatter, message, author, created_at, published_at`

func scanRevision(row scanner) (sallyport.Revision, error) {
	var (
		revision    sallyport.Revision
		frontmatter sql.NullString
		created     int64
		published   sql.NullInt64
	)
	err := row.Scan(&revision.TenantID, &revision.ID, &revision.SkillID, &revision.Number, &revision.State, &revision.Digest,
		&frontmatter, &revision.Message, &revision.Author, &created, &published)
	revision.Frontmatter, revision.CreatedAt, revision.PublishedAt = rawOf(frontmatter), timeOf(created), timeOrNil(published)
	return revision, err
}

func revisionNotFound(op string) error {
	return &sallyport.Error{Op: op, Code: sallyport.CodeRevisionNotFound}
}

const selectRevisions = `SELECT ` + revisionColumns + ` FROM revisions WHERE tenant_id = ?1 AND skill_id = ?2 ORDER BY number DESC`

// Revisions implements registry.Store.
func (s *Store) Revisions(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID) ([]sallyport.Revision, error) {
	revisions, err := all(ctx, s.reader.session(), scanRevision, selectRevisions, tenant, skill)
	return revisions, s.fault("store.revisions", err)
}

const selectRevision = `SELECT ` + revisionColumns + ` FROM revisions WHERE tenant_id = ?1 AND skill_id = ?2 AND id = ?3`

// Revision implements registry.Store.
func (s *Store) Revision(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID) (sallyport.Revision, error) {
	return s.revision(ctx, "store.revision", tenant, skill, id, func(tx *session) ([]sallyport.Component, error) {
		return all(ctx, tx, scanComponent, selectComponents, tenant, id)
	})
}

// RevisionContent implements registry.Store. Every byte is verified against its sha256.
func (s *Store) RevisionContent(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID) (sallyport.Revision, error) {
	const op = "store.revision_content"
	revision, err := s.revision(ctx, op, tenant, skill, id, func(tx *session) ([]sallyport.Component, error) {
		return all(ctx, tx, scanComponentContent, selectComponentContents, tenant, id)
	})
	if err != nil {
		return sallyport.Revision{}, err
	}
	// Outside of the snapshot: hashing must not hold a connection.
	for _, component := range revision.Components {
		if err := verify(op, component.Content, component.Size, component.SHA256); err != nil {
			return sallyport.Revision{}, err
		}
	}
	return revision, nil
}

func (s *Store) revision(
	ctx context.Context, op string, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID,
	components func(tx *session) ([]sallyport.Component, error),
) (sallyport.Revision, error) {
	var revision sallyport.Revision
	err := s.reader.snapshot(ctx, func(tx *session) error {
		stored, found, err := one(ctx, tx, scanRevision, selectRevision, tenant, skill, id)
		if err != nil {
			return err
		}
		if !found {
			return revisionNotFound(op)
		}
		stored.Components, err = components(tx)
		revision = stored
		return err
	})
	if err != nil {
		return sallyport.Revision{}, s.fault(op, err)
	}
	return revision, nil
}

const (
	markPublished = `UPDATE revisions SET state = 'published', published_at = COALESCE(published_at, ?4)
	WHERE tenant_id = ?1 AND skill_id = ?2 AND id = ?3`
	pointPublished = `UPDATE skills SET published_revision_id = ?3, updated_at = ?4 WHERE tenant_id = ?1 AND id = ?2`
)

// Publish implements registry.Store.
func (s *Store) Publish(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID, at time.Time, by sallyport.PrincipalID) (sallyport.Skill, error) {
	const op = "store.publish"
	var published sallyport.Skill
	err := s.write(ctx, op, func(ctx context.Context, tx *session) error {
		_, found, err := one(ctx, tx, scanSkill, selectSkill, tenant, skill)
		if err == nil && !found {
			err = skillNotFound(op)
		}
		if err != nil {
			return err
		}
		marked, err := tx.exec(ctx, markPublished, tenant, skill, id, micros(at))
		if err == nil && marked == 0 {
			err = revisionNotFound(op)
		}
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, pointPublished, tenant, skill, id, micros(at)); err != nil {
			return err
		}
		if err := addPublication(ctx, tx, tenant, id, by, at); err != nil {
			return err
		}
		published, _, err = one(ctx, tx, scanSkill, selectSkill, tenant, skill)
		return err
	})
	if err != nil {
		return sallyport.Skill{}, err
	}
	return published, nil
}

const insertRevision = `INSERT INTO revisions (` + revisionColumns + `)
	VALUES (?1, ?2, ?3, (SELECT 1 + MAX(
	(SELECT COALESCE(MAX(r.number), 0) FROM revisions AS r WHERE r.tenant_id = ?1 AND r.skill_id = ?3),
	(SELECT COALESCE(MAX(g.number), 0) FROM removed_revisions AS g WHERE g.tenant_id = ?1 AND g.skill_id = ?3))),
	?4, ?5, ?6, ?7, ?8, ?9, ?10)`

// addRevision stores the row of a revision; its number is the next one of the skill.
func addRevision(ctx context.Context, tx *session, tenant sallyport.TenantID, skill sallyport.SkillID, revision sallyport.Revision, publish bool) error {
	state, at := sallyport.RevisionDraft, sql.NullInt64{}
	if publish {
		state, at = sallyport.RevisionPublished, sql.NullInt64{Int64: micros(revision.CreatedAt), Valid: true}
		if revision.PublishedAt != nil {
			at = microsOrNull(revision.PublishedAt)
		}
	}
	_, err := tx.exec(ctx, insertRevision, tenant, revision.ID, skill, state, revision.Digest,
		textOrNull(revision.Frontmatter), revision.Message, revision.Author, micros(revision.CreatedAt), at)
	return err
}
