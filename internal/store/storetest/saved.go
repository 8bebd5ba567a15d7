package storetest

import (
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// savedOnce: the key of a save is kept with the revision, for its author, and no second save takes it.
func savedOnce(t *trial, b Backend) {
	keyed := func(slug, key, request string) registry.RevisionSave {
		s := create(t, slug, files("of "+slug)...)
		s.Once = &registry.SaveOnce{Key: key, Request: sallyport.DigestOf([]byte(request)), Since: day(-1)}
		return s
	}
	first := keyed("alpha", "k", "a")
	skill, revision := save(t, b, first)
	look := func(principal sallyport.PrincipalID, key string, since time.Time) (registry.Saved, bool) {
		saved, found, err := b.SavedOnce(t.Context(), tenant, principal, key, since)
		must(t, err)
		return saved, found
	}
	got, found := look(revision.Author, "k", day(-1))
	same(t, "found", found, true)
	same(t, "saved", got, registry.Saved{Request: first.Once.Request, SkillID: skill.ID, RevisionID: revision.ID})
	for name, row := range map[string]struct {
		principal sallyport.PrincipalID
		key       string
		since     time.Time
	}{
		"another principal": {"somebody", "k", day(-1)}, "another key": {revision.Author, "K", day(-1)},
		"too old": {revision.Author, "k", first.Skill.UpdatedAt.Add(time.Hour)},
	} {
		_, found := look(row.principal, row.key, row.since)
		same(t, name, found, false)
	}
	_, found, err := b.SavedOnce(t.Context(), other, revision.Author, "k", day(-1))
	must(t, err)
	same(t, "another tenant", found, false)

	// A taken key leaves nothing of the save behind.
	_, _, err = b.SaveRevision(t.Context(), tenant, keyed("beta", "k", "b"))
	wantCode(t, err, sallyport.CodeRevisionConflict)
	skills, err := b.SkillsBySlug(t.Context(), tenant, "beta")
	must(t, err)
	same(t, "skills of a refused save", len(skills), 0)

	// Behind its life the key is free.
	late := keyed("gamma", "k", "c")
	late.Once.Since = first.Skill.UpdatedAt.Add(time.Hour)
	late.Skill.CreatedAt, late.Skill.UpdatedAt, late.Revision.CreatedAt = day(9), day(9), day(9)
	_, revision = save(t, b, late)
	got, _ = look(revision.Author, "k", day(-1))
	same(t, "the newer revision", got.RevisionID, revision.ID)
}
