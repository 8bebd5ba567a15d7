package storetest

import (
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func skillTests() []test {
	return []test{
		{"round trip", skillRoundTrip},
		{"not found", skillNotFound},
		{"slugs are byte exact", slugsAreByteExact},
		{"one slug in several places", slugInSeveralPlaces},
		{"archive and restore", archiveAndRestore},
		{"publish and roll back", publishAndRollBack},
		{"list pages by slug", listPages},
		{"list shows what is visible", listVisible},
		{"cursors", skillCursors},
	}
}

func skillRoundTrip(t *trial, b Backend) {
	s := create(t, "alpha")
	s.Skill.Name, s.Skill.Description = "Älpha 'quoted' \"x\"", strings.Repeat("é", 2000)
	skill, _ := save(t, b, s)
	want := s.Skill
	want.TenantID, want.LatestRevisionID = tenant, s.Revision.ID
	same(t, "saved", skill, want)
	got, err := b.Skill(t.Context(), tenant, want.ID)
	must(t, err)
	same(t, "read", got, want)

	personal := create(t, "own")
	personal.Skill.TeamID, personal.Skill.OwnerID = "", owner
	personal.Publish = true
	skill, _ = save(t, b, personal)
	want = personal.Skill
	want.TenantID, want.LatestRevisionID, want.PublishedRevisionID = tenant, personal.Revision.ID, personal.Revision.ID
	same(t, "personal", skill, want)
}

func skillNotFound(t *trial, b Backend) {
	ctx := t.Context()
	_, err := b.Skill(ctx, tenant, "none")
	wantCode(t, err, sallyport.CodeSkillNotFound)
	_, err = b.SetArchived(ctx, tenant, "none", pointer(day(1)))
	wantCode(t, err, sallyport.CodeSkillNotFound)
	_, err = b.Publish(ctx, tenant, "none", "none", day(1), owner)
	wantCode(t, err, sallyport.CodeSkillNotFound)
	_, _, err = b.SaveRevision(ctx, tenant, next(t, sallyport.Skill{ID: "none", Slug: "none"}, "x", files("x")))
	wantCode(t, err, sallyport.CodeSkillNotFound)
	found, err := b.SkillsBySlug(ctx, tenant, "none")
	must(t, err)
	same(t, "by slug", slugs(found), []string{})
	revisions, err := b.Revisions(ctx, tenant, "none")
	must(t, err)
	same(t, "revisions", len(revisions), 0)
}

func slugsAreByteExact(t *trial, b Backend) {
	save(t, b, create(t, "alpha"))
	save(t, b, create(t, "Alpha"))
	save(t, b, create(t, "alpha "))
	save(t, b, create(t, "alpha\u0301"))
	for _, slug := range []string{"alpha", "Alpha", "alpha ", "alpha\u0301"} {
		found, err := b.SkillsBySlug(t.Context(), tenant, slug)
		must(t, err)
		same(t, "found", slugs(found), []string{slug})
	}
	for _, slug := range []string{"ALPHA", "alpha\x00", "alpha%", "alph", "", "alph\u00e1"} {
		found, err := b.SkillsBySlug(t.Context(), tenant, slug)
		must(t, err)
		same(t, slug, slugs(found), []string{})
	}
	_, err := b.Skill(t.Context(), tenant, "S:ALPHA")
	wantCode(t, err, sallyport.CodeSkillNotFound)
}

func slugInSeveralPlaces(t *trial, b Backend) {
	place := func(id string, team sallyport.TeamID, principal sallyport.PrincipalID) registry.RevisionSave {
		s := create(t, "shared")
		s.Skill.ID, s.Revision.ID = sallyport.SkillID(id), sallyport.RevisionID("r:"+id)
		s.Skill.TeamID, s.Skill.OwnerID = team, principal
		return s
	}
	for _, s := range []registry.RevisionSave{
		place("1", teamOne, ""), place("2", teamTwo, ""), place("3", "", owner), place("4", "", "grace"),
	} {
		save(t, b, s)
	}
	for _, s := range []registry.RevisionSave{place("5", teamOne, ""), place("6", "", owner)} {
		_, _, err := b.SaveRevision(t.Context(), tenant, s)
		wantCode(t, err, sallyport.CodeSlugTaken)
		if _, err := b.Skill(t.Context(), tenant, s.Skill.ID); sallyport.CodeOf(err) != sallyport.CodeSkillNotFound {
			t.Errorf("the refused skill %s is there: %v", s.Skill.ID, err)
		}
	}
	found, err := b.SkillsBySlug(t.Context(), tenant, "shared")
	must(t, err)
	same(t, "found", len(found), 4)
}

func archiveAndRestore(t *trial, b Backend) {
	skill, _ := save(t, b, create(t, "alpha"))
	archived, err := b.SetArchived(t.Context(), tenant, skill.ID, pointer(day(2)))
	must(t, err)
	want := skill
	want.ArchivedAt = pointer(day(2))
	same(t, "archived", archived, want)
	page, err := b.ListSkills(t.Context(), tenant, registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}})
	must(t, err)
	same(t, "listed", page, registry.SkillPage{Skills: []sallyport.Skill{}})
	page, err = b.ListSkills(t.Context(), tenant, registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, IncludeArchived: true})
	must(t, err)
	same(t, "listed with the archived", page, registry.SkillPage{Skills: []sallyport.Skill{want}, Total: 1})
	// The slug stays taken.
	again := create(t, "alpha")
	again.Skill.ID, again.Revision.ID = "again", "again"
	_, _, err = b.SaveRevision(t.Context(), tenant, again)
	wantCode(t, err, sallyport.CodeSlugTaken)
	restored, err := b.SetArchived(t.Context(), tenant, skill.ID, nil)
	must(t, err)
	same(t, "restored", restored, skill)
}

