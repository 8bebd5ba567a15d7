package sallyport

import (
	"encoding/json"
	"time"
)

// ConfirmationID names a [Confirmation].
type ConfirmationID string

// ConfirmationLife is how long a question waits for its answer, and how long a yes waits for the run.
const ConfirmationLife = 10 * time.Minute

// ConfirmationState is where a confirmation is. The zero value is no state.
type ConfirmationState string

// The states. One that is neither decided nor used in time is as gone.
const (
	ConfirmationPending  ConfirmationState = "pending"
	ConfirmationApproved ConfirmationState = "approved"
	ConfirmationDenied   ConfirmationState = "denied"
	ConfirmationUsed     ConfirmationState = "used"
)

// Confirmation is the question to a person whether one request may run, and the answer. A yes is for exactly this request of this
// principal, of exactly these bytes, once.
type Confirmation struct {
	ID       ConfirmationID `json:"confirmation_id"`
	TenantID TenantID       `json:"-"`
	// PrincipalID asked.
	PrincipalID    PrincipalID `json:"principal_id"`
	SkillID        SkillID     `json:"skill_id"`
	Slug           string      `json:"slug"`
	RevisionID     RevisionID  `json:"revision_id"`
	RevisionDigest Digest      `json:"revision_digest"`
	ScriptPath     string      `json:"script_path"`
	// RequestDigest is over the script and all that is handed to it.
	RequestDigest Digest `json:"request_digest"`
	// Request is what a person reads: arguments with their secrets masked, and the names and sizes of files.
	Request json.RawMessage   `json:"request"`
	State   ConfirmationState `json:"state"`
	// CreatedAt and the others are UTC, whole microseconds.
	CreatedAt time.Time   `json:"created_at"`
	ExpiresAt time.Time   `json:"expires_at"`
	DecidedAt *time.Time  `json:"decided_at,omitempty"`
	DecidedBy PrincipalID `json:"decided_by,omitempty"`
	// InClient says that the person answered in the caller's own client.
	InClient bool `json:"in_client,omitempty"`
}
