package mcpapi_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

const gatherTool = "recall_context"

// estimate is the estimate as docs/mcp.md and the tool's schema state it.
func estimate(text string) int {
	sixths := 0
	for _, b := range []byte(text) {
		if b < 0x80 {
			sixths += 2
		} else {
			sixths += 3
		}
	}
	return (sixths + 5) / 6
}

type bundle struct {
	MaxTokens       int `json:"max_tokens"`
	EstimatedTokens int `json:"estimated_tokens"`
	Items           []struct {
		Kind        string          `json:"kind"`
		Slug        string          `json:"slug"`
		Text        string          `json:"text"`
		Truncated   bool            `json:"truncated"`
		Description string          `json:"description"`
		Draft       bool            `json:"draft"`
		InputSchema json.RawMessage `json:"input_schema"`
		LeftOut     bool            `json:"input_schema_left_out"`
		Runnable    *bool           `json:"runnable"`
		Gate        *struct {
			Code, Message, Remedy string
		} `json:"gate"`
		Recent []struct {
			Status      string `json:"status"`
			SameContent bool   `json:"same_content"`
		} `json:"recent"`
		Source struct {
			URI       string `json:"uri"`
			Path      string `json:"path"`
			StartLine int    `json:"start_line"`
			EndLine   int    `json:"end_line"`
			Digest    string `json:"digest"`
		} `json:"source"`
	} `json:"items"`
	Cut []struct {
		Kind, Slug, Path, Reason string
	} `json:"cut"`
	CutMore       int      `json:"cut_more"`
	SkillsLeftOut int      `json:"skills_left_out"`
	Ignored       []string `json:"ignored"`
}

// gather calls the tool and holds the answer against its budget.
func (l library) gather(t *testing.T, p sallyport.Principal, arguments string) (bundle, toolResult) {
	t.Helper()
	r := l.call(t, p, gatherTool, arguments)
	if r.code() != "" {
		t.Fatalf("%s: %s", arguments, r.Structured)
	}
	var b bundle
	if err := json.Unmarshal(r.envelope.Data, &b); err != nil {
		t.Fatal(err)
	}
	used := max(estimate(string(r.Structured)), estimate(r.Content[0].Text))
	if used > b.MaxTokens || b.EstimatedTokens > b.MaxTokens || used > b.EstimatedTokens {
		t.Errorf("%s: %d tokens are used, %d estimated, %d allowed", arguments, used, b.EstimatedTokens, b.MaxTokens)
	}
	return b, r
}

func (b bundle) outline() []string {
	out := []string{}
	for _, i := range b.Items {
		line := i.Kind + " " + i.Slug
		if i.Source.Path != "" {
			line += " " + i.Source.Path
		}
		if i.Source.StartLine > 0 {
			line += fmt.Sprintf(" %d-%d", i.Source.StartLine, i.Source.EndLine)
		}
		out = append(out, line)
	}
	return out
}

// answering lets the script scripts/free.py run, and refuses every other for want of a grant.
func (l library) answering() {
	l.runs.explain = func(_ sallyport.Principal, req run.Request) (run.Explanation, error) {
		if req.ScriptPath == "scripts/free.py" {
			return run.Explanation{Runnable: true}, nil
		}
		return run.Explanation{
			Refusal: &sallyport.PublicError{Code: sallyport.CodeGrantMissing, Message: "no grant"}, Remedy: "a reviewer grants it",
		}, nil
	}
	l.runs.list = func(sallyport.Principal, run.ListRequest) (run.ListResult, error) { return run.ListResult{}, nil }
}

