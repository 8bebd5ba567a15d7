package store

import (
	"context"
	"encoding/json"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// executionCursor is the last execution of a page.
type executionCursor struct {
	At int64                 `json:"t"`
	ID sallyport.ExecutionID `json:"i"`
}

// The conditions of a filter: ?2 status, ?3 principal (empty selects all), and behind the place ?4, ?5 unless ?5 is
// empty.
const executionConditions = ` AND (?2 = '' OR status = ?2) AND (?3 = '' OR principal_id = ?3)
	AND (?5 = '' OR created_at < ?4 OR (created_at = ?4 AND id < ?5)) ORDER BY created_at DESC, id DESC LIMIT ?6`

const (
	selectExecutions        = `SELECT ` + summaryColumns + ` FROM executions WHERE tenant_id = ?1` + executionConditions
	selectExecutionsOfSkill = `SELECT ` + summaryColumns + ` FROM executions WHERE tenant_id = ?1 AND skill_id = ?7` + executionConditions
	// selectArtifactsOf takes a JSON array of execution ids.
	selectArtifactsOf = `SELECT ` + artifactColumns + `, a.execution_id, a.position FROM artifacts AS a
	WHERE a.tenant_id = ?1 AND a.execution_id IN (SELECT value FROM json_each(?2))
	UNION ALL SELECT ` + expiredColumns + `, x.execution_id, x.position FROM expired_artifacts AS x
	WHERE x.tenant_id = ?1 AND x.execution_id IN (SELECT value FROM json_each(?2)) ORDER BY 7, 8`
)

// Executions implements run.Ledger. It leaves out the streams and output_data; artifacts are listed without content.
func (s *Store) Executions(ctx context.Context, tenant sallyport.TenantID, filter run.ExecutionFilter) ([]sallyport.Execution, string, error) {
	const op = "store.executions"
	kind := "executions:" + string(filter.SkillID) + "\x00" + string(filter.Status) + "\x00" + string(filter.PrincipalID)
	at, err := readCursor[executionCursor](op, kind, filter.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := pageSize(filter.Limit)
	query, args := selectExecutions, []any{tenant, filter.Status, filter.PrincipalID, at.At, at.ID, limit + 1}
	if filter.SkillID != "" {
		query, args = selectExecutionsOfSkill, append(args, filter.SkillID)
	}
	var (
		page []sallyport.Execution
		next string
	)
	err = s.reader.snapshot(ctx, func(tx *session) error {
		var err error
		if page, err = all(ctx, tx, scanSummary, query, args...); err != nil {
			return err
		}
		if len(page) > limit {
			page = page[:limit]
			last := page[limit-1]
			if next, err = writeCursor(kind, executionCursor{At: micros(last.CreatedAt), ID: last.ID}); err != nil {
				return err
			}
		}
		return addArtifactsTo(ctx, tx, tenant, page)
	})
	if err != nil {
		return nil, "", s.fault(op, err)
	}
	return page, next, nil
}

func addArtifactsTo(ctx context.Context, tx *session, tenant sallyport.TenantID, executions []sallyport.Execution) error {
	place := make(map[sallyport.ExecutionID]int, len(executions))
	ids := make([]sallyport.ExecutionID, len(executions))
	for i, execution := range executions {
		place[execution.ID], ids[i] = i, execution.ID
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	type owned struct {
		artifact sallyport.Artifact
		owner    sallyport.ExecutionID
	}
	found, err := all(ctx, tx, func(row scanner) (owned, error) {
		var (
			o        owned
			position int
			err      error
		)
		o.artifact, err = scanArtifactAnd(row, &o.owner, &position)
		return o, err
	}, selectArtifactsOf, tenant, string(list))
	if err != nil {
		return err
	}
	for _, o := range found {
		e := &executions[place[o.owner]]
		e.Artifacts = append(e.Artifacts, o.artifact)
	}
	return nil
}