func publishAndRollBack(t *trial, b Backend) {
	ctx := t.Context()
	skill, first := save(t, b, create(t, "alpha"))
	skill, second := save(t, b, next(t, skill, "alpha:2", files("two")))
	same(t, "nothing is published", skill.PublishedRevisionID, sallyport.RevisionID(""))

	for step, want := range []struct {
		id sallyport.RevisionID
		at int
	}{{second.ID, 3}, {first.ID, 4}, {second.ID, 5}} {
		published, err := b.Publish(ctx, tenant, skill.ID, want.id, day(want.at), owner)
		must(t, err)
		same(t, "pointer", published.PublishedRevisionID, want.id)
		same(t, "latest", published.LatestRevisionID, second.ID)
		same(t, "updated", published.UpdatedAt, day(want.at))
		read, err := b.Skill(ctx, tenant, skill.ID)
		must(t, err)
		same(t, "read", read, published)
		if step == 0 {
			draft, err := b.Revision(ctx, tenant, skill.ID, first.ID)
			must(t, err)
			same(t, "the other one", draft.State, sallyport.RevisionDraft)
		}
	}
	// The first publishing is what a revision remembers.
	revisions, err := b.Revisions(ctx, tenant, skill.ID)
	must(t, err)
	same(t, "newest first", []sallyport.RevisionID{revisions[0].ID, revisions[1].ID}, []sallyport.RevisionID{second.ID, first.ID})
	same(t, "second published at", revisions[0].PublishedAt, pointer(day(3)))
	same(t, "first published at", revisions[1].PublishedAt, pointer(day(4)))
	same(t, "state", revisions[1].State, sallyport.RevisionPublished)

	neighbour, foreign := save(t, b, create(t, "beta"))
	_, err = b.Publish(ctx, tenant, skill.ID, foreign.ID, day(6), owner)
	wantCode(t, err, sallyport.CodeRevisionNotFound)
	_, err = b.Publish(ctx, tenant, skill.ID, "none", day(6), owner)
	wantCode(t, err, sallyport.CodeRevisionNotFound)
	after, err := b.Skill(ctx, tenant, skill.ID)
	must(t, err)
	same(t, "after the refusals", []any{after.PublishedRevisionID, after.UpdatedAt}, []any{second.ID, day(5)})
	untouched, err := b.Skill(ctx, tenant, neighbour.ID)
	must(t, err)
	same(t, "the neighbour", untouched, neighbour)
}

