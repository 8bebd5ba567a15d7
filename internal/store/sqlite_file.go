package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// checkTime bounds the search for damage when a database is opened. A file too large to be searched in that time is
// opened all the same: damage shows when the damaged page is read, and blobs are verified whenever they are read.
const checkTime = 200 * time.Millisecond

const opOpen = "store.open"

// prepareFile returns the absolute path of a database file that is ours to write, and makes an empty one when there is
// none. It writes nothing into a file that exists.
func prepareFile(path string) (string, error) {
	if path == "" {
		return "", defect(opOpen, "no path")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", unusable("the folder of the database cannot be found", err)
	}
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return "", unusable("the folder of the database does not exist or cannot be opened; make it, or name another data folder", err)
	}
	defer folder.Close() //nolint:errcheck // nothing was written through it
	name := filepath.Base(path)
	info, err := folder.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		file, err := folder.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return "", unusable(sentenceReadOnly, err)
		}
		if err := file.Close(); err != nil {
			return "", unusable(sentenceReadOnly, err)
		}
		return path, nil
	}
	if err != nil {
		return "", unusable(sentenceReadOnly, err)
	}
	if !info.Mode().IsRegular() {
		return "", unusable(sentenceDamaged, fmt.Errorf("not a regular file: %v", info.Mode()))
	}
	// Root may write a file that its owner made read-only; the mode is the operator's word, so it counts.
	if info.Mode().Perm()&0o200 == 0 {
		return "", unusable(sentenceReadOnly, fs.ErrPermission)
	}
	return path, checkHeader(folder, name, info.Size())
}

// protectFile takes the database away from everyone but its owner; SQLite gives its side files the same mode.
func protectFile(path string) error {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unusable(sentenceReadOnly, err)
		}
	}
	return nil
}

// checkHeader keeps SQLite away from files that are not its own: it treats some of them as empty.
func checkHeader(folder *os.Root, name string, size int64) error {
	file, err := folder.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return unusable(sentenceReadOnly, err)
	}
	defer file.Close() //nolint:errcheck // nothing was written to it
	if size == 0 {
		return nil
	}
	header := make([]byte, 32)
	if _, err := io.ReadFull(file, header); err != nil || string(header[:16]) != "SQLite format 3\x00" {
		return unusable(sentenceDamaged, errors.Join(err, errors.New("no SQLite header")))
	}
	// Bytes 28 to 31 are the size in pages. While a write-ahead log waits to be merged, the file may lag behind it.
	pageSize := int64(binary.BigEndian.Uint16(header[16:]))
	if pageSize == 1 {
		pageSize = 1 << 16
	}
	wanted := pageSize * int64(binary.BigEndian.Uint32(header[28:]))
	if log, err := folder.Lstat(name + "-wal"); size < wanted && (err != nil || log.Size() == 0) {
		return unusable(sentenceDamaged, fmt.Errorf("%d bytes, of which %d are there", wanted, size))
	}
	return nil
}

// inspect looks at the database before anything is written to it.
func inspect(ctx context.Context, path string) error {
	db, err := openPool(path, 1, "busy_timeout(10000)", "trusted_schema(OFF)", "cell_size_check(ON)", "query_only(ON)")
	if err != nil {
		return refuse(err)
	}
	defer db.Close() //nolint:errcheck // it only read
	var id, tables int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return refuse(err)
	}
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return refuse(err)
	}
	if tables == 0 && (id == 0 || id == applicationID) {
		return nil
	}
	if id != applicationID {
		return unusable(sentenceDamaged, fmt.Errorf("application id %#x", id))
	}
	if err := checkVersion(ctx, db); err != nil {
		return err
	}
	return checkPages(ctx, db)
}

func checkVersion(ctx context.Context, db *sql.DB) error {
	provider, err := newProvider(db)
	if err != nil {
		return refuse(err)
	}
	sources := provider.ListSources()
	known := sources[len(sources)-1].Version
	var version sql.NullInt64
	if err := db.QueryRowContext(ctx, "SELECT MAX(version_id) FROM goose_db_version").Scan(&version); err != nil {
		return refuse(err)
	}
	if version.Int64 <= known {
		return nil
	}
	return unusable(fmt.Sprintf("the database was written by a newer version of sallyport (schema %d, this program knows %d); "+
		"run that version or a newer one, or restore the backup from before the upgrade", version.Int64, known), nil)
}

func checkPages(ctx context.Context, db *sql.DB) error {
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	var verdict string
	err := db.QueryRowContext(bounded, "PRAGMA quick_check(1)").Scan(&verdict)
	switch {
	case bounded.Err() != nil && ctx.Err() == nil:
		return nil
	case err != nil:
		return refuse(err)
	case verdict != "ok":
		return unusable(sentenceDamaged, errors.New(verdict))
	default:
		return nil
	}
}

// largestVacuum bounds a database that is written anew when it is opened, once, so that free space can be given back bit by bit
// from then on. Larger ones were made so, or become so by a backup and its restore.
const largestVacuum = 256 << 20

// compactable sees to it that free pages can be given back.
func compactable(ctx context.Context, db *sql.DB, cfg Config) error {
	var mode, pages, size int64
	for pragma, value := range map[string]*int64{"PRAGMA auto_vacuum": &mode, "PRAGMA page_count": &pages, "PRAGMA page_size": &size} {
		if err := db.QueryRowContext(ctx, pragma).Scan(value); err != nil {
			return err
		}
	}
	switch {
	case mode == 2:
		return nil
	case pages*size > largestVacuum:
		cfg.Logger.WarnContext(ctx, "the database does not give free space back; a backup and its restore mend that", "bytes", pages*size)
		return nil
	}
	_, err := db.ExecContext(ctx, "VACUUM")
	return err
}

// refuse explains an error of SQLite while the database is opened.
func refuse(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &sallyport.Error{Op: opOpen, Code: sallyport.CodeOf(err), Err: err}
	}
	return unusable(explainSQLite(err), err)
}

func unusable(message string, err error) error {
	return &sallyport.Error{Op: opOpen, Code: sallyport.CodeStoreUnavailable, Message: message, Err: err}
}
