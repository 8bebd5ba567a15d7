// Package audit appends to, reads and verifies the audit trail.
//
// It owns masking, the check of the chain and the signed checkpoints. It leaves the write itself, and the chaining
// of hashes inside one transaction, to its Store. Its one invariant: an entry that Append returned is on disk and
// linked to the one before it.
package audit

import (
	"context"
	"crypto/ed25519"
	"io"
	"log/slog"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Config is what a Service needs. Store is required.
type Config struct {
	Store Store
	// Key signs checkpoints; nil makes none.
	Key ed25519.PrivateKey
	// CheckpointLog receives every checkpoint as one JSON line outside the database; nil means none.
	CheckpointLog io.Writer
	// Interval between checkpoints; zero means one minute.
	Interval time.Duration
	Logger   *slog.Logger     // nil discards
	Now      func() time.Time // nil means time.Now
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
}

// Filter selects entries; zero fields select all.
type Filter struct {
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
	Signature string             `json:"signature"`  // base64, Ed25519 over the RFC 8785 form without signature
}

// Verdict is what verification found.
type Verdict struct {
	// Result is valid, broken, gap or tail_missing.
	Result  string `json:"result"`
	Checked int64  `json:"checked"`
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

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg} }

var errUnwritten = &sallyport.Error{Op: "audit", Code: sallyport.CodeInternal}

// Append masks secrets in the entry's Detail and writes it durably.
func (s *Service) Append(ctx context.Context, entry sallyport.Entry) error { return errUnwritten }

// List returns entries. Needs audit:read.
func (s *Service) List(ctx context.Context, p sallyport.Principal, filter Filter) ([]sallyport.Entry, error) {
	return nil, errUnwritten
}

// Verify checks the caller's tenant's chain, and its tail against outside checkpoints when given. Needs audit:read.
func (s *Service) Verify(ctx context.Context, p sallyport.Principal, outside []Checkpoint) (Verdict, error) {
	return Verdict{}, errUnwritten
}

// Run writes checkpoints on the interval until ctx ends, and one at the end.
func (s *Service) Run(ctx context.Context) error { return errUnwritten }
