package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

const (
	defaultPage = 50
	maxPage     = 1000
	// Of a query, this many different words count, and this much of each.
	maxWords      = 32
	maxWordLength = 64
)

// visible is what a principal may look at: ?2 is the owner, ?3 the teams as a JSON array, ?4 whether archived skills
// count.
const visible = `((s.team_id <> '' AND s.team_id IN (SELECT value FROM json_each(?3))) OR (s.team_id = '' AND s.owner_id = ?2))
	AND (?4 OR s.archived_at IS NULL)`

const countSkills = `SELECT COUNT(*) FROM skills AS s WHERE s.tenant_id = ?1 AND ` + visible

// listSkills begins behind the slug ?5 and id ?6.
const listSkills = `SELECT ` + skillColumns + ` FROM skills AS s WHERE s.tenant_id = ?1 AND ` + visible + `
	AND (s.slug > ?5 OR (s.slug = ?5 AND s.id > ?6)) ORDER BY s.slug, s.id LIMIT ?7`

// newestSkill is the time behind which a search does not look on its later pages.
const newestSkill = `SELECT COALESCE(MAX(s.created_at), 0) FROM skills AS s WHERE s.tenant_id = ?1`

// The search statements of SQLite: ?5 is the expression to match, ?6 the newest creation time that counts, then a bound on the
// count, or limit and offset. The weights are those of slug, name, description, paths, instructions.
const (
	sqliteIndexSkill = `INSERT OR REPLACE INTO skill_search (rowid, slug, name, description, paths, instructions)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6)`
	sqliteUnindexSkill = `DELETE FROM skill_search WHERE rowid = ?1`
	// CROSS keeps the planner from asking the index once for each skill.
	sqliteMatches      = ` FROM skill_search CROSS JOIN skills AS s ON s.seq = skill_search.rowid WHERE s.tenant_id = ?1 AND ` + visible + ` AND skill_search MATCH ?5 AND s.created_at <= ?6`
	sqliteCountMatches = `SELECT COUNT(*) FROM (SELECT 1` + sqliteMatches + ` LIMIT ?7)`
	// In the order of the index, which is that of creation: it reads no more than it returns.
	sqliteSearchSkills = `SELECT ` + skillColumns + sqliteMatches + ` ORDER BY skill_search.rowid LIMIT ?7 OFFSET ?8`
	sqliteRankSkills   = `SELECT ` + skillColumns + sqliteMatches + `
	ORDER BY bm25(skill_search, 8.0, 8.0, 4.0, 2.0, 1.0), s.slug, s.id LIMIT ?7 OFFSET ?8`
)

// listCursor is the place between two pages of skills.
type listCursor struct {
	// Slug and ID of the last skill, when there is no query.
	Slug string            `json:"s,omitempty"`
	ID   sallyport.SkillID `json:"i,omitempty"`
	// Tier and the offset in it, whether the words match one by one, and the newest creation time that counts, when there is
	// a query. Skills made between two pages would move the offset.
	Tier   int   `json:"t,omitempty"`
	Offset int   `json:"o,omitempty"`
	Any    bool  `json:"a,omitempty"`
	Newest int64 `json:"n,omitempty"`
}

// ListSkills implements registry.Store. Without a word in the query it lists by slug. With words it finds the skills that
// have them all; when no skill has, those that have any, or a word that begins like one that no skill has. What matches best comes
// first; see rankedMatches.
func (s *Store) ListSkills(ctx context.Context, tenant sallyport.TenantID, filter registry.SkillFilter) (registry.SkillPage, error) {
	const op = "store.list_skills"
	words := queryWords(filter.Query)
	kind := "skills:" + strings.Join(words, " ")
	cursor, err := readCursor[listCursor](op, kind, filter.Cursor)
	if err != nil {
		return registry.SkillPage{}, err
	}
	teams, err := json.Marshal(slices.Concat([]sallyport.TeamID{}, filter.Teams))
	if err != nil {
		return registry.SkillPage{}, s.fault(op, err)
	}
	limit := pageSize(filter.Limit)
	var page registry.SkillPage
	err = s.reader.snapshot(ctx, func(tx *session) error {
		args := []any{tenant, filter.Owner, string(teams), filter.IncludeArchived}
		var (
			next *listCursor
			err  error
		)
		if len(words) == 0 {
			page, next, err = listBySlug(ctx, tx, cursor, limit, args)
		} else {
			page, next, err = s.search(ctx, tx, words, cursor, limit, args)
		}
		if err == nil && next != nil {
			page.NextCursor, err = writeCursor(kind, *next)
		}
		return err
	})
	if err != nil {
		return registry.SkillPage{}, s.fault(op, err)
	}
	return page, nil
}

