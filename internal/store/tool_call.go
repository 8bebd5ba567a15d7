package store

import (
	"context"
	"encoding/json"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

const (
	callColumns    = `tenant_id, at, request_id, principal_id, tool, arguments, code, duration_ms, execution_id, trace_id`
	insertToolCall = `INSERT INTO tool_calls (` + callColumns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`
)

func scanToolCall(row scanner) (audit.ToolCall, error) {
	var (
		c         audit.ToolCall
		at        int64
		arguments string
	)
	err := row.Scan(&c.TenantID, &at, &c.RequestID, &c.PrincipalID, &c.Tool, &arguments, &c.Code, &c.DurationMS, &c.ExecutionID, &c.TraceID, &c.Sequence)
	c.At, c.Arguments = timeOf(at), json.RawMessage(arguments)
	return c, err
}

// AddToolCalls implements audit.CallStore.
func (s *Store) AddToolCalls(ctx context.Context, calls []audit.ToolCall) error {
	const op = "store.add_tool_calls"
	for _, c := range calls {
		if c.TenantID == "" || c.Tool == "" || !json.Valid(c.Arguments) {
			return defect(op, "a tool call needs a tenant, a tool and arguments in JSON")
		}
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		for _, c := range calls {
			if _, err := tx.exec(ctx, insertToolCall, c.TenantID, micros(c.At), c.RequestID, c.PrincipalID, c.Tool,
				cleanText(string(c.Arguments)), c.Code, c.DurationMS, c.ExecutionID, c.TraceID); err != nil {
				return err
			}
		}
		return nil
	})
}

// The conditions of a filter: ?2 tool, ?3 principal, ?4 code, ?5 execution, ?6 since, ?7 until, ?8 below; empty or zero selects all.
const selectToolCalls = `SELECT ` + callColumns + `, seq FROM tool_calls WHERE tenant_id = ?1 AND (?2 = '' OR tool = ?2)
	AND (?3 = '' OR principal_id = ?3) AND (?4 = '' OR code = ?4) AND (?5 = '' OR execution_id = ?5) AND (?6 = 0 OR at >= ?6)
	AND (?7 = 0 OR at < ?7) AND (?8 = 0 OR seq < ?8) ORDER BY seq DESC LIMIT ?9`

// ToolCalls implements audit.CallStore.
func (s *Store) ToolCalls(ctx context.Context, tenant sallyport.TenantID, f audit.CallFilter) ([]audit.ToolCall, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	calls, err := all(ctx, s.reader.session(), scanToolCall, selectToolCalls, tenant, f.Tool, f.PrincipalID, f.Code, f.ExecutionID,
		microsOrZero(f.Since), microsOrZero(f.Until), max(f.Below, 0), min(limit, maxPage))
	return calls, s.fault("store.tool_calls", err)
}
