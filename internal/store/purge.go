package store

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/records"
)

// What one transaction removes at most, so that no writer waits long behind it. Content counts most: its pages are freed one by one.
const (
	executionsAtOnce = 50
	artifactsAtOnce  = 100
	toolCallsAtOnce  = 1000
	draftsAtOnce     = 10
	unheldAtOnce     = 100
	bytesAtOnce      = 32 << 20
)

// The conditions of what is old. ?2 is the bound, ?3 the oldest idempotency key that counts.
const (
	ended         = `e.status NOT IN ('queued', 'running')`
	oldExecutions = ` FROM executions AS e WHERE e.tenant_id = ?1 AND e.created_at < ?2 AND ` + ended + `
	AND NOT EXISTS (SELECT 1 FROM idempotency_keys AS k WHERE k.tenant_id = ?1 AND k.execution_id = e.id AND k.created_at > ?3)`

	countOldExecutions  = `SELECT COUNT(*)` + oldExecutions
	selectOldExecutions = `SELECT e.id` + oldExecutions + ` ORDER BY e.created_at, e.id LIMIT ?4`

	// countOldArtifacts counts those of old executions, too; ?4 is the bound of artifacts alone.
	countOldArtifacts = `SELECT COUNT(*), COALESCE(SUM(a.size), 0) FROM artifacts AS a WHERE a.tenant_id = ?1 AND (
	a.execution_id IN (SELECT e.id` + oldExecutions + `)
	OR a.execution_id IN (SELECT e.id FROM executions AS e WHERE e.tenant_id = ?1 AND e.created_at < ?4 AND ` + ended + `))`
	selectOldArtifacts = `SELECT ` + artifactColumns + `, a.execution_id, a.position FROM artifacts AS a WHERE a.tenant_id = ?1
	AND a.execution_id IN (SELECT e.id FROM executions AS e WHERE e.tenant_id = ?1 AND e.created_at < ?2 AND ` + ended + `) LIMIT ?3`

	countOldCalls  = `SELECT COUNT(*) FROM tool_calls WHERE tenant_id = ?1 AND at < ?2`
	deleteOldCalls = `DELETE FROM tool_calls WHERE tenant_id = ?1 AND at < ?2 AND seq IN (
	SELECT c.seq FROM tool_calls AS c WHERE c.tenant_id = ?1 AND c.at < ?2 ORDER BY c.at LIMIT ?3)`

	// oldDrafts are beyond ?2, not among the ?3 newest of their skill, and named by nobody.
	oldDrafts = ` FROM revisions AS r WHERE r.tenant_id = ?1 AND r.state = 'draft' AND r.created_at < ?2
	AND (SELECT COUNT(*) FROM revisions AS n WHERE n.tenant_id = ?1 AND n.skill_id = r.skill_id AND n.state = 'draft' AND n.number > r.number) >= ?3
	AND NOT EXISTS (SELECT 1 FROM skills AS s WHERE s.tenant_id = ?1 AND s.id = r.skill_id AND r.id IN (s.latest_revision_id, s.published_revision_id))
	AND NOT EXISTS (SELECT 1 FROM grants AS g WHERE g.tenant_id = ?1 AND g.skill_id = r.skill_id AND (g.revision_id = r.id OR g.pin = r.digest))
	AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.tenant_id = ?1 AND e.skill_id = r.skill_id AND e.revision_id = r.id)`
	countOldDrafts  = `SELECT COUNT(*)` + oldDrafts
	selectOldDrafts = `SELECT ` + revisionColumns + oldDrafts + ` ORDER BY r.created_at, r.id LIMIT ?4`
)

type artifactCount struct{ count, bytes int64 }

func scanArtifactCount(row scanner) (artifactCount, error) {
	var c artifactCount
	err := row.Scan(&c.count, &c.bytes)
	return c, err
}

// CountOld implements records.Store.
func (s *Store) CountOld(ctx context.Context, tenant sallyport.TenantID, b records.Bounds) (records.Counts, error) {
	var counts records.Counts
	err := s.reader.snapshot(ctx, func(tx *session) error {
		old, keys := microsOrZero(b.Executions), micros(b.Keys)
		var err error
		if counts.Executions, _, err = one(ctx, tx, scalar[int64], countOldExecutions, tenant, old, keys); err != nil {
			return err
		}
		artifacts, _, err := one(ctx, tx, scanArtifactCount, countOldArtifacts, tenant, old, keys, microsOrZero(b.Artifacts))
		if err != nil {
			return err
		}
		counts.Artifacts, counts.ArtifactBytes = artifacts.count, artifacts.bytes
		if counts.ToolCalls, _, err = one(ctx, tx, scalar[int64], countOldCalls, tenant, microsOrZero(b.ToolCalls)); err != nil {
			return err
		}
		counts.Drafts, _, err = one(ctx, tx, scalar[int64], countOldDrafts, tenant, microsOrZero(b.Drafts), b.KeepDrafts)
		return err
	})
	return counts, s.fault("store.count_old", err)
}

