package httpapi_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/internal/store"
)

type silentTrail struct{}

func (silentTrail) Append(context.Context, sallyport.Entry) error { return nil }

// newDirectory is an API over real tenants. The caller is the operator in the default tenant.
func newDirectory(t *testing.T) *world {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "sallyport.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	directory := access.New(access.Config{
		Store: s, Trail: silentTrail{}, Now: now,
		Installation: access.Installation{
			ScriptsEnabled: true, Limits: sallyport.DefaultLimits(), Interpreters: []string{"py"}, RequiredLayers: []sallyport.Layer{},
		},
	})
	return newWorld(t, func(cfg *httpapi.Config) {
		cfg.Directory = directory
		cfg.Auth = fakeAuth(func(*http.Request) (sallyport.Principal, error) {
			p := principal()
			p.TenantID, p.Operator = sallyport.DefaultTenant, true
			return p, nil
		})
	})
}

// Every route of the directory answers as the document says, for what is there and for what is not.
func TestDirectory(t *testing.T) {
	t.Parallel()
	w := newDirectory(t)
	for _, step := range []struct {
		method, target, body string
		status               int
		code                 sallyport.Code
		kind                 string
	}{
		{"POST", "/v1/tenants", `{"id":"acme","name":"Acme"}`, 201, "", "tenant"},
		{"POST", "/v1/tenants", `{"id":"acme"}`, 409, sallyport.CodeNameTaken, "tenant"},
		{"POST", "/v1/tenants", `{"id":"Acme"}`, 400, sallyport.CodeInvalidArgument, "tenant"},
		{"POST", "/v1/tenants", `{"id":"b","id":"c"}`, 400, sallyport.CodeInvalidArgument, "tenant"},
		{"POST", "/v1/tenants", `{"id":"b","more":1}`, 400, sallyport.CodeInvalidArgument, "tenant"},
		{"GET", "/v1/tenants", "", 200, "", "tenants"},
		{"GET", "/v1/tenants/acme", "", 200, "", "tenant"},
		{"GET", "/v1/tenants/none", "", 404, sallyport.CodeTenantNotFound, "tenant"},
		{"POST", "/v1/tenants/acme/disable", "", 200, "", "tenant"},
		{"POST", "/v1/tenants/acme/enable", "", 200, "", "tenant"},
		{"POST", "/v1/tenants/none/enable", "", 404, sallyport.CodeTenantNotFound, "tenant"},

		{"POST", "/v1/teams", `{"id":"research","name":"Research"}`, 201, "", "team"},
		{"POST", "/v1/teams", `{"id":"research"}`, 409, sallyport.CodeNameTaken, "team"},
		{"GET", "/v1/teams", "", 200, "", "teams"},
		{"GET", "/v1/teams/research", "", 200, "", "team"},
		{"GET", "/v1/teams/none", "", 404, sallyport.CodeTeamNotFound, "team"},
		{"POST", "/v1/teams/research/members", `{"principal_id":"oidc:idp:a%20b|c@d"}`, 200, "", "member"},
		{"POST", "/v1/teams/none/members", `{"principal_id":"oidc:idp:a"}`, 404, sallyport.CodeTeamNotFound, "member"},
		{"GET", "/v1/teams/research/members", "", 200, "", "members"},
		{"DELETE", "/v1/teams/research/members/oidc:idp:a%2520b%7Cc@d", "", 200, "", "removal"},
		{"DELETE", "/v1/teams/research/members/oidc:idp:a", "", 404, sallyport.CodePrincipalNotFound, "removal"},
		{"DELETE", "/v1/teams/research", "", 200, "", "removal"},
		{"DELETE", "/v1/teams/default", "", 409, sallyport.CodeInUse, "removal"},

		{"PUT", "/v1/roles/triage", `{"description":"looks","scopes":["memory:read"]}`, 200, "", "role"},
		{"PUT", "/v1/roles/triage", `{"scopes":[]}`, 200, "", "role"},
		{"PUT", "/v1/roles/triage", `{}`, 400, sallyport.CodeInvalidArgument, "role"},
		{"PUT", "/v1/roles/triage", `{"scopes":["all"]}`, 400, sallyport.CodeInvalidArgument, "role"},
		{"PUT", "/v1/roles/admin", `{"scopes":[]}`, 409, sallyport.CodeNameTaken, "role"},
		{"GET", "/v1/roles", "", 200, "", "roles"},
		{"GET", "/v1/roles/auditor", "", 200, "", "role"},
		{"GET", "/v1/roles/none", "", 404, sallyport.CodeRoleNotFound, "role"},

		{"PUT", "/v1/principals/oidc:idp:bob", `{"roles":["triage","reader"],"disabled":true}`, 200, "", "principal"},
		{"PUT", "/v1/principals/oidc:idp:bob", `{"roles":["none"]}`, 404, sallyport.CodeRoleNotFound, "principal"},
		{"PUT", "/v1/principals/operator", `{"roles":[]}`, 400, sallyport.CodeInvalidArgument, "principal"},
		{"GET", "/v1/principals", "", 200, "", "principals"},
		{"GET", "/v1/principals/oidc:idp:bob", "", 200, "", "principal"},
		{"GET", "/v1/principals/oidc:idp:eve", "", 404, sallyport.CodePrincipalNotFound, "principal"},
		{"DELETE", "/v1/roles/triage", "", 409, sallyport.CodeInUse, "removal"},
		{"PUT", "/v1/principals/oidc:idp:bob", `{"roles":[],"disabled":false}`, 200, "", "principal"},
		{"DELETE", "/v1/roles/triage", "", 200, "", "removal"},

		{"GET", "/v1/policy", "", 200, "", "policy"},
		{
			"PUT", "/v1/policy", `{"expected_version":0,"policy":{"scripts_disabled":true,"required_layers":["seccomp"],"interpreters":["py"],
			"runtimes":{"py":"python"},"limits":{"timeout_ms":5000},"tenant_quota":{"runs_per_day":3},"principal_quota":{"requests_per_second":1},
			"confirm":true,"separate_duties":true,"mask_outputs":true}}`, 200, "", "policy",
		},
		{"PUT", "/v1/policy", `{"expected_version":0,"policy":{}}`, 409, sallyport.CodePolicyConflict, "policy"},
		{"PUT", "/v1/policy", `{"policy":{}}`, 400, sallyport.CodeInvalidArgument, "policy"},
		{"PUT", "/v1/policy", `{"expected_version":1}`, 400, sallyport.CodeInvalidArgument, "policy"},
		{"PUT", "/v1/policy", `{"expected_version":1,"policy":null}`, 400, sallyport.CodeInvalidArgument, "policy"},
		{"PUT", "/v1/policy", `{"expected_version":1,"policy":{"scripts_enabled":true}}`, 400, sallyport.CodeInvalidArgument, "policy"},
		{"PUT", "/v1/policy", `{"expected_version":1,"policy":{"limits":{"timeout":5}}}`, 400, sallyport.CodeInvalidArgument, "policy"},
		{"PUT", "/v1/policy", `{"expected_version":1,"policy":{"limits":{"processes":0}}}`, 400, sallyport.CodeInvalidArgument, "policy"},
		{"PUT", "/v1/policy", `{"expected_version":1,"policy":{"confirm":true,"confirm":false}}`, 400, sallyport.CodeInvalidArgument, "policy"},
	} {
		got := w.call(step.method, step.target, step.body)
		answer := got.json(t)
		code := ""
		if e, refused := answer["error"].(map[string]any); refused {
			code, _ = e["code"].(string)
		}
		if got.status != step.status || code != string(step.code) || answer["kind"] != step.kind {
			t.Errorf("%s %s %s: %d %s", step.method, step.target, step.body, got.status, got.body)
		}
	}
}