func listPages(t *trial, b Backend) {
	for n := range 7 {
		save(t, b, create(t, numbered("skill", n)))
	}
	filter := registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, Limit: 3}
	var got []string
	for pages := 0; ; pages++ {
		page, err := b.ListSkills(t.Context(), tenant, filter)
		must(t, err)
		got = append(got, slugs(page.Skills)...)
		if pages == 0 {
			// Made between two pages: one before the place, one behind it.
			save(t, b, create(t, "skill-000a"))
			save(t, b, create(t, "skill-004a"))
		} else {
			same(t, "total", page.Total, 9)
		}
		if filter.Cursor = page.NextCursor; filter.Cursor == "" {
			break
		}
		if pages > 5 {
			t.Fatal("the pages do not end")
		}
	}
	want := []string{"skill-000", "skill-001", "skill-002", "skill-003", "skill-004", "skill-004a", "skill-005", "skill-006"}
	same(t, "all pages", got, want)
	// A page that ends exactly with the last skill has no cursor.
	page, err := b.ListSkills(t.Context(), tenant, registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, Limit: 9})
	must(t, err)
	same(t, "the whole", []any{len(page.Skills), page.NextCursor}, []any{9, ""})
}

func listVisible(t *trial, b Backend) {
	for slug, place := range map[string]sallyport.Skill{
		"one": {TeamID: teamOne}, "two": {TeamID: teamTwo}, "own": {OwnerID: owner}, "hers": {OwnerID: "grace"},
	} {
		s := create(t, slug)
		s.Skill.TeamID, s.Skill.OwnerID = place.TeamID, place.OwnerID
		save(t, b, s)
	}
	for name, test := range map[string]struct {
		filter registry.SkillFilter
		want   []string
	}{
		"nobody":            {registry.SkillFilter{}, []string{}},
		"a team":            {registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}}, []string{"one"}},
		"teams and own":     {registry.SkillFilter{Owner: owner, Teams: []sallyport.TeamID{teamTwo, teamOne}}, []string{"one", "own", "two"}},
		"own only":          {registry.SkillFilter{Owner: owner}, []string{"own"}},
		"an empty team":     {registry.SkillFilter{Teams: []sallyport.TeamID{""}}, []string{}},
		"case matters":      {registry.SkillFilter{Owner: "ADA", Teams: []sallyport.TeamID{"DEFAULT"}}, []string{}},
		"names are not SQL": {registry.SkillFilter{Owner: "' OR 1=1 --", Teams: []sallyport.TeamID{`"]') OR 1=1 --`}}, []string{}},
	} {
		for _, query := range []string{"", "what does"} {
			test.filter.Query = query
			page, err := b.ListSkills(t.Context(), tenant, test.filter)
			must(t, err)
			same(t, name+" "+query, slugs(page.Skills), test.want)
			same(t, name+" total "+query, page.Total, len(test.want))
		}
	}
}

func skillCursors(t *trial, b Backend) {
	for n := range 3 {
		save(t, b, create(t, numbered("skill", n)))
	}
	filter := registry.SkillFilter{Teams: []sallyport.TeamID{teamOne}, Limit: 1}
	page, err := b.ListSkills(t.Context(), tenant, filter)
	must(t, err)
	searched := filter
	searched.Query = "skill"
	ranked, err := b.ListSkills(t.Context(), tenant, searched)
	must(t, err)
	if page.NextCursor == "" || ranked.NextCursor == "" {
		t.Fatal("no cursor")
	}
	for name, test := range map[string]struct{ query, cursor string }{
		"nonsense":            {"", "%%%"},
		"not ours":            {"", "e30"},
		"of a search":         {"", ranked.NextCursor},
		"of a list":           {"skill", page.NextCursor},
		"of another search":   {"other", ranked.NextCursor},
		"cut":                 {"", page.NextCursor[:len(page.NextCursor)-3]},
		"with a byte on top":  {"", page.NextCursor + "A"},
		"ten thousand a's":    {"", strings.Repeat("a", 10_000)},
		"SQL":                 {"", "' OR 1=1"},
		"another list's kind": {"", "eyJrIjoiMDAwMDAwMDAwMDAwIiwiYXQiOnt9fQ"},
	} {
		f := filter
		f.Query, f.Cursor = test.query, test.cursor
		_, err := b.ListSkills(t.Context(), tenant, f)
		if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%s: got %v, want INVALID_ARGUMENT", name, err)
		}
	}
}
