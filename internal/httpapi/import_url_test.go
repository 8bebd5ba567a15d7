package httpapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestImportURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.skills.importURL = func(url string, opts registry.ImportOptions) (registry.ImportReport, registry.Source, error) {
		want := registry.ImportOptions{TeamID: "ops", Publish: true, DryRun: true, Message: "m"}
		if diff := cmp.Diff(want, opts); url != "https://x.dev/a.zip" || diff != "" {
			t.Errorf("%s\n%s", url, diff)
		}
		return registry.ImportReport{}, registry.Source{URL: "https://y.dev/a.zip", SizeBytes: 5, Digest: digest}, nil
	}
	got := w.call("POST", "/v1/import/url", `{"url": "https://x.dev/a.zip", "team_id": "ops", "publish": true, "dry_run": true, "message": "m"}`)
	data, _ := got.json(t)["data"].(map[string]any)
	source, _ := data["source"].(map[string]any)
	if got.status != 200 || source["url"] != "https://y.dev/a.zip" || source["digest"] != digest {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.skills.importURL = nil
	for _, body := range []string{`{}`, `{"url": ""}`, `{"url": 1}`, `{"url": "https://x.dev", "more": 1}`} {
		if code, _ := w.call("POST", "/v1/import/url", body).refusal(t); code != "INVALID_ARGUMENT" {
			t.Errorf("%s: got %s", body, code)
		}
	}
	w.skills.importURL = func(string, registry.ImportOptions) (registry.ImportReport, registry.Source, error) {
		return registry.ImportReport{}, registry.Source{}, sallyport.Errorf("x", sallyport.CodeFeatureDisabled, "off")
	}
	if got := w.call("POST", "/v1/import/url", `{"url": "https://x.dev"}`); got.status != 403 {
		t.Errorf("switched off: %d %s", got.status, got.body)
	}
}
