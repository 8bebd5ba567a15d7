package mcpapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// A URL is handed on with what goes with it, and its skill is answered as one that was saved.
func TestSaveURL(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.skills.saveURL = func(_ sallyport.Principal, url string, opts registry.ImportOptions) (registry.SaveResult, registry.Source, error) {
		if diff := cmp.Diff([]any{"https://example.com/x.zip", sallyport.TeamID("eng"), true, "from afar"}, []any{url, opts.TeamID, opts.Publish, opts.Message}); diff != "" {
			t.Error(diff)
		}
		return registry.SaveResult{Skill: sallyport.Skill{ID: "s", Slug: "csv", LatestRevisionID: "r"}, Revision: sallyport.Revision{ID: "r", Number: 1, State: sallyport.RevisionDraft, Digest: sallyport.DigestOf(nil)}, Created: true}, registry.Source{}, nil
	}
	r := f.call(t, alice(), "save_cloud_skill", `{"url":"https://example.com/x.zip","components_json":"[]","name":"","team_id":"eng","publish":true,"message":"from afar"}`)
	if r.code() != "" {
		t.Fatalf("got %s", r.code())
	}
	f.skills.saveURL = func(sallyport.Principal, string, registry.ImportOptions) (registry.SaveResult, registry.Source, error) {
		return registry.SaveResult{}, registry.Source{}, sallyport.Errorf("x", sallyport.CodeFeatureDisabled, "off")
	}
	if r := f.call(t, alice(), "save_cloud_skill", `{"url":"https://example.com/x.zip"}`); r.code() != sallyport.CodeFeatureDisabled {
		t.Errorf("switched off: got %s", r.code())
	}
}
