// Package audit appends to, reads and verifies the audit trail.
//
// It owns masking, the check of the chain and the signed checkpoints. It leaves the write itself, and the chaining
// of hashes inside one transaction, to its Store. Its one invariant: an entry that Append returned is on disk and
// linked to the one before it.
package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/sallyport-dev/sallyport"
)

var (
	errIncomplete = errors.New("an entry needs a tenant, an action and an entity")
	errNoObject   = errors.New("the detail of an entry must be a JSON object")
)

// Config is what a Service needs. Store is required.
type Config struct {
	Store Store
	// Calls keeps the records of tool calls; nil has none.
	Calls CallStore
	// Key signs checkpoints; nil makes none.
	Key ed25519.PrivateKey
	// PublicKey verifies checkpoints where Key is nil, such as those in a backup; nil then trusts none.
	PublicKey ed25519.PublicKey
	// CheckpointLog receives every checkpoint as one JSON line outside the database; nil means none.
	CheckpointLog io.Writer
	// OpenLog opens what CheckpointLog received, so that Verify misses what was cut off the database; nil leaves it aside. It
	// proves no tail: whoever can write to the database may be able to write there too.
	OpenLog func() (io.ReadCloser, error)
	// Failed is told of entries that Append could not write; nil tells nobody.
	Failed func(action sallyport.Action)
	// Interval between checkpoints; zero means one minute.
	Interval time.Duration
	// Archive is a folder that entries are written to before they are removed; empty means that they are not.
	Archive string
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
}

// Store is what this package needs of the database.
type Store interface {
	// AppendEntry assigns Sequence, PreviousHash and Hash inside the transaction and returns the stored entry. It is
	// durable when it returns (synchronous=FULL, group commit). AUDIT_UNAVAILABLE when it cannot be.
	AppendEntry(ctx context.Context, tenant sallyport.TenantID, entry sallyport.Entry) (sallyport.Entry, error)
	// Entries returns a page in sequence order (or newest first).
	Entries(ctx context.Context, tenant sallyport.TenantID, filter Filter) ([]sallyport.Entry, error)
	// EachEntry calls fn for every entry in sequence order, exactly as stored; it stops on fn's error.
	EachEntry(ctx context.Context, tenant sallyport.TenantID, fn func(sallyport.Entry) error) error
	// Head returns the count and hash of the chain's end; zero values for an empty chain.
	Head(ctx context.Context, tenant sallyport.TenantID) (count int64, hash sallyport.Digest, err error)
	// Tenants lists the tenants that have entries.
	Tenants(ctx context.Context) ([]sallyport.TenantID, error)
	AddCheckpoint(ctx context.Context, tenant sallyport.TenantID, checkpoint Checkpoint) error
	Checkpoints(ctx context.Context, tenant sallyport.TenantID) ([]Checkpoint, error)
	// Prunable returns the largest sequence up to which every entry is older than before, belongs to no execution that is
	// still open, and has another behind it; 0 when there is none.
	Prunable(ctx context.Context, tenant sallyport.TenantID, before time.Time) (int64, error)
	// Prune removes the entries up to proof.Count and the checkpoints before it, and keeps proof, in one durable transaction.
	// It returns how many entries it removed. INTERNAL, and nothing is removed, when the entry that proof names has another hash, or none behind it.
	Prune(ctx context.Context, tenant sallyport.TenantID, proof Checkpoint) (int64, error)
	// Pruned returns the statement about the newest removal, if there was one.
	Pruned(ctx context.Context, tenant sallyport.TenantID) (Checkpoint, bool, error)
}

// Filter selects entries; zero fields select all.
type Filter struct {
	Actor       sallyport.PrincipalID
	Action      sallyport.Action
	Entity      string
	ExecutionID sallyport.ExecutionID
	Since       time.Time
	Until       time.Time
	// After is the sequence to start behind, exclusive; with NewestFirst, the sequence to start below.
	After       int64
	NewestFirst bool
	Limit       int // 1..1000, 0 means 100
}

// Checkpoint is a signed statement about the head of one tenant's chain.
type Checkpoint struct {
	TenantID  sallyport.TenantID `json:"tenant_id"`
	Count     int64              `json:"count"`
	Head      sallyport.Digest   `json:"head"`
	At        time.Time          `json:"at"`
	PublicKey string             `json:"public_key"` // base64
	// Pruned says that the entries up to Count were removed by the rules of retention.
	Pruned    bool   `json:"pruned,omitempty"`
	Signature string `json:"signature"` // base64, Ed25519 over the RFC 8785 form without signature
}

