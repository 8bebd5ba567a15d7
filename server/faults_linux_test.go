package server_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver of the real store, to lock its file

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/server"
)

func job() run.Request {
	return run.Request{Ref: sallyport.SkillRef{Slug: "job"}, ScriptPath: "scripts/run.sh"}
}

// While somebody else holds the database, nothing runs; afterwards everything does.
func TestDatabaseLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openVictim(t.Context(), dir, func() {})
	if err == nil {
		err = furnish(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(folderOf(dir), "sallyport.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	held, err := db.Conn(t.Context())
	if err == nil {
		_, err = held.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Runs().Run(t.Context(), server.Operator(), job()); sallyport.CodeOf(err) != sallyport.CodeAuditUnavailable {
		t.Errorf("locked: got %v", err)
	}
	if n := len(started(t, dir)); n != 0 {
		t.Errorf("%d processes started without an entry", n)
	}
	if _, err := held.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Runs().Run(t.Context(), server.Operator(), job()); err != nil || e.Status != sallyport.StatusSuccess {
		t.Errorf("afterwards: %+v, %v", e.Status, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if found := inspect(t, dir); found.runs != 1 {
		t.Errorf("%d runs", found.runs)
	}
}

// A file of checkpoints that cannot be written stops the start, before anything can run.
func TestCheckpointFileUnwritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folderOf(dir), "checkpoints.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := openVictim(context.Background(), dir, func() {})
	if sallyport.CodeOf(err) != sallyport.CodeStoreUnavailable || s != nil {
		t.Errorf("got %v", err)
	}
}

// A disk that fills up in the middle of runs refuses the next ones and loses no outcome: what it could not record is recorded when
// there is room again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), playVariable+"=full "+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if found := inspect(t, dir); found.runs < 3 {
		t.Errorf("%d runs", found.runs)
	}
}

// playFullDisk runs until nothing can be written any more, a few times over, and then makes room.
func playFullDisk(dir string) error {
	ctx := context.Background()
	signal.Ignore(syscall.SIGXFSZ)
	s, err := openVictim(ctx, dir, func() {})
	if err == nil {
		err = furnish(ctx, s)
	}
	if err != nil {
		return err
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	for room := uint64(1); room < 40; room += 5 {
		wal, err := os.Stat(filepath.Join(folderOf(dir), "sallyport.db-wal"))
		if err != nil {
			return err
		}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(wal.Size()) + room<<10, Max: before.Max}); err != nil {
			return err
		}
		refused := false
		for n := 0; n < 200 && !refused; n++ {
			e, err := s.Runs().Run(ctx, server.Operator(), job())
			switch sallyport.CodeOf(err) {
			case "":
				if e.Status != sallyport.StatusSuccess {
					return fmt.Errorf("a run was approved and is %s", e.Status)
				}
			case sallyport.CodeAuditUnavailable:
				refused = true
			default:
				return err
			}
		}
		if !refused {
			return errors.New("the disk was never full")
		}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			return err
		}
		if e, err := s.Runs().Run(ctx, server.Operator(), job()); err != nil || e.Status != sallyport.StatusSuccess {
			return fmt.Errorf("with room again: %s, %w", e.Status, err)
		}
	}
	for s.Runs().Unrecorded() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return s.Close()
}
