package httpapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got registry.FindingsRequest
	w.skills.findings = func(_ sallyport.SkillRef, req registry.FindingsRequest) (registry.Findings, error) {
		got = req
		return registry.Findings{
			SkillID: skillID, Slug: "x", RevisionID: "rev-1", Digest: digest, RuleSet: registry.FindingRuleSet, Verdict: registry.ScanImpossible,
			Findings:   []registry.Finding{{Rule: "SECRET", File: "a", Line: 3, Severity: "error", Message: "m"}, {Rule: "LONG_LINE", File: "b", Severity: "note", Message: "m"}},
			Unscanned:  []registry.Unscanned{{File: "c", Reason: "r"}},
			Exclusions: []registry.Exclusion{{Pattern: "tests/", Findings: 2}},
			Totals:     registry.FindingTotals{Files: 3, Errors: 1, Notes: 1, Excluded: 2},
		}, nil
	}
	answer := w.call("GET", "/v1/skills/x/findings?revision_id=rev-1&exclude=tests/,docs/*.md", "")
	if diff := cmp.Diff(registry.FindingsRequest{RevisionID: "rev-1", Exclude: []string{"tests/", "docs/*.md"}}, got); answer.status != 200 || diff != "" {
		t.Errorf("%d %s\n%s", answer.status, answer.body, diff)
	}
	w.skills.findings = func(sallyport.SkillRef, registry.FindingsRequest) (registry.Findings, error) {
		return registry.Findings{SkillID: skillID, Slug: "x", RevisionID: "rev-1", Verdict: registry.ScanDone, Digest: digest}, nil
	}
	data, _ := w.call("GET", "/v1/skills/x/findings", "").json(t)["data"].(map[string]any)
	for _, name := range []string{"findings", "unscanned", "exclusions"} {
		if items, isList := data[name].([]any); !isList || len(items) != 0 {
			t.Errorf("%s: got %v, want []", name, data[name])
		}
	}
}

func TestPublishOverride(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	view := registry.SkillView{Skill: sampleSkill()}
	w.skills.override = func(ref sallyport.SkillRef, id sallyport.RevisionID, reason string) (registry.SkillView, error) {
		if ref.Slug != "x" || id != "rev-1" || reason != "read by hand" {
			t.Errorf("got %+v %s %q", ref, id, reason)
		}
		return view, nil
	}
	if got := w.call("POST", "/v1/skills/x/publish", `{"revision_id": "rev-1", "override": "read by hand"}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.skills.override = nil
	w.skills.publish = func(sallyport.SkillRef, sallyport.RevisionID) (registry.SkillView, error) { return view, nil }
	if got := w.call("POST", "/v1/skills/x/publish", `{"override": ""}`); got.status != 200 {
		t.Errorf("an empty override counts as absent: %d %s", got.status, got.body)
	}
}