func TestGather(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.answering()
	saved := l.keep(
		t, published(), "SKILL.md", "---\nname: csv\ndescription: Profiles CSV files.\n---\n# Use\nRun it.\n\n# Profile\nProfile a file with free.py.\n",
		"references/types.md", "# Types\nHow to profile types.\n\n# Else\nx\n", "scripts/free.py", "print(1)\n", "scripts/held.py", "print(2)\n",
		"sallyport.yaml", "scripts: {\"scripts/free.py\": {input_schema: {type: object, properties: {path: {type: string}}}}}\n",
	)
	l.keep(t, registry.SaveRequest{}, "SKILL.md", "---\nname: draft\ndescription: Will one day profile what is in a csv.\n---\nLater.\n")
	l.runs.list = func(_ sallyport.Principal, req run.ListRequest) (run.ListResult, error) {
		if req.Ref.SkillID != saved.Skill.ID {
			return run.ListResult{}, nil
		}
		var out []sallyport.Execution
		for i := range 5 {
			e := sallyport.Execution{ID: sallyport.ExecutionID(fmt.Sprint("e", i)), ScriptPath: "scripts/free.py", Status: sallyport.StatusSuccess, CreatedAt: time.Unix(int64(i), 0)}
			if i == 0 {
				e.RevisionDigest = saved.Revision.Digest
			}
			out = append(out, e)
		}
		return run.ListResult{Executions: out}, nil
	}
	got, r := l.gather(t, alice(), `{"query":"please profile my csv"}`)
	want := []string{
		"skill csv", "instructions csv SKILL.md 8-9", "script csv scripts/free.py", "script csv scripts/held.py", "reference csv references/types.md 1-2",
		"skill draft", "instructions draft SKILL.md 5-5",
	}
	if diff := cmp.Diff(want, got.outline()); diff != "" {
		t.Fatalf("items (-want +got):\n%s", diff)
	}
	free, held := got.Items[2], got.Items[3]
	if free.Runnable == nil || !*free.Runnable || free.Gate != nil || len(free.InputSchema) == 0 || len(free.Recent) != 3 || !free.Recent[0].SameContent || free.Recent[1].SameContent {
		t.Errorf("free.py is %+v", free)
	}
	if held.Runnable == nil || *held.Runnable || held.Gate == nil || held.Gate.Code != "GRANT_MISSING" || held.Gate.Remedy != "a reviewer grants it" {
		t.Errorf("held.py is %+v", held)
	}
	if got.Items[0].Source.Digest != string(saved.Revision.Digest) || !got.Items[5].Draft || len(got.Cut) != 0 || len(got.Ignored) != 0 {
		t.Errorf("%+v", got)
	}
	for _, part := range []string{"You may run it now.", "You may not run it now: GRANT_MISSING: no grant. a reviewer grants it", "Profile a file with free.py."} {
		if !strings.Contains(r.Content[0].Text, part) {
			t.Errorf("the text lacks %q:\n%s", part, r.Content[0].Text)
		}
	}
	// Every source can be read, is what its digest says and has the text on its lines.
	for _, item := range got.Items {
		if item.Kind == "skill" {
			continue
		}
		var read skillsPage
		l.get(t, alice(), "resources/read", `{"uri":"`+item.Source.URI+`"}`, &read)
		content, err := read.Contents[0].bytes()
		if err != nil {
			t.Fatal(err)
		}
		if string(sallyport.DigestOf(content)) != item.Source.Digest {
			t.Errorf("%s is not what its digest says", item.Source.URI)
		}
		if item.Source.StartLine > 0 {
			lines := strings.Split(string(content), "\n")[item.Source.StartLine-1 : item.Source.EndLine]
			if strings.Join(lines, "\n") != item.Text {
				t.Errorf("%s lines %d-%d are %q, want %q", item.Source.URI, item.Source.StartLine, item.Source.EndLine, lines, item.Text)
			}
		}
	}
	again, _ := l.gather(t, alice(), `{"query":"please profile my csv"}`)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("the same question has another answer:\n%s", diff)
	}
}

