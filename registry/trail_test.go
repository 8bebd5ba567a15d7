package registry_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// What moves the published pointer or takes a skill away is on record before it is stored, with what was before and after, and is
// refused when it cannot be.
func TestActsAreAuditedFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	saved := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	ref := sallyport.SkillRef{SkillID: saved.Skill.ID}
	acts := []func() error{
		func() error { _, err := b.Publish(t.Context(), alice, ref, ""); return err },
		func() error { _, err := b.Archive(t.Context(), alice, ref); return err },
		func() error { _, err := b.Restore(t.Context(), alice, ref); return err },
	}
	id := string(saved.Revision.ID)
	for i, want := range []struct {
		action        sallyport.Action
		before, after map[string]any
	}{
		{sallyport.ActionSkillPublish, map[string]any{"published_revision_id": ""}, map[string]any{"published_revision_id": id}},
		{sallyport.ActionSkillArchive, map[string]any{"archived": false}, map[string]any{"archived": true}},
		{sallyport.ActionSkillRestore, map[string]any{"archived": true}, map[string]any{"archived": false}},
	} {
		state := func() string {
			view, err := b.Show(t.Context(), alice, ref)
			if err != nil {
				t.Fatal(err)
			}
			return string(view.Skill.PublishedRevisionID) + map[bool]string{true: " archived"}[view.Skill.Archived()]
		}
		before := state()
		b.trail.fail = true
		if err := acts[i](); sallyport.CodeOf(err) != sallyport.CodeAuditUnavailable {
			t.Fatalf("%s without a trail: %v", want.action, err)
		}
		if got := state(); got != before {
			t.Errorf("%s changed %q to %q without an entry", want.action, before, got)
		}
		b.trail.fail = false
		if err := acts[i](); err != nil {
			t.Fatal(err)
		}
		entry := b.trail.entries[len(b.trail.entries)-1]
		var detail struct{ Before, After map[string]any }
		if err := json.Unmarshal(entry.Detail, &detail); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{want.action, want.before, want.after}, []any{entry.Action, detail.Before, detail.After}); diff != "" {
			t.Errorf("entry (-want +got):\n%s", diff)
		}
	}
}
