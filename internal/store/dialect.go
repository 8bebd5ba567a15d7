package store

import "database/sql"

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

	// Full text search. indexSkill stores (seq, slug, name, description, paths, instructions), replacing what was
	// there; countMatches and searchSkills take the parameters that search.go names.
	indexSkill   string
	countMatches string
	searchSkills string
	// allWords and anyWord turn plain words into the expression that these statements match.
	allWords func(words []string) string
	anyWord  func(words []string) string
}

// database is an opened, checked and migrated database.
type database struct {
	dialect dialect
	write   *sql.DB
	read    *sql.DB
}
