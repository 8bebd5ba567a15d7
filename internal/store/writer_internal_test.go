package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// These tests need the inside: they hold the writer in the middle of a transaction.

func openForTest(tb testing.TB, cfg Config) *Store {
	tb.Helper()
	cfg.Path = filepath.Join(tb.TempDir(), "sallyport.db")
	s, err := Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

const (
	addRow    = `INSERT INTO blobs (sha256, size, content) VALUES (?1, 0, x'')`
	countRows = `SELECT COUNT(*) FROM blobs`
)

// row is a name of the length that blobs want.
func row(name string) string { return name + strings.Repeat("0", 64-len(name)) }

// adding is a write that adds one row.
func adding(name string) func(ctx context.Context, tx *session) error {
	return func(ctx context.Context, tx *session) error {
		_, err := tx.exec(ctx, addRow, row(name))
		return err
	}
}

func rows(tb testing.TB, s *Store) int {
	tb.Helper()
	n, _, err := one(tb.Context(), s.reader.session(), scalar[int], countRows)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// hold keeps the writer busy until release is called; what is queued meanwhile becomes one batch.
func hold(tb testing.TB, s *Store) (release func()) {
	tb.Helper()
	started, ended := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- s.write(tb.Context(), "hold", func(context.Context, *session) error {
			close(started)
			<-ended
			return nil
		})
	}()
	<-started
	return sync.OnceFunc(func() {
		close(ended)
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
}

// queue starts a write and returns once it waits; the channel gets its result.
func queue(tb testing.TB, s *Store, ctx context.Context, fn func(ctx context.Context, tx *session) error) <-chan error { //nolint:revive // the testing.TB comes first
	tb.Helper()
	before := len(s.writer.jobs)
	result := make(chan error, 1)
	go func() { result <- s.write(ctx, "queued", fn) }()
	for deadline := time.Now().Add(10 * time.Second); len(s.writer.jobs) == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("the write was not queued")
		}
	}
	return result
}

// Writes that wait together share one transaction: a later one sees what an earlier one wrote while no reader does.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	s := openForTest(t, Config{})
	release := hold(t, s)
	first := queue(t, s, t.Context(), adding("first"))
	var inside, outside int
	second := queue(t, s, t.Context(), func(ctx context.Context, tx *session) error {
		var err error
		if inside, _, err = one(ctx, tx, scalar[int], countRows); err != nil {
			return err
		}
		outside, _, err = one(ctx, s.reader.session(), scalar[int], countRows)
		return err
	})
	release()
	if err := errors.Join(<-first, <-second); err != nil {
		t.Fatal(err)
	}
	if inside != 1 || outside != 0 {
		t.Errorf("inside %d rows, outside %d; want 1 and 0: the writes did not share a transaction", inside, outside)
	}
	if got := rows(t, s); got != 1 {
		t.Errorf("got %d rows after the commit, want 1", got)
	}
}

// A write that fails, panics or undoes the whole transaction takes no other write with it.
func TestOneWriteFails(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	for name, test := range map[string]struct {
		bad  func(ctx context.Context, tx *session) error
		code sallyport.Code
	}{
		"error": {func(ctx context.Context, tx *session) error {
			return errors.Join(adding("bad")(ctx, tx), &sallyport.Error{Op: "x", Code: sallyport.CodeSlugTaken})
		}, sallyport.CodeSlugTaken},
		"foreign error": {func(ctx context.Context, tx *session) error {
			return errors.Join(adding("bad")(ctx, tx), fault)
		}, sallyport.CodeStoreUnavailable},
		"panic": {func(ctx context.Context, tx *session) error {
			if err := adding("bad")(ctx, tx); err != nil {
				return err
			}
			panic("boom")
		}, sallyport.CodeInternal},
		"transaction undone": {func(ctx context.Context, tx *session) error {
			// As SQLite does by itself on a full disk.
			_, err := tx.exec(ctx, "ROLLBACK")
			return errors.Join(err, fault)
		}, sallyport.CodeStoreUnavailable},
		"database full": {func(ctx context.Context, tx *session) error {
			if _, err := tx.exec(ctx, "PRAGMA max_page_count = 100"); err != nil {
				return err
			}
			_, err := tx.exec(ctx, "INSERT INTO blobs (sha256, size, content) VALUES (?1, 0, zeroblob(4000000))", row("bad"))
			return err
		}, sallyport.CodeStoreUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openForTest(t, Config{})
			release := hold(t, s)
			before := queue(t, s, t.Context(), adding("before"))
			bad := queue(t, s, t.Context(), test.bad)
			after := queue(t, s, t.Context(), adding("after"))
			release()
			if err := errors.Join(<-before, <-after); err != nil {
				t.Errorf("a good write failed: %v", err)
			}
			if err := <-bad; sallyport.CodeOf(err) != test.code {
				t.Errorf("got %v, want %s", err, test.code)
			}
			if err := s.write(t.Context(), "later", adding("later")); err != nil {
				t.Errorf("a later write failed: %v", err)
			}
			if got := rows(t, s); got != 3 {
				t.Errorf("got %d rows, want 3", got)
			}
		})
	}
}

