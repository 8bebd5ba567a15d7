package audit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// ToolCall is the record of one call of an MCP tool. It is no part of the trail: it is written after the call, best effort, and goes
// when it is old.
type ToolCall struct {
	Sequence    int64                 `json:"sequence"`
	TenantID    sallyport.TenantID    `json:"-"`
	At          time.Time             `json:"at"` // when it was answered
	RequestID   string                `json:"request_id"`
	PrincipalID sallyport.PrincipalID `json:"principal_id"`
	Tool        string                `json:"tool"`
	// Arguments as they came, redacted: no secret, no file content.
	Arguments json.RawMessage `json:"arguments"`
	// Code is empty for success.
	Code        sallyport.Code        `json:"code,omitempty"`
	DurationMS  int64                 `json:"duration_ms"`
	ExecutionID sallyport.ExecutionID `json:"execution_id,omitempty"`
	TraceID     string                `json:"trace_id,omitempty"`
}

// CallFilter selects tool calls; zero fields select all.
type CallFilter struct {
	Tool        string
	PrincipalID sallyport.PrincipalID
	Code        sallyport.Code
	ExecutionID sallyport.ExecutionID
	Since       time.Time // inclusive
	Until       time.Time // exclusive
	// Below is the sequence to go on below; zero begins with the newest.
	Below int64
	Limit int // 1..1000, 0 means 100
}

// CallStore keeps tool calls.
type CallStore interface {
	// AddToolCalls stores calls of any tenants in one transaction and gives each a sequence.
	AddToolCalls(ctx context.Context, calls []ToolCall) error
	// ToolCalls returns a page, newest first.
	ToolCalls(ctx context.Context, tenant sallyport.TenantID, filter CallFilter) ([]ToolCall, error)
}

// ToolCalls returns records of the caller's tenant, newest first. Needs audit:read. A Limit outside 0..1000 or a negative Below is
// INVALID_ARGUMENT.
func (s *Service) ToolCalls(ctx context.Context, p sallyport.Principal, filter CallFilter) ([]ToolCall, error) {
	const op = "audit.tool_calls"
	if err := p.Require(op, sallyport.ScopeAuditRead); err != nil {
		return nil, err
	}
	switch {
	case filter.Limit < 0 || filter.Limit > maxLimit:
		return nil, sallyport.Errorf(op, sallyport.CodeInvalidArgument, "limit must be 1 to %d", maxLimit)
	case filter.Below < 0:
		return nil, sallyport.Errorf(op, sallyport.CodeInvalidArgument, "below must not be negative")
	case s.cfg.Calls == nil:
		return []ToolCall{}, nil
	case filter.Limit == 0:
		filter.Limit = defaultLimit
	}
	return s.cfg.Calls.ToolCalls(ctx, p.TenantID, filter)
}
