package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/server"
)

// confirming is a server whose runs want a person's yes, with one granted script.
func confirming(t *testing.T, change func(*server.Config)) (*server.Server, *keeper) {
	t.Helper()
	ran := &keeper{}
	cfg := server.Config{
		DataDir: t.TempDir(), Executor: ran, ScriptsEnabled: true, RequiredLayers: []sallyport.Layer{}, Confirm: true, ConfirmInClient: true,
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
	}
	change(&cfg)
	s, err := server.New(t.Context(), cfg)
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
		{Path: "scripts/quiet.sh", Content: []byte("echo hello\n")},
		{Path: "sallyport.yaml", Content: []byte("scripts:\n  scripts/run.sh:\n    confirm: true\n")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Access().Issue(t.Context(), server.Operator(), access.IssueRequest{Ref: sallyport.SkillRef{Slug: "greet"}, ExpectedDigest: saved.Revision.Digest}); err != nil {
		t.Fatal(err)
	}
	return s, ran
}

func (k *keeper) runs() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.got)
}

func connected(t *testing.T, s *server.Server, secret string) (*client.Client, string) {
	t.Helper()
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	c, err := client.New(client.Config{URL: web.URL, Key: secret})
	if err != nil {
		t.Fatal(err)
	}
	return c, web.URL
}

// askedFor runs args and returns the id of the question that it is refused with.
func askedFor(t *testing.T, c *client.Client, args string) sallyport.ConfirmationID {
	t.Helper()
	envelope, err := c.Run(t.Context(), runOf(args))
	if sallyport.CodeOf(err) != sallyport.CodeConfirmationRequired || envelope.Error == nil {
		t.Fatalf("got %v, want CONFIRMATION_REQUIRED", err)
	}
	id, _ := envelope.Error.Details["confirmation_id"].(string)
	if id == "" || !strings.Contains(envelope.Error.Message, "sallyport approve "+id) || envelope.Error.Details["gate"] != "confirm" {
		t.Fatalf("the refusal %+v", envelope.Error)
	}
	return sallyport.ConfirmationID(id)
}

func runOf(args string) client.RunRequest {
	return client.RunRequest{Ref: sallyport.SkillRef{Slug: "greet"}, ScriptPath: "scripts/run.sh", Args: json.RawMessage(args)}
}

// A run that wants a yes is refused with a question. The yes of somebody else lets the very same request run, once; no other request, no
// other principal. Question, yes and run are in the trail.
func TestConfirmedRunsOnce(t *testing.T) {
	t.Parallel()
	s, ran := confirming(t, func(*server.Config) {})
	agent, _ := connected(t, s, mint(t, s, "agent"))
	other, _ := connected(t, s, mint(t, s, "other"))
	reviewer, err := s.Access().CreateKey(t.Context(), server.Operator(), access.KeyRequest{
		Name: "reviewer", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite, sallyport.ScopeGrantsWrite},
	})
	if err != nil {
		t.Fatal(err)
	}
	person, _ := connected(t, s, reviewer.Secret)

	id := askedFor(t, agent, `{"token":"MARKER","n":1}`)
	if again := askedFor(t, agent, `{"token":"MARKER","n":1}`); again != id {
		t.Errorf("asked again as %s", again)
	}
	list, err := person.Confirmations(t.Context())
	if err != nil || len(list.Data.Confirmations) != 1 || list.Data.Confirmations[0].ID != id || strings.Contains(string(list.Data.Confirmations[0].Request), "MARKER") {
		t.Fatalf("listed %+v, %v", list.Data, err)
	}
	if theirs, err := other.Confirmations(t.Context()); err != nil || len(theirs.Data.Confirmations) != 0 {
		t.Errorf("another agent sees %+v, %v", theirs.Data, err)
	}
	if _, err := agent.Approve(t.Context(), id); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("an agent approves: %v", err)
	}
	own := askedFor(t, person, `{}`)
	if _, err := person.Approve(t.Context(), own); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("whoever asked approves: %v", err)
	}
	approved, err := person.Approve(t.Context(), id)
	if err != nil || approved.Data.State != sallyport.ConfirmationApproved {
		t.Fatalf("approved %+v, %v", approved.Data, err)
	}
	if _, err := person.Approve(t.Context(), id); sallyport.CodeOf(err) != sallyport.CodeConfirmationNotFound {
		t.Errorf("approved twice: %v", err)
	}
	askedFor(t, agent, `{"token":"MARKER","n":2}`)
	askedFor(t, other, `{"token":"MARKER","n":1}`)
	if ran.runs() != 0 {
		t.Fatalf("%d runs before the one that was approved", ran.runs())
	}
	if _, err := agent.Run(t.Context(), runOf(`{"token":"MARKER","n":1}`)); err != nil || ran.runs() != 1 {
		t.Fatalf("the approved one: %v, %d runs", err, ran.runs())
	}
	if next := askedFor(t, agent, `{"token":"MARKER","n":1}`); next == id || ran.runs() != 1 {
		t.Errorf("the yes was good for another run: %s, %d runs", next, ran.runs())
	}
	denied := askedFor(t, agent, `{"n":9}`)
	if no, err := person.Deny(t.Context(), denied); err != nil || no.Data.State != sallyport.ConfirmationDenied {
		t.Errorf("denied %+v, %v", no.Data, err)
	}
	if askedFor(t, agent, `{"n":9}`) == denied {
		t.Error("a question that was answered was asked again under its id")
	}
	entries, err := s.Audit().List(t.Context(), server.Operator(), audit.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	told := map[sallyport.Action]int{}
	for _, e := range entries {
		told[e.Action]++
		if strings.Contains(string(e.Detail), "MARKER") {
			t.Errorf("a secret is in %s: %s", e.Action, e.Detail)
		}
		if e.Action == sallyport.ActionScriptRun && (!strings.Contains(string(e.Detail), string(id)) || !strings.Contains(string(e.Detail), string(approved.Data.DecidedBy))) {
			t.Errorf("the run does not name its yes: %s", e.Detail)
		}
	}
	if told[sallyport.ActionConfirmationApprove] != 1 || told[sallyport.ActionConfirmationDeny] != 1 || told[sallyport.ActionConfirmationAsk] < 5 || told[sallyport.ActionScriptRun] != 1 {
		t.Errorf("the trail tells of %v", told)
	}
}

