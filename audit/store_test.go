package audit_test

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver of the real store, to tamper with its file

	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/store"
)

// Somebody who can write to the database file is found out, by the entries themselves or by the checkpoint kept outside.
func TestVerifyARealDatabase(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		statement string
		result    string
		sequence  int64
	}{
		"untouched":       {`SELECT 1`, audit.ResultValid, 0},
		"detail edited":   {`UPDATE audit_entries SET detail = '{"n":9}' WHERE sequence = 2`, audit.ResultBroken, 2},
		"time edited":     {`UPDATE audit_entries SET at = at + 1 WHERE sequence = 3`, audit.ResultBroken, 3},
		"entity edited":   {`UPDATE audit_entries SET entity = entity || ' ' WHERE sequence = 1`, audit.ResultBroken, 1},
		"one deleted":     {`DELETE FROM audit_entries WHERE sequence = 2`, audit.ResultGap, 2},
		"tail cut":        {`DELETE FROM audit_entries WHERE sequence > 3`, audit.ResultTailMissing, 4},
		"checkpoints too": {`DELETE FROM audit_entries WHERE sequence > 3; DELETE FROM audit_checkpoints`, audit.ResultTailMissing, 4},
		"two swapped": {
			`UPDATE audit_entries SET sequence = sequence + 100 WHERE sequence IN (2, 3);
			 UPDATE audit_entries SET sequence = 3 WHERE sequence = 102;
			 UPDATE audit_entries SET sequence = 2 WHERE sequence = 103`, audit.ResultBroken, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "sallyport.db")
			lines := &log{}
			open := func() (*store.Store, *audit.Service) {
				t.Helper()
				s, err := store.Open(t.Context(), store.Config{Path: file})
				if err != nil {
					t.Fatal(err)
				}
				return s, audit.New(audit.Config{Store: s, Key: newKey(1), CheckpointLog: lines, OpenLog: func() (io.ReadCloser, error) {
					return io.NopCloser(bytes.NewReader(lines.buf.Bytes())), nil
				}})
			}
			s, service := open()
			appendEntries(t, service, 5)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if err := service.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if err := s.Shutdown(); err != nil {
				t.Fatal(err)
			}
			tamper(t, file, test.statement)

			s, service = open()
			defer func() { _ = s.Shutdown() }()
			alone, err := service.Verify(t.Context(), auditor(), nil) // the log of the installation shows it, and proves no tail
			if err != nil || alone.Result != test.result || alone.Sequence != test.sequence || alone.Tail != audit.TailNotProvable {
				t.Errorf("got %+v, %v; want %s at %d", alone, err, test.result, test.sequence)
			}
			outside, err := audit.ReadCheckpoints(&lines.buf)
			if err != nil || len(outside) != 1 {
				t.Fatalf("got %d checkpoints, %v", len(outside), err)
			}
			got, err := service.Verify(t.Context(), auditor(), outside)
			if err != nil || got.Result != test.result || got.Sequence != test.sequence {
				t.Errorf("got %+v, %v; want %s at %d", got, err, test.result, test.sequence)
			}
		})
	}
}

func tamper(tb testing.TB, file, statement string) {
	tb.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(tb.Context(), statement); err != nil {
		tb.Fatal(err)
	}
}
