package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const skillColumns = `s.tenant_id, s.id, s.team_id, s.owner_id, s.slug, s.name, s.description,
	s.published_revision_id, s.latest_revision_id, s.archived_at, s.created_at, s.updated_at, s.deleted_at`

func scanSkill(row scanner) (sallyport.Skill, error) {
	var (
		skill            sallyport.Skill
		archived, gone   sql.NullInt64
		created, updated int64
	)
	err := row.Scan(&skill.TenantID, &skill.ID, &skill.TeamID, &skill.OwnerID, &skill.Slug, &skill.Name, &skill.Description,
		&skill.PublishedRevisionID, &skill.LatestRevisionID, &archived, &created, &updated, &gone)
	skill.ArchivedAt, skill.CreatedAt, skill.UpdatedAt, skill.DeletedAt = timeOrNil(archived), timeOf(created), timeOf(updated), timeOrNil(gone)
	return skill, err
}

func skillNotFound(op string) error {
	return &sallyport.Error{Op: op, Code: sallyport.CodeSkillNotFound}
}

const selectSkill = `SELECT ` + skillColumns + ` FROM skills AS s WHERE s.tenant_id = ?1 AND s.id = ?2`

// Skill implements registry.Store.
func (s *Store) Skill(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID) (sallyport.Skill, error) {
	const op = "store.skill"
	skill, found, err := one(ctx, s.reader.session(), scanSkill, selectSkill, tenant, id)
	if err != nil {
		return sallyport.Skill{}, s.fault(op, err)
	}
	if !found {
		return sallyport.Skill{}, skillNotFound(op)
	}
	return skill, nil
}

const selectSkillsBySlug = `SELECT ` + skillColumns + ` FROM skills AS s WHERE s.tenant_id = ?1 AND s.slug = ?2 ORDER BY s.id`

// SkillsBySlug implements registry.Store.
func (s *Store) SkillsBySlug(ctx context.Context, tenant sallyport.TenantID, slug string) ([]sallyport.Skill, error) {
	skills, err := all(ctx, s.reader.session(), scanSkill, selectSkillsBySlug, tenant, slug)
	return skills, s.fault("store.skills_by_slug", err)
}

const setDeleted = `UPDATE skills SET archived_at = COALESCE(archived_at, ?3), deleted_at = COALESCE(deleted_at, ?3) WHERE tenant_id = ?1 AND id = ?2`

// SetDeleted implements registry.Store.
func (s *Store) SetDeleted(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID, at time.Time) (sallyport.Skill, error) {
	const op = "store.set_deleted"
	var skill sallyport.Skill
	err := s.write(ctx, op, func(ctx context.Context, tx *session) error {
		if _, err := tx.exec(ctx, setDeleted, tenant, id, micros(at)); err != nil {
			return err
		}
		stored, found, err := one(ctx, tx, scanSkill, selectSkill, tenant, id)
		if err == nil && !found {
			err = skillNotFound(op)
		}
		skill = stored
		return err
	})
	if err != nil {
		return sallyport.Skill{}, err
	}
	return skill, nil
}

const setArchived = `UPDATE skills SET archived_at = ?3, deleted_at = NULL WHERE tenant_id = ?1 AND id = ?2`

// SetArchived implements registry.Store.
func (s *Store) SetArchived(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID, at *time.Time) (sallyport.Skill, error) {
	const op = "store.set_archived"
	var skill sallyport.Skill
	err := s.write(ctx, op, func(ctx context.Context, tx *session) error {
		if _, err := tx.exec(ctx, setArchived, tenant, id, microsOrNull(at)); err != nil {
			return err
		}
		stored, found, err := one(ctx, tx, scanSkill, selectSkill, tenant, id)
		if err == nil && !found {
			err = skillNotFound(op)
		}
		skill = stored
		return err
	})
	if err != nil {
		return sallyport.Skill{}, err
	}
	return skill, nil
}
