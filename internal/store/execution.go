package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// summaryColumns are an execution without what a list leaves out; the streams and output_data follow in
// executionColumns.
const (
	summaryColumns = `tenant_id, id, principal_id, skill_id, slug, revision_id, revision_digest, script_path, runtime, status,
	exit_code, signal, signal_name, limit_name, error_kind, error_message, stdout_truncated, stderr_truncated, stdout_bytes,
	stderr_bytes, encoding_notes, output_data_note, artifacts_lost, artifact_notes, duration_ms, queue_ms, memory_peak_bytes,
	cpu_time_ms, oom_kills, isolation, limits, grant_id, trace_id, created_at, started_at, finished_at, process_limit_hits`
	executionColumns = summaryColumns + `, stdout, stderr, output_data`
)

func scanSummary(row scanner) (sallyport.Execution, error) { return scanExecutionAnd(row) }

func scanExecution(row scanner) (sallyport.Execution, error) {
	var stdout, stderr, output []byte
	e, err := scanExecutionAnd(row, &stdout, &stderr, &output)
	e.Stdout, e.Stderr = string(stdout), string(stderr)
	if len(output) > 0 {
		e.OutputData = json.RawMessage(output)
	}
	return e, err
}

func scanExecutionAnd(row scanner, more ...any) (sallyport.Execution, error) {
	var (
		e                               sallyport.Execution
		exit, memory, cpu, begun, ended sql.NullInt64
		created                         int64
	)
	dest := []any{
		&e.TenantID, &e.ID, &e.PrincipalID, &e.SkillID, &e.Slug, &e.RevisionID, &e.RevisionDigest, &e.ScriptPath, &e.Runtime, &e.Status,
		&exit, &e.Signal, &e.SignalName, &e.Limit, &e.ErrorKind, &e.ErrorMessage, &e.StdoutTruncated, &e.StderrTruncated, &e.StdoutBytes,
		&e.StderrBytes,
		asJSON{&e.EncodingNotes},
		&e.OutputDataNote, &e.ArtifactsLost,
		asJSON{&e.ArtifactNotes},
		&e.DurationMS, &e.QueueMS, &memory,
		&cpu, &e.OOMKills,
		asJSON{&e.Isolation},
		asJSON{&e.Limits},
		&e.GrantID, &e.TraceID, &created, &begun, &ended, &e.ProcessLimitHits,
	}
	if err := row.Scan(append(dest, more...)...); err != nil {
		return sallyport.Execution{}, err
	}
	if exit.Valid {
		code := int(exit.Int64)
		e.ExitCode = &code
	}
	e.MemoryPeakBytes, e.CPUTimeMS = pointerOf(memory), pointerOf(cpu)
	e.CreatedAt, e.StartedAt, e.FinishedAt = timeOf(created), timeOrNil(begun), timeOrNil(ended)
	e.Artifacts = []sallyport.Artifact{}
	return e, nil
}

// executionArgs are the values of executionColumns.
func executionArgs(tenant sallyport.TenantID, e sallyport.Execution) []any {
	var output any
	if len(e.OutputData) > 0 {
		output = []byte(e.OutputData)
	}
	return []any{
		tenant, e.ID, e.PrincipalID, e.SkillID, e.Slug, e.RevisionID, e.RevisionDigest, e.ScriptPath, e.Runtime, e.Status,
		nullInt(e.ExitCode), e.Signal, e.SignalName, e.Limit, e.ErrorKind, e.ErrorMessage, e.StdoutTruncated, e.StderrTruncated, e.StdoutBytes,
		e.StderrBytes, jsonText(e.EncodingNotes), e.OutputDataNote, e.ArtifactsLost, jsonText(e.ArtifactNotes), e.DurationMS, e.QueueMS,
		nullInt(e.MemoryPeakBytes), nullInt(e.CPUTimeMS), e.OOMKills, jsonText(e.Isolation), jsonText(e.Limits), e.GrantID, e.TraceID,
		micros(e.CreatedAt), microsOrNull(e.StartedAt), microsOrNull(e.FinishedAt), e.ProcessLimitHits, []byte(e.Stdout), []byte(e.Stderr), output,
	}
}

func executionNotFound(op string) error {
	return &sallyport.Error{Op: op, Code: sallyport.CodeExecutionNotFound}
}

const selectExecution = `SELECT ` + executionColumns + ` FROM executions WHERE tenant_id = ?1 AND id = ?2`

// Execution implements run.Ledger.
func (s *Store) Execution(ctx context.Context, tenant sallyport.TenantID, id sallyport.ExecutionID) (sallyport.Execution, error) {
	const op = "store.execution"
	var execution sallyport.Execution
	err := s.reader.snapshot(ctx, func(tx *session) error {
		stored, found, err := one(ctx, tx, scanExecution, selectExecution, tenant, id)
		if err != nil {
			return err
		}
		if !found {
			return executionNotFound(op)
		}
		stored.Artifacts, err = all(ctx, tx, scanPlacedArtifact, selectArtifacts, tenant, id)
		execution = stored
		return err
	})
	if err != nil {
		return sallyport.Execution{}, s.fault(op, err)
	}
	return execution, nil
}

// selectUnfinished is about no single tenant: a restart closes what every tenant left open.
const selectUnfinished = `SELECT ` + executionColumns + ` FROM executions WHERE status IN ('queued', 'running') ORDER BY created_at, tenant_id, id`

// Unfinished implements run.Ledger, oldest first.
func (s *Store) Unfinished(ctx context.Context) ([]sallyport.Execution, error) {
	executions, err := all(ctx, s.reader.session(), scanExecution, selectUnfinished)
	return executions, s.fault("store.unfinished", err)
}