// Every parameter of such tools is accepted; what means nothing here and asks for something is named.
func TestGatherParameters(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.answering()
	l.keep(t, published(), "SKILL.md", manifest("plain"), "references/a.md", "plain a\n", "notes/b.md", "plain b\n", "scripts/x.py", "print(1)\n")
	all := `{"query":"plain","scope":"team","bucket":"work","team_id":"default","agent_id":"a","agent_instance_id":"i","limit":3,"max_items":9,"max_tokens":3000,` +
		`"memory_type":"episodic","path_filter":"references/%","prefer_working":true,"output_json":true,"include_knowledge":true}`
	got, r := l.gather(t, alice(), all)
	want := []string{"agent_id", "agent_instance_id", "bucket", "include_knowledge", "memory_type", "prefer_working", "scope"}
	if diff := cmp.Diff(want, got.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"skill plain", "instructions plain SKILL.md 5-5", "reference plain references/a.md 1-1"}, got.outline()); diff != "" {
		t.Errorf("items below references (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(r.envelope.Data, json.RawMessage(r.Content[0].Text), sameJSON(t)); diff != "" {
		t.Errorf("output_json: the text is not the data:\n%s", diff)
	}
	defaults, _ := l.gather(t, alice(), `{"query":"plain","scope":"","bucket":"%","agent_id":"","memory_type":"auto","path_filter":"%","prefer_working":false,"output_json":false}`)
	if len(defaults.Ignored) != 0 || len(defaults.Items) != 5 {
		t.Errorf("defaults: ignored %q, items %q", defaults.Ignored, defaults.outline())
	}
	for _, bad := range []string{
		`{}`, `{"query":""}`, `{"query":" "}`, `{"query":"?"}`, `{"query":1}`, `{"query":"a","limit":0}`, `{"query":"a","limit":21}`, `{"query":"a","max_items":0}`,
		`{"query":"a","max_tokens":255}`, `{"query":"a","max_tokens":64001}`, `{"query":"a","max_tokens":"9"}`, `{"query":"a","max_tokens":1e3}`, `{"query":"a","prefer_working":"yes"}`,
		`{"query":"a","bucket":1}`, `{"query":"a","unknown":1}`, `{"query":"a","query":"b"}`,
	} {
		if r := l.call(t, alice(), gatherTool, bad); r.code() != sallyport.CodeInvalidArgument {
			t.Errorf("%s: %s", bad, r.Structured)
		}
	}
	if r := l.call(t, alice(), gatherTool, `{"query":"a","team_id":"elsewhere"}`); r.code() != sallyport.CodeAccessDenied {
		t.Errorf("another team: %s", r.Structured)
	}
	nobody := alice()
	nobody.Scopes = []sallyport.Scope{sallyport.ScopeMemoryWrite}
	if r := l.call(t, nobody, gatherTool, `{"query":""}`); r.code() != sallyport.CodeAccessDenied {
		t.Errorf("without memory:read: %s", r.Structured)
	}
}

// Who may only read is told so, and a mismatch of arguments says what to send; what broke is an error of the call.
func TestGatherGates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		explanation  run.Explanation
		err          error
		code, remedy string
		broken       sallyport.Code
	}{
		"no scope":      {err: &sallyport.Error{Op: "x", Code: sallyport.CodeAccessDenied}, code: "ACCESS_DENIED", remedy: "memory:write"},
		"arguments":     {explanation: run.Explanation{Refusal: &sallyport.PublicError{Code: sallyport.CodeArgumentsMismatch}}, code: "ARGUMENTS_MISMATCH", remedy: "input_schema"},
		"sandbox":       {explanation: run.Explanation{Refusal: &sallyport.PublicError{Code: sallyport.CodeSandboxUnavailable}, Remedy: "doctor"}, code: "SANDBOX_UNAVAILABLE", remedy: "doctor"},
		"store is away": {err: &sallyport.Error{Op: "x", Code: sallyport.CodeStoreUnavailable}, broken: sallyport.CodeStoreUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t)
			l.answering()
			l.runs.explain = func(sallyport.Principal, run.Request) (run.Explanation, error) { return test.explanation, test.err }
			l.keep(t, published(), "SKILL.md", manifest("plain"), "scripts/x.py", "print(1)\n")
			if test.broken != "" {
				if r := l.call(t, bob(), gatherTool, `{"query":"plain"}`); r.code() != test.broken {
					t.Errorf("%s", r.Structured)
				}
				return
			}
			got, _ := l.gather(t, bob(), `{"query":"plain"}`)
			script := got.Items[len(got.Items)-1]
			if script.Runnable == nil || *script.Runnable || script.Gate == nil || script.Gate.Code != test.code || !strings.Contains(script.Gate.Remedy, test.remedy) {
				t.Errorf("script %+v %+v", script, script.Gate)
			}
		})
	}
}

