package store

import (
	"context"
	"database/sql"
)

// dialect is all that differs between databases. Statements are written once, in the SQL that both speak, with
// numbered parameters (?1); rewrite gives them the database's own spelling. What cannot be said in common is a
// statement of the dialect.
type dialect struct {
	rewrite func(query string) string
	// begin starts a transaction that will write.
	begin string
	// explain says in a public sentence what is wrong with the database, and what to do.
	explain func(err error) string
	// duplicate reports whether err is a violated uniqueness.
	duplicate func(err error) bool
	// snapshot writes the database as it is at one instant to a new file.
	snapshot func(ctx context.Context, path string) error
	// compact gives a bounded part of the free space back and returns how much is left, in whatever unit.
	compact func(ctx context.Context, tx *session) (left int64, err error)

	// Full text search. indexSkill stores (seq, slug, name, description, paths, instructions), replacing what was
	// there; countMatches, searchSkills and rankSkills (which orders by how well each matches) take the parameters that
	// search.go names.
	indexSkill   string
	unindexSkill string // takes seq
	countMatches string
	searchSkills string
	rankSkills   string
	// allWords turns plain words into the expression that these statements match, wordsLike one into that for words that begin
	// like it, and either joins expressions; nothing for none.
	allWords  func(words []string) string
	wordsLike func(word string) string
	either    func(expressions []string) string
	// byPlace divides what matches an expression, and not the other if there is one, by the best place in which it does.
	byPlace func(expression, without string) []string
}

// database is an opened, checked and migrated database.
type database struct {
	dialect dialect
	write   *sql.DB
	read    *sql.DB
}
