package access_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

func TestIssue(t *testing.T) {
	t.Parallel()
	w, service := newWorld()
	expires := w.now.Add(time.Hour)
	got, err := service.Issue(t.Context(), admin(), access.IssueRequest{
		Ref: sallyport.SkillRef{Slug: "csv"}, ScriptPath: "scripts/a.py",
		ExpectedDigest: sallyport.Digest(strings.ToUpper(string(pinOne))), ExpiresAt: &expires,
	})
	if err != nil {
		t.Fatal(err)
	}
	now, end := w.now.Truncate(time.Microsecond), expires.Truncate(time.Microsecond)
	want := sallyport.Grant{
		ID: got.ID, TenantID: tenant, SkillID: "s1", Slug: "csv", ScriptPath: "scripts/a.py", Pin: pinOne, RevisionID: "r1",
		IssuedBy: "root", IssuedAt: now, ExpiresAt: &end,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.ID == "" {
		t.Errorf("grant (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"append", "add grant"}, w.steps); diff != "" {
		t.Errorf("order of writes (-want +got):\n%s", diff)
	}
	entry := w.entries[0]
	if entry.Action != sallyport.ActionGrantIssue || entry.Entity != "csv/scripts/a.py" || entry.Actor != "root" ||
		entry.TenantID != tenant || !entry.At.Equal(now) {
		t.Errorf("entry: got %+v", entry)
	}
	var detail map[string]any
	if err := json.Unmarshal(entry.Detail, &detail); err != nil {
		t.Fatal(err)
	}
	wantDetail := map[string]any{
		"grant_id": string(got.ID), "skill_id": "s1", "slug": "csv", "script_path": "scripts/a.py", "pin": string(pinOne),
		"revision_id": "r1", "expires_at": end.Format(time.RFC3339Nano),
		"before": nil, "after": map[string]any{"state": "active"},
	}
	if diff := cmp.Diff(wantDetail, detail); diff != "" {
		t.Errorf("detail (-want +got):\n%s", diff)
	}
}

func TestIssueRefuses(t *testing.T) {
	t.Parallel()
	ok := func() access.IssueRequest {
		return access.IssueRequest{Ref: sallyport.SkillRef{Slug: "csv"}, ExpectedDigest: pinOne}
	}
	for name, test := range map[string]struct {
		principal func(*sallyport.Principal)
		request   func(*access.IssueRequest, time.Time)
		code      sallyport.Code
		message   string
	}{
		"no scope": {
			principal: func(p *sallyport.Principal) { *p = without(*p, sallyport.ScopeGrantsWrite) },
			code:      sallyport.CodeAccessDenied, message: "grants:write",
		},
		"nobody": {
			principal: func(p *sallyport.Principal) { *p = sallyport.Principal{} },
			code:      sallyport.CodeAccessDenied,
		},
		"no digest": {
			request: func(r *access.IssueRequest, _ time.Time) { r.ExpectedDigest = "" },
			code:    sallyport.CodeInvalidArgument, message: "expected_digest",
		},
		"short digest": {
			request: func(r *access.IssueRequest, _ time.Time) { r.ExpectedDigest = pinOne[:70] },
			code:    sallyport.CodeInvalidArgument, message: "64 hex digits",
		},
		"long digest": {
			request: func(r *access.IssueRequest, _ time.Time) { r.ExpectedDigest = pinOne + "1" },
			code:    sallyport.CodeInvalidArgument,
		},
		"blank in digest": {
			request: func(r *access.IssueRequest, _ time.Time) { r.ExpectedDigest = pinOne + " " },
			code:    sallyport.CodeInvalidArgument,
		},
		"expiry now": {
			request: func(r *access.IssueRequest, now time.Time) { r.ExpiresAt = &now },
			code:    sallyport.CodeInvalidArgument, message: "not in the future",
		},
		"expiry past": {
			request: func(r *access.IssueRequest, now time.Time) { past := now.Add(-time.Hour); r.ExpiresAt = &past },
			code:    sallyport.CodeInvalidArgument,
		},
		"unknown skill": {
			request: func(r *access.IssueRequest, _ time.Time) { r.Ref.Slug = "nope" },
			code:    sallyport.CodeSkillNotFound,
		},
		"skill of another team": {
			request: func(r *access.IssueRequest, _ time.Time) { r.Ref.Slug = "hidden" },
			code:    sallyport.CodeAccessDenied,
		},
		"skill of another tenant": {
			request: func(r *access.IssueRequest, _ time.Time) { r.Ref.Slug = "theirs" },
			code:    sallyport.CodeAccessDenied,
		},
		"archived": {
			request: func(r *access.IssueRequest, _ time.Time) { r.Ref.Slug = "old" },
			code:    sallyport.CodeSkillArchived,
		},
		"nothing published": {
			request: func(r *access.IssueRequest, _ time.Time) { r.Ref.Slug = "draft" },
			code:    sallyport.CodeInvalidArgument, message: "sallyport skill publish draft",
		},
		"unknown revision": {
			request: func(r *access.IssueRequest, _ time.Time) { r.RevisionID = "r9" },
			code:    sallyport.CodeRevisionNotFound,
		},
		"revision of another skill": {
			request: func(r *access.IssueRequest, _ time.Time) { r.RevisionID = "r3" },
			code:    sallyport.CodeRevisionNotFound,
		},
		"unknown script": {
			request: func(r *access.IssueRequest, _ time.Time) { r.ScriptPath = "scripts/c.py" },
			code:    sallyport.CodeScriptNotFound, message: "scripts/a.py, scripts/b.sh",
		},
		"not a script": {
			request: func(r *access.IssueRequest, _ time.Time) { r.ScriptPath = "SKILL.md" },
			code:    sallyport.CodeInvalidComponentType, message: "document",
		},
		"unsafe script": {
			request: func(r *access.IssueRequest, _ time.Time) { r.ScriptPath = "../a.py" },
			code:    sallyport.CodeUnsafePath,
		},
		"another digest": {
			request: func(r *access.IssueRequest, _ time.Time) { r.ExpectedDigest = pinTwo },
			code:    sallyport.CodeGrantConflict, message: "review the revision again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, service := newWorld()
			p, req := admin(), ok()
			if test.principal != nil {
				test.principal(&p)
			}
			if test.request != nil {
				test.request(&req, w.now)
			}
			_, err := service.Issue(t.Context(), p, req)
			message := refusedWith(t, err, test.code)
			if !strings.Contains(message, test.message) {
				t.Errorf("message: got %q, want it to contain %q", message, test.message)
			}
			if len(w.steps) != 0 {
				t.Errorf("a refusal wrote %q", w.steps)
			}
			if public, _ := json.Marshal(sallyport.Public(err)); strings.Contains(string(public), pinOne.Hex()) {
				t.Errorf("the refusal reveals the current digest: %s", public)
			}
		})
	}
}

func TestIssueNamesARevisionThatIsNotPublished(t *testing.T) {
	t.Parallel()
	_, service := newWorld()
	grant, err := service.Issue(t.Context(), admin(), access.IssueRequest{
		Ref: sallyport.SkillRef{Slug: "csv"}, RevisionID: "r2", ExpectedDigest: pinTwo, ScriptPath: "id of scripts/b.sh",
	})
	if err != nil || grant.Pin != pinTwo || grant.RevisionID != "r2" || grant.ScriptPath != "scripts/b.sh" {
		t.Errorf("got %+v, %v", grant, err)
	}
}

// Grants for two revisions are active side by side, so that a rollback runs at once.
func TestGrantsCoexist(t *testing.T) {
	t.Parallel()
	w, service := newWorld()
	for _, req := range []access.IssueRequest{
		{Ref: sallyport.SkillRef{Slug: "csv"}, ExpectedDigest: pinOne},
		{Ref: sallyport.SkillRef{Slug: "csv"}, ExpectedDigest: pinTwo, RevisionID: "r2"},
		{Ref: sallyport.SkillRef{Slug: "csv"}, ExpectedDigest: pinOne},
	} {
		if _, err := service.Issue(t.Context(), admin(), req); err != nil {
			t.Fatal(err)
		}
	}
	grants, err := service.List(t.Context(), admin(), sallyport.SkillRef{Slug: "csv"})
	if err != nil || len(grants) != 3 {
		t.Fatalf("got %d grants, %v; want 3", len(grants), err)
	}
	for _, grant := range grants {
		if state := grant.State(w.now); state != sallyport.GrantActive {
			t.Errorf("state: got %s, want active", state)
		}
	}
}

func TestAuditComesFirst(t *testing.T) {
	t.Parallel()
	t.Run("a trail that fails leaves no grant", func(t *testing.T) {
		t.Parallel()
		w, service := newWorld()
		w.faults["append"] = errDisk
		_, err := service.Issue(t.Context(), admin(), access.IssueRequest{Ref: sallyport.SkillRef{Slug: "csv"}, ExpectedDigest: pinOne})
		if message := refusedWith(t, err, sallyport.CodeAuditUnavailable); strings.Contains(message, "disk") {
			t.Errorf("the cause shows: %q", message)
		}
		if len(w.grants) != 0 || len(w.steps) != 0 {
			t.Errorf("got %d grants after %q", len(w.grants), w.steps)
		}
	})
	t.Run("a store that fails leaves an entry and no grant", func(t *testing.T) {
		t.Parallel()
		w, service := newWorld()
		w.faults["add grant"] = &sallyport.Error{Op: "fake", Code: sallyport.CodeStoreUnavailable, Err: errDisk}
		_, err := service.Issue(t.Context(), admin(), access.IssueRequest{Ref: sallyport.SkillRef{Slug: "csv"}, ExpectedDigest: pinOne})
		refusedWith(t, err, sallyport.CodeStoreUnavailable)
		if len(w.grants) != 0 || len(w.entries) != 1 {
			t.Errorf("got %d grants and %d entries, want 0 and 1", len(w.grants), len(w.entries))
		}
	})
	t.Run("a trail that fails keeps the grant active", func(t *testing.T) {
		t.Parallel()
		w, service := newWorld()
		grant := issued(t, service)
		w.faults["append"] = errDisk
		_, err := service.Revoke(t.Context(), admin(), grant.ID)
		refusedWith(t, err, sallyport.CodeAuditUnavailable)
		if w.grants[0].RevokedAt != nil {
			t.Error("the grant was revoked without an entry")
		}
	})
	t.Run("a store that fails keeps the grant active", func(t *testing.T) {
		t.Parallel()
		w, service := newWorld()
		grant := issued(t, service)
		w.faults["revoke grant"] = &sallyport.Error{Op: "fake", Code: sallyport.CodeStoreUnavailable}
		_, err := service.Revoke(t.Context(), admin(), grant.ID)
		refusedWith(t, err, sallyport.CodeStoreUnavailable)
		if w.grants[0].RevokedAt != nil || len(w.entries) != 2 {
			t.Errorf("got revoked at %v and %d entries", w.grants[0].RevokedAt, len(w.entries))
		}
	})
}

func issued(tb testing.TB, service *access.Service) sallyport.Grant {
	tb.Helper()
	grant, err := service.Issue(tb.Context(), admin(), access.IssueRequest{Ref: sallyport.SkillRef{Slug: "csv"}, ExpectedDigest: pinOne})
	if err != nil {
		tb.Fatal(err)
	}
	return grant
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	w, service := newWorld()
	grant := issued(t, service)
	w.now = w.now.Add(time.Minute)

	rival := admin()
	rival.TenantID = "rival"
	_, err := service.Revoke(t.Context(), rival, grant.ID)
	refusedWith(t, err, sallyport.CodeGrantNotFound)
	_, err = service.Revoke(t.Context(), without(admin(), sallyport.ScopeGrantsWrite), grant.ID)
	refusedWith(t, err, sallyport.CodeAccessDenied)

	got, err := service.Revoke(t.Context(), admin(), grant.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.State(w.now) != sallyport.GrantRevoked || got.RevokedBy != "root" || !got.RevokedAt.Equal(w.now.Truncate(time.Microsecond)) {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"append", "add grant", "append", "revoke grant"}, w.steps); diff != "" {
		t.Errorf("order of writes (-want +got):\n%s", diff)
	}
	if last := w.entries[1]; last.Action != sallyport.ActionGrantRevoke || last.Entity != "csv" {
		t.Errorf("entry: got %+v", last)
	}

	_, err = service.Revoke(t.Context(), admin(), grant.ID)
	if message := refusedWith(t, err, sallyport.CodeGrantNotFound); !strings.Contains(message, "already") {
		t.Errorf("message: got %q", message)
	}
	if len(w.entries) != 2 {
		t.Errorf("a second revoke wrote an entry")
	}
	grants, err := service.List(t.Context(), admin(), sallyport.SkillRef{})
	if err != nil || len(grants) != 1 {
		t.Errorf("a revoked grant must stay listed: got %d, %v", len(grants), err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	_, service := newWorld()
	issued(t, service)
	for name, test := range map[string]struct {
		p    sallyport.Principal
		ref  sallyport.SkillRef
		code sallyport.Code
		want int
	}{
		"granter":       {p: without(admin(), sallyport.ScopeAuditRead), want: 1},
		"auditor":       {p: without(admin(), sallyport.ScopeGrantsWrite), want: 1},
		"neither":       {p: without(admin(), sallyport.ScopeGrantsWrite, sallyport.ScopeAuditRead), code: sallyport.CodeAccessDenied},
		"other skill":   {p: admin(), ref: sallyport.SkillRef{Slug: "draft"}, want: 0},
		"unknown skill": {p: admin(), ref: sallyport.SkillRef{Slug: "nope"}, code: sallyport.CodeSkillNotFound},
		"other tenant": {
			p:    sallyport.Principal{ID: "x", TenantID: "rival", Scopes: sallyport.Scopes()},
			want: 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := service.List(t.Context(), test.p, test.ref)
			if code := sallyport.CodeOf(err); code != test.code || len(got) != test.want {
				t.Errorf("got %d grants and code %q, want %d and %q", len(got), code, test.want, test.code)
			}
		})
	}
}
