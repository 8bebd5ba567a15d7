package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport"
)

// batchLength bounds how many writes share one transaction.
const batchLength = 128

// writer is the one goroutine that writes. Writes queue up; those that wait together share one transaction and so one
// fsync (group commit). Each runs inside a savepoint, so that a write which fails takes nothing else with it, and all
// are answered after the commit.
type writer struct {
	db      *sql.DB
	dialect dialect
	logger  *slog.Logger
	batch   int
	jobs    chan *job
	ended   chan struct{}

	mu     sync.RWMutex
	closed bool // no job enters jobs any more

	// Owned by the goroutine of run.
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// job is one write. It is either started by the writer or dropped by its waiter, whoever comes first.
type job struct {
	fn      func(ctx context.Context, tx *session) error
	claimed atomic.Bool
	done    chan error
}

func (j *job) claim() bool { return j.claimed.CompareAndSwap(false, true) }

func newWriter(d dialect, db *sql.DB, cfg Config) *writer {
	return &writer{
		db: db, dialect: d, logger: cfg.Logger, batch: batchLength,
		jobs: make(chan *job, cfg.QueueLength), ended: make(chan struct{}), stmts: map[string]*sql.Stmt{},
	}
}

// do queues fn and waits for its commit. A waiter whose context ends before fn was started takes it back; after that
// do waits for the true result.
func (w *writer) do(ctx context.Context, fn func(ctx context.Context, tx *session) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{fn: fn, done: make(chan error, 1)}
	if err := w.enqueue(ctx, j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if j.claim() {
			return ctx.Err()
		}
		return <-j.done
	}
}

func (w *writer) enqueue(ctx context.Context, j *job) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return &sallyport.Error{Op: "store.write", Code: sallyport.CodeStoreUnavailable, Message: "the store is closed"}
	}
	select {
	case w.jobs <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close lets the queued writes finish and returns when the goroutine of run has ended.
func (w *writer) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.jobs)
	}
	w.mu.Unlock()
	<-w.ended
}

// run writes until close. A context that ends would break a transaction that several callers share, so ctx must not.
func (w *writer) run(ctx context.Context) {
	defer close(w.ended)
	defer w.disconnect()
	for j := range w.jobs {
		batch := []*job{j}
	fill:
		for len(batch) < w.batch {
			select {
			case next, open := <-w.jobs:
				if !open {
					break fill
				}
				batch = append(batch, next)
			default:
				break fill
			}
		}
		w.commit(ctx, batch)
	}
}

// commit runs a batch in one transaction. When that is lost as a whole - a full disk undoes the good together with
// the bad - each write is tried once more alone.
func (w *writer) commit(ctx context.Context, batch []*job) {
	started := make([]*job, 0, len(batch))
	for _, j := range batch {
		if j.claim() {
			started = append(started, j)
		}
	}
	if len(started) == 0 {
		return
	}
	results, err := w.transact(ctx, started)
	switch {
	case err == nil:
		for i, j := range started {
			j.done <- results[i]
		}
	case len(started) == 1:
		w.logger.ErrorContext(ctx, "write failed", "error", err)
		started[0].done <- err
	default:
		w.logger.WarnContext(ctx, "batch of writes failed, each is tried alone", "writes", len(started), "error", err)
		for _, j := range started {
			results, err := w.transact(ctx, []*job{j})
			if err == nil {
				err = results[0]
			}
			j.done <- err
		}
	}
}

// transact returns the result of each job once all that succeeded are on disk, or an error when none of them is.
func (w *writer) transact(ctx context.Context, jobs []*job) ([]error, error) {
	results, err := w.attempt(ctx, jobs)
	if err != nil {
		// Whatever state the connection is in, the next transaction begins on a new one; closing it rolls back.
		w.disconnect()
		return nil, err
	}
	return results, nil
}

func (w *writer) attempt(ctx context.Context, jobs []*job) ([]error, error) {
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	tx := &session{prepare: w.prepare}
	if _, err := tx.exec(ctx, w.dialect.begin); err != nil {
		return nil, err
	}
	results := make([]error, len(jobs))
	for i, j := range jobs {
		if _, err := tx.exec(ctx, "SAVEPOINT write"); err != nil {
			return nil, err
		}
		results[i] = guard(ctx, tx, j.fn)
		if results[i] != nil {
			if _, err := tx.exec(ctx, "ROLLBACK TO SAVEPOINT write"); err != nil {
				return nil, errors.Join(results[i], err)
			}
		}
		if _, err := tx.exec(ctx, "RELEASE SAVEPOINT write"); err != nil {
			return nil, errors.Join(results[i], err)
		}
	}
	if _, err := tx.exec(ctx, "COMMIT"); err != nil {
		return nil, err
	}
	return results, nil
}

// guard contains a panic: it fails its own write and no other.
func guard(ctx context.Context, tx *session, fn func(ctx context.Context, tx *session) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &sallyport.Error{Op: "store.write", Code: sallyport.CodeInternal, Err: fmt.Errorf("panic: %v\n%s", value, debug.Stack())}
		}
	}()
	return fn(ctx, tx)
}

func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := w.db.Conn(ctx)
	w.conn = conn
	return err
}

// disconnect drops the connection, and whatever transaction is open on it.
func (w *writer) disconnect() {
	if w.conn == nil {
		return
	}
	for _, stmt := range w.stmts {
		_ = stmt.Close()
	}
	clear(w.stmts)
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = w.conn.Close()
	w.conn = nil
}

func (w *writer) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := w.stmts[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(ctx, w.dialect.rewrite(query))
	if err != nil {
		return nil, err
	}
	w.stmts[query] = stmt
	return stmt, nil
}
