package registry_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestDeleteRevision(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, ids := history(t, b,
		[]registry.File{file("SKILL.md", skillMD("x"))},
		[]registry.File{file("SKILL.md", skillMD("x")), file("a", "2")},
		[]registry.File{file("SKILL.md", skillMD("x")), file("a", "3")},
	)
	reader := alice
	reader.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead}
	for name, test := range map[string]struct {
		who  sallyport.Principal
		id   sallyport.RevisionID
		want sallyport.Code
	}{
		"nothing named":        {alice, "", sallyport.CodeInvalidArgument},
		"unknown":              {alice, "none", sallyport.CodeRevisionNotFound},
		"latest":               {alice, ids[2], sallyport.CodeRevisionConflict},
		"without memory:write": {reader, ids[0], sallyport.CodeAccessDenied},
		"a stranger's":         {principal("eve"), ids[0], sallyport.CodeAccessDenied},
	} {
		_, err := b.DeleteRevision(t.Context(), test.who, ref, test.id)
		if got := sallyport.CodeOf(err); got != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	before := len(b.trail.actions())
	gone, err := b.DeleteRevision(t.Context(), alice, ref, ids[1])
	if err != nil || gone.ID != ids[1] || gone.Number != 2 {
		t.Fatalf("%+v %v", gone, err)
	}
	if actions := b.trail.actions(); len(actions) != before+1 || actions[before] != "revision.delete x" {
		t.Errorf("the trail says %v", actions)
	}
	_, err = b.Revision(t.Context(), alice, ref, ids[1])
	wantCode(t, err, sallyport.CodeRevisionNotFound)
	for _, id := range []sallyport.RevisionID{ids[0], ids[2]} {
		if _, err := b.Revision(t.Context(), alice, ref, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}
