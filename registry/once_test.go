package registry_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// A save that is sent again with its idempotency key makes nothing new, whatever it was built on.
func TestSaveOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	req := registry.SaveRequest{
		Ref: sallyport.SkillRef{Slug: "alpha"}, CreateOnly: true, IdempotencyKey: "k",
		Files: []registry.File{{Path: "SKILL.md", Content: []byte("---\nname: alpha\ndescription: Does a thing.\n---\nText.\n")}},
	}
	first, err := b.Save(t.Context(), alice, req)
	if err != nil || first.Repeated || !first.Created {
		t.Fatalf("got %+v, %v; want a new skill", first, err)
	}
	again, err := b.Save(t.Context(), alice, req)
	if err != nil || !again.Repeated || !again.Created || again.Revision.ID != first.Revision.ID || b.store.saves != 1 {
		t.Errorf("again: got %+v, %v, %d saves; want the first revision", again, err, b.store.saves)
	}
	other := req
	other.Message = "another request"
	if _, err := b.Save(t.Context(), alice, other); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
		t.Errorf("another request with the key: %v; want INVALID_ARGUMENT", err)
	}
	other.IdempotencyKey = "another"
	if _, err := b.Save(t.Context(), alice, other); sallyport.CodeOf(err) != sallyport.CodeSlugTaken {
		t.Errorf("another key: %v; want SLUG_TAKEN", err)
	}
	// What was refused left no key behind.
	other.CreateOnly = false
	if result, err := b.Save(t.Context(), alice, other); err != nil || !result.Unchanged {
		t.Errorf("after a refusal: %+v, %v; want it done", result, err)
	}
	for _, key := range []string{" ", "a b", "ü", string(make([]byte, 256))} {
		odd := req
		odd.IdempotencyKey = key
		if _, err := b.Save(t.Context(), alice, odd); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("key %q: %v; want INVALID_ARGUMENT", key, err)
		}
	}
}