// What has no room is listed with the reason, and shortened before it is left out.
func TestGatherCuts(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.answering()
	schema := `{type: object, description: "` + strings.Repeat("long ", 400) + `"}`
	l.keep(t, published(), "SKILL.md", manifest("plain")+strings.Repeat("plain words\n", 300), "references/a.md", strings.Repeat("plain\n", 500),
		"scripts/x.py", "print(1)\n", "sallyport.yaml", "scripts: {scripts/x.py: {input_schema: "+schema+"}}\n")
	got, _ := l.gather(t, alice(), `{"query":"plain","max_tokens":700}`)
	var cut, shortened bool
	for _, item := range got.Items {
		shortened = shortened || item.Truncated || item.LeftOut
	}
	for _, c := range got.Cut {
		cut = cut || c.Reason == "max_tokens" && c.Path != ""
	}
	if !cut || !shortened || got.CutMore < 0 {
		t.Errorf("cut %+v and %d more, items %q", got.Cut, got.CutMore, got.outline())
	}
	few, _ := l.gather(t, alice(), `{"query":"plain","max_items":1,"max_tokens":20000}`)
	if len(few.Items) != 1 || len(few.Cut) == 0 || few.Cut[0].Reason != "max_items" {
		t.Errorf("one item: %q, cut %+v", few.outline(), few.Cut)
	}
	total := len(few.Items) + len(few.Cut) + few.CutMore
	whole, _ := l.gather(t, alice(), `{"query":"plain","max_items":200,"max_tokens":64000}`)
	if len(whole.Items) != total || len(whole.Cut) != 0 {
		t.Errorf("%d items with room for all, %d counted before", len(whole.Items), total)
	}
}

// Nothing found is an answer.
func TestGatherFindsNothing(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	got, r := l.gather(t, alice(), `{"query":"zebra","max_tokens":256}`)
	if len(got.Items) != 0 || !strings.Contains(r.Content[0].Text, "Nothing") {
		t.Errorf("%+v %s", got, r.Content[0].Text)
	}
}

// The budget holds for any corpus, any budget and both forms; gather checks it at every call.
func TestGatherBudgetHolds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 11))
	words := []string{"task ", "\n", "\n\n", "# Heading task\n", "<&>", "\"quoted\\\" ", "技能技能", "😀", "\u2028", "```\n", strings.Repeat("x", 3000), "\t", "task task\n", "\u0001"}
	text := func(most int) string {
		var b strings.Builder
		for range random.IntN(most) {
			b.WriteString(words[random.IntN(len(words))])
		}
		return b.String()
	}
	for range 6 {
		l := newLibrary(t)
		l.answering()
		for i := range 1 + random.IntN(8) {
			name := fmt.Sprintf("task-%d", i)
			files := []string{"SKILL.md", "---\nname: " + name + "\ndescription: \"task " + strings.Repeat("é<", random.IntN(400)) + "\"\n---\n" + text(200)}
			for j := range random.IntN(12) {
				files = append(files, fmt.Sprintf("references/%s%d.md", strings.Repeat("é", random.IntN(80)), j), text(60))
			}
			declared := "scripts:\n"
			for j := range random.IntN(8) {
				path := fmt.Sprintf("scripts/task %d.py", j)
				files = append(files, path, "print(1)\n")
				declared += fmt.Sprintf("  %q: {input_schema: {description: %q}}\n", path, strings.Repeat("<技>", random.IntN(500)))
			}
			if strings.Contains(declared, "input_schema") {
				files = append(files, "sallyport.yaml", declared)
			}
			l.keep(t, published(), files...)
		}
		for range 8 {
			l.gather(t, alice(), fmt.Sprintf(`{"query":"task","limit":%d,"max_items":%d,"max_tokens":%d,"output_json":%v,"bucket":"b","scope":"s","agent_id":"a"}`,
				1+random.IntN(20), 1+random.IntN(200), 256+random.IntN([]int{100, 2000, 60_000}[random.IntN(3)]), random.IntN(2) == 0))
		}
	}
}
