package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/registry"
)

// Of more matches than are ranked, the better place comes first, each skill is on one page, and the total is exact.
func TestManyMatches(t *testing.T) {
	t.Parallel()
	s := openForTest(t, Config{})
	s.ranked = 8
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	save := func(slug, name, description, instructions string, team sallyport.TeamID) {
		t.Helper()
		content := []byte(slug)
		components := []sallyport.Component{{
			ID: "c", Path: "SKILL.md", Kind: sallyport.KindDocument, Size: int64(len(content)), SHA256: sallyport.DigestOf(content).Hex(), Content: content,
		}}
		digest, err := canonical.RevisionDigest(components)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = s.SaveRevision(t.Context(), "acme", registry.RevisionSave{
			Create: true, Publish: true, Instructions: instructions,
			Skill:    sallyport.Skill{ID: sallyport.SkillID(slug), TeamID: team, Slug: slug, Name: name, Description: description, CreatedAt: at, UpdatedAt: at},
			Revision: sallyport.Revision{ID: sallyport.RevisionID("r-" + slug), Digest: digest, Author: "ada", CreatedAt: at, Components: components},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		save(fmt.Sprintf("text-%02d", i), "Some", "Does things", "common words", "default")
	}
	for i := range 3 {
		save(fmt.Sprintf("described-%02d", i), "Some", "A common thing", "words", "default")
	}
	save("common", "Some", "Does things", "words", "default")
	save("rare", "Some", "Does things", "common walrus", "default")
	save("hidden", "Common", "common walruses and penguins", "common", "other")

	find := func(query string, limit int) (found []string, total int) {
		t.Helper()
		filter := registry.SkillFilter{Teams: []sallyport.TeamID{"default"}, Query: query, Limit: limit}
		for {
			page, err := s.ListSkills(t.Context(), "acme", filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, skill := range page.Skills {
				found = append(found, skill.Slug)
			}
			if page.NextCursor == "" {
				return found, page.Total
			}
			if filter.Cursor = page.NextCursor; len(found) > 100 {
				t.Fatal("the pages do not end")
			}
		}
	}
	for _, limit := range []int{1, 2, 3, 5, 17, 50} {
		found, total := find("common", limit)
		if total != 17 || len(found) != 17 {
			t.Fatalf("limit %d: %d found, total %d; want 17", limit, len(found), total)
		}
		if want := []string{"common", "described-00", "described-01", "described-02"}; !slices.Equal(found[:4], want) {
			t.Errorf("limit %d: first are %v; want %v", limit, found[:4], want)
		}
		slices.Sort(found)
		if len(slices.Compact(found)) != 17 {
			t.Errorf("limit %d: a skill is on two pages", limit)
		}
	}
	// No skill has them all, so any will do: the rare word first, and one that no visible skill has counts for those that begin like it.
	for query, first := range map[string]string{"common walrus nowhere": "rare", "common walr nowhere": "rare", "penguin walrus": "rare"} {
		found, total := find(query, 4)
		if len(found) != total || found[0] != first {
			t.Errorf("query %q: first of %d is %q, total %d; want %q", query, len(found), found[0], total, first)
		}
		if slices.Contains(found, "hidden") {
			t.Errorf("query %q shows another team's skill", query)
		}
	}
}
