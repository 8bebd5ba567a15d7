package access

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// record writes one audit entry. What it describes may be stored only after record returned nil: an act that left no
// trace must not have happened. Whatever the trail's error is, the caller sees AUDIT_UNAVAILABLE.
func (s *Service) record(
	ctx context.Context, p sallyport.Principal, at time.Time, action sallyport.Action, entity string, detail any,
) error {
	op := "access." + string(action)
	encoded, err := json.Marshal(detail)
	if err != nil {
		return &sallyport.Error{Op: op, Code: sallyport.CodeInternal, Err: err}
	}
	err = s.cfg.Trail.Append(ctx, sallyport.Entry{
		TenantID: p.TenantID, At: at, Actor: p.ID, Action: action, Entity: entity, Detail: encoded,
	})
	if err != nil {
		return &sallyport.Error{
			Op: op, Code: sallyport.CodeAuditUnavailable, Err: err,
			Message: "the audit trail cannot be written, so nothing was changed",
		}
	}
	return nil
}

// checkExpiry refuses an expiry that does not lie ahead and returns it as it is stored.
func (s *Service) checkExpiry(op string, at *time.Time, now time.Time) (*time.Time, error) {
	if at == nil {
		return nil, nil
	}
	stored := at.UTC().Truncate(time.Microsecond)
	if !stored.After(now) {
		return nil, sallyport.Errorf(op, sallyport.CodeInvalidArgument,
			"expires_at %s is not in the future; send a later time or leave it out", stored.Format(time.RFC3339))
	}
	return &stored, nil
}
