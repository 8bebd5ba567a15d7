package httpapi_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
)

func TestGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var issued access.IssueRequest
	w.access.issue = func(req access.IssueRequest) (sallyport.Grant, error) {
		issued = req
		return sampleGrant(), nil
	}
	got := w.call(http.MethodPost, "/v1/grants", `{"slug":"x","skill_id":"`+skillID+`","team_id":"ops","script_path":"a.py",
		"revision_id":"rev-1","expected_digest":"SHA256:2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824",
		"expires_at":"2027-01-01T01:00:00+01:00"}`)
	if got.status != http.StatusCreated {
		t.Fatalf("%d %s", got.status, got.body)
	}
	expires := at("2027-01-01T00:00:00Z")
	want := access.IssueRequest{
		Ref: sallyport.SkillRef{SkillID: skillID, Slug: "x", TeamID: "ops"}, ScriptPath: "a.py", RevisionID: "rev-1",
		ExpectedDigest: digest, ExpiresAt: &expires,
	}
	if diff := cmp.Diff(want, issued); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	w.access.list = func(ref sallyport.SkillRef) ([]sallyport.Grant, error) {
		if ref != (sallyport.SkillRef{Slug: "x"}) {
			t.Errorf("got %+v", ref)
		}
		expired, revoked := sampleGrant(), sampleGrant()
		past := now()
		expired.ExpiresAt, revoked.RevokedAt, revoked.RevokedBy = &past, &past, "bob"
		return []sallyport.Grant{sampleGrant(), expired, revoked}, nil
	}
	data, _ := w.call(http.MethodGet, "/v1/grants?slug=x", "").json(t)["data"].(map[string]any)
	var states []any
	grants, _ := data["grants"].([]any)
	for _, g := range grants {
		one, _ := g.(map[string]any)
		states = append(states, one["state"])
	}
	if diff := cmp.Diff([]any{"active", "expired", "revoked"}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	w.access.revoke = func(id sallyport.GrantID) (sallyport.Grant, error) {
		g := sampleGrant()
		g.ID = id
		return g, nil
	}
	if got := w.call(http.MethodPost, "/v1/grants/g-7/revoke", ""); !bytes.Contains(got.body, []byte(`"g-7"`)) {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.access.list = func(sallyport.SkillRef) ([]sallyport.Grant, error) { return nil, nil }
	if got := w.call(http.MethodGet, "/v1/grants", ""); !bytes.Contains(got.body, []byte(`"grants":[]`)) {
		t.Errorf("none: %s", got.body)
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var filter audit.Filter
	entries := []sallyport.Entry{sampleEntry(7), sampleEntry(8)}
	w.audit.list = func(f audit.Filter) ([]sallyport.Entry, error) {
		filter = f
		return entries, nil
	}
	next := func(target string) any {
		t.Helper()
		got := w.call(http.MethodGet, target, "")
		data, _ := got.json(t)["data"].(map[string]any)
		if got.status != http.StatusOK {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
		return data["next_after"]
	}
	if got := next("/v1/audit?actor=ada&action=script.run&entity=x&execution_id=e-1&since=2026-01-01T00:00:00Z&until=2026-01-02T01:00:00%2B01:00&after=6&limit=2&newest_first=true"); got != 8.0 {
		t.Errorf("next_after %v", got)
	}
	want := audit.Filter{
		Actor: "ada", Action: sallyport.ActionScriptRun, Entity: "x", ExecutionID: "e-1", Since: at("2026-01-01T00:00:00Z"),
		Until: at("2026-01-02T00:00:00Z"), After: 6, NewestFirst: true, Limit: 2,
	}
	if diff := cmp.Diff(want, filter); diff != "" {
		t.Errorf("filter (-want +got):\n%s", diff)
	}
	if got := next("/v1/audit"); got != nil || filter.Limit != 100 {
		t.Errorf("last page: next_after %v, limit %d", got, filter.Limit)
	}
	entries = []sallyport.Entry{sampleEntry(1)}
	if got := next("/v1/audit?limit=1"); got != 1.0 {
		t.Errorf("first entry, oldest first: next_after %v", got)
	}
	if got := next("/v1/audit?limit=1&newest_first=true"); got != nil {
		t.Errorf("first entry, newest first: next_after %v", got)
	}
	w.audit.pruned = &audit.Checkpoint{TenantID: "acme", Count: 3, Head: digest, At: now(), PublicKey: "cA==", Pruned: true, Signature: "cw=="}
	if got := w.call(http.MethodGet, "/v1/audit", ""); !bytes.Contains(got.body, []byte(`"pruned":{"tenant_id":"acme","count":3,`)) {
		t.Errorf("pruned: %s", got.body)
	}
	entries = nil
	if got := w.call(http.MethodGet, "/v1/audit", ""); !bytes.Contains(got.body, []byte(`"entries":[]`)) {
		t.Errorf("none: %s", got.body)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var outside []audit.Checkpoint
	w.audit.verify = func(given []audit.Checkpoint) (audit.Verdict, error) {
		outside = given
		return audit.Verdict{Result: "gap", Checked: 3, Sequence: 4, Message: "m", Tail: "proven", CheckpointCount: 3, PrunedThrough: 2}, nil
	}
	if got := w.call(http.MethodGet, "/v1/audit/verify", ""); got.status != http.StatusOK || outside != nil {
		t.Errorf("%d %s, checkpoints %v", got.status, got.body, outside)
	}
	got := w.call(http.MethodPost, "/v1/audit/verify", `{"checkpoints":[{"tenant_id":"acme","count":3,"head":"`+digest+
		`","at":"2026-11-30T12:00:00.000001Z","public_key":"cA==","signature":"cw=="}]}`)
	want := []audit.Checkpoint{{
		TenantID: "acme", Count: 3, Head: digest, At: now().Add(time.Microsecond), PublicKey: "cA==", Signature: "cw==",
	}}
	if diff := cmp.Diff(want, outside); diff != "" || got.status != http.StatusOK {
		t.Errorf("%d (-want +got):\n%s", got.status, diff)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asked access.KeyRequest
	w.access.createKey = func(req access.KeyRequest) (access.NewKey, error) {
		asked = req
		return access.NewKey{Key: sampleKey(), Secret: "spk_secret"}, nil
	}
	got := w.call(http.MethodPost, "/v1/keys", `{"name":"ci","scopes":["memory:read","grants:write"],"teams":["ops"],"expires_at":"2027-01-01T00:00:00Z"}`)
	data, _ := got.json(t)["data"].(map[string]any)
	if got.status != http.StatusCreated || data["secret"] != "spk_secret" {
		t.Errorf("%d %s", got.status, got.body)
	}
	expires := at("2027-01-01T00:00:00Z")
	want := access.KeyRequest{
		Name: "ci", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeGrantsWrite},
		Teams: []sallyport.TeamID{"ops"}, ExpiresAt: &expires,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	w.access.keys = func() ([]sallyport.Key, error) {
		bare := sampleKey()
		bare.Scopes, bare.Teams = nil, nil
		return []sallyport.Key{sampleKey(), bare}, nil
	}
	if got := w.call(http.MethodGet, "/v1/keys", ""); got.status != http.StatusOK || bytes.Contains(got.body, []byte("null,")) == false {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.access.revokeKey = func(id sallyport.KeyID) error {
		if id == "k-1" {
			return nil
		}
		return &sallyport.Error{Op: "x", Code: sallyport.CodeKeyNotFound}
	}
	if got := w.call(http.MethodPost, "/v1/keys/k-1/revoke", ""); got.status != http.StatusOK || got.json(t)["kind"] != "key_revocation" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.call(http.MethodPost, "/v1/keys/k-2/revoke", `{}`); got.status != http.StatusNotFound {
		t.Errorf("unknown: %d", got.status)
	}
}
