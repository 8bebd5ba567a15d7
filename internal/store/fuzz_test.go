package store_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// No text that anyone searches for is an error, and none shows what the principal must not see.
func FuzzSearch(f *testing.F) {
	s := fresh(f)
	if _, _, err := s.SaveRevision(f.Context(), "acme", skill(f, "s", "near and not or walrus")); err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "walrus", `"`, "NEAR(a b, 3)", "a* OR b", "{name}: x", "\x00", "\xff", "数据", "'; DROP TABLE skills; --", "a\u0301", "^a", "a + b", "-"} {
		f.Add(seed, "")
		f.Add("walrus", seed)
	}
	f.Fuzz(func(t *testing.T, query, cursor string) {
		filter := registry.SkillFilter{Owner: "ada", Teams: []sallyport.TeamID{"default"}, Query: query, Cursor: cursor, Limit: 1}
		page, err := s.ListSkills(t.Context(), "acme", filter)
		if err != nil && sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("got %v", err)
		}
		if len(page.Skills) > page.Total && cursor == "" {
			t.Errorf("%d skills of a total of %d", len(page.Skills), page.Total)
		}
		filter.Teams = []sallyport.TeamID{"other"}
		if page, err := s.ListSkills(t.Context(), "acme", filter); err == nil && (len(page.Skills) > 0 || page.Total > 0) {
			t.Errorf("a stranger sees %d of %d", len(page.Skills), page.Total)
		}
	})
}
