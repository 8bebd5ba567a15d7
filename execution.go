package sallyport

import (
	"encoding/json"
	"time"
)

// Status is where an execution is. The zero value is no status.
type Status string

// The statuses. Success means exit code 0 and nothing else.
const (
	StatusQueued            Status = "queued"
	StatusRunning           Status = "running"
	StatusSuccess           Status = "success"
	StatusError             Status = "error"
	StatusTimeout           Status = "timeout"
	StatusResourceExhausted Status = "resource_exhausted"
	StatusCanceled          Status = "canceled"
	StatusNotStarted        Status = "not_started" // approved, but nothing began
	StatusLost              Status = "lost"        // we never learned
)

// Statuses lists every status.
func Statuses() []Status {
	return []Status{
		StatusQueued, StatusRunning, StatusSuccess, StatusError, StatusTimeout, StatusResourceExhausted,
		StatusCanceled, StatusNotStarted, StatusLost,
	}
}

// Terminal reports whether an execution in s is closed.
func (s Status) Terminal() bool { return s != "" && s != StatusQueued && s != StatusRunning }

// Execution is one attempt that passed the gates: the row and, as JSON, the data of an envelope of kind
// "execution".
type Execution struct {
	ID             ExecutionID `json:"execution_id"`
	TenantID       TenantID    `json:"-"`
	PrincipalID    PrincipalID `json:"principal_id,omitempty"`
	SkillID        SkillID     `json:"skill_id"`
	Slug           string      `json:"slug"`
	RevisionID     RevisionID  `json:"revision_id"`
	RevisionDigest Digest      `json:"revision_digest"`
	ScriptPath     string      `json:"script_path"`
	Runtime        string      `json:"runtime"`
	Status         Status      `json:"status"`
	ExitCode       *int        `json:"exit_code,omitempty"`
	Signal         int         `json:"signal,omitempty"`
	SignalName     string      `json:"signal_name,omitempty"`
	Limit          LimitName   `json:"limit,omitempty"`
	ErrorKind      Code        `json:"error_kind,omitempty"`
	// ErrorMessage is the public sentence that goes with ErrorKind.
	ErrorMessage    string          `json:"error_message,omitempty"`
	Stdout          string          `json:"stdout"`
	Stderr          string          `json:"stderr"`
	StdoutTruncated bool            `json:"stdout_truncated"`
	StderrTruncated bool            `json:"stderr_truncated"`
	StdoutBytes     int64           `json:"stdout_bytes"`
	StderrBytes     int64           `json:"stderr_bytes"`
	EncodingNotes   []string        `json:"encoding_notes,omitempty"` // e.g. "stdout: invalid UTF-8 replaced"
	OutputData      json.RawMessage `json:"output_data,omitempty"`
	OutputDataNote  string          `json:"output_data_note,omitempty"` // why SKILL_OUTPUT was not used
	Artifacts       []Artifact      `json:"artifacts"`
	ArtifactsLost   bool            `json:"artifacts_lost,omitempty"`
	ArtifactNotes   []string        `json:"artifact_notes,omitempty"`
	DurationMS      int64           `json:"duration_ms"`
	QueueMS         int64           `json:"queue_ms"`
	MemoryPeakBytes *int64          `json:"memory_peak_bytes,omitempty"`
	CPUTimeMS       *int64          `json:"cpu_time_ms,omitempty"`
	OOMKills        int64           `json:"oom_kills"`
	// ProcessLimitHits counts the processes and threads that the process limit refused. It is no failure by itself.
	ProcessLimitHits int64      `json:"process_limit_hits,omitempty"`
	Isolation        Isolation  `json:"isolation"`
	Limits           Limits     `json:"limits,omitzero"`
	GrantID          GrantID    `json:"grant_id"`
	TraceID          string     `json:"trace_id,omitempty"`
	CreatedAt        time.Time  `json:"created_at"`
	StartedAt        *time.Time `json:"started_at,omitempty"`
	FinishedAt       *time.Time `json:"finished_at,omitempty"`
}

// Err returns nil for success, else the outcome as an error of its ErrorKind.
func (e Execution) Err() error {
	if e.Status == StatusSuccess || !e.Status.Terminal() {
		return nil
	}
	code := e.ErrorKind
	if code == "" {
		code = CodeInternal
	}
	return &Error{Op: "execution", Code: code, Message: e.ErrorMessage}
}

// Artifact is one file that a run left in SKILL_ARTIFACTS.
type Artifact struct {
	Path      string `json:"path"`
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`
	MediaType string `json:"media_type"`
	// URI is relative to the server: /v1/executions/{id}/artifacts/{path}.
	URI string `json:"uri"`
	// ExpiredAt is when its content was removed; nil while it can be fetched.
	ExpiredAt *time.Time `json:"expired_at,omitempty"`
}
