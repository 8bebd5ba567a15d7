package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.skills.export = func(ref sallyport.SkillRef, id sallyport.RevisionID, format registry.ArchiveFormat) (registry.Export, error) {
		if ref.Slug != "csv-profiler" || ref.TeamID != "ops" || id != "rev-1" || format != "tar.gz" {
			t.Errorf("asked for %+v %s %s", ref, id, format)
		}
		return registry.Export{
			Skill: sampleSkill(), Revision: sampleRevision(), Name: "csv-profiler.tar.gz", MediaType: "application/gzip", Archive: []byte("hello"),
		}, nil
	}
	got := w.call("GET", "/v1/skills/csv-profiler/export?team_id=ops&revision_id=rev-1&format=tar.gz", "")
	if got.status != 200 || string(got.body) != "hello" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/gzip", "Content-Disposition": "attachment; filename=csv-profiler.tar.gz", "Content-Length": "5",
		"Sallyport-Revision-Id": "rev-1", "Sallyport-Revision-Digest": digest, "X-Content-Type-Options": "nosniff",
	} {
		if got := got.header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	w.skills.export = func(sallyport.SkillRef, sallyport.RevisionID, registry.ArchiveFormat) (registry.Export, error) {
		return registry.Export{}, &sallyport.Error{Op: "x", Code: sallyport.CodeRevisionNotFound}
	}
	if code, _ := w.call("GET", "/v1/skills/csv-profiler/export", "").refusal(t); code != "REVISION_NOT_FOUND" {
		t.Errorf("got %s", code)
	}
}

func sampleDiff() registry.RevisionDiff {
	from, to := sampleRevision(), sampleRevision()
	from.Components, to.Components = nil, nil
	side := &registry.FileSide{Kind: sallyport.KindScript, Size: 5, SHA256: sha, Mode: 0o644}
	return registry.RevisionDiff{
		SkillID: skillID, Slug: "csv-profiler", From: &from, To: to, Identical: true,
		Files: []registry.FileDiff{
			{Path: "b", OldPath: "a", Change: registry.ChangeRenamed, Before: side, After: side},
			{Path: "c", Change: registry.ChangeAdded, After: side, Text: "+<&>", TextLeftOut: "x"},
		},
		Frontmatter: []registry.FieldDiff{{
			Name: "metadata.author", Change: registry.ChangeChanged, Before: json.RawMessage(`{"a":[1]}`), After: json.RawMessage(`null`),
		}},
		Settings: []registry.FieldDiff{{Name: "x input_schema", Change: registry.ChangeAdded, After: json.RawMessage(`{"type":"object"}`)}},
		Totals:   registry.DiffTotals{Added: 1, Renamed: 1},
	}
}

// A comparison says which grants do not reach the later revision, to those who may see grants.
func TestDiff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		scopes []sallyport.Scope
		want   []any
	}{
		"may not see grants": {[]sallyport.Scope{sallyport.ScopeMemoryRead}, nil},
		"may see grants":     {[]sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeAuditRead}, []any{"g-other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			who := principal()
			who.Scopes = test.scopes
			w := newWorld(t, func(c *httpapi.Config) {
				c.Auth = fakeAuth(func(*http.Request) (sallyport.Principal, error) { return who, nil })
			})
			w.skills.diff = func(ref sallyport.SkillRef, from, to sallyport.RevisionID) (registry.RevisionDiff, error) {
				if ref.Slug != "csv-profiler" || from != "rev-1" || to != "rev-2" {
					t.Errorf("asked for %+v %s..%s", ref, from, to)
				}
				return sampleDiff(), nil
			}
			covering, other, over := sampleGrant(), sampleGrant(), sampleGrant()
			ended := now()
			other.ID, other.Pin = "g-other", sallyport.DigestOf([]byte("other"))
			over.ID, over.Pin, over.ExpiresAt = "g-over", other.Pin, &ended
			w.access.list = func(ref sallyport.SkillRef) ([]sallyport.Grant, error) {
				if test.want == nil || ref.SkillID != skillID {
					t.Errorf("grants of %+v were read", ref)
				}
				return []sallyport.Grant{covering, other, over}, nil
			}
			got := w.call("GET", "/v1/skills/csv-profiler/diff?from=rev-1&to=rev-2", "")
			data, _ := got.json(t)["data"].(map[string]any)
			var ids []any
			grants, _ := data["grants_not_covering"].([]any)
			for _, g := range grants {
				fields, _ := g.(map[string]any)
				ids = append(ids, fields["id"])
			}
			if diff := cmp.Diff(test.want, ids); got.status != 200 || diff != "" {
				t.Errorf("%d (-want +got):\n%s", got.status, diff)
			}
		})
	}
}