func listBySlug(ctx context.Context, tx *session, at listCursor, limit int, args []any) (registry.SkillPage, *listCursor, error) {
	total, _, err := one(ctx, tx, scalar[int], countSkills, args...)
	if err != nil {
		return registry.SkillPage{}, nil, err
	}
	skills, err := all(ctx, tx, scanSkill, listSkills, append(args, at.Slug, at.ID, limit+1)...)
	if err != nil {
		return registry.SkillPage{}, nil, err
	}
	page := registry.SkillPage{Skills: skills, Total: total}
	if len(skills) <= limit {
		return page, nil, nil
	}
	page.Skills = skills[:limit]
	last := page.Skills[limit-1]
	return page, &listCursor{Slug: last.Slug, ID: last.ID}, nil
}

func (s *Store) search(ctx context.Context, tx *session, words []string, at listCursor, limit int, args []any) (registry.SkillPage, *listCursor, error) {
	if at.Newest == 0 {
		newest, _, err := one(ctx, tx, scalar[int64], newestSkill, args[0])
		if err != nil {
			return registry.SkillPage{}, nil, err
		}
		at.Newest = newest
	}
	m := matcher{tx, s.dialect, append(args, "", at.Newest), s.ranked / len(words)}
	var (
		tiers []tier
		total int
		err   error
	)
	if !at.Any {
		tiers, total, err = m.allWords(ctx, words)
		// A later page of skills that are gone by now is empty; it does not become another search.
		at.Any = err == nil && total == 0 && at.Offset == 0 && at.Tier == 0
	}
	if at.Any {
		tiers, total, err = m.anyWord(ctx, rareWords(words))
	}
	if err != nil {
		return registry.SkillPage{}, nil, err
	}
	skills, next, err := m.page(ctx, tiers, at, limit)
	if err != nil {
		return registry.SkillPage{}, nil, err
	}
	page := registry.SkillPage{Skills: skills, Total: total}
	if len(skills) < limit || total == len(skills) {
		return page, nil, nil
	}
	more, _, err := m.page(ctx, tiers, next, 1)
	if err != nil || len(more) == 0 {
		return page, nil, err
	}
	return page, &next, nil
}

func pageSize(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, maxPage)
}

// queryWords returns the different words of a query, in order: runs of letters, digits and marks.
func queryWords(query string) []string {
	var words []string
	for word := range strings.FieldsFuncSeq(query, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }) {
		if !strings.ContainsFunc(word, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N) }) {
			continue
		}
		if runes := []rune(word); len(runes) > maxWordLength {
			word = string(runes[:maxWordLength])
		}
		word = searchText(strings.ToLower(word))
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
		if len(words) == maxWords {
			break
		}
	}
	return words
}

// commonWords are the English words that say nothing about a skill.
const commonWords = " a an and are as at be but by can do does for from get has have how i if in into is it me my not of on or our please " +
	"that the their them then there these this to use using was we what when where which who why will with you your "

// rareWords leaves out the common words, unless there are no others.
func rareWords(words []string) []string {
	var rare []string
	for _, word := range words {
		if !strings.Contains(commonWords, " "+word+" ") {
			rare = append(rare, word)
		}
	}
	if len(rare) == 0 {
		return words
	}
	return rare
}

// indexedPaths are the paths of a revision as the search knows them. Every skill has a SKILL.md, so it tells nothing.
func indexedPaths(components []sallyport.Component) string {
	paths := make([]string, 0, len(components))
	for _, component := range components {
		if component.Path != "SKILL.md" {
			paths = append(paths, component.Path)
		}
	}
	return searchText(strings.Join(paths, "\n"))
}

// searchText sets the characters of scripts that are written without spaces apart, so that a word inside a sentence is
// found: the index and the queries hold each such character as a word, and a word of several as a phrase.
func searchText(text string) string {
	unspaced := func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) }
	if !strings.ContainsFunc(text, unspaced) {
		return text
	}
	var apart strings.Builder
	for _, r := range text {
		if unspaced(r) {
			apart.WriteByte(' ')
			apart.WriteRune(r)
			apart.WriteByte(' ')
		} else {
			apart.WriteRune(r)
		}
	}
	return strings.Join(strings.Fields(apart.String()), " ")
}
