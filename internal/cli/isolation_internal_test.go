package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/server"
)

// The suite of isolation. A tenant called narwhal, its team of the same name and everything in them are asked for by callers who
// must not know of them: over every route, by every MCP tool and method, and with every command. What is there and what is not must
// get the same answer, byte for byte, apart from ids and times; what is listed must be what was listed before anything was there. A
// route, a tool or a command without a row fails.

const (
	ours   = "narwhal" // exists, for its owner
	absent = "dolphin" // exists for nobody
	marker = "walrus"  // stands in everything that is the owner's
	sought = "tusk"    // stands there, too, and is what callers search for
	noID   = "0190a0b0-0000-7000-8000-00000000dead"
)

// burrow is a server with the owner's things in it.
type burrow struct {
	t      *testing.T
	server *server.Server
	http   *httptest.Server
	// keys by caller.
	keys map[string]string
	// ids of the owner's things, by what they are.
	ids map[string]string
}

// callers are those who must not see the owner's things.
var callers = []string{"another tenant", "another team", "no scope", "nobody"}

func newBurrow(t *testing.T) *burrow {
	t.Helper()
	executor := fakeExecutor{}
	s, err := server.New(t.Context(), server.Config{
		DataDir: filepath.Join(t.TempDir(), "data"), ScriptsEnabled: true, Executor: executor, Version: "test",
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
		// The callers who are nobody fail more often than anybody should.
		Quotas: server.Quotas{Address: server.AddressQuota{FailuresPerMinute: -1, PublicPerSecond: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &burrow{t: t, server: s, http: httptest.NewServer(s.Handler()), keys: map[string]string{"nobody": ""}, ids: map[string]string{}}
	for _, what := range []string{"key", "principal", "skill", "revision", "draft", "grant", "execution", "confirmation"} {
		b.ids[what] = noID
	}
	t.Cleanup(func() {
		b.http.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := t.Context()
	for _, tenant := range []sallyport.TenantID{ours, "globex"} {
		if _, err := s.Access().CreateTenant(ctx, server.Operator(), tenant, ""); err != nil {
			t.Fatal(err)
		}
	}
	owner := b.operate(ours)
	if _, err := s.Access().SetRole(ctx, owner, sallyport.Role{Name: "nothing"}); err != nil {
		t.Fatal(err)
	}
	b.mint(owner, "another team", access.KeyRequest{Scopes: []sallyport.Scope{
		sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite, sallyport.ScopeGrantsWrite,
	}})
	b.mint(owner, "no scope", access.KeyRequest{Roles: []sallyport.RoleName{"nothing"}})
	b.mint(b.operate("globex"), "another tenant", access.KeyRequest{Scopes: sallyport.Scopes()})
	return b
}

type fakeExecutor struct{}

func (fakeExecutor) Kind() string { return "fake" }

func (fakeExecutor) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{Available: true, Layers: sallyport.Layers(), Features: sallyport.Features()}
}

func (fakeExecutor) Execute(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
	zero := 0
	return sallyport.Result{
		ExitCode: &zero, Stdout: []byte(marker), StdoutBytes: int64(len(marker)),
		Artifacts: []sallyport.ArtifactFile{{Path: ours + ".txt", Content: []byte(marker)}},
	}, nil
}

func (b *burrow) operate(tenant sallyport.TenantID) sallyport.Principal {
	b.t.Helper()
	p, err := b.server.Access().Operate(b.t.Context(), server.Operator(), tenant)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *burrow) mint(p sallyport.Principal, caller string, req access.KeyRequest) sallyport.Key {
	b.t.Helper()
	req.Name = "key of " + caller
	made, err := b.server.Access().CreateKey(b.t.Context(), p, req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.keys[caller] = made.Secret
	return made.Key
}

// answer is what a caller got, with everything in it that may differ made the same.
type answer struct {
	Status int
	Body   string
}

var differing = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HEX"},
	{regexp.MustCompile(`spk_[0-9A-Za-z]+`), "KEY"},
	{regexp.MustCompile(`(?i)` + ours + `|` + absent), "NAME"},
	{regexp.MustCompile(`"(version|sequence|count|after|entries|head)":("[^"]*"|\d+)`), `"$1":N`},
	{regexp.MustCompile(`retry_after_ms":\d+`), `retry_after_ms":N`},
}

func level(text string) string {
	for _, d := range differing {
		text = d.find.ReplaceAllString(text, d.put)
	}
	return text
}

func (b *burrow) send(caller, method, target, media, body string, headers ...string) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.http.URL+target, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if key := b.keys[caller]; key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", media)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.http.Client().Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// furnish gives the owner one of everything.
func (b *burrow) furnish() {
	t := b.t
	t.Helper()
	ctx, a, owner := t.Context(), b.server.Access(), b.operate(ours)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.CreateTeam(ctx, owner, ours, marker)
	check(err)
	_, err = a.SetRole(ctx, owner, sallyport.Role{Name: ours, Description: marker, Scopes: sallyport.Scopes()})
	check(err)
	owner = b.operate(ours) // now with the team
	key := b.mint(owner, "owner", access.KeyRequest{Roles: []sallyport.RoleName{"admin"}, Teams: []sallyport.TeamID{ours}})
	noScope := false
	keys, err := a.Keys(ctx, owner)
	check(err)
	for _, k := range keys {
		if k.Name == "key of no scope" {
			_, err = a.AddMember(ctx, owner, ours, k.PrincipalID)
			check(err)
			noScope = true
		}
	}
	if !noScope {
		t.Fatal("the caller without a scope has no key")
	}
	b.ids["key"], b.ids["principal"] = string(key.ID), string(key.PrincipalID)
	b.own("PUT", "/v1/secrets/NARWHAL", `{"value":"walrus-and-more"}`)
	b.own("PUT", "/v1/policy", `{"expected_version":0,"policy":{"interpreters":["sh","walrus"]}}`)
	saved := b.own("POST", "/v1/skills", save(ours, ours, true))
	b.ids["skill"], b.ids["revision"] = text(saved, "skill", "id"), text(saved, "revision", "id")
	grant := b.own("POST", "/v1/grants", `{"slug":"narwhal","team_id":"narwhal","expected_digest":"`+text(saved, "revision", "digest")+`"}`)
	b.ids["grant"] = text(grant, "id")
	ran := b.own("POST", "/v1/skills/narwhal/execute", `{"script_path":"scripts/narwhal.sh"}`)
	b.ids["execution"] = text(ran, "execution_id")
	draft := b.own("POST", "/v1/skills", strings.Replace(save(ours, ours, false), marker, marker+" again", 1))
	b.ids["draft"] = text(draft, "revision", "id")
	// A run that waits for somebody's yes.
	b.own("PUT", "/v1/policy", `{"expected_version":1,"policy":{"confirm":true}}`)
	_, refused := b.send("owner", http.MethodPost, "/v1/skills/narwhal/execute", "application/json", `{"script_path":"scripts/narwhal.sh"}`)
	waiting := b.own("GET", "/v1/confirmations", "")
	first, _ := waiting["confirmations"].([]any)
	if len(first) != 1 {
		t.Fatalf("no run waits for a yes: %v\n%s", waiting, refused)
	}
	question, _ := first[0].(map[string]any)
	b.ids["confirmation"] = text(question, "confirmation_id")
	for what, id := range b.ids {
		if id == "" || id == noID {
			t.Fatalf("the owner has no %s", what)
		}
	}
}

func save(slug, team string, publish bool) string {
	content := "---\nname: " + slug + "\ndescription: about " + marker + " " + sought + ".\n---\n\n" + marker + "\n"
	body, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings only
		"slug": slug, "team_id": team, "publish": publish,
		"files": []map[string]any{{"path": "SKILL.md", "content": content}, {"path": "scripts/" + slug + ".sh", "content": "echo " + marker + "\n"}},
	})
	return string(body)
}

// own is a call of the owner that succeeds; it returns the data.
func (b *burrow) own(method, target, body string) map[string]any {
	b.t.Helper()
	key := ours
	if target == "/v1/skills" {
		key += "-" + sallyport.DigestOf([]byte(body)).Hex() // each save is another request
	}
	status, got := b.send("owner", method, target, "application/json", body, "Idempotency-Key", key)
	var envelope struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(got), &envelope); err != nil || status >= 300 || envelope.Data == nil {
		b.t.Fatalf("%s %s by the owner: %d %s", method, target, status, got)
	}
	return envelope.Data
}

func text(v map[string]any, path ...string) string {
	for _, name := range path[:len(path)-1] {
		v, _ = v[name].(map[string]any)
	}
	s, _ := v[path[len(path)-1]].(string)
	return s
}

// ask is one way to ask for a thing. In target and body, {x} stands for the id of the owner's x, and for an id of nobody's in the
// second asking; narwhal becomes dolphin there.
type ask struct {
	target, body string
	media        string
	// public is answered to anybody, with nothing of anybody's in it; open to whoever has a credential.
	public, open bool
	// makes something, in the caller's own place where it may: it is asked last.
	makes bool
}

func (b *burrow) fill(text string, real bool) string {
	for what, id := range b.ids {
		if !real {
			id = noID
			if what == "principal" {
				id = "key:" + noID
			}
		}
		text = strings.ReplaceAll(text, "{"+what+"}", id)
	}
	if !real {
		text = strings.NewReplacer(ours, absent, strings.ToUpper(ours), strings.ToUpper(absent)).Replace(text)
	}
	return text
}

func archive(t *testing.T, slug string) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create(slug + "/SKILL.md")
	if err == nil {
		_, err = io.WriteString(w, "---\nname: "+slug+"\ndescription: mine.\n---\n\nMine.\n")
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// asks has a row for every route of the document.
func asks() map[string]ask {
	skill := func(rest, body string) ask {
		return ask{target: "/v1/skills/narwhal" + rest + "?team_id=narwhal", body: body}
	}
	return map[string]ask{
		"GET /healthz": {target: "/healthz", public: true}, "GET /readyz": {target: "/readyz", public: true},
		"GET /openapi.json": {target: "/openapi.json", public: true}, "GET /v1/openapi.json": {target: "/v1/openapi.json", public: true},
		"GET /v1/capabilities":                                        {target: "/v1/capabilities", open: true},
		"GET /.well-known/oauth-protected-resource":                   {target: "/.well-known/oauth-protected-resource", public: true},
		"GET /.well-known/oauth-protected-resource/mcp":               {target: "/.well-known/oauth-protected-resource/mcp", public: true},
		"GET /.well-known/agent-skills/index.json":                    {target: "/.well-known/agent-skills/index.json"},
		"GET /.well-known/skills/index.json":                          {target: "/.well-known/skills/index.json"},
		"GET /.well-known/agent-skills/{skill}/{revision}/{artifact}": {target: "/.well-known/agent-skills/{skill}/{revision}/narwhal.zip"},

		"GET /v1/skills":                                 {target: "/v1/skills?query=tusk"},
		"POST /v1/skills":                                {target: "/v1/skills", body: `{"slug":"narwhal","files":[{"path":"SKILL.md","content":"---\nname: narwhal\ndescription: mine.\n---\n\nMine.\n"}]}`, makes: true},
		"GET /v1/skills/{skill}":                         {target: "/v1/skills/{skill}"},
		"DELETE /v1/skills/{skill}":                      skill("", ""),
		"POST /v1/skills/{skill}/purge":                  skill("/purge", `{"dry_run":true}`),
		"POST /v1/skills/{skill}/publish":                skill("/publish", `{}`),
		"POST /v1/skills/{skill}/archive":                skill("/archive", ""),
		"POST /v1/skills/{skill}/restore":                skill("/restore", ""),
		"GET /v1/skills/{skill}/revisions":               skill("/revisions", ""),
		"GET /v1/skills/{skill}/revisions/{revision}":    {target: "/v1/skills/{skill}/revisions/{revision}"},
		"DELETE /v1/skills/{skill}/revisions/{revision}": {target: "/v1/skills/{skill}/revisions/{draft}"},
		"GET /v1/skills/{skill}/components":              skill("/components", ""),
		"GET /v1/skills/{skill}/components/{path}":       {target: "/v1/skills/{skill}/components/scripts/narwhal.sh"},
		"GET /v1/skills/{skill}/findings":                skill("/findings", ""),
		"GET /v1/skills/{skill}/export":                  skill("/export", ""),
		"GET /v1/skills/{skill}/diff":                    skill("/diff", ""),
		"GET /v1/skills/{skill}/review":                  skill("/review", ""),
		"POST /v1/import":                                {target: "/v1/import", media: "application/zip", makes: true},
		"POST /v1/import/url":                            {target: "/v1/import/url", body: `{"url":"https://narwhal.invalid/x.zip"}`},

		"POST /v1/skills/{skill}/execute":             {target: "/v1/skills/narwhal/execute", body: `{"script_path":"scripts/narwhal.sh"}`},
		"POST /v1/skills/{skill}/explain":             {target: "/v1/skills/{skill}/explain", body: `{"script_path":"scripts/narwhal.sh"}`},
		"GET /v1/executions":                          {target: "/v1/executions"},
		"POST /v1/executions/purge":                   {target: "/v1/executions/purge", body: `{"before":"2001-01-01T00:00:00Z","dry_run":true}`},
		"GET /v1/executions/{id}":                     {target: "/v1/executions/{execution}"},
		"GET /v1/executions/{id}/artifacts/{path}":    {target: "/v1/executions/{execution}/artifacts/narwhal.txt"},
		"POST /v1/executions/{id}/cancel":             {target: "/v1/executions/{execution}/cancel"},
		"GET /v1/confirmations":                       {target: "/v1/confirmations"},
		"POST /v1/confirmations/{id}/approve":         {target: "/v1/confirmations/{confirmation}/approve"},
		"POST /v1/confirmations/{id}/deny":            {target: "/v1/confirmations/{confirmation}/deny"},
		"GET /v1/grants":                              {target: "/v1/grants"},
		"POST /v1/grants":                             {target: "/v1/grants", body: `{"skill_id":"{skill}","expected_digest":"sha256:` + strings.Repeat("0", 64) + `"}`},
		"POST /v1/grants/{id}/revoke":                 {target: "/v1/grants/{grant}/revoke"},
		"GET /v1/grants/{id}/history":                 {target: "/v1/grants/{grant}/history"},
		"GET /v1/audit":                               {target: "/v1/audit?entity=narwhal"},
		"GET /v1/audit/verify":                        {target: "/v1/audit/verify"},
		"POST /v1/audit/verify":                       {target: "/v1/audit/verify", body: `{"checkpoints":[]}`},
		"GET /v1/tool-calls":                          {target: "/v1/tool-calls"},
		"GET /v1/backup":                              {target: "/v1/backup"},
		"GET /v1/keys":                                {target: "/v1/keys"},
		"POST /v1/keys":                               {target: "/v1/keys", body: `{"name":"x","roles":["narwhal"],"teams":["narwhal"]}`},
		"POST /v1/keys/{id}/revoke":                   {target: "/v1/keys/{key}/revoke"},
		"GET /v1/secrets":                             {target: "/v1/secrets"},
		"PUT /v1/secrets/{name}":                      {target: "/v1/secrets/NARWHAL", body: `{"value":"something-of-mine"}`, makes: true},
		"DELETE /v1/secrets/{name}":                   {target: "/v1/secrets/NARWHAL"},
		"POST /v1/secrets/rotate-key":                 {target: "/v1/secrets/rotate-key", makes: true},
		"GET /v1/tenants":                             {target: "/v1/tenants"},
		"POST /v1/tenants":                            {target: "/v1/tenants", body: `{"id":"narwhal"}`},
		"GET /v1/tenants/{tenant}":                    {target: "/v1/tenants/narwhal"},
		"POST /v1/tenants/{tenant}/disable":           {target: "/v1/tenants/narwhal/disable"},
		"POST /v1/tenants/{tenant}/enable":            {target: "/v1/tenants/narwhal/enable"},
		"GET /v1/teams":                               {target: "/v1/teams"},
		"POST /v1/teams":                              {target: "/v1/teams", body: `{"id":"narwhal"}`, makes: true},
		"GET /v1/teams/{team}":                        {target: "/v1/teams/narwhal"},
		"DELETE /v1/teams/{team}":                     {target: "/v1/teams/narwhal"},
		"GET /v1/teams/{team}/members":                {target: "/v1/teams/narwhal/members"},
		"POST /v1/teams/{team}/members":               {target: "/v1/teams/narwhal/members", body: `{"principal_id":"key:x"}`},
		"DELETE /v1/teams/{team}/members/{principal}": {target: "/v1/teams/narwhal/members/{principal}"},
		"GET /v1/roles":                               {target: "/v1/roles"},
		"GET /v1/roles/{role}":                        {target: "/v1/roles/narwhal"},
		"PUT /v1/roles/{role}":                        {target: "/v1/roles/narwhal", body: `{"scopes":[]}`, makes: true},
		"DELETE /v1/roles/{role}":                     {target: "/v1/roles/narwhal"},
		"GET /v1/principals":                          {target: "/v1/principals"},
		"GET /v1/principals/{principal}":              {target: "/v1/principals/{principal}"},
		"PUT /v1/principals/{principal}":              {target: "/v1/principals/{principal}", body: `{"disabled":true}`, makes: true},
		"GET /v1/policy":                              {target: "/v1/policy"},
		"PUT /v1/policy":                              {target: "/v1/policy", body: `{"expected_version":7,"policy":{}}`},
		"GET /metrics":                                {target: "/metrics", open: true},
		"POST /mcp":                                   {target: "/mcp", body: `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"skill://narwhal/SKILL.md"}}`, open: true},
		"GET /mcp":                                    {target: "/mcp", open: true},
		"DELETE /mcp":                                 {target: "/mcp", open: true},
	}
}

// documented are the routes of the document, which another test holds against the routes that are served.
func (b *burrow) documented() []string {
	b.t.Helper()
	_, body := b.send("nobody", http.MethodGet, "/openapi.json", "", "")
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for path, item := range document.Paths {
		for method := range item {
			if method != "parameters" && method != "description" {
				names = append(names, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (b *burrow) asked(caller, name string, a ask, real bool) answer {
	b.t.Helper()
	method, _, _ := strings.Cut(name, " ")
	body, media := b.fill(a.body, real), "application/json"
	if a.media != "" {
		body, media = archive(b.t, b.fill(ours, real)), a.media
	}
	status, got := b.send(caller, method, b.fill(a.target, real), media, body, "Accept", "application/json, text/event-stream",
		"Idempotency-Key", b.fill(ours, real))
	if strings.Contains(got, marker) {
		b.t.Errorf("%s by %s shows what is not theirs: %s", name, caller, got)
	}
	if name == "GET /metrics" {
		// Its numbers are the process's own and change all the time; a name in it would be a leak.
		if strings.Contains(strings.ToLower(got), ours) || strings.Contains(got, "globex") {
			b.t.Errorf("%s by %s names a tenant, a team or a skill: %s", name, caller, got)
		}
		got = ""
	}
	return answer{status, level(got)}
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	b := newBurrow(t)
	rows := asks()
	names := b.documented()
	for _, name := range names {
		if _, found := rows[name]; !found {
			t.Errorf("the route %s has no row", name)
		}
	}
	for name := range rows {
		if !slices.Contains(names, name) {
			t.Errorf("the row %s has no route", name)
		}
	}
	if t.Failed() {
		return
	}
	// Asked twice before anything is there, because the first call of a principal is itself something that lists show.
	before := map[string]answer{}
	for range 2 {
		for _, name := range names {
			for _, caller := range callers {
				if method, _, _ := strings.Cut(name, " "); method == http.MethodGet {
					before[caller+" "+name] = b.asked(caller, name, rows[name], false)
				}
			}
		}
	}
	b.furnish()
	for _, name := range names {
		if !rows[name].makes {
			b.compare(name, rows[name], before)
		}
	}
	b.mcp()
	b.commands(false)
	// Now the callers make things of these names, in places of their own.
	for _, name := range names {
		if rows[name].makes {
			b.compare(name, rows[name], before)
		}
	}
	b.commands(true)
	b.smuggled()
	// Nothing of the owner's was changed by anybody.
	for _, target := range []string{"/v1/teams/narwhal", "/v1/roles/narwhal", "/v1/executions/{execution}", "/v1/policy", "/v1/principals/{principal}"} {
		b.own("GET", b.fill(target, true), "")
	}
	view := b.own("GET", "/v1/skills/narwhal?team_id=narwhal", "")
	if text(view, "skill", "archived_at") != "" || text(view, "published_revision", "id") != b.ids["revision"] || text(view, "latest_revision", "id") != b.ids["draft"] {
		t.Errorf("somebody changed the owner's skill: %v", view)
	}
}

// compare asks for what is there and for what is not, as every caller.
func (b *burrow) compare(name string, a ask, before map[string]answer) {
	t := b.t
	t.Helper()
	for _, caller := range callers {
		got := b.asked(caller, name, a, true)
		if diff := cmp.Diff(b.asked(caller, name, a, false), got); diff != "" {
			t.Errorf("%s by %s: what is there is answered otherwise than what is not (-absent +there):\n%s", name, caller, diff)
		}
		if earlier, listed := before[caller+" "+name]; listed && !a.open {
			if diff := cmp.Diff(earlier, got); diff != "" {
				t.Errorf("%s by %s: the answer changed with what another made (-before +after):\n%s", name, caller, diff)
			}
		}
		switch {
		case a.public && got.Status != http.StatusOK && got.Status != http.StatusNotFound:
			t.Errorf("%s by %s: %d %s", name, caller, got.Status, got.Body)
		case a.public || a.open && caller != "nobody" || got.Status == http.StatusMethodNotAllowed:
		case caller == "nobody" && got.Status != http.StatusUnauthorized:
			t.Errorf("%s by nobody: %d %s", name, got.Status, got.Body)
		case caller == "no scope" && got.Status != http.StatusForbidden:
			t.Errorf("%s without a scope: %d %s", name, got.Status, got.Body)
		}
	}
}

// rpc is one call over MCP.
func (b *burrow) rpc(caller, method, params string) answer {
	b.t.Helper()
	status, got := b.send(caller, http.MethodPost, "/mcp", "application/json",
		`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`,
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-11-25")
	if strings.Contains(got, marker) {
		b.t.Errorf("MCP %s %s by %s shows what is not theirs: %s", method, params, caller, got)
	}
	return answer{status, level(got)}
}

// mcp asks by every tool and method.
func (b *burrow) mcp() {
	t := b.t
	t.Helper()
	tools := map[string][]string{
		"save_cloud_skill": {`{"slug":"narwhal","skill_id":"{skill}","name":"narwhal","instructions":"x","description":"y"}`},
		"recall_cloud_skill": {
			`{"query":"tusk"}`, `{"slug":"narwhal"}`, `{"skill_id":"{skill}"}`, `{"slug":"narwhal","team_id":"narwhal","resource":"scripts/narwhal.sh"}`,
			`{"skill_id":"{skill}","revision_id":"{revision}","resource":"SKILL.md"}`,
		},
		"execute_cloud_skill": {
			`{"slug":"narwhal","script_path":"scripts/narwhal.sh"}`, `{"skill_id":"{skill}","script_path":"scripts/narwhal.sh","idempotency_key":"narwhal"}`,
		},
		"recall_context": {`{"query":"tusk narwhal"}`, `{"query":"run the tusk narwhal","team_id":"narwhal"}`},
	}
	_, body := b.send("owner", http.MethodPost, "/mcp", "application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`,
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-11-25")
	var listed struct {
		Result struct{ Tools []struct{ Name string } }
	}
	for line := range strings.Lines(body) {
		if data := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "data:")); strings.HasPrefix(data, "{") {
			if err := json.Unmarshal([]byte(data), &listed); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(listed.Result.Tools) == 0 {
		t.Fatalf("no tools: %s", body)
	}
	var calls [][2]string
	for _, tool := range listed.Result.Tools {
		arguments, found := tools[tool.Name]
		if !found {
			t.Errorf("the tool %s has no row", tool.Name)
		}
		for _, args := range arguments {
			calls = append(calls, [2]string{"tools/call", `{"name":"` + tool.Name + `","arguments":` + args + `}`})
		}
	}
	calls = append(calls,
		[2]string{"resources/list", `{}`}, [2]string{"resources/templates/list", `{}`},
		[2]string{"resources/read", `{"uri":"skill://narwhal/SKILL.md"}`},
		[2]string{"resources/directory/read", `{"uri":"skill://narwhal/"}`},
		[2]string{"skills/list", `{}`}, [2]string{"skills/get", `{"name":"narwhal"}`},
		[2]string{"tasks/get", `{"taskId":"{execution}"}`}, [2]string{"tasks/cancel", `{"taskId":"{execution}"}`},
		[2]string{"tasks/update", `{"taskId":"{execution}","responses":{}}`},
	)
	for _, c := range calls {
		for _, caller := range callers {
			params := c[1]
			got := b.rpc(caller, c[0], b.fill(params, true))
			if diff := cmp.Diff(b.rpc(caller, c[0], b.fill(params, false)), got); diff != "" {
				t.Errorf("MCP %s %s by %s: what is there is answered otherwise than what is not (-absent +there):\n%s", c[0], params, caller, diff)
			}
			if caller == "nobody" && got.Status != http.StatusUnauthorized {
				t.Errorf("MCP %s by nobody: %d", c[0], got.Status)
			}
		}
	}
}

// local are the commands that ask no server, each with what it does instead.
var local = map[string]string{
	"demo": "a folder of its own", "serve": "serves", "mcp": "speaks MCP, which has its own rows", "doctor": "this machine", "runner": "serves",
	"runtime list": "this machine", "runtime pull": "this machine", "runtime add": "this machine", "runtime verify": "this machine",
	"runtime remove": "this machine", "runtime packages": "this machine", "executors": "this machine", "validate": "files",
	"bench": "this machine", "backup create": "the data folder", "backup verify": "a file", "restore": "a folder", "completion": "text", "version": "text",
}

// commands runs every command of the command line; made says that the callers have things of these names by now, and selects those
// that make, change or remove them.
func (b *burrow) commands(made bool) {
	t := b.t
	t.Helper()
	out := t.TempDir()
	policy := filepath.Join(out, "policy.json")
	if err := os.WriteFile(policy, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{
		"import": "import " + filepath.Join(out, "none"), "export": "export narwhal --output " + filepath.Join(out, "narwhal.zip"),
		"skill list": "skill list tusk", "skill show": "skill show narwhal", "skill read": "skill read narwhal scripts/narwhal.sh",
		"skill revisions": "skill revisions narwhal --team narwhal", "skill diff": "skill diff narwhal", "skill findings": "skill findings narwhal",
		"skill publish": "skill publish narwhal", "skill delete-draft": "skill delete-draft narwhal {draft} --yes", "skill clean": "skill clean narwhal --yes",
		"skill archive": "skill archive narwhal", "skill restore": "skill restore narwhal", "skill delete": "skill delete narwhal --yes",
		"grant issue": "grant issue narwhal --yes", "grant review": "grant review narwhal", "grant history": "grant history {grant}",
		"grant list": "grant list", "grant revoke": "grant revoke {grant}", "run": "run narwhal scripts/narwhal.sh", "approve": "approve {confirmation} --yes",
		"explain": "explain narwhal scripts/narwhal.sh", "execution list": "execution list", "execution show": "execution show {execution}",
		"execution wait": "execution wait {execution}", "execution cancel": "execution cancel {execution}",
		"execution artifact": "execution artifact {execution} narwhal.txt", "execution purge": "execution purge --before 2001-01-01T00:00:00Z --yes",
		"audit list": "audit list --entity narwhal", "audit verify": "audit verify", "audit export": "audit export", "audit calls": "audit calls",
		"tenant list": "tenant list", "tenant create": "tenant create narwhal", "tenant show": "tenant show narwhal",
		"tenant disable": "tenant disable narwhal --yes", "tenant enable": "tenant enable narwhal", "team list": "team list",
		"team create": "team create narwhal", "team show": "team show narwhal", "team remove": "team remove narwhal", "team add-member": "team add-member narwhal key:x", "team remove-member": "team remove-member narwhal {principal}",
		"role list": "role list", "role show": "role show narwhal", "role set": "role set narwhal", "role remove": "role remove narwhal", "principal list": "principal list",
		"principal show": "principal show {principal}", "principal set": "principal set {principal}",
		"principal disable": "principal disable {principal}", "principal enable": "principal enable {principal}", "policy show": "policy show",
		"policy set": "policy set " + policy + " --expected 7", "key create": "key create --name x --role narwhal --team narwhal", "key list": "key list",
		"key revoke": "key revoke {key}", "secret set": "secret set NARWHAL", "secret list": "secret list", "secret remove": "secret remove NARWHAL",
		"secret rotate-key": "secret rotate-key",
	}
	makers := []string{
		"team create", "team add-member", "team remove", "role set", "role remove", "principal set", "principal disable", "principal enable",
		"secret set", "secret remove", "secret rotate-key",
	}
	var grammar commands
	parser, err := newApp(Process{Stdout: os.Stdout, Stderr: os.Stderr, Stdin: os.Stdin}, &grammar.globals).parser(&grammar)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range leaves(parser.Model.Node, "") {
		if _, found := rows[name]; !found && local[name] == "" {
			t.Errorf("the command %s has no row", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if slices.Contains(makers, name) != made {
			continue
		}
		for _, caller := range callers {
			line := rows[name]
			got := b.command(caller, b.fill(line, true))
			if diff := cmp.Diff(b.command(caller, b.fill(line, false)), got); diff != "" {
				t.Errorf("the command %s by %s: what is there is answered otherwise than what is not (-absent +there):\n%s", name, caller, diff)
			}
		}
	}
}

func leaves(node *kong.Node, prefix string) []string {
	var names []string
	for _, child := range node.Children {
		if child.Type != kong.CommandNode {
			continue
		}
		name := strings.TrimSpace(prefix + " " + child.Name)
		if below := leaves(child, name); len(below) > 0 {
			names = append(names, below...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

func (b *burrow) command(caller, line string) answer {
	b.t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		b.t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // nothing was written
	out, err := os.CreateTemp(b.t.TempDir(), "out")
	if err != nil {
		b.t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // read below
	key := b.keys[caller]
	exit := Main(b.t.Context(), Process{
		Args: append([]string{"--json", "--url", b.http.URL}, strings.Fields(line)...), Stdin: null, Stdout: out, Stderr: out,
		Env: config.Environment{Key: sallyport.Secret(key)},
	})
	data, err := os.ReadFile(out.Name())
	if err != nil {
		b.t.Fatal(err)
	}
	if strings.Contains(string(data), marker) {
		b.t.Errorf("the command %s by %s shows what is not theirs: %s", line, caller, data)
	}
	return answer{exit, level(string(data))}
}

// smuggled tries to be somebody else by what stands around a request.
func (b *burrow) smuggled() {
	t := b.t
	t.Helper()
	for _, try := range []struct {
		name    string
		caller  string
		target  string
		body    string
		headers []string
		status  int
	}{
		{"the operator's header", "another tenant", "/v1/teams", "", []string{server.TenantHeader, ours}, http.StatusForbidden},
		{"the operator's header, for its own tenant", "another tenant", "/v1/teams", "", []string{server.TenantHeader, "globex"}, http.StatusForbidden},
		{"the operator's header, empty", "another tenant", "/v1/teams", "", []string{server.TenantHeader, ""}, http.StatusForbidden},
		{"the operator's header without a key", "nobody", "/v1/teams", "", []string{server.TenantHeader, ours}, http.StatusForbidden},
		{"a foreign origin", "another tenant", "/v1/teams", `{"id":"x"}`, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"a tenant in the body", "another tenant", "/v1/teams", `{"id":"x","tenant_id":"narwhal"}`, nil, http.StatusBadRequest},
		{"a doubled name in the body", "another tenant", "/v1/teams", `{"id":"x","id":"y"}`, nil, http.StatusBadRequest},
		{"a tenant in the query", "another tenant", "/v1/teams?tenant_id=narwhal", "", nil, http.StatusBadRequest},
		{"a homoglyph", "another tenant", "/v1/teams", `{"id":"nаrwhal"}`, nil, http.StatusBadRequest},
		{"another case", "another tenant", "/v1/teams", `{"id":"Narwhal"}`, nil, http.StatusBadRequest},
		{"another case of the team", "another team", "/v1/skills/narwhal?team_id=Narwhal", "", nil, http.StatusForbidden},
		{"a full-width team", "another team", "/v1/skills/narwhal?team_id=%EF%BD%8Earwhal", "", nil, http.StatusForbidden},
	} {
		method := http.MethodGet
		if try.body != "" {
			method = http.MethodPost
		}
		status, got := b.send(try.caller, method, try.target, "application/json", try.body, try.headers...)
		if status != try.status || strings.Contains(got, marker) {
			t.Errorf("%s: got %d, want %d: %s", try.name, status, try.status, got)
		}
	}
	// On the operator's own handler the header counts, once, and not beside a key.
	local := func(headers http.Header) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/teams", nil)
		r.RemoteAddr = ""
		r.Header = headers
		w := httptest.NewRecorder()
		b.server.LocalHandler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for name, try := range map[string]struct {
		headers http.Header
		status  int
	}{
		"ours":         {http.Header{server.TenantHeader: {ours}}, http.StatusOK},
		"odd case":     {http.Header{"sallyport-TENANT": {ours}}, http.StatusOK},
		"twice":        {http.Header{server.TenantHeader: {ours, "globex"}}, http.StatusBadRequest},
		"none":         {http.Header{server.TenantHeader: {absent}}, http.StatusNotFound},
		"beside a key": {http.Header{server.TenantHeader: {ours}, "Authorization": {"Bearer " + b.keys["another tenant"]}}, http.StatusForbidden},
	} {
		status, got := local(try.headers)
		if status != try.status || strings.Contains(got, marker) != (status == http.StatusOK) {
			t.Errorf("the operator's handler, %s: %s", name, fmt.Sprint(status, got))
		}
	}
}
