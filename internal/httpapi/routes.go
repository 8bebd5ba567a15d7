package httpapi

import (
	"net/http"

	"github.com/sallyport-dev/sallyport"
)

// handler answers one call. It gets the principal as a parameter: forgetting it must not compile.
type handler func(c *call, p sallyport.Principal) (answer, error)

// route is one line of the API: openapi.json describes each, and a test compares the two.
type route struct {
	method, pattern string
	// kind of the envelope, refusals included.
	kind string
	// query names the parameters that the route takes; any other is refused.
	query []string
	// public routes are served to anybody, with the zero principal.
	public bool
	handle handler
}

// routes is the one list.
func routes() []route {
	return []route{
		{http.MethodGet, "/healthz", "health", nil, true, health},
		{http.MethodGet, "/readyz", "ready", nil, true, ready},
		{http.MethodGet, "/openapi.json", "openapi", nil, true, openAPI},
		{http.MethodGet, "/v1/openapi.json", "openapi", nil, true, openAPI},
		{http.MethodGet, "/v1/capabilities", "capabilities", nil, false, capabilities},

		{http.MethodGet, "/.well-known/oauth-protected-resource", "resource_metadata", nil, true, rootMetadata},
		{http.MethodGet, "/.well-known/oauth-protected-resource/mcp", "resource_metadata", nil, true, mcpMetadata},
		{http.MethodGet, "/.well-known/agent-skills/index.json", "discovery", nil, false, discover},
		{http.MethodGet, "/.well-known/skills/index.json", "discovery", nil, false, discover},
		{http.MethodGet, "/.well-known/agent-skills/{skill}/{revision}/{artifact}", "artifact", nil, false, downloadSkill},

		{http.MethodGet, "/v1/skills", "skills", words("team_id query archived limit cursor"), false, listSkills},
		{http.MethodPost, "/v1/skills", "save", nil, false, saveSkill},
		{http.MethodGet, "/v1/skills/{skill}", "skill", words("team_id"), false, showSkill},
		{http.MethodDelete, "/v1/skills/{skill}", "skill", words("team_id"), false, deleteSkill},
		{http.MethodPost, "/v1/skills/{skill}/purge", "skill_purge", words("team_id"), false, purgeSkill},
		{http.MethodPost, "/v1/skills/{skill}/publish", "skill", words("team_id"), false, publishSkill},
		{http.MethodPost, "/v1/skills/{skill}/archive", "skill", words("team_id"), false, archiveSkill},
		{http.MethodPost, "/v1/skills/{skill}/restore", "skill", words("team_id"), false, restoreSkill},
		{http.MethodGet, "/v1/skills/{skill}/revisions", "revisions", words("team_id"), false, listRevisions},
		{http.MethodGet, "/v1/skills/{skill}/revisions/{revision}", "revision", words("team_id"), false, showRevision},
		{http.MethodDelete, "/v1/skills/{skill}/revisions/{revision}", "revision_removal", words("team_id"), false, deleteRevision},
		{http.MethodGet, "/v1/skills/{skill}/components", "components", words("team_id revision_id"), false, listComponents},
		{http.MethodGet, "/v1/skills/{skill}/components/{path...}", "component", words("team_id revision_id raw"), false, showComponent},
		{http.MethodGet, "/v1/skills/{skill}/findings", "findings", words("team_id revision_id exclude"), false, showFindings},
		{http.MethodGet, "/v1/skills/{skill}/export", "export", words("team_id revision_id format"), false, exportRevision},
		{http.MethodGet, "/v1/skills/{skill}/diff", "diff", words("team_id from to"), false, diffRevisions},
		{http.MethodPost, "/v1/import", "import", words("team_id personal publish dry_run message"), false, importTree},
		{http.MethodPost, "/v1/import/url", "import", nil, false, importURL},

		{http.MethodPost, "/v1/skills/{skill}/execute", "execution", nil, false, execute},
		{http.MethodPost, "/v1/skills/{skill}/explain", "explanation", nil, false, explain},
		{http.MethodGet, "/v1/executions", "executions", words("slug skill_id team_id status limit cursor"), false, listExecutions},
		{http.MethodPost, "/v1/executions/purge", "execution_purge", nil, false, purgeExecutions},
		{http.MethodGet, "/v1/executions/{id}", "execution", words("wait"), false, showExecution},
		{http.MethodGet, "/v1/executions/{id}/artifacts/{path...}", "artifact", nil, false, downloadArtifact},
		{http.MethodPost, "/v1/executions/{id}/cancel", "cancellation", nil, false, cancelExecution},

		{http.MethodGet, "/v1/confirmations", "confirmations", nil, false, listConfirmations},
		{http.MethodPost, "/v1/confirmations/{id}/approve", "confirmation", nil, false, approveConfirmation},
		{http.MethodPost, "/v1/confirmations/{id}/deny", "confirmation", nil, false, denyConfirmation},

		{http.MethodGet, "/v1/grants", "grants", words("slug skill_id team_id"), false, listGrants},
		{http.MethodPost, "/v1/grants", "grant", nil, false, issueGrant},
		{http.MethodPost, "/v1/grants/{id}/revoke", "grant", nil, false, revokeGrant},
		{http.MethodGet, "/v1/grants/{id}/history", "grant_history", nil, false, showGrantHistory},
		{http.MethodGet, "/v1/skills/{skill}/review", "review", words("team_id revision_id"), false, reviewRevision},
		{
			http.MethodGet, "/v1/audit", "audit",
			words("actor action entity execution_id since until after limit newest_first"), false, listEntries,
		},
		{http.MethodGet, "/v1/audit/verify", "verification", nil, false, verifyTrail},
		{http.MethodPost, "/v1/audit/verify", "verification", nil, false, verifyTrailAgainst},
		{
			http.MethodGet, "/v1/tool-calls", "tool_calls",
			words("tool principal_id code execution_id since until below limit"), false, listToolCalls,
		},
		{http.MethodGet, "/v1/backup", "backup", words("keys"), false, downloadBackup},
		{http.MethodGet, "/v1/keys", "keys", nil, false, listKeys},
		{http.MethodPost, "/v1/keys", "key", nil, false, createKey},
		{http.MethodPost, "/v1/keys/{id}/revoke", "key_revocation", nil, false, revokeKey},

		{http.MethodGet, "/v1/secrets", "secrets", nil, false, listSecrets},
		{http.MethodPut, "/v1/secrets/{name}", "secret", nil, false, setSecret},
		{http.MethodDelete, "/v1/secrets/{name}", "secret_removal", nil, false, removeSecret},
		{http.MethodPost, "/v1/secrets/rotate-key", "secret_rotation", nil, false, rotateSecretKey},
		{http.MethodGet, "/v1/tenants", "tenants", nil, false, listTenants},
		{http.MethodPost, "/v1/tenants", "tenant", nil, false, createTenant},
		{http.MethodGet, "/v1/tenants/{tenant}", "tenant", nil, false, showTenant},
		{http.MethodPost, "/v1/tenants/{tenant}/disable", "tenant", nil, false, disableTenant},
		{http.MethodPost, "/v1/tenants/{tenant}/enable", "tenant", nil, false, enableTenant},
		{http.MethodGet, "/v1/teams", "teams", nil, false, listTeams},
		{http.MethodPost, "/v1/teams", "team", nil, false, createTeam},
		{http.MethodGet, "/v1/teams/{team}", "team", nil, false, showTeam},
		{http.MethodDelete, "/v1/teams/{team}", "removal", nil, false, removeTeam},
		{http.MethodGet, "/v1/teams/{team}/members", "members", nil, false, listMembers},
		{http.MethodPost, "/v1/teams/{team}/members", "member", nil, false, addMember},
		{http.MethodDelete, "/v1/teams/{team}/members/{principal}", "removal", nil, false, removeMember},
		{http.MethodGet, "/v1/roles", "roles", nil, false, listRoles},
		{http.MethodGet, "/v1/roles/{role}", "role", nil, false, showRole},
		{http.MethodPut, "/v1/roles/{role}", "role", nil, false, setRole},
		{http.MethodDelete, "/v1/roles/{role}", "removal", nil, false, removeRole},
		{http.MethodGet, "/v1/principals", "principals", nil, false, listPrincipals},
		{http.MethodGet, "/v1/principals/{principal}", "principal", nil, false, showPrincipal},
		{http.MethodPut, "/v1/principals/{principal}", "principal", nil, false, setPrincipal},
		{http.MethodGet, "/v1/policy", "policy", nil, false, showPolicy},
		{http.MethodPut, "/v1/policy", "policy", nil, false, setPolicy},
	}
}

// mount is a handler of another package on our port.
type mount struct {
	method, pattern string
	// handler is nil when the configuration brings none.
	handler func(a *api) http.Handler
}

func mounts() []mount {
	mcp := func(a *api) http.Handler { return a.cfg.MCP }
	return []mount{
		{http.MethodGet, "/metrics", (*api).metrics},
		{http.MethodPost, "/mcp", mcp},
		{http.MethodGet, "/mcp", mcp},
		{http.MethodDelete, "/mcp", mcp},
	}
}