// A script can want a yes where the installation does not, one principal may be allowed to answer itself, and what nobody answers is over
// after ten minutes.
func TestConfirmByScriptAndInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ran := confirming(t, func(c *server.Config) { c.Confirm, c.ConfirmSelf = false, true })
		ask := func(method, path, body string) (int, sallyport.Envelope[map[string]any]) {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.RemoteAddr = "" // a caller in the same process
			w := httptest.NewRecorder()
			s.LocalHandler().ServeHTTP(w, r)
			var envelope sallyport.Envelope[map[string]any]
			if err := json.Unmarshal(w.Body.Bytes(), &envelope); err != nil {
				t.Fatal(err)
			}
			return w.Code, envelope
		}
		if status, got := ask(http.MethodPost, "/v1/skills/greet/execute", `{"script_path":"scripts/quiet.sh"}`); status != http.StatusOK {
			t.Fatalf("a script that wants none: %d %+v", status, got.Error)
		}
		question := func() string {
			status, got := ask(http.MethodPost, "/v1/skills/greet/execute", `{"script_path":"scripts/run.sh"}`)
			if status != http.StatusForbidden || got.Error.Code != sallyport.CodeConfirmationRequired {
				t.Fatalf("%d %+v", status, got.Error)
			}
			id, _ := got.Error.Details["confirmation_id"].(string)
			return id
		}
		first := question()
		time.Sleep(sallyport.ConfirmationLife)
		if status, _ := ask(http.MethodPost, "/v1/confirmations/"+first+"/approve", ""); status != http.StatusNotFound {
			t.Errorf("too late: %d", status)
		}
		second := question()
		if status, got := ask(http.MethodPost, "/v1/confirmations/"+second+"/approve", ""); status != http.StatusOK {
			t.Fatalf("itself: %d %+v", status, got.Error)
		}
		time.Sleep(sallyport.ConfirmationLife)
		if third := question(); third == second || ran.runs() != 1 {
			t.Errorf("a yes that was not used in time: %s, %d runs", third, ran.runs())
		}
	})
}

