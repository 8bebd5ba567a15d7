// Package store owns the database: every SQL statement of the product, the schema and its migrations, and the one
// goroutine that writes.
//
// It leaves the rules of each noun to the packages whose interfaces it implements (registry, access, audit, run), and
// the ownership of the data folder to its caller. Its one invariant: a write that was answered without an error is on
// disk, whole, and no tenant ever sees a row of another.
package store

import (
	"context"
	"errors"
	"log/slog"
	"runtime"

	"github.com/sallyport-dev/sallyport"
)

// Config is what Open needs. Path is required.
type Config struct {
	// Path is the database file. It is made, with mode 0600, when it is absent; its folder must exist.
	Path string
	// Readers bounds the connections that read; zero means one for each CPU, at least four.
	Readers int
	// QueueLength bounds the writes that wait for the writer; zero means 1024. A caller that finds the queue full waits
	// until its context ends.
	QueueLength int
	// Logger receives what no caller gets to see; nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Readers <= 0 {
		c.Readers = max(4, runtime.NumCPU())
	}
	if c.QueueLength <= 0 {
		c.QueueLength = 1024
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Store is safe for concurrent use. Times are kept in UTC, in whole microseconds. Errors are *sallyport.Error;
// STORE_UNAVAILABLE when the database cannot serve, AUDIT_UNAVAILABLE when it is the audit trail that it cannot write.
type Store struct {
	dialect dialect
	writer  *writer
	reader  *reader
	// ranked is rankedMatches but in tests.
	ranked int
}

// Open opens the database, makes or upgrades its schema and starts the writer. A file that is read-only, damaged, no
// Sallyport database or of a newer version is STORE_UNAVAILABLE with a sentence that names the remedy, and is not
// written to. The store outlives ctx; Shutdown ends it.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	d, err := openSQLite(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dialect: d.dialect,
		writer:  newWriter(d.dialect, d.write, cfg),
		reader:  newReader(d.dialect, d.read),
		ranked:  rankedMatches,
	}
	go s.writer.run(context.WithoutCancel(ctx))
	return s, nil
}

// Shutdown finishes the writes that are queued, refuses new ones and closes the database. It may be called twice.
func (s *Store) Shutdown() error {
	s.writer.close()
	return errors.Join(s.reader.close(), s.writer.db.Close())
}

// write runs fn in the next transaction of the writer and returns once it is on disk. fn may run more than once, so it
// must set its results by assignment only.
func (s *Store) write(ctx context.Context, op string, fn func(ctx context.Context, tx *session) error) error {
	return s.fault(op, s.writer.do(ctx, fn))
}

// fault turns whatever went wrong into a *sallyport.Error that is safe to show.
func (s *Store) fault(op string, err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*sallyport.Error](err); ok {
		return own
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &sallyport.Error{Op: op, Code: sallyport.CodeOf(err), Err: err}
	}
	return &sallyport.Error{Op: op, Code: sallyport.CodeStoreUnavailable, Message: s.dialect.explain(err), Err: err}
}

// auditFault is fault for the writes of the audit trail.
func (s *Store) auditFault(op string, err error) error {
	own, ok := errors.AsType[*sallyport.Error](s.fault(op, err))
	if !ok {
		return nil
	}
	if own.Code != sallyport.CodeStoreUnavailable {
		return own
	}
	return &sallyport.Error{Op: op, Code: sallyport.CodeAuditUnavailable, Message: "the audit trail cannot be written: " + own.Message, Err: own.Err}
}

// defect is an INTERNAL error: a caller inside the product broke the contract of this package.
func defect(op, message string) error {
	return &sallyport.Error{Op: op, Code: sallyport.CodeInternal, Message: message}
}
