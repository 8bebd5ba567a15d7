package registry

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// The bounds of what Context reads.
const (
	defaultContextSkills = 5
	maxContextSkills     = 20
	maxContextQuery      = 16 << 10
	// Of one skill: how many files are read, how large one may be, and how large they may be together. The others count as unread.
	contextFiles     = 64
	contextFileBytes = 256 << 10
	contextBytes     = 1 << 20
)

// ContextRequest asks for what the skills of a principal say about a task.
type ContextRequest struct {
	TeamID sallyport.TeamID
	// Query describes the task, in words. Required.
	Query string
	// Skills bounds how many are looked into, 1..20; 0 means 5.
	Skills int
	// Paths selects the files below a skill: % stands for any characters, everything else for itself; empty means all. SKILL.md
	// is looked into in any case.
	Paths string
}

// ContextResult is what was found, best first. LeftOut counts the skills that match and were not looked into.
type ContextResult struct {
	Skills  []ContextSkill
	LeftOut int
}

// ContextSkill is one skill at its published revision, or at its latest while none is published.
type ContextSkill struct {
	CatalogueEntry

	// Instructions are the passages of SKILL.md that match, best first; the first one of all when none does.
	Instructions []ContextPassage
	// References are the matching passages of the other text files, best first.
	References []ContextPassage
	// Scripts are those that the request's paths select, best first. They carry no content.
	Scripts []sallyport.Component
	// Unread counts the text files that were too many or too large to look into; of a SKILL.md only the end can be.
	Unread int
}

// ContextPassage is a passage and the file that it is of.
type ContextPassage struct {
	Passage

	File sallyport.Component // without content
}

// Context finds the skills that match a task, and what in them does. Equal requests on equal skills give equal answers. Needs
// memory:read.
func (s *Service) Context(ctx context.Context, p sallyport.Principal, req ContextRequest) (ContextResult, error) {
	if err := p.Require(opRecall, sallyport.ScopeMemoryRead); err != nil {
		return ContextResult{}, err
	}
	terms := queryTerms(req.Query)
	switch {
	case len(terms) == 0:
		return ContextResult{}, sallyport.Errorf(opRecall, sallyport.CodeInvalidArgument, "the query has no words; describe the task in a sentence")
	case len(req.Query) > maxContextQuery:
		return ContextResult{}, sallyport.Errorf(opRecall, sallyport.CodeInvalidArgument, "the query has more than %d bytes; describe the task in a sentence", maxContextQuery)
	case req.Skills < 0 || req.Skills > maxContextSkills:
		return ContextResult{}, sallyport.Errorf(opRecall, sallyport.CodeInvalidArgument, "the number of skills is outside 1 to %d", maxContextSkills)
	}
	found, err := s.List(ctx, p, ListRequest{TeamID: req.TeamID, Query: searchable(terms), Limit: cmp.Or(req.Skills, defaultContextSkills)})
	if err != nil {
		return ContextResult{}, err
	}
	result := ContextResult{Skills: []ContextSkill{}, LeftOut: found.LeftOut}
	for _, skill := range found.Skills {
		id := cmp.Or(skill.PublishedRevisionID, skill.LatestRevisionID)
		if id == "" {
			continue
		}
		revision, err := s.cfg.Store.Revision(ctx, p.TenantID, skill.ID, id)
		if err != nil {
			return ContextResult{}, err
		}
		looked, err := s.lookInto(ctx, p, CatalogueEntry{skill, revision}, terms, req.Paths)
		if err != nil {
			return ContextResult{}, err
		}
		result.Skills = append(result.Skills, looked)
	}
	return result, nil
}

// searchable is as many terms as one search takes.
func searchable(terms []string) string {
	query := ""
	for _, term := range terms {
		if len(query)+len(term) < maxQueryBytes {
			query += " " + term
		}
	}
	return strings.TrimPrefix(query, " ")
}

func (s *Service) lookInto(ctx context.Context, p sallyport.Principal, entry CatalogueEntry, terms []string, paths string) (ContextSkill, error) {
	out := ContextSkill{CatalogueEntry: entry}
	files, budget := contextFiles, int64(contextBytes)
	for _, c := range entry.Revision.Components {
		selected := c.Path == SkillFile || matchPath(paths, c.Path)
		if selected && c.Kind == sallyport.KindScript {
			out.Scripts = append(out.Scripts, c)
		}
		if !selected || !tells(c) {
			continue
		}
		if c.Path != SkillFile && (files == 0 || c.Size > contextFileBytes || c.Size > budget) {
			out.Unread++
			continue
		}
		files--
		budget -= c.Size
		content, err := s.cfg.Store.ComponentContent(ctx, p.TenantID, entry.Revision.ID, c.Path)
		if err != nil {
			return ContextSkill{}, err
		}
		passages := passagesOf(content, terms)
		if c.Path == SkillFile {
			if c.Size > contextFileBytes {
				out.Unread++ // in part
			}
			out.Instructions = passages
		} else {
			out.References = append(out.References, passages...)
		}
	}
	out.Instructions = best(out.Instructions, true)
	out.References = best(out.References, false)
	rank := func(c sallyport.Component) int {
		schema := ""
		if c.Script != nil {
			schema = string(c.Script.InputSchema)
		}
		return score(terms, c.Path, schema)
	}
	slices.SortStableFunc(out.Scripts, func(a, b sallyport.Component) int { return cmp.Compare(rank(b), rank(a)) })
	return out, nil
}

// tells reports whether a component is text that somebody reads to do the task.
func tells(c sallyport.Component) bool {
	switch c.Kind {
	case sallyport.KindReference, sallyport.KindDocument, sallyport.KindExample, sallyport.KindTemplate:
		return c.Path != SettingsFile
	case sallyport.KindScript, sallyport.KindArtifact:
	}
	return false
}

// passagesOf splits a text file; what is not text has none.
func passagesOf(file sallyport.Component, terms []string) []ContextPassage {
	text, line := normaliseText(file.Content), 1
	if file.Path == SkillFile {
		md := ParseSkillMD(file.Content, "")
		text, line = md.Body, md.BodyLine
	} else if !utf8.Valid(file.Content) || strings.Contains(text, "\x00") {
		return nil
	}
	if len(text) > contextFileBytes {
		text = strings.ToValidUTF8(text[:contextFileBytes], "")
	}
	name := strings.ToLower(file.Path)
	markdown := file.Path == SkillFile || strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".markdown")
	file.Content = nil
	var out []ContextPassage
	for _, passage := range Passages(text, max(line, 1), markdown) {
		passage.Score = score(terms, passage.Heading, passage.Text)
		out = append(out, ContextPassage{passage, file})
	}
	return out
}

// best returns the passages that match, best first, then in order; the first of all when none does and fallback is set.
func best(passages []ContextPassage, fallback bool) []ContextPassage {
	var matching []ContextPassage
	for _, passage := range passages {
		if passage.Score > 0 {
			matching = append(matching, passage)
		}
	}
	if len(matching) == 0 && fallback && len(passages) > 0 {
		return passages[:1]
	}
	slices.SortStableFunc(matching, func(a, b ContextPassage) int { return cmp.Compare(b.Score, a.Score) })
	return matching
}

// matchPath reports whether path fits a pattern in which % stands for any characters; the empty pattern fits every path.
func matchPath(pattern, path string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(pattern, "%")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return path == pattern
	}
	rest, found := strings.CutPrefix(path, first)
	if !found {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, last)
}