// Verdict is what verification found.
type Verdict struct {
	// Result is valid, broken, gap or tail_missing.
	Result string `json:"result"`
	// Checked is how many entries were looked at.
	Checked int64 `json:"checked"`
	// PrunedThrough is the last entry that retention removed; 0 when none was. A signed statement proves it.
	PrunedThrough int64 `json:"pruned_through,omitempty"`
	// Sequence of the first bad entry; 0 when valid.
	Sequence int64  `json:"sequence,omitempty"`
	Message  string `json:"message"`
	// Tail is proven (an outside checkpoint covers the head), partly_proven or not_provable.
	Tail string `json:"tail"`
	// CheckpointCount is how many entries the newest checkpoint that holds covers.
	CheckpointCount int64 `json:"checkpoint_count,omitempty"`
}

// Service is safe for concurrent use.
type Service struct {
	cfg Config
}

// defaultInterval is the time between checkpoints when Config.Interval is zero.
const defaultInterval = time.Minute

const (
	opAppend = "audit.append"
	opList   = "audit.list"
	opExport = "audit.export"
)

// The bounds of Filter.Limit.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Service{cfg}
}

// Append masks secrets in the entry's Detail and writes it durably; when it returned nil the entry is on disk. An entry
// without tenant, action or entity, or with a Detail that is not a JSON object, is INTERNAL: its writer is wrong. A zero At
// means now; an empty Detail means {}. AUDIT_UNAVAILABLE when it cannot be written.
func (s *Service) Append(ctx context.Context, entry sallyport.Entry) error {
	if entry.TenantID == "" || entry.Action == "" || entry.Entity == "" {
		return &sallyport.Error{Op: opAppend, Code: sallyport.CodeInternal, Err: errIncomplete}
	}
	if entry.At.IsZero() {
		entry.At = s.cfg.Now()
	}
	entry.At = entry.At.UTC().Truncate(time.Microsecond)
	if len(entry.Detail) == 0 {
		entry.Detail = json.RawMessage("{}")
	}
	detail, err := mask(entry.Detail)
	if err == nil && !bytes.HasPrefix(bytes.TrimLeft(detail, " \t\r\n"), []byte("{")) {
		err = errNoObject
	}
	if err != nil {
		return &sallyport.Error{Op: opAppend, Code: sallyport.CodeInternal, Err: err}
	}
	entry.Detail = detail
	if _, err := s.cfg.Store.AppendEntry(ctx, entry.TenantID, entry); err != nil {
		if s.cfg.Failed != nil {
			s.cfg.Failed(entry.Action)
		}
		return &sallyport.Error{Op: opAppend, Code: sallyport.CodeAuditUnavailable, Err: err}
	}
	return nil
}

// List returns entries. Needs audit:read. A Limit outside 0..1000 or a negative After is INVALID_ARGUMENT.
func (s *Service) List(ctx context.Context, p sallyport.Principal, filter Filter) ([]sallyport.Entry, error) {
	if err := p.Require(opList, sallyport.ScopeAuditRead); err != nil {
		return nil, err
	}
	switch {
	case filter.Limit < 0 || filter.Limit > maxLimit:
		return nil, sallyport.Errorf(opList, sallyport.CodeInvalidArgument, "limit must be 1 to %d", maxLimit)
	case filter.After < 0:
		return nil, sallyport.Errorf(opList, sallyport.CodeInvalidArgument, "after must not be negative")
	case filter.Limit == 0:
		filter.Limit = defaultLimit
	}
	return s.cfg.Store.Entries(ctx, p.TenantID, filter)
}

// Export writes the caller's tenant's whole trail to w, one entry as JSON per line, in sequence order; when entries were
// removed, the signed statement about it is the first line. VerifyExport reads it.
// Needs audit:read. An error after the first line leaves w with a part of the trail.
func (s *Service) Export(ctx context.Context, p sallyport.Principal, w io.Writer) error {
	if err := p.Require(opExport, sallyport.ScopeAuditRead); err != nil {
		return err
	}
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	proof, pruned, err := s.cfg.Store.Pruned(ctx, p.TenantID)
	if err == nil && pruned {
		err = lines.Encode(proof)
	}
	if err != nil {
		return err
	}
	return s.cfg.Store.EachEntry(ctx, p.TenantID, func(entry sallyport.Entry) error { return lines.Encode(entry) })
}
