package store

import (
	"context"
	"slices"

	"github.com/sallyport-dev/sallyport"
)

// rankedMatches bounds how many matches are ranked by how often and where the words stand in them, which costs about a microsecond for
// each and each word: for a query of more words it is divided by their number. Of more matches, those come first that have the words in
// their slug or name, then in the description, then in a path.
const rankedMatches = 4000

// tier is a part of an answer: the skills that match the expression, which come before those of the next tier.
type tier struct {
	expression string
	// few says that it is known to be small enough to be ranked.
	few bool
}

// matcher looks for skills on one snapshot.
type matcher struct {
	tx      *session
	dialect dialect
	// args are the first six parameters of the search statements, the expression among them not yet set.
	args []any
	// ranked is how many matches are ranked at most.
	ranked int
}

func (m matcher) with(expression string, more ...any) []any {
	args := slices.Concat(m.args, more)
	args[4] = expression
	return args
}

// count counts the matches up to a bound; -1 is none.
func (m matcher) count(ctx context.Context, expression string, bound int) (int, error) {
	n, _, err := one(ctx, m.tx, scalar[int], m.dialect.countMatches, m.with(expression, bound)...)
	return n, err
}

// few reports whether what the expression matches is to be ranked.
func (m matcher) few(ctx context.Context, expression string) (bool, error) {
	n, err := m.count(ctx, expression, m.ranked+1)
	return n <= m.ranked, err
}

// allWords plans for the skills that have every word.
func (m matcher) allWords(ctx context.Context, words []string) (tiers []tier, total int, err error) {
	return m.plan(ctx, m.dialect.allWords(words), "")
}

// anyWord plans for the skills that have any of the words; one that no skill has stands for those that begin like it. Words that few
// skills have tell more than the others, so skills with one of them come first.
func (m matcher) anyWord(ctx context.Context, words []string) (tiers []tier, total int, err error) {
	var known, rare []string
	for _, word := range words {
		expression := m.dialect.allWords([]string{word})
		n, err := m.count(ctx, expression, m.ranked+1)
		if err == nil && n == 0 {
			expression = m.dialect.wordsLike(word)
			n, err = m.count(ctx, expression, m.ranked+1)
		}
		if err != nil {
			return nil, 0, err
		}
		if n > 0 {
			known = append(known, expression)
		}
		if n > 0 && n <= m.ranked {
			rare = append(rare, expression)
		}
	}
	if len(known) == 0 {
		return nil, 0, nil
	}
	return m.plan(ctx, m.dialect.either(known), m.dialect.either(rare))
}

// plan divides the matches of an expression into tiers; those that also match first, when it is not empty, come before the others.
func (m matcher) plan(ctx context.Context, expression, first string) (tiers []tier, total int, err error) {
	total, err = m.count(ctx, expression, -1)
	if err != nil || total == 0 {
		return nil, 0, err
	}
	if total <= m.ranked {
		return []tier{{expression, true}}, total, nil
	}
	if first != "" {
		few, err := m.few(ctx, first)
		switch {
		case err != nil:
			return nil, 0, err
		case few:
			tiers = append(tiers, tier{first, true})
		default:
			tiers = m.byPlace(first, "")
		}
	}
	return append(tiers, m.byPlace(expression, first)...), total, nil
}

func (m matcher) byPlace(expression, without string) []tier {
	var tiers []tier
	for _, part := range m.dialect.byPlace(expression, without) {
		tiers = append(tiers, tier{expression: part})
	}
	return tiers
}

// page collects up to limit skills of the tiers, from a place on, and says where the next page begins.
func (m matcher) page(ctx context.Context, tiers []tier, at listCursor, limit int) (skills []sallyport.Skill, next listCursor, err error) {
	next, skills = at, []sallyport.Skill{}
	for ; next.Tier < len(tiers); next.Tier, next.Offset = next.Tier+1, 0 {
		t := tiers[next.Tier]
		if !t.few {
			if t.few, err = m.few(ctx, t.expression); err != nil {
				return nil, next, err
			}
		}
		statement := m.dialect.searchSkills
		if t.few {
			statement = m.dialect.rankSkills
		}
		found, err := all(ctx, m.tx, scanSkill, statement, m.with(t.expression, limit-len(skills), next.Offset)...)
		if err != nil {
			return nil, next, err
		}
		skills = append(skills, found...)
		next.Offset += len(found)
		if len(skills) == limit {
			break
		}
	}
	return skills, next, nil
}
