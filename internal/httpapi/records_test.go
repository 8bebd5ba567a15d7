package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestDeleteSkill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.skills.erase = func(ref sallyport.SkillRef) (sallyport.Skill, error) {
		if ref.Slug != "csv-profiler" || ref.TeamID != "default" {
			t.Errorf("got %+v", ref)
		}
		return sampleSkill(), nil
	}
	got := w.call(http.MethodDelete, "/v1/skills/csv-profiler?team_id=default", "")
	data, _ := got.json(t)["data"].(map[string]any)
	skill, _ := data["skill"].(map[string]any)
	if got.status != http.StatusOK || skill["deleted_at"] == nil {
		t.Errorf("%d %s", got.status, got.body)
	}
	if code, _ := w.call(http.MethodDelete, "/v1/skills/csv-profiler", `{"purge":true}`).refusal(t); code != "INVALID_ARGUMENT" {
		t.Errorf("a body: %s", code)
	}
	w.skills.erase = func(sallyport.SkillRef) (sallyport.Skill, error) {
		return sallyport.Skill{}, &sallyport.Error{Op: "x", Code: sallyport.CodeSkillNotFound}
	}
	if code, _ := w.call(http.MethodDelete, "/v1/skills/none", "").refusal(t); code != "SKILL_NOT_FOUND" {
		t.Errorf("an unknown one: %s", code)
	}
}

func TestPurgeSkill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dry := false
	w.skills.purge = func(_ sallyport.SkillRef, dryRun bool) (registry.PurgeReport, error) {
		dry = dryRun
		return registry.PurgeReport{
			Skill: sampleSkill(), DryRun: dryRun, Bytes: 7, Removed: []registry.PurgedRevision{{RevisionID: "rev-1", Number: 1, Digest: digest}},
			Kept: []registry.RetainedRevision{{RevisionID: "rev-2", Number: 2, Digest: digest, Grants: 1, Executions: 2, Reason: "named"}},
		}, nil
	}
	for body, want := range map[string]bool{"": false, `{"dry_run":true}`: true, `{"dry_run":false}`: false} {
		if got := w.call(http.MethodPost, "/v1/skills/csv-profiler/purge", body); got.status != http.StatusOK || dry != want {
			t.Errorf("%s: %d, dry run: %v", body, got.status, dry)
		}
	}
	w.skills.purge = func(sallyport.SkillRef, bool) (registry.PurgeReport, error) {
		return registry.PurgeReport{}, sallyport.Errorf("x", sallyport.CodeRevisionConflict, "in use")
	}
	if got := w.call(http.MethodPost, "/v1/skills/csv-profiler/purge", ""); got.status != http.StatusConflict {
		t.Errorf("in use: %d", got.status)
	}
	w.skills.purge = func(sallyport.SkillRef, bool) (registry.PurgeReport, error) {
		return registry.PurgeReport{Skill: sampleSkill()}, nil
	}
	if got := w.call(http.MethodPost, "/v1/skills/csv-profiler/purge", ""); got.status != http.StatusOK {
		t.Errorf("nothing: %d %s", got.status, got.body)
	}
}

func TestPurgeExecutions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.records.purge = func(req records.PurgeRequest) (records.PurgeResult, error) {
		if !req.Before.Equal(at("2026-01-31T12:00:00Z")) || !req.DryRun {
			t.Errorf("got %+v", req)
		}
		return records.PurgeResult{Before: req.Before, DryRun: true, Removed: records.Counts{Executions: 3, Artifacts: 2, ArtifactBytes: 1}}, nil
	}
	if got := w.call(http.MethodPost, "/v1/executions/purge", `{"before":"2026-01-31T13:00:00+01:00","dry_run":true}`); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, body := range []string{"", `{"before":"yesterday"}`, `{"before":"2026-01-31T13:00:00Z","all":true}`} {
		if code, _ := w.call(http.MethodPost, "/v1/executions/purge", body).refusal(t); code != "INVALID_ARGUMENT" {
			t.Errorf("%s: %s", body, code)
		}
	}
}

func TestToolCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.audit.calls = func(f audit.CallFilter) ([]audit.ToolCall, error) {
		want := audit.CallFilter{
			Tool: "execute_cloud_skill", PrincipalID: "alice", Code: "GRANT_MISSING", ExecutionID: "e-1", Since: at("2026-01-01T00:00:00Z"),
			Until: at("2026-02-01T00:00:00Z"), Below: 9, Limit: 1,
		}
		if f != want {
			t.Errorf("got %+v", f)
		}
		return []audit.ToolCall{{
			Sequence: 8, At: now(), RequestID: "r", PrincipalID: "alice", Tool: "execute_cloud_skill", Arguments: json.RawMessage(`{"slug":"x"}`),
			Code: "GRANT_MISSING", DurationMS: 3, ExecutionID: "e-1", TraceID: "t",
		}}, nil
	}
	got := w.call(http.MethodGet, "/v1/tool-calls?tool=execute_cloud_skill&principal_id=alice&code=GRANT_MISSING&execution_id=e-1"+
		"&since=2026-01-01T00:00:00Z&until=2026-02-01T00:00:00Z&below=9&limit=1", "")
	data, _ := got.json(t)["data"].(map[string]any)
	if got.status != http.StatusOK || data["next_below"] != float64(8) {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.audit.calls = func(audit.CallFilter) ([]audit.ToolCall, error) { return nil, nil }
	if got := w.call(http.MethodGet, "/v1/tool-calls", ""); got.status != http.StatusOK {
		t.Errorf("none: %d", got.status)
	}
	for _, query := range []string{"below=0", "limit=1001", "since=now", "after=1"} {
		if code, _ := w.call(http.MethodGet, "/v1/tool-calls?"+query, "").refusal(t); code != "INVALID_ARGUMENT" {
			t.Errorf("%s: %s", query, code)
		}
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	var asked []bool
	backup := func(ctx context.Context, keys bool) (func(context.Context, io.Writer) error, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		asked = append(asked, keys)
		return func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, "bytes")
			return err
		}, nil
	}
	w := newWorld(t, func(c *httpapi.Config) { c.Backup = backup })
	for _, query := range []string{"", "?keys=true"} {
		got := w.call(http.MethodGet, "/v1/backup"+query, "")
		if got.status != http.StatusOK || string(got.body) != "bytes" || got.header.Get("Content-Type") != "application/vnd.sallyport.backup" {
			t.Errorf("%d %s %v", got.status, got.body, got.header)
		}
	}
	if len(asked) != 2 || asked[0] || !asked[1] {
		t.Errorf("keys were asked for: %v", asked)
	}
	if code, _ := w.call(http.MethodGet, "/v1/backup?keys=perhaps", "").refusal(t); code != "INVALID_ARGUMENT" {
		t.Errorf("got %s", code)
	}
	// The network has none, and nobody without the scope gets one.
	if code, message := newWorld(t).call(http.MethodGet, "/v1/backup", "").refusal(t); code != "ACCESS_DENIED" || message == "" {
		t.Errorf("over the network: %s", code)
	}
	poor := newWorld(t, func(c *httpapi.Config) {
		c.Backup = backup
		c.Auth = fakeAuth(func(*http.Request) (sallyport.Principal, error) {
			p := principal()
			p.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeAuditRead}
			return p, nil
		})
	})
	if code, _ := poor.call(http.MethodGet, "/v1/backup", "").refusal(t); code != "ACCESS_DENIED" || len(asked) != 2 {
		t.Errorf("without the scope: %s, asked %d times", code, len(asked))
	}
}

// A backup that breaks half-way does not end like a whole one.
func TestBrokenBackupIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpapi.Config) {
		c.Backup = func(context.Context, bool) (func(context.Context, io.Writer) error, error) {
			return func(_ context.Context, w io.Writer) error {
				_, _ = io.WriteString(w, "half")
				return errors.New("the disk is gone")
			}, nil
		}
	})
	server := httptest.NewServer(w.handler)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/backup", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		return // cut before the first byte came
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("it ended in peace: %q", body)
	}
}
