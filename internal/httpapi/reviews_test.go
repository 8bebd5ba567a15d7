package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/registry"
)

// fakeReviews answers as it was told to.
type fakeReviews struct {
	basis    access.Basis
	history  access.GrantHistory
	coverage access.Coverage
}

func (f *fakeReviews) ReviewBasis(context.Context, sallyport.Principal, sallyport.SkillRef, sallyport.RevisionID) (access.Basis, error) {
	return f.basis, nil
}

func (f *fakeReviews) Coverage(context.Context, sallyport.Principal, sallyport.Skill, sallyport.Revision) (access.Coverage, error) {
	return f.coverage, nil
}

func (f *fakeReviews) History(context.Context, sallyport.Principal, sallyport.GrantID) (access.GrantHistory, error) {
	return f.history, nil
}

// A reviewer reads the content, what the rules found in it, and what changed since the last grant, in one answer.
func TestReview(t *testing.T) {
	t.Parallel()
	reviews := &fakeReviews{basis: access.Basis{Skill: sampleSkill(), Revision: sampleRevision()}}
	w := newWorld(t, func(c *httpapi.Config) { c.Reviews = reviews })
	w.skills.revision = func(sallyport.SkillRef, sallyport.RevisionID) (sallyport.Revision, error) {
		return sampleRevision(), nil
	}
	w.skills.findings = func(sallyport.SkillRef, registry.FindingsRequest) (registry.Findings, error) {
		return registry.Findings{SkillID: skillID, Slug: "x", RevisionID: "rev-1", Verdict: registry.ScanDone, Digest: digest}, nil
	}
	review := func() map[string]any {
		t.Helper()
		got := w.call(http.MethodGet, "/v1/skills/x/review", "")
		if got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
		data, _ := got.json(t)["data"].(map[string]any)
		return data
	}
	if data := review(); data["digest"] != string(sampleRevision().Digest) || data["last_grant"] != nil || data["diff"] != nil {
		t.Errorf("a first review: %v", data)
	}
	last := sampleGrant()
	reviews.basis.Last = &last
	w.skills.diff = func(_ sallyport.SkillRef, from, to sallyport.RevisionID) (registry.RevisionDiff, error) {
		if from != last.RevisionID || to != sampleRevision().ID {
			t.Errorf("compared %s with %s", from, to)
		}
		return sampleDiff(), nil
	}
	if data := review(); data["last_grant"] == nil || data["diff"] == nil {
		t.Errorf("a later review: %v", data)
	}
	// What was granted before is gone: the review says so by leaving the comparison out.
	w.skills.diff = func(sallyport.SkillRef, sallyport.RevisionID, sallyport.RevisionID) (registry.RevisionDiff, error) {
		return registry.RevisionDiff{}, sallyport.Errorf("test", sallyport.CodeRevisionNotFound, "gone")
	}
	if data := review(); data["last_grant"] == nil || data["diff"] != nil {
		t.Errorf("a review of what has no predecessor any more: %v", data)
	}
}

func TestGrantHistory(t *testing.T) {
	t.Parallel()
	first := now()
	reviews := &fakeReviews{history: access.GrantHistory{
		Grant: sampleGrant(), Entries: []sallyport.Entry{sampleEntry(1)}, Runs: access.GrantRuns{Count: 2, FirstAt: &first, LastAt: &first},
	}}
	w := newWorld(t, func(c *httpapi.Config) { c.Reviews = reviews })
	got := w.call(http.MethodGet, "/v1/grants/g-1/history", "")
	data, _ := got.json(t)["data"].(map[string]any)
	runs, _ := data["runs"].(map[string]any)
	if entries, _ := data["entries"].([]any); got.status != http.StatusOK || len(entries) != 1 || runs["count"] != 2.0 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