const insertExecution = `INSERT INTO executions (` + executionColumns + `)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26,
	?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40) ON CONFLICT DO NOTHING`

// Open implements run.Ledger.
func (s *Store) Open(ctx context.Context, tenant sallyport.TenantID, execution sallyport.Execution, entry sallyport.Entry) error {
	const op = "store.open_execution"
	opening, err := prepareOpening(op, tenant, execution, entry)
	if err != nil {
		return err
	}
	return s.auditFault(op, s.writer.do(ctx, opening))
}

// prepareOpening returns what opens the execution with its entry in one transaction.
func prepareOpening(
	op string, tenant sallyport.TenantID, execution sallyport.Execution, entry sallyport.Entry,
) (func(ctx context.Context, tx *session) error, error) {
	if tenant == "" || execution.ID == "" || execution.Status != sallyport.StatusQueued {
		return nil, defect(op, "an execution opens queued, with a tenant and an id")
	}
	entry, err := prepareExecutionEntry(op, tenant, execution.ID, entry)
	if err != nil {
		return nil, err
	}
	args := executionArgs(tenant, execution)
	return func(ctx context.Context, tx *session) error {
		if err := notRemoved(ctx, tx, op, tenant, execution.RevisionID); err != nil {
			return err
		}
		opened, err := tx.exec(ctx, insertExecution, args...)
		if err == nil && opened == 0 {
			err = defect(op, "the execution id is in use")
		}
		if err == nil {
			_, err = appendEntry(ctx, tx, entry)
		}
		return err
	}, nil
}

// prepareExecutionEntry makes sure that a record and its entries find each other.
func prepareExecutionEntry(op string, tenant sallyport.TenantID, id sallyport.ExecutionID, entry sallyport.Entry) (sallyport.Entry, error) {
	if entry.ExecutionID == "" {
		entry.ExecutionID = id
	}
	if entry.ExecutionID != id {
		return entry, defect(op, "the entry is about another execution")
	}
	return prepareEntry(op, tenant, entry)
}

const startExecution = `UPDATE executions SET status = 'running', started_at = ?3 WHERE tenant_id = ?1 AND id = ?2 AND status = 'queued'`

// Start implements run.Ledger. An execution that is running or closed already stays as it is.
func (s *Store) Start(ctx context.Context, tenant sallyport.TenantID, id sallyport.ExecutionID, at time.Time) error {
	const op = "store.start_execution"
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		started, err := tx.exec(ctx, startExecution, tenant, id, micros(at))
		if err != nil || started == 1 {
			return err
		}
		return mustExist(ctx, tx, op, tenant, id)
	})
}

const countExecution = `SELECT COUNT(*) FROM executions WHERE tenant_id = ?1 AND id = ?2`

func mustExist(ctx context.Context, tx *session, op string, tenant sallyport.TenantID, id sallyport.ExecutionID) error {
	count, _, err := one(ctx, tx, scalar[int], countExecution, tenant, id)
	if err == nil && count == 0 {
		err = executionNotFound(op)
	}
	return err
}

// closeExecution takes the parameters of insertExecution. What the opening decided - who, what, when - stays.
const closeExecution = `UPDATE executions SET runtime = ?9, status = ?10, exit_code = ?11, signal = ?12, signal_name = ?13, limit_name = ?14,
	error_kind = ?15, error_message = ?16, stdout_truncated = ?17, stderr_truncated = ?18, stdout_bytes = ?19, stderr_bytes = ?20,
	encoding_notes = ?21, output_data_note = ?22, artifacts_lost = ?23, artifact_notes = ?24, duration_ms = ?25, queue_ms = ?26,
	memory_peak_bytes = ?27, cpu_time_ms = ?28, oom_kills = ?29, isolation = ?30, limits = ?31, grant_id = ?32, trace_id = ?33,
	started_at = COALESCE(?35, started_at), finished_at = ?36, process_limit_hits = ?37, stdout = ?38, stderr = ?39, output_data = ?40
	WHERE tenant_id = ?1 AND id = ?2 AND status IN ('queued', 'running')`

// Close implements run.Ledger: it closes an execution, not the store (see Shutdown). Each artifact of the execution needs its content, and the other way round.
func (s *Store) Close(ctx context.Context, tenant sallyport.TenantID, execution sallyport.Execution, artifacts []sallyport.ArtifactFile, entry sallyport.Entry) error {
	const op = "store.close_execution"
	if !execution.Status.Terminal() {
		return defect(op, "an execution closes with an outcome")
	}
	entry, err := prepareExecutionEntry(op, tenant, execution.ID, entry)
	if err != nil {
		return err
	}
	contents, err := matchArtifacts(op, execution.Artifacts, artifacts)
	if err != nil {
		return err
	}
	args := executionArgs(tenant, execution)
	return s.auditFault(op, s.writer.do(ctx, func(ctx context.Context, tx *session) error {
		closed, err := tx.exec(ctx, closeExecution, args...)
		if err != nil {
			return err
		}
		if closed == 0 {
			return mustExist(ctx, tx, op, tenant, execution.ID)
		}
		for i, artifact := range execution.Artifacts {
			if err := addArtifact(ctx, tx, tenant, execution.ID, i, artifact, contents[i]); err != nil {
				return err
			}
		}
		_, err = appendEntry(ctx, tx, entry)
		return err
	}))
}

// Deny implements run.Ledger.
func (s *Store) Deny(ctx context.Context, tenant sallyport.TenantID, entry sallyport.Entry) error {
	_, err := s.append(ctx, "store.deny", tenant, entry)
	return err
}
