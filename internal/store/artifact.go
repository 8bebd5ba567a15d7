package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// artifactColumns are those of an artifact whose content is there, expiredColumns of one whose content was removed.
const (
	artifactColumns = `a.path, a.size, a.sha256, a.media_type, a.uri, NULL`
	expiredColumns  = `x.path, x.size, x.sha256, x.media_type, x.uri, x.expired_at`
)

func scanArtifact(row scanner) (sallyport.Artifact, error) { return scanArtifactAnd(row) }

func scanArtifactAnd(row scanner, more ...any) (sallyport.Artifact, error) {
	var (
		a       sallyport.Artifact
		expired sql.NullInt64
	)
	err := row.Scan(append([]any{&a.Path, &a.Size, &a.SHA256, &a.MediaType, &a.URI, &expired}, more...)...)
	a.ExpiredAt = timeOrNil(expired)
	return a, err
}

func scanPlacedArtifact(row scanner) (sallyport.Artifact, error) {
	var position int
	return scanArtifactAnd(row, &position)
}

const (
	selectHeldArtifacts = `SELECT ` + artifactColumns + ` FROM artifacts AS a WHERE a.tenant_id = ?1 AND a.execution_id = ?2`
	// selectArtifacts ends with the position, by which both kinds are in order.
	selectArtifacts = `SELECT ` + artifactColumns + `, a.position FROM artifacts AS a WHERE a.tenant_id = ?1 AND a.execution_id = ?2
	UNION ALL SELECT ` + expiredColumns + `, x.position FROM expired_artifacts AS x WHERE x.tenant_id = ?1 AND x.execution_id = ?2 ORDER BY 7`
	selectExpired  = `SELECT ` + expiredColumns + ` FROM expired_artifacts AS x WHERE x.tenant_id = ?1 AND x.execution_id = ?2 AND x.path = ?3`
	selectArtifact = `SELECT ` + artifactColumns + `, b.content FROM artifacts AS a JOIN blobs AS b ON b.sha256 = a.sha256
	WHERE a.tenant_id = ?1 AND a.execution_id = ?2 AND a.path = ?3`
)

// ArtifactContent implements run.Ledger. The bytes are verified against their sha256, and never nil.
func (s *Store) ArtifactContent(ctx context.Context, tenant sallyport.TenantID, id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error) {
	const op = "store.artifact_content"
	content := []byte{}
	artifact, found, err := one(ctx, s.reader.session(), func(row scanner) (sallyport.Artifact, error) {
		return scanArtifactAnd(row, &content)
	}, selectArtifact, tenant, id, path)
	if err == nil && !found {
		err = s.noArtifact(ctx, op, tenant, id, path)
	}
	if err == nil {
		err = verify(op, content, artifact.Size, artifact.SHA256)
	}
	if err != nil {
		return sallyport.Artifact{}, nil, s.fault(op, err)
	}
	if content == nil {
		content = []byte{}
	}
	return artifact, content, nil
}

// noArtifact is ARTIFACT_NOT_FOUND, and says so when there was one.
func (s *Store) noArtifact(ctx context.Context, op string, tenant sallyport.TenantID, id sallyport.ExecutionID, path string) error {
	gone, found, err := one(ctx, s.reader.session(), scanArtifact, selectExpired, tenant, id, path)
	switch {
	case err != nil:
		return err
	case !found:
		return &sallyport.Error{Op: op, Code: sallyport.CodeArtifactNotFound}
	}
	return sallyport.Errorf(op, sallyport.CodeArtifactNotFound,
		"the artifact expired on %s and its content was removed; the record keeps its name, size and sha256 (%s). Run the script again to have it anew",
		gone.ExpiredAt.Format(time.DateOnly), gone.SHA256)
}

// matchArtifacts finds the content of each artifact. A record never names an artifact that is not there as described.
func matchArtifacts(op string, artifacts []sallyport.Artifact, files []sallyport.ArtifactFile) ([][]byte, error) {
	contents := make(map[string][]byte, len(files))
	for _, file := range files {
		contents[file.Path] = file.Content
	}
	if len(contents) != len(files) || len(artifacts) != len(files) {
		return nil, defect(op, "the artifacts and their files are not the same")
	}
	matched := make([][]byte, len(artifacts))
	for i, artifact := range artifacts {
		content, found := contents[artifact.Path]
		if !found || int64(len(content)) != artifact.Size || sumOf(content) != artifact.SHA256 {
			return nil, defect(op, fmt.Sprintf("the artifact %q has no content of its size and sha256", artifact.Path))
		}
		matched[i] = content
	}
	return matched, nil
}

const insertArtifact = `INSERT INTO artifacts (tenant_id, execution_id, position, path, size, sha256, media_type, uri)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`

func addArtifact(ctx context.Context, tx *session, tenant sallyport.TenantID, id sallyport.ExecutionID, position int, a sallyport.Artifact, content []byte) error {
	if err := addBlob(ctx, tx, a.SHA256, content); err != nil {
		return err
	}
	_, err := tx.exec(ctx, insertArtifact, tenant, id, position, a.Path, a.Size, a.SHA256, a.MediaType, a.URI)
	return err
}
