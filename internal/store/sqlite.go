package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"net/url"
	"strings"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed migrations/sqlite/*.sql
var sqliteMigrations embed.FS

// applicationID marks a SQLite file as ours: "SLPT".
const applicationID = 0x534c5054

func sqliteDialect() dialect {
	return dialect{
		rewrite:      func(query string) string { return query },
		begin:        "BEGIN IMMEDIATE",
		explain:      explainSQLite,
		duplicate:    duplicateSQLite,
		compact:      compactSQLite,
		indexSkill:   sqliteIndexSkill,
		unindexSkill: sqliteUnindexSkill,
		countMatches: sqliteCountMatches,
		searchSkills: sqliteSearchSkills,
		rankSkills:   sqliteRankSkills,
		allWords:     allWordsSQLite,
		wordsLike:    wordsLikeSQLite,
		either:       func(expressions []string) string { return strings.Join(expressions, " OR ") },
		byPlace:      byPlaceSQLite,
	}
}

// openSQLite checks the file, opens it, and makes or upgrades the schema.
func openSQLite(ctx context.Context, cfg Config) (database, error) {
	path, err := prepareFile(cfg.Path)
	if err != nil {
		return database{}, err
	}
	if err := inspect(ctx, path); err != nil {
		return database{}, err
	}
	if err := protectFile(path); err != nil {
		return database{}, err
	}
	write, err := openPool(path, 1,
		"busy_timeout(10000)", "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)", "trusted_schema(OFF)",
		"cell_size_check(ON)", "journal_size_limit(67108864)", "temp_store(MEMORY)")
	if err != nil {
		return database{}, refuse(err)
	}
	if err := migrate(ctx, write); err != nil {
		return database{}, errors.Join(refuse(err), write.Close())
	}
	if err := compactable(ctx, write, cfg); err != nil {
		return database{}, errors.Join(refuse(err), write.Close())
	}
	read, err := openPool(path, cfg.Readers,
		"busy_timeout(10000)", "foreign_keys(ON)", "trusted_schema(OFF)", "cell_size_check(ON)", "temp_store(MEMORY)",
		"query_only(ON)")
	if err != nil {
		return database{}, errors.Join(refuse(err), write.Close())
	}
	d := sqliteDialect()
	d.snapshot = snapshotSQLite(path)
	return database{dialect: d, write: write, read: read}, nil
}

func openPool(path string, connections int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"_defensive": {"1"}, "_dqs": {"0"}, "_error_rc": {"1"}, "_pragma": pragmas}
	connector, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// migrate brings the schema to the newest version, each step in a transaction of its own.
func migrate(ctx context.Context, db *sql.DB) error {
	if err := mark(ctx, db); err != nil {
		return err
	}
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// mark makes a new file ours before anything else is in it.
func mark(ctx context.Context, db *sql.DB) error {
	var id int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil || id == applicationID {
		return err
	}
	_, err := db.ExecContext(ctx, "PRAGMA application_id = 1397510228")
	return err
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	migrations, err := fs.Sub(sqliteMigrations, "migrations/sqlite")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithDisableGlobalRegistry(true))
}

// code returns SQLite's primary and extended result codes; zero when err is not SQLite's.
func code(err error) (primary, extended int) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff, e.Code()
	}
	return 0, 0
}

func duplicateSQLite(err error) bool {
	_, extended := code(err)
	return extended == sqlite3.SQLITE_CONSTRAINT_UNIQUE || extended == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

const (
	sentenceDamaged  = "the database file is damaged or is not a Sallyport database; restore it from a backup, or move it away to start with an empty one"
	sentenceReadOnly = "the database file cannot be written; make it and its folder writable for the user that runs sallyport, or name another data folder"
)

func explainSQLite(err error) string {
	switch primary, _ := code(err); primary {
	case sqlite3.SQLITE_FULL:
		return "the disk is full; free some space and try again"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return sentenceReadOnly
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
		return sentenceDamaged
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program holds the database; end it and try again"
	case sqlite3.SQLITE_IOERR:
		return "the disk of the database reports an error; look at the free space and the health of the disk"
	default:
		return "the database cannot serve; the server's log has the cause"
	}
}

// allWordsSQLite quotes each word, so that nothing in it is FTS5 syntax.
func allWordsSQLite(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quoteSQLite(word)
	}
	return strings.Join(quoted, " AND ")
}

func quoteSQLite(word string) string { return `"` + strings.ReplaceAll(word, `"`, `""`) + `"` }

// wordsLikeSQLite leaves a word of two bytes or less as it is: half of all words begin like it.
func wordsLikeSQLite(word string) string {
	if len(word) <= 2 {
		return quoteSQLite(word)
	}
	return quoteSQLite(word) + "*"
}

func byPlaceSQLite(expression, without string) []string {
	var tiers []string
	better := ""
	for _, columns := range []string{"{slug name}", "{slug name description}", "{slug name description paths}", ""} {
		tier := "(" + expression + ")"
		if columns != "" {
			tier = columns + " : " + tier
		}
		part := tier
		if better != "" {
			part += " NOT (" + better + ")"
		}
		if without != "" {
			part += " NOT (" + without + ")"
		}
		tiers, better = append(tiers, part), tier
	}
	return tiers
}
