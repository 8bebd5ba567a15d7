package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// session runs statements on one connection, transaction or pool, each prepared once.
type session struct {
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)
}

// exec returns how many rows it changed.
func (s *session) exec(ctx context.Context, query string, args ...any) (int64, error) {
	stmt, err := s.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// scanner is a row of a result.
type scanner interface {
	Scan(dest ...any) error
}

// one returns the first row; false when there is none.
func one[T any](ctx context.Context, s *session, scan func(scanner) (T, error), query string, args ...any) (T, bool, error) {
	var zero T
	stmt, err := s.prepare(ctx, query)
	if err != nil {
		return zero, false, err
	}
	value, err := scan(stmt.QueryRowContext(ctx, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return zero, false, nil
	}
	if err != nil {
		return zero, false, err
	}
	return value, true, nil
}

// all returns every row; never nil.
func all[T any](ctx context.Context, s *session, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	stmt, err := s.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err below says what matters
	values := []T{}
	for rows.Next() {
		value, err := scan(rows)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}

// scalar scans a row of one column.
func scalar[T any](row scanner) (T, error) {
	var value T
	err := row.Scan(&value)
	return value, err
}

// reader is the pool of connections that can only read.
type reader struct {
	db      *sql.DB
	rewrite func(string) string

	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

func newReader(d dialect, db *sql.DB) *reader {
	return &reader{db: db, rewrite: d.rewrite, stmts: map[string]*sql.Stmt{}}
}

func (r *reader) session() *session { return &session{prepare: r.prepare} }

func (r *reader) known(query string) *sql.Stmt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stmts[query]
}

func (r *reader) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := r.known(query); stmt != nil {
		return stmt, nil
	}
	// Not under the mutex: preparing may wait for a connection that another reader holds.
	made, err := r.db.PrepareContext(ctx, r.rewrite(query))
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if stmt := r.stmts[query]; stmt != nil {
		_ = made.Close()
		return stmt, nil
	}
	r.stmts[query] = made
	return made, nil
}

// snapshot runs fn on one unchanging state of the database.
func (r *reader) snapshot(ctx context.Context, fn func(tx *session) error) error {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	// A statement that is not prepared yet is prepared on the connection in hand: asking the pool for a second one while
	// holding the first could wait for ever. The pool learns it afterwards.
	var unknown []string
	err = fn(&session{prepare: func(ctx context.Context, query string) (*sql.Stmt, error) {
		if stmt := r.known(query); stmt != nil {
			return tx.StmtContext(ctx, stmt), nil
		}
		unknown = append(unknown, query)
		return tx.PrepareContext(ctx, r.rewrite(query))
	}})
	if rollback := tx.Rollback(); err == nil {
		err = rollback
	}
	if err == nil {
		for _, query := range unknown {
			_, err = r.prepare(ctx, query)
		}
	}
	return err
}

func (r *reader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, stmt := range r.stmts {
		_ = stmt.Close()
	}
	clear(r.stmts)
	return r.db.Close()
}