// A client that can ask its user does, in both eras of the protocol: a yes runs the call once, a no and silence do not.
func TestConfirmInTheClient(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			s, ran := confirming(t, func(*server.Config) {})
			secret := mint(t, s, "agent")
			_, url := connected(t, s, secret)
			answer := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}
			var shown string
			own := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					shown = req.Params.Message
					return answer, nil
				},
			})
			session, err := own.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: bearer(secret)},
			}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			call := func() (*mcp.CallToolResult, string) {
				got, err := session.CallTool(t.Context(), &mcp.CallToolParams{
					Name: "execute_cloud_skill", Arguments: map[string]any{"slug": "greet", "script_path": "scripts/run.sh", "input_args": map[string]any{"token": "MARKER", "n": 1}},
				})
				if err != nil {
					t.Fatal(err)
				}
				text, _ := got.Content[0].(*mcp.TextContent)
				return got, text.Text
			}
			if got, text := call(); got.IsError || ran.runs() != 1 {
				t.Fatalf("yes: %s, %d runs", text, ran.runs())
			}
			if !strings.Contains(shown, "scripts/run.sh") || !strings.Contains(shown, "sha256:") || strings.Contains(shown, "MARKER") {
				t.Errorf("the user was shown %q", shown)
			}
			for name, no := range map[string]*mcp.ElicitResult{
				"no": {Action: "decline"}, "unticked": {Action: "accept", Content: map[string]any{"confirm": false}}, "nobody there": {Action: "cancel"},
			} {
				answer = no
				if got, text := call(); !got.IsError || !strings.HasPrefix(text, "CONFIRMATION_REQUIRED: ") || ran.runs() != 1 {
					t.Errorf("%s: %s, %d runs", name, text, ran.runs())
				}
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// The state that travels through a client is good for its principal, its request and its time, and once; a client that cannot ask, or
// an installation that takes no client's word, gets the refusal.
func TestConfirmStateIsBound(t *testing.T) {
	t.Parallel()
	s, ran := confirming(t, func(*server.Config) {})
	agent, thief := mint(t, s, "agent"), mint(t, s, "thief")
	ask := func(s *server.Server, secret, n, can, more string) map[string]any {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_cloud_skill","arguments":{"slug":"greet","script_path":"scripts/run.sh","input_args":{"n":` + n + `}}` +
			more + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{` + can + `}}}}`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://sallyport.example.org/mcp", strings.NewReader(body))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
			"Mcp-Method": "tools/call", "Mcp-Name": "execute_cloud_skill", "Authorization": "Bearer " + secret,
		} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		data := w.Body.String()
		if _, after, found := strings.Cut(data, "data: "); found {
			data = after
		}
		var got struct {
			Result map[string]any
			Error  map[string]any
		}
		if err := json.Unmarshal([]byte(strings.TrimSpace(data)), &got); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		if got.Error != nil {
			return got.Error
		}
		return got.Result
	}
	const elicits = `"elicitation":{}`
	first := ask(s, agent, "1", elicits, "")
	state, _ := first["requestState"].(string)
	if content, _ := first["content"].([]any); first["resultType"] != "input_required" || state == "" || len(content) != 0 {
		t.Fatalf("got %v", first)
	}
	yes := func(state string) string {
		return `,"inputResponses":{"confirm":{"action":"accept","content":{"confirm":true}}},"requestState":` + string(mustJSON(json.Marshal(state)))
	}
	for name, got := range map[string]map[string]any{
		"tampered":     ask(s, agent, "1", elicits, yes(state+"x")),
		"no signature": ask(s, agent, "1", elicits, yes(strings.Split(state, ".")[0])),
		"another's":    ask(s, thief, "1", elicits, yes(state)),
		"made up":      ask(s, agent, "1", elicits, yes("x.y")),
		"of nothing":   ask(s, agent, "1", elicits, yes(".")),
	} {
		if code, _ := got["code"].(float64); code != -32602 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if ran.runs() != 0 {
		t.Fatalf("%d runs", ran.runs())
	}
	// The yes to one request is none to another, not even for the one it was for: nobody was shown what it came with.
	if got := ask(s, agent, "2", elicits, yes(state)); got["resultType"] != "input_required" || ran.runs() != 0 {
		t.Errorf("another request: %v, %d runs", got, ran.runs())
	}
	if got := ask(s, agent, "1", elicits, ""); got["resultType"] != "input_required" || ran.runs() != 0 {
		t.Errorf("the request it was for, without a yes: %v, %d runs", got, ran.runs())
	}
	if got := ask(s, agent, "1", elicits, yes(state)); got["isError"] == true || ran.runs() != 1 {
		t.Errorf("the request it was for: %v, %d runs", got, ran.runs())
	}
	if got := ask(s, agent, "1", elicits, yes(state)); got["isError"] != true || ran.runs() != 1 {
		t.Errorf("used again: %v, %d runs", got, ran.runs())
	}
	// No way to ask.
	for name, can := range map[string]string{"nothing declared": "", "links only": `"elicitation":{"url":{}}`} {
		got := ask(s, agent, "7", can, "")
		if text, _ := json.Marshal(got); got["isError"] != true || !strings.Contains(string(text), "sallyport approve") {
			t.Errorf("%s: %s", name, text)
		}
	}
	strict, _ := confirming(t, func(c *server.Config) { c.ConfirmInClient = false })
	if got := ask(strict, mint(t, strict, "agent"), "1", elicits, ""); got["isError"] != true || got["resultType"] != "complete" {
		t.Errorf("no client's word: %v", got)
	}
}

func mustJSON(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// A tenant's policy shows what the installation wants of every run.
func TestPolicyShowsTheInstallation(t *testing.T) {
	t.Parallel()
	for _, shown := range []bool{false, true} {
		s, _ := confirming(t, func(cfg *server.Config) { cfg.ShowSecrets = shown })
		view, err := s.Access().ShowPolicy(t.Context(), server.Operator())
		if err != nil {
			t.Fatal(err)
		}
		if e := view.Effective; !e.Confirm || e.MaskOutputs == shown {
			t.Errorf("secrets shown %v: confirm %v, mask_outputs %v", shown, e.Confirm, e.MaskOutputs)
		}
	}
}
