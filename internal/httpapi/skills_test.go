package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestListSkills(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got registry.ListRequest
	w.skills.list = func(req registry.ListRequest) (registry.ListResult, error) {
		got = req
		return registry.ListResult{Skills: []sallyport.Skill{sampleSkill()}, NextCursor: "n", LeftOut: 3}, nil
	}
	answer := w.call(http.MethodGet, "/v1/skills?team_id=ops&query=a+b&archived=true&limit=200&cursor=c", "")
	if answer.status != http.StatusOK {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	want := registry.ListRequest{TeamID: "ops", Query: "a b", IncludeArchived: true, Limit: 200, Cursor: "c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	// Beyond the document, which has no words for it: an empty parameter counts as absent.
	w.handler.ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/skills?team_id=&query=&archived=&limit=&cursor=", nil))
	if diff := cmp.Diff(registry.ListRequest{}, got); diff != "" {
		t.Errorf("empty parameters count as absent (-want +got):\n%s", diff)
	}
	w.skills.list = func(registry.ListRequest) (registry.ListResult, error) { return registry.ListResult{}, nil }
	if answer := w.call(http.MethodGet, "/v1/skills", ""); !strings.Contains(string(answer.body), `"skills":[]`) {
		t.Errorf("no skills are a list: %s", answer.body)
	}
}

func TestBadQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // no service may be reached
	for name, test := range map[string]struct{ target, want string }{
		"unknown parameter":       {"/v1/skills?teamid=x", `unknown query parameter "teamid": this route takes team_id, query, archived, limit, cursor`},
		"unknown where none":      {"/v1/keys?x=1", "this route takes none"},
		"key in the query":        {"/v1/skills?access_token=spk_x", "unknown query parameter"},
		"doubled":                 {"/v1/skills?limit=1&limit=2", "limit is sent more than once"},
		"bad escape":              {"/v1/skills?query=%zz", "malformed"},
		"semicolon":               {"/v1/skills?query=a;limit=1", "malformed"},
		"not UTF-8":               {"/v1/skills?query=%ff", "not valid UTF-8"},
		"limit zero":              {"/v1/skills?limit=0", "limit must be a whole number from 1 to 200"},
		"limit over":              {"/v1/skills?limit=201", "from 1 to 200"},
		"limit negative":          {"/v1/skills?limit=-1", "from 1 to 200"},
		"limit text":              {"/v1/skills?limit=x", "from 1 to 200"},
		"limit fraction":          {"/v1/skills?limit=1.5", "from 1 to 200"},
		"limit huge":              {"/v1/skills?limit=99999999999999999999", "from 1 to 200"},
		"archived":                {"/v1/skills?archived=yes", "archived must be true or false"},
		"raw":                     {"/v1/skills/x/components/a?raw=2", "raw must be true or false"},
		"status":                  {"/v1/executions?status=done", "status is none of"},
		"executions limit":        {"/v1/executions?limit=201", "from 1 to 200"},
		"audit limit":             {"/v1/audit?limit=1001", "from 1 to 1000"},
		"audit since":             {"/v1/audit?since=yesterday", "since must be an RFC 3339 time"},
		"audit until":             {"/v1/audit?until=2026-01-31", "until must be an RFC 3339 time"},
		"audit after":             {"/v1/audit?after=-1", "after must be a whole number"},
		"audit newest_first":      {"/v1/audit?newest_first=desc", "newest_first must be true or false"},
		"long name is not echoed": {"/v1/skills?" + strings.Repeat("q", 1000) + "=1", strings.Repeat("q", 64) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := (&world{t: t, handler: w.handler}).call(http.MethodGet, test.target, "")
			code, message := got.refusal(t)
			if got.status != http.StatusBadRequest || code != "INVALID_ARGUMENT" || !strings.Contains(message, test.want) {
				t.Errorf("%d %s %q, want it to contain %q", got.status, code, message, test.want)
			}
		})
	}
}

func TestSkillByIDOrSlug(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]struct {
		target string
		want   sallyport.SkillRef
	}{
		"slug":                 {"/v1/skills/csv-profiler", sallyport.SkillRef{Slug: "csv-profiler"}},
		"slug and team":        {"/v1/skills/csv-profiler?team_id=ops", sallyport.SkillRef{Slug: "csv-profiler", TeamID: "ops"}},
		"id":                   {"/v1/skills/" + skillID, sallyport.SkillRef{SkillID: skillID}},
		"id in capitals":       {"/v1/skills/" + strings.ToUpper(skillID), sallyport.SkillRef{SkillID: skillID}},
		"almost an id":         {"/v1/skills/" + skillID[:35], sallyport.SkillRef{Slug: skillID[:35]}},
		"id's length, no id":   {"/v1/skills/" + skillID[:35] + "g", sallyport.SkillRef{Slug: skillID[:35] + "g"}},
		"id with a wrong dash": {"/v1/skills/0190a0b00-000-7000-8000-000000000001", sallyport.SkillRef{Slug: "0190a0b00-000-7000-8000-000000000001"}},
		"escaped":              {"/v1/skills/a%2Fb", sallyport.SkillRef{Slug: "a/b"}},
	} {
		var got sallyport.SkillRef
		revision := sampleRevision()
		w.skills.show = func(ref sallyport.SkillRef) (registry.SkillView, error) {
			got = ref
			return registry.SkillView{Skill: sampleSkill(), Published: &revision, Latest: &revision}, nil
		}
		if answer := w.call(http.MethodGet, test.target, ""); answer.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, answer.status, answer.body)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestServiceRefusalsKeepTheirCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, info := range sallyport.Catalogue() {
		if info.Class == sallyport.ClassOutcome {
			continue
		}
		w.skills.show = func(sallyport.SkillRef) (registry.SkillView, error) {
			return registry.SkillView{}, &sallyport.Error{Op: "x", Code: info.Code}
		}
		got := w.call(http.MethodGet, "/v1/skills/x", "")
		if code, _ := got.refusal(t); code != string(info.Code) || got.json(t)["kind"] != "skill" || got.json(t)["data"] != nil {
			t.Errorf("%s: %d %s", info.Code, got.status, got.body)
		}
	}
}

func TestPublishArchiveRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var seen []string
	w.skills.publish = func(ref sallyport.SkillRef, id sallyport.RevisionID) (registry.SkillView, error) {
		seen = append(seen, "publish "+ref.Slug+" "+string(ref.TeamID)+" "+string(id))
		return registry.SkillView{Skill: sampleSkill()}, nil
	}
	w.skills.archive = func(ref sallyport.SkillRef) (sallyport.Skill, error) {
		seen = append(seen, "archive "+ref.Slug)
		return sampleSkill(), nil
	}
	w.skills.restore = func(ref sallyport.SkillRef) (sallyport.Skill, error) {
		seen = append(seen, "restore "+ref.Slug)
		return sampleSkill(), nil
	}
	for _, call := range [][2]string{
		{"/v1/skills/x/publish?team_id=ops", `{"revision_id":"rev-1"}`},
		{"/v1/skills/x/publish", `{}`},
		{"/v1/skills/x/publish", ``},
		{"/v1/skills/x/archive", ``},
		{"/v1/skills/x/restore", `{}`},
	} {
		got := w.call(http.MethodPost, call[0], call[1])
		if got.status != http.StatusOK || got.json(t)["kind"] != "skill" {
			t.Errorf("%s: %d %s", call[0], got.status, got.body)
		}
	}
	want := []string{"publish x ops rev-1", "publish x  ", "publish x  ", "archive x", "restore x"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestSave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got registry.SaveRequest
	result := registry.SaveResult{
		Skill: sampleSkill(), Revision: sampleRevision(), Created: true,
		Problems: []registry.Problem{{Code: "X", File: "SKILL.md", Line: 2, Message: "m", Severity: "warning"}},
	}
	w.skills.save = func(req registry.SaveRequest) (registry.SaveResult, error) {
		got = req
		return result, nil
	}
	answer := w.call(http.MethodPost, "/v1/skills", `{
		"slug":"csv-profiler","skill_id":"s","team_id":"ops","personal":true,"replace_all":true,"expected_revision_id":"rev-0",
		"create_only":true,"publish":true,"message":"m","remove":["old.txt"],
		"files":[
			{"path":"SKILL.md","content":"hé\n","kind":"document","media_type":"text/markdown"},
			{"path":"a.bin","content_base64":"/wA=","mode":493},
			{"path":"empty","content":""},
			{"path":"s.py","content":"x","kind":"script","script":{"runtime":"python","input":"flags",
				"input_schema":{"type" : "object","n":9007199254740993},"argv":"none","limits":{"timeout_ms":1500,"memory_bytes":7},"secrets":["T"]}}
		]}`)
	if answer.status != http.StatusCreated {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	if got := answer.header.Get("Location"); got != "/v1/skills/"+skillID+"/revisions/rev-1" {
		t.Errorf("location %q", got)
	}
	want := registry.SaveRequest{
		Ref:      sallyport.SkillRef{SkillID: "s", Slug: "csv-profiler", TeamID: "ops"},
		Personal: true, ReplaceAll: true, ExpectedRevisionID: "rev-0", CreateOnly: true, Publish: true, Message: "m",
		Remove: []string{"old.txt"},
		Files: []registry.File{
			{Path: "SKILL.md", Content: []byte("hé\n"), Kind: sallyport.KindDocument, MediaType: "text/markdown"},
			{Path: "a.bin", Content: []byte{0xff, 0}, Mode: 0o755},
			{Path: "empty", Content: []byte{}},
			{Path: "s.py", Content: []byte("x"), Kind: sallyport.KindScript, Script: &sallyport.ScriptSettings{
				Runtime: "python", Input: sallyport.InputFlags, InputSchema: json.RawMessage(`{"type" : "object","n":9007199254740993}`),
				Argv: json.RawMessage(`"none"`), Limits: sallyport.Limits{Timeout: 1500 * time.Millisecond, MemoryBytes: 7},
				Secrets: []string{"T"},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	result = registry.SaveResult{Skill: sampleSkill(), Revision: sampleRevision(), Unchanged: true}
	if answer := w.call(http.MethodPost, "/v1/skills", `{"files":[]}`); answer.status != http.StatusOK ||
		!strings.Contains(string(answer.body), `"problems":[]`) {
		t.Errorf("unchanged: %d %s", answer.status, answer.body)
	}
}
