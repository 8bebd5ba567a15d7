package httpapi_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport"
)

func TestDeleteRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.skills.remove = func(ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
		if ref.Slug != "x" || ref.TeamID != "ops" || id != "rev-1" {
			t.Errorf("got %+v %s", ref, id)
		}
		return sampleRevision(), nil
	}
	got := w.call("DELETE", "/v1/skills/x/revisions/rev-1?team_id=ops", "")
	data, _ := got.json(t)["data"].(map[string]any)
	if got.status != 200 || data["revision_id"] != "rev-1" || data["digest"] != digest {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.skills.remove = func(sallyport.SkillRef, sallyport.RevisionID) (sallyport.Revision, error) {
		return sallyport.Revision{}, sallyport.Errorf("x", sallyport.CodeRevisionConflict, "it stays")
	}
	got = w.call("DELETE", "/v1/skills/x/revisions/rev-1", "")
	if code, message := got.refusal(t); got.status != 409 || code != "REVISION_CONFLICT" || message != "it stays" {
		t.Errorf("%d %s %s", got.status, code, message)
	}
	// What a route does not do it says, and what it does.
	got = w.call("PUT", "/v1/skills/x", "")
	if code, _ := got.refusal(t); got.status != 405 || code != "ROUTE_NOT_FOUND" || got.header.Get("Allow") == "" {
		t.Errorf("putting a skill: %d %s, allow %q", got.status, code, got.header.Get("Allow"))
	}
}