// PurgeOld implements records.Store: one kind of record in each transaction, until there is none.
func (s *Store) PurgeOld(ctx context.Context, tenant sallyport.TenantID, b records.Bounds) (records.Counts, bool, error) {
	var removed records.Counts
	err := s.write(ctx, "store.purge_old", func(ctx context.Context, tx *session) error {
		removed = records.Counts{}
		for _, purge := range []func(context.Context, *session, sallyport.TenantID, records.Bounds) (records.Counts, error){
			purgeExecutions, expireArtifacts, purgeCalls, purgeDrafts,
		} {
			counts, err := purge(ctx, tx, tenant, b)
			if err != nil {
				return err
			}
			if counts != (records.Counts{}) {
				removed = counts
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return records.Counts{}, false, err
	}
	return removed, removed != (records.Counts{}), nil
}

const (
	deleteArtifacts        = `DELETE FROM artifacts WHERE tenant_id = ?1 AND execution_id = ?2`
	deleteExpiredArtifacts = `DELETE FROM expired_artifacts WHERE tenant_id = ?1 AND execution_id = ?2`
	deleteExecution        = `DELETE FROM executions WHERE tenant_id = ?1 AND id = ?2`
)

func purgeExecutions(ctx context.Context, tx *session, tenant sallyport.TenantID, b records.Bounds) (records.Counts, error) {
	var removed records.Counts
	if b.Executions.IsZero() {
		return removed, nil
	}
	ids, err := all(ctx, tx, scalar[sallyport.ExecutionID], selectOldExecutions, tenant, micros(b.Executions), micros(b.Keys), executionsAtOnce)
	if err != nil {
		return removed, err
	}
	for _, id := range ids {
		artifacts, err := all(ctx, tx, scanArtifact, selectHeldArtifacts, tenant, id)
		if err != nil {
			return removed, err
		}
		for _, statement := range []string{deleteArtifacts, deleteExpiredArtifacts, deleteExecution} {
			if _, err := tx.exec(ctx, statement, tenant, id); err != nil {
				return removed, err
			}
		}
		removed.Executions++
		for _, artifact := range artifacts {
			if _, err := tx.exec(ctx, deleteUnheldBlob, artifact.SHA256); err != nil {
				return removed, err
			}
			removed.Artifacts++
			removed.ArtifactBytes += artifact.Size
		}
		if removed.ArtifactBytes >= bytesAtOnce {
			break
		}
	}
	return removed, nil
}

const (
	insertExpiredArtifact = `INSERT INTO expired_artifacts (tenant_id, execution_id, position, path, size, sha256, media_type, uri, expired_at)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`
	deleteArtifact = `DELETE FROM artifacts WHERE tenant_id = ?1 AND execution_id = ?2 AND path = ?3`
)

// expireArtifacts removes content and keeps what the record says of it.
func expireArtifacts(ctx context.Context, tx *session, tenant sallyport.TenantID, b records.Bounds) (records.Counts, error) {
	var removed records.Counts
	if b.Artifacts.IsZero() {
		return removed, nil
	}
	type held struct {
		sallyport.Artifact

		execution sallyport.ExecutionID
		position  int
	}
	old, err := all(ctx, tx, func(row scanner) (held, error) {
		var (
			h   held
			err error
		)
		h.Artifact, err = scanArtifactAnd(row, &h.execution, &h.position)
		return h, err
	}, selectOldArtifacts, tenant, micros(b.Artifacts), artifactsAtOnce)
	if err != nil {
		return removed, err
	}
	for _, a := range old {
		if _, err := tx.exec(ctx, insertExpiredArtifact, tenant, a.execution, a.position, a.Path, a.Size, a.SHA256, a.MediaType, a.URI, micros(b.At)); err != nil {
			return removed, err
		}
		if _, err := tx.exec(ctx, deleteArtifact, tenant, a.execution, a.Path); err != nil {
			return removed, err
		}
		if _, err := tx.exec(ctx, deleteUnheldBlob, a.SHA256); err != nil {
			return removed, err
		}
		removed.Artifacts++
		if removed.ArtifactBytes += a.Size; removed.ArtifactBytes >= bytesAtOnce {
			break
		}
	}
	return removed, nil
}

func purgeCalls(ctx context.Context, tx *session, tenant sallyport.TenantID, b records.Bounds) (records.Counts, error) {
	if b.ToolCalls.IsZero() {
		return records.Counts{}, nil
	}
	removed, err := tx.exec(ctx, deleteOldCalls, tenant, micros(b.ToolCalls), toolCallsAtOnce)
	return records.Counts{ToolCalls: removed}, err
}

func purgeDrafts(ctx context.Context, tx *session, tenant sallyport.TenantID, b records.Bounds) (records.Counts, error) {
	if b.Drafts.IsZero() {
		return records.Counts{}, nil
	}
	drafts, err := all(ctx, tx, scanRevision, selectOldDrafts, tenant, micros(b.Drafts), b.KeepDrafts, draftsAtOnce)
	for _, draft := range drafts {
		if err == nil {
			_, err = removeRevision(ctx, tx, tenant, draft)
		}
	}
	return records.Counts{Drafts: int64(len(drafts))}, err
}

// selectUnheldBlobs looks at every tenant: one content is stored once for all of them.
const selectUnheldBlobs = `SELECT b.sha256 FROM blobs AS b
	WHERE NOT EXISTS (SELECT 1 FROM components AS c WHERE c.sha256 = b.sha256) AND NOT EXISTS (SELECT 1 FROM artifacts AS a WHERE a.sha256 = b.sha256) LIMIT ?1`

// PurgeUnheld implements records.Store. Whether nothing holds a content is asked again by the writer, so a save that takes it up
// meanwhile keeps it.
func (s *Store) PurgeUnheld(ctx context.Context) (int64, bool, error) {
	const op = "store.purge_unheld"
	sums, err := all(ctx, s.reader.session(), scalar[string], selectUnheldBlobs, unheldAtOnce)
	if err != nil || len(sums) == 0 {
		return 0, false, s.fault(op, err)
	}
	var removed int64
	err = s.write(ctx, op, func(ctx context.Context, tx *session) error {
		removed = 0
		for _, sum := range sums {
			n, err := tx.exec(ctx, deleteUnheldBlob, sum)
			if err != nil {
				return err
			}
			removed += n
		}
		return nil
	})
	// A round that removed nothing was beaten by saves; the next sweep looks again.
	return removed, removed > 0 && len(sums) == unheldAtOnce, err
}

// Compact implements records.Store.
func (s *Store) Compact(ctx context.Context) (bool, error) {
	var left int64
	err := s.write(ctx, "store.compact", func(ctx context.Context, tx *session) error {
		var err error
		left, err = s.dialect.compact(ctx, tx)
		return err
	})
	return left > 0, err
}

const selectDeletedSkills = `SELECT s.id FROM skills AS s WHERE s.tenant_id = ?1 AND s.deleted_at < ?2 ORDER BY s.deleted_at, s.id`

// DeletedSkills implements records.Store.
func (s *Store) DeletedSkills(ctx context.Context, tenant sallyport.TenantID, before time.Time) ([]sallyport.SkillID, error) {
	ids, err := all(ctx, s.reader.session(), scalar[sallyport.SkillID], selectDeletedSkills, tenant, micros(before))
	return ids, s.fault("store.deleted_skills", err)
}

const (
	insertRemoved = `INSERT INTO removed_revisions (tenant_id, id, skill_id, number) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING`
	countRemoved  = `SELECT COUNT(*) FROM removed_revisions WHERE tenant_id = ?1 AND id = ?2`
)

// notRemoved is REVISION_NOT_FOUND for a revision that was removed: what was under way for it names nothing any more.
func notRemoved(ctx context.Context, tx *session, op string, tenant sallyport.TenantID, id sallyport.RevisionID) error {
	removed, _, err := one(ctx, tx, scalar[int], countRemoved, tenant, id)
	if err == nil && removed > 0 {
		err = sallyport.Errorf(op, sallyport.CodeRevisionNotFound, "the revision was removed a moment ago")
	}
	return err
}

// removeRevision removes a revision that nothing names, its manifest, and content that nothing else holds. It returns how many bytes
// the manifest had.
func removeRevision(ctx context.Context, tx *session, tenant sallyport.TenantID, revision sallyport.Revision) (int64, error) {
	components, err := all(ctx, tx, scanComponent, selectComponents, tenant, revision.ID)
	if err != nil {
		return 0, err
	}
	if _, err := tx.exec(ctx, deleteComponents, tenant, revision.ID); err != nil {
		return 0, err
	}
	if _, err := tx.exec(ctx, deleteRevision, tenant, revision.SkillID, revision.ID); err != nil {
		return 0, err
	}
	if _, err := tx.exec(ctx, insertRemoved, tenant, revision.ID, revision.SkillID, revision.Number); err != nil {
		return 0, err
	}
	var size int64
	for _, component := range components {
		size += component.Size
		if _, err := tx.exec(ctx, deleteUnheldBlob, component.SHA256); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// compactSQLite gives pages back from the end of the file and returns how many are left.
func compactSQLite(ctx context.Context, tx *session) (int64, error) {
	before, _, err := one(ctx, tx, scalar[int64], "PRAGMA freelist_count")
	if err != nil || before == 0 {
		return 0, err
	}
	if _, err := all(ctx, tx, func(scanner) (struct{}, error) { return struct{}{}, nil }, "PRAGMA incremental_vacuum(1024)"); err != nil {
		return 0, err
	}
	after, _, err := one(ctx, tx, scalar[int64], "PRAGMA freelist_count")
	if after >= before {
		return 0, err // a database whose mode gives nothing back
	}
	return after, err
}
