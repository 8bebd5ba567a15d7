package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport"
)

const opSnapshot = "store.snapshot"

// Snapshot writes the database as it is at one instant to a new file, which is on disk, compact and 0600 when it returns. Writers go on
// meanwhile. The file must not exist.
func (s *Store) Snapshot(ctx context.Context, path string) error {
	return s.fault(opSnapshot, s.dialect.snapshot(ctx, path))
}

// snapshotSQLite copies over a connection of its own: one that can only read may not write the copy either.
func snapshotSQLite(source string) func(ctx context.Context, path string) error {
	return func(ctx context.Context, path string) error {
		folder, err := os.OpenRoot(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer folder.Close() //nolint:errcheck // what was written through it was synced
		file, err := folder.OpenFile(filepath.Base(path), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		db, err := openPool(source, 1, "busy_timeout(10000)", "trusted_schema(OFF)", "cell_size_check(ON)")
		if err != nil {
			return errors.Join(err, file.Close())
		}
		_, err = db.ExecContext(ctx, "VACUUM INTO ?1", path)
		return errors.Join(err, db.Close(), file.Sync(), file.Close())
	}
}

// selectBlobs reads every content, whoever holds it.
const selectBlobs = `SELECT b.sha256, b.size, b.content FROM blobs AS b ORDER BY b.sha256`

// Sound is what a database file was found to be.
type Sound struct {
	// Schema is its version, Contents how many contents were held against their sha256.
	Schema, Contents int64
	// Open counts the executions that are queued or running.
	Open int64
}

const countOpen = `SELECT COUNT(*) FROM executions WHERE status IN ('queued', 'running')`

// CheckFile reads a whole database file that nobody else uses: every page, every reference, every content. It writes nothing to it.
// STORE_UNAVAILABLE, with a sentence, when it is damaged, no Sallyport database, or of a newer version.
func CheckFile(ctx context.Context, path string) (Sound, error) {
	var sound Sound
	if _, err := os.Stat(path); err != nil {
		return sound, unusable(sentenceDamaged, err)
	}
	path, err := prepareFile(path)
	if err != nil {
		return sound, err
	}
	if err := inspect(ctx, path); err != nil {
		return sound, err
	}
	db, err := openPool(path, 1, "busy_timeout(10000)", "trusted_schema(OFF)", "cell_size_check(ON)", "query_only(ON)")
	if err != nil {
		return sound, refuse(err)
	}
	defer db.Close() //nolint:errcheck // it only read
	if err := checkWhole(ctx, db); err != nil {
		return sound, err
	}
	if sound.Schema, err = schemaOf(ctx, db); err != nil {
		return sound, refuse(err)
	}
	if err := db.QueryRowContext(ctx, countOpen).Scan(&sound.Open); err != nil {
		return sound, refuse(err)
	}
	sound.Contents, err = checkContents(ctx, db)
	return sound, err
}

// checkWhole reads every page and follows every reference.
func checkWhole(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return refuse(err)
	}
	if verdict != "ok" {
		return unusable(sentenceDamaged, errors.New(verdict))
	}
	var table string
	switch err := db.QueryRowContext(ctx, "SELECT f.\"table\" FROM pragma_foreign_key_check AS f LIMIT 1").Scan(&table); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return refuse(err)
	}
	return unusable(sentenceDamaged, errors.New("a row of "+table+" refers to nothing"))
}

func schemaOf(ctx context.Context, db *sql.DB) (int64, error) {
	var version sql.NullInt64
	err := db.QueryRowContext(ctx, "SELECT MAX(version_id) FROM goose_db_version").Scan(&version)
	return version.Int64, err
}

func checkContents(ctx context.Context, db *sql.DB) (int64, error) {
	rows, err := db.QueryContext(ctx, selectBlobs)
	if err != nil {
		return 0, refuse(err)
	}
	defer rows.Close() //nolint:errcheck // Err below says what matters
	var checked int64
	for rows.Next() {
		var (
			sum     string
			size    int64
			content []byte
		)
		if err := rows.Scan(&sum, &size, &content); err != nil {
			return checked, refuse(err)
		}
		if err := verify(opSnapshot, content, size, sum); err != nil {
			return checked, &sallyport.Error{
				Op: opSnapshot, Code: sallyport.CodeStoreUnavailable, Message: fmt.Sprintf("the content %s is damaged: it does not match its sha256", sum), Err: err,
			}
		}
		checked++
	}
	if err := rows.Err(); err != nil {
		return checked, refuse(err)
	}
	return checked, nil
}
