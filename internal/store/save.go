package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/registry"
)

const opSave = "store.save_revision"

// SaveRevision implements registry.Store. What it is given is verified first: every component carries its content, and
// the revision's digest is the digest of exactly these components.
func (s *Store) SaveRevision(ctx context.Context, tenant sallyport.TenantID, save registry.RevisionSave) (sallyport.Skill, sallyport.Revision, error) {
	if err := checkSave(tenant, save); err != nil {
		return sallyport.Skill{}, sallyport.Revision{}, err
	}
	var (
		skill    sallyport.Skill
		revision sallyport.Revision
	)
	err := s.write(ctx, opSave, func(ctx context.Context, tx *session) error {
		id, err := s.saveSkill(ctx, tx, tenant, save)
		if err != nil {
			return err
		}
		if err := addRevision(ctx, tx, tenant, id, save.Revision, save.Publish); err != nil {
			return s.reused(err, "revision")
		}
		if save.Once != nil {
			if err := recordOnce(ctx, tx, tenant, save, id); err != nil {
				return err
			}
		}
		if save.Publish {
			if err := addPublication(ctx, tx, tenant, save.Revision.ID, save.Revision.Author, savedAt(save)); err != nil {
				return err
			}
		}
		for _, component := range save.Revision.Components {
			if err := addComponent(ctx, tx, tenant, save.Revision.ID, component); err != nil {
				return s.reused(err, "component")
			}
		}
		if skill, _, err = one(ctx, tx, scanSkill, selectSkill, tenant, id); err != nil {
			return err
		}
		if revision, _, err = one(ctx, tx, scanRevision, selectRevision, tenant, id, save.Revision.ID); err != nil {
			return err
		}
		revision.Components, err = all(ctx, tx, scanComponent, selectComponents, tenant, save.Revision.ID)
		return err
	})
	if err != nil {
		return sallyport.Skill{}, sallyport.Revision{}, err
	}
	return skill, revision, nil
}

func checkSave(tenant sallyport.TenantID, save registry.RevisionSave) error {
	switch {
	case tenant == "" || save.Skill.ID == "" || save.Revision.ID == "":
		return defect(opSave, "a save needs a tenant, a skill id and a revision id")
	case save.Create && save.Skill.Slug == "":
		return defect(opSave, "a new skill needs a slug")
	case save.Create && (save.Skill.TeamID == "") == (save.Skill.OwnerID == ""):
		return defect(opSave, "a new skill belongs to either a team or an owner")
	}
	for _, component := range save.Revision.Components {
		if int64(len(component.Content)) != component.Size {
			return defect(opSave, fmt.Sprintf("the component %q does not carry its content", component.Path))
		}
	}
	digest, err := canonical.RevisionDigest(save.Revision.Components)
	if err != nil {
		return err
	}
	if digest != save.Revision.Digest {
		return defect(opSave, "the digest of the revision is not the digest of its components")
	}
	return nil
}

const (
	insertSkill = `INSERT INTO skills (tenant_id, id, team_id, owner_id, slug, name, description,
	published_revision_id, latest_revision_id, archived_at, created_at, updated_at)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL, ?10, ?11) ON CONFLICT DO NOTHING`
	selectSlug = `SELECT COUNT(*) FROM skills WHERE tenant_id = ?1 AND team_id = ?2 AND owner_id = ?3 AND slug = ?4`
	// updateSkill is the compare-and-swap: it changes nothing unless ?3 is still the latest revision.
	updateSkill = `UPDATE skills SET latest_revision_id = ?4, name = ?5, description = ?6, updated_at = ?7,
	published_revision_id = CASE WHEN ?8 THEN ?4 ELSE published_revision_id END
	WHERE tenant_id = ?1 AND id = ?2 AND latest_revision_id = ?3`
	selectSeq = `SELECT s.seq, s.slug FROM skills AS s WHERE s.tenant_id = ?1 AND s.id = ?2`
)

// saveSkill creates or updates the row of the skill and its place in the search, and returns its id.
func (s *Store) saveSkill(ctx context.Context, tx *session, tenant sallyport.TenantID, save registry.RevisionSave) (sallyport.SkillID, error) {
	var err error
	if save.Create {
		err = createSkill(ctx, tx, tenant, save)
	} else {
		err = swapRevision(ctx, tx, tenant, save)
	}
	if err != nil {
		return "", err
	}
	type indexed struct {
		seq  int64
		slug string
	}
	row, _, err := one(ctx, tx, func(row scanner) (indexed, error) {
		var i indexed
		err := row.Scan(&i.seq, &i.slug)
		return i, err
	}, selectSeq, tenant, save.Skill.ID)
	if err != nil {
		return "", err
	}
	_, err = tx.exec(ctx, s.dialect.indexSkill, row.seq, row.slug, searchText(save.Skill.Name),
		searchText(save.Skill.Description), indexedPaths(save.Revision.Components), searchText(save.Instructions))
	return save.Skill.ID, err
}

func createSkill(ctx context.Context, tx *session, tenant sallyport.TenantID, save registry.RevisionSave) error {
	skill, published := save.Skill, sallyport.RevisionID("")
	if save.Publish {
		published = save.Revision.ID
	}
	made, err := tx.exec(ctx, insertSkill, tenant, skill.ID, skill.TeamID, skill.OwnerID, skill.Slug, skill.Name, skill.Description,
		published, save.Revision.ID, micros(skill.CreatedAt), micros(savedAt(save)))
	if err != nil || made == 1 {
		return err
	}
	taken, _, err := one(ctx, tx, scalar[int], selectSlug, tenant, skill.TeamID, skill.OwnerID, skill.Slug)
	if err != nil {
		return err
	}
	if taken == 0 {
		return defect(opSave, "the skill id is in use")
	}
	return sallyport.Errorf(opSave, sallyport.CodeSlugTaken, "a skill with the slug %q exists already; save a revision of it, or choose another name", skill.Slug)
}

func swapRevision(ctx context.Context, tx *session, tenant sallyport.TenantID, save registry.RevisionSave) error {
	swapped, err := tx.exec(ctx, updateSkill, tenant, save.Skill.ID, save.ExpectedLatest, save.Revision.ID, save.Skill.Name,
		save.Skill.Description, micros(savedAt(save)), save.Publish)
	if err != nil || swapped == 1 {
		return err
	}
	_, found, err := one(ctx, tx, scanSkill, selectSkill, tenant, save.Skill.ID)
	if err != nil {
		return err
	}
	if !found {
		return skillNotFound(opSave)
	}
	return sallyport.Errorf(opSave, sallyport.CodeRevisionConflict, "the skill has a newer revision than the one this save builds on; read the latest revision and save again")
}

func savedAt(save registry.RevisionSave) time.Time {
	return cmp.Or(save.Skill.UpdatedAt, save.Revision.CreatedAt)
}

// reused explains a violated uniqueness: ids are made by the product, so a second use of one is its defect.
func (s *Store) reused(err error, noun string) error {
	if s.dialect.duplicate(err) {
		return defect(opSave, "the "+noun+" id is in use")
	}
	return err
}
