package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/server"
)

// quotaServer returns a server with one granted script, and what sends requests with a key.
func quotaServer(t *testing.T, quotas server.Quotas) (s *server.Server, ask func(method, path, secret, body string) *httptest.ResponseRecorder) {
	t.Helper()
	s, err := server.New(t.Context(), server.Config{
		DataDir: t.TempDir(), Executor: &keeper{}, ScriptsEnabled: true, RequiredLayers: []sallyport.Layer{}, Quotas: quotas,
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	saved, err := s.Registry().Save(t.Context(), server.Operator(), registry.SaveRequest{Publish: true, Files: []registry.File{
		{Path: "SKILL.md", Content: []byte("---\nname: greet\ndescription: d\n---\n")},
		{Path: "scripts/run.sh", Content: []byte("echo hello\n")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Access().Issue(t.Context(), server.Operator(), access.IssueRequest{
		Ref: sallyport.SkillRef{Slug: "greet"}, ScriptPath: "scripts/run.sh", ExpectedDigest: saved.Revision.Digest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, func(method, path, secret, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://sallyport.example.org"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		r.Header.Set("Authorization", "Bearer "+secret)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w
	}
}

func mint(t *testing.T, s *server.Server, name string) string {
	t.Helper()
	key, err := s.Access().CreateKey(t.Context(), server.Operator(), access.KeyRequest{
		Name: name, Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite},
	})
	if err != nil {
		t.Fatal(err)
	}
	return key.Secret
}

// A quota of runs is 429 with Retry-After over HTTP and an envelope with the wait over MCP.
func TestRunQuotaOnBothSurfaces(t *testing.T) {
	t.Parallel()
	s, ask := quotaServer(t, server.Quotas{Tenant: server.Quota{RunsPerMinute: 1}})
	secret := mint(t, s, "agent")
	const run = `{"script_path":"scripts/run.sh"}`
	if got := ask(http.MethodPost, "/v1/skills/greet/execute", secret, run); got.Code != http.StatusOK {
		t.Fatalf("the first run: %d %s", got.Code, got.Body)
	}
	got := ask(http.MethodPost, "/v1/skills/greet/execute", secret, run)
	if after := got.Header().Get("Retry-After"); got.Code != http.StatusTooManyRequests || (after != "60" && after != "59") {
		t.Errorf("over HTTP: %d, Retry-After %q\n%s", got.Code, after, got.Body)
	}
	mcp := ask(http.MethodPost, "/mcp", secret, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_cloud_skill",`+
		`"arguments":{"slug":"greet","script_path":"scripts/run.sh"}}}`)
	_, data, _ := strings.Cut(mcp.Body.String(), "data: ")
	var answer struct {
		Result struct {
			IsError           bool
			Content           []struct{ Text string }
			StructuredContent struct{ Error *sallyport.PublicError }
		}
	}
	if err := json.Unmarshal([]byte(strings.TrimSpace(data)), &answer); err != nil || mcp.Code != http.StatusOK {
		t.Fatalf("over MCP: %d %v %s", mcp.Code, err, mcp.Body)
	}
	refused := answer.Result.StructuredContent.Error
	if !answer.Result.IsError || refused == nil || refused.Code != sallyport.CodeRateLimited || refused.Retry != sallyport.CanRetry {
		t.Fatalf("over MCP: %s", mcp.Body)
	}
	if ms, ok := refused.Details["retry_after_ms"].(float64); !ok || ms < 1 || ms > 60_000 || refused.Details["quota"] != "tenant.runs_per_minute" {
		t.Errorf("details %v", refused.Details)
	}
	if text := answer.Result.Content[0].Text; !strings.HasPrefix(text, "RATE_LIMITED: the tenant has used its 1 runs a minute; try again in ") {
		t.Errorf("the text %q", text)
	}
}

// Requests are counted for each principal and for its tenant, whatever the surface, and not for the operator of the folder.
func TestRequestQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ask := quotaServer(t, server.Quotas{Principal: server.Quota{RequestsPerSecond: 2}, Tenant: server.Quota{RequestsPerSecond: 3}})
		first, second := mint(t, s, "first"), mint(t, s, "second")
		list := func(secret string) *httptest.ResponseRecorder { return ask(http.MethodGet, "/v1/skills", secret, "") }
		limited := func(when string, got *httptest.ResponseRecorder, quota string) {
			t.Helper()
			if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "1" || !strings.Contains(got.Body.String(), quota+".requests_per_second") {
				t.Errorf("%s: %d, Retry-After %q, want 429 by %s\n%s", when, got.Code, got.Header().Get("Retry-After"), quota, got.Body)
			}
		}
		for range 2 {
			if got := list(first); got.Code != http.StatusOK {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
		}
		limited("the third", list(first), "principal")
		limited("over MCP", ask(http.MethodPost, "/mcp", first, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), "principal")
		if got := list(second); got.Code != http.StatusOK {
			t.Errorf("another principal: %d", got.Code)
		}
		limited("the fourth of the tenant", list(second), "tenant")
		if got := list("spk_wrong"); got.Code != http.StatusUnauthorized {
			t.Errorf("a bad key: %d", got.Code)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/skills", nil)
		r.RemoteAddr = ""
		for range 5 {
			w := httptest.NewRecorder()
			if s.LocalHandler().ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Errorf("the operator: %d", w.Code)
			}
		}
		time.Sleep(time.Second)
		if got := list(first); got.Code != http.StatusOK {
			t.Errorf("a second later: %d", got.Code)
		}
	})
}

func TestQuotasAreValidated(t *testing.T) {
	t.Parallel()
	_, err := server.New(t.Context(), server.Config{DataDir: t.TempDir(), Quotas: server.Quotas{Tenant: server.Quota{RunsPerDay: -1}, Failures: -1}})
	if message := sallyport.Public(err).Message; !strings.Contains(message, "Quotas.Tenant.RunsPerDay is negative") || !strings.Contains(message, "Quotas.Failures is negative") {
		t.Errorf("got %v", err)
	}
}

// A tenant's policy narrows how many requests it takes, and nothing of the installation's bound.
func TestPolicyRequestQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ask := quotaServer(t, server.Quotas{Tenant: server.Quota{RequestsPerSecond: 3}})
		first, second := mint(t, s, "first"), mint(t, s, "second")
		if _, err := s.Access().SetPolicy(t.Context(), server.Operator(), 0, sallyport.Policy{
			PrincipalQuota: sallyport.Quota{RequestsPerSecond: 1}, TenantQuota: sallyport.Quota{RequestsPerSecond: 1000},
		}); err != nil {
			t.Fatal(err)
		}
		list := func(secret string) int { return ask(http.MethodGet, "/v1/skills", secret, "").Code }
		for n, got := range []int{list(first), list(first), list(second), list(mint(t, s, "third")), list(mint(t, s, "fourth"))} {
			want := http.StatusOK
			if n == 1 || n == 4 { // the principal's by the policy; the tenant's by the installation, whatever the policy says
				want = http.StatusTooManyRequests
			}
			if got != want {
				t.Errorf("request %d: got %d, want %d", n, got, want)
			}
		}
	})
}