// A full disk is named, and it is the audit trail that is unavailable when an entry cannot be written.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := openForTest(t, Config{})
	full := func(ctx context.Context, tx *session) error {
		if _, err := tx.exec(ctx, "PRAGMA max_page_count = 100"); err != nil {
			return err
		}
		_, err := tx.exec(ctx, "INSERT INTO blobs (sha256, size, content) VALUES (?1, 0, zeroblob(4000000))", row("bad"))
		return err
	}
	err := s.writer.do(t.Context(), full)
	for _, test := range []struct {
		err  error
		code sallyport.Code
	}{{s.fault("x", err), sallyport.CodeStoreUnavailable}, {s.auditFault("x", err), sallyport.CodeAuditUnavailable}} {
		if public := sallyport.Public(test.err); public.Code != test.code || !strings.Contains(public.Message, "disk is full") {
			t.Errorf("got %+v, want %s and the disk that is full", public, test.code)
		}
	}
}

func TestCancelledWaiter(t *testing.T) {
	t.Parallel()
	s := openForTest(t, Config{})

	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	dropped := queue(t, s, ctx, adding("dropped"))
	cancel()
	if err := <-dropped; sallyport.CodeOf(err) != sallyport.CodeCanceled {
		t.Errorf("a waiter that gave up: got %v, want CANCELED", err)
	}
	release()

	// Once it runs, the waiter gets the true result.
	ctx, cancel = context.WithCancel(t.Context())
	err := s.write(ctx, "running", func(ctx context.Context, tx *session) error {
		cancel()
		time.Sleep(20 * time.Millisecond)
		return adding("running")(ctx, tx)
	})
	if err != nil {
		t.Errorf("a write that was running: got %v, want its result", err)
	}
	if err := s.write(ctx, "late", adding("late")); sallyport.CodeOf(err) != sallyport.CodeCanceled {
		t.Errorf("a write that came cancelled: got %v, want CANCELED", err)
	}
	if got := rows(t, s); got != 1 {
		t.Errorf("got %d rows, want only the one that was running", got)
	}
}

func TestFullQueue(t *testing.T) {
	t.Parallel()
	s := openForTest(t, Config{QueueLength: 1})
	release := hold(t, s)
	queued := queue(t, s, t.Context(), adding("queued"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.write(ctx, "crowded out", adding("crowded out")); sallyport.CodeOf(err) != sallyport.CodeDeadlineExceeded {
		t.Errorf("got %v, want DEADLINE_EXCEEDED", err)
	}
	release()
	if err := <-queued; err != nil {
		t.Error(err)
	}
	if got := rows(t, s); got != 1 {
		t.Errorf("got %d rows, want 1", got)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sallyport.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, s)
	queued := queue(t, s, t.Context(), adding("queued"))
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown() }()
	time.Sleep(20 * time.Millisecond)
	release()
	if err := errors.Join(<-queued, <-ended, s.Shutdown()); err != nil {
		t.Errorf("queued write, shutdown, second shutdown: %v", err)
	}
	err = s.write(t.Context(), "late", adding("late"))
	if public := sallyport.Public(err); public.Code != sallyport.CodeStoreUnavailable || !strings.Contains(public.Message, "closed") {
		t.Errorf("a write after the end: got %v, want STORE_UNAVAILABLE", err)
	}
	if _, err := s.Skill(t.Context(), "t", "s"); sallyport.CodeOf(err) != sallyport.CodeStoreUnavailable {
		t.Errorf("a read after the end: got %v, want STORE_UNAVAILABLE", err)
	}
	again, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if got := rows(t, again); got != 1 {
		t.Errorf("got %d rows after opening it again, want 1", got)
	}
	if err := again.Shutdown(); err != nil {
		t.Error(err)
	}
}

// Readers cannot write, whatever they are asked to run.
func TestReadersOnlyRead(t *testing.T) {
	t.Parallel()
	s := openForTest(t, Config{})
	if _, err := s.reader.session().exec(t.Context(), addRow, row("x")); err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("got %v, want a read-only error", err)
	}
}

// More snapshots at once than there are connections, each with a statement that nobody prepared: none waits for ever.
func TestSnapshotsShareConnections(t *testing.T) {
	t.Parallel()
	s := openForTest(t, Config{Readers: 2})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			if err := s.reader.snapshot(ctx, func(tx *session) error {
				time.Sleep(time.Millisecond)
				_, _, err := one(ctx, tx, scalar[int], countRows+" WHERE size >= 0"+strings.Repeat(" ", n))
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A read that is given up is CANCELED, or late, never a fault of the database.
func TestReadIsCancelled(t *testing.T) {
	t.Parallel()
	s := openForTest(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Skill(ctx, "t", "s")
	if sallyport.CodeOf(err) != sallyport.CodeCanceled {
		t.Errorf("before it began: got %v, want CANCELED", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	const endless = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT `
	_, _, err = one(ctx, s.reader.session(), scalar[int64], endless+`SUM(i) FROM n`)
	if code := sallyport.CodeOf(s.fault("x", err)); code != sallyport.CodeDeadlineExceeded {
		t.Errorf("in the middle: got %v, want DEADLINE_EXCEEDED", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = all(ctx, s.reader.session(), scalar[int64], endless+`i FROM n WHERE i % 1000000 = 0`)
	if code := sallyport.CodeOf(s.fault("x", err)); code != sallyport.CodeDeadlineExceeded {
		t.Errorf("between two rows: got %v, want DEADLINE_EXCEEDED", err)
	}
	if got := rows(t, s); got != 0 {
		t.Errorf("a read afterwards: got %d rows", got)
	}
}
