package mcpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

const save = "save_cloud_skill"

func TestSavePassesTheRequestOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments map[string]any
		want      registry.SaveRequest
	}{
		"least": {
			map[string]any{"name": "csv", "instructions": "Do."},
			registry.SaveRequest{},
		},
		"empty counts as absent": {
			map[string]any{"name": "csv", "instructions": "Do.", "description": "", "slug": "", "url": "", "team_id": "", "components_json": "", "publish": false, "message": "", "expected_revision_id": ""},
			registry.SaveRequest{},
		},
		"everything": {
			map[string]any{
				"name": "csv", "instructions": "Do.", "description": "Reads: things", "slug": "my-csv", "team_id": "t1", "publish": true,
				"expected_revision_id": "r1", "message": "why",
				"components_json": `[
					{"path":"scripts/x.py","kind":"script","content":"print(1)","media_type":"text/x-python","script":{"runtime":"python","input":"flags",
						"input_schema":{"type":"object","n":1.10},"argv":"free","limits":{"timeout_ms":1500,"memory_bytes":1,"processes":2,"cpu_millis":3,"scratch_bytes":4,"output_bytes":5,"artifact_bytes":6,"artifact_files":7,"cpu_time_ms":800},"secrets":["A"]}},
					{"logical_path":"references/a.bin","type":"reference","content_base64":"AP8="},
					{"path":"b.md","logical_path":"b.md","kind":"document","type":"document","content":""},
					{"path":"scripts/y","content":"","script":{}}
				]`,
			},
			registry.SaveRequest{
				Ref: sallyport.SkillRef{Slug: "my-csv", TeamID: "t1"}, ExpectedRevisionID: "r1", Publish: true, Message: "why",
				Files: []registry.File{
					{
						Path: "scripts/x.py", Kind: sallyport.KindScript, Content: []byte("print(1)"), MediaType: "text/x-python",
						Script: &sallyport.ScriptSettings{
							Runtime: "python", Input: sallyport.InputFlags, InputSchema: json.RawMessage(`{"type":"object","n":1.10}`), Argv: json.RawMessage(`"free"`),
							Limits:  sallyport.Limits{Timeout: 1500 * time.Millisecond, MemoryBytes: 1, Processes: 2, CPUMillis: 3, ScratchBytes: 4, OutputBytes: 5, ArtifactBytes: 6, ArtifactFiles: 7, CPUTime: 800 * time.Millisecond},
							Secrets: []string{"A"},
						},
					},
					{Path: "references/a.bin", Kind: sallyport.KindReference, Content: []byte{0, 0xff}},
					{Path: "b.md", Kind: sallyport.KindDocument, Content: []byte{}},
					{Path: "scripts/y", Content: []byte{}, Script: &sallyport.ScriptSettings{}},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			var got registry.SaveRequest
			f.skills.save = func(p sallyport.Principal, req registry.SaveRequest) (registry.SaveResult, error) {
				if diff := cmp.Diff(alice(), p); diff != "" {
					t.Errorf("principal (-want +got):\n%s", diff)
				}
				got = req
				return registry.SaveResult{Skill: skill("csv"), Revision: revision("r1"), Created: true}, nil
			}
			arguments, err := json.Marshal(test.arguments)
			if err != nil {
				t.Fatal(err)
			}
			if r := f.call(t, alice(), save, string(arguments)); r.IsError {
				t.Fatalf("got %s", r.Structured)
			}
			if len(got.Files) == 0 || got.Files[0].Path != "SKILL.md" {
				t.Fatalf("the first file is not SKILL.md: %+v", got.Files)
			}
			text := string(got.Files[0].Content)
			for _, part := range []string{"name: ", "csv", "\n---\n", "Do."} {
				if !strings.Contains(text, part) {
					t.Errorf("SKILL.md %q lacks %q", text, part)
				}
			}
			if got.Files = got.Files[1:]; len(got.Files) == 0 {
				got.Files = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSaveAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result registry.SaveResult
		text   []string
	}{
		"created": {
			registry.SaveResult{Skill: skill("csv"), Revision: revision("r1"), Created: true},
			[]string{"Created csv (skill_id id-csv): revision 3, published, revision_id r1, sha256:", "3 files."},
		},
		"draft": {
			registry.SaveResult{Skill: skill("csv"), Revision: revision("r2"), Problems: []registry.Problem{{Code: "DESCRIPTION_MISSING", File: "SKILL.md", Message: "say what it does", Severity: "warning"}}},
			[]string{"Saved csv", "call again with publish true", "- warning DESCRIPTION_MISSING: say what it does"},
		},
		"unchanged": {
			registry.SaveResult{Skill: skill("csv"), Revision: revision("r1"), Unchanged: true},
			[]string{"Nothing changed in csv"},
		},
		"many problems": {
			registry.SaveResult{Skill: skill("csv"), Revision: revision("r1"), Problems: slicesRepeat(registry.Problem{Code: "X", Message: "y", Severity: "note"}, 60)},
			[]string{"10 more problems left out"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.skills.save = func(sallyport.Principal, registry.SaveRequest) (registry.SaveResult, error) { return test.result, nil }
			r := f.call(t, alice(), save, `{"name":"csv","instructions":"Do."}`)
			for _, part := range test.text {
				if !strings.Contains(r.Content[0].Text, part) {
					t.Errorf("text %q lacks %q", r.Content[0].Text, part)
				}
			}
			var data struct {
				Created, Unchanged, Published bool
				Problems                      []registry.Problem
				Left                          int `json:"problems_left_out"`
			}
			if err := json.Unmarshal(r.envelope.Data, &data); err != nil {
				t.Fatal(err)
			}
			if data.Created != test.result.Created || data.Unchanged != test.result.Unchanged || data.Published != (test.result.Revision.ID == "r1") {
				t.Errorf("data: got %s", r.envelope.Data)
			}
			if data.Problems == nil || len(data.Problems)+data.Left != len(test.result.Problems) || len(data.Problems) > 50 {
				t.Errorf("%d problems and %d left out, want %d together and at most 50", len(data.Problems), data.Left, len(test.result.Problems))
			}
		})
	}
}

func slicesRepeat[T any](v T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func TestSaveRefuses(t *testing.T) {
	t.Parallel()
	components := func(list string) string {
		encoded, _ := json.Marshal(list)
		return fmt.Sprintf(`{"name":"csv","instructions":"Do.","components_json":%s}`, encoded)
	}
	for name, test := range map[string]struct {
		arguments string
		code      sallyport.Code
		want      string
	}{
		"nothing":             {`{}`, sallyport.CodeInvalidArgument, "name and instructions are required"},
		"blank instructions":  {`{"name":"x","instructions":" \n"}`, sallyport.CodeInvalidArgument, "name and instructions are required"},
		"url and name":        {`{"url":"https://example.com/x.zip","name":"x","instructions":"y"}`, sallyport.CodeInvalidArgument, "url brings the whole skill"},
		"url and components":  {`{"url":"https://example.com/x.zip","components_json":"[{}]"}`, sallyport.CodeInvalidArgument, "url brings the whole skill"},
		"unknown":             {`{"name":"x","instructions":"y","content":"z"}`, sallyport.CodeInvalidArgument, "unknown field at /content"},
		"publish as text":     {`{"name":"x","instructions":"y","publish":"true"}`, sallyport.CodeInvalidArgument, "wrong type at /publish"},
		"list, not its text":  {`{"name":"x","instructions":"y","components_json":[]}`, sallyport.CodeInvalidArgument, "wrong type at /components_json"},
		"no JSON":             {components(`[{`), sallyport.CodeInvalidArgument, "components_json: the JSON is empty or ends too early"},
		"object":              {components(`{}`), sallyport.CodeInvalidArgument, "components_json: wrong type"},
		"twice":               {components(`[{"path":"a","path":"b","content":""}]`), sallyport.CodeInvalidArgument, "duplicate"},
		"unknown in it":       {components(`[{"path":"a","content":"","mode":1}]`), sallyport.CodeInvalidArgument, "components_json: unknown field at /0/mode"},
		"unknown in script":   {components(`[{"path":"a","content":"","script":{"interpreter":"x"}}]`), sallyport.CodeInvalidArgument, "unknown field at /0/script/interpreter"},
		"unknown in limits":   {components(`[{"path":"a","content":"","script":{"limits":{"timeout":1}}}]`), sallyport.CodeInvalidArgument, "unknown field at /0/script/limits/timeout"},
		"no path":             {components(`[{"content":""}]`), sallyport.CodeInvalidArgument, "components_json[0]: path is required"},
		"two paths":           {components(`[{"path":"a","logical_path":"b","content":""}]`), sallyport.CodeInvalidArgument, "path and logical_path differ"},
		"two kinds":           {components(`[{"path":"a","kind":"script","type":"document","content":""}]`), sallyport.CodeInvalidArgument, "kind and type differ"},
		"bad kind":            {components(`[{"path":"a","kind":"tool","content":""}]`), sallyport.CodeInvalidArgument, `the kind "tool" is none of script, reference`},
		"no content":          {components(`[{"path":"a"}]`), sallyport.CodeInvalidArgument, "content or content_base64 is required"},
		"both contents":       {components(`[{"path":"a","content":"","content_base64":""}]`), sallyport.CodeInvalidArgument, "exclude each other"},
		"bad base64":          {components(`[{"path":"a","content_base64":"a"}]`), sallyport.CodeInvalidArgument, "not standard base64"},
		"same path":           {components(`[{"path":"a","content":""},{"path":"A","content":""}]`), sallyport.CodeInvalidArgument, "components_json[1]: the path A comes twice"},
		"skill.md":            {components(`[{"path":"skill.md","content":""}]`), sallyport.CodeInvalidArgument, "is SKILL.md, which is made from"},
		"escape":              {components(`[{"path":"../a","content":""}]`), sallyport.CodeUnsafePath, "the path has a . or .. segment"},
		"absolute":            {components(`[{"path":"/a","content":""}]`), sallyport.CodeUnsafePath, "absolute"},
		"settings of no file": {components(`[{"path":"a","kind":"document","content":"","script":{}}]`), sallyport.CodeInvalidArgument, "script settings do not go with the kind document"},
		"bad input":           {components(`[{"path":"a","content":"","script":{"input":"env"}}]`), sallyport.CodeInvalidArgument, `the input "env" is none of stdin, flags, none`},
		"negative limit":      {components(`[{"path":"a","content":"","script":{"limits":{"memory_bytes":-1}}}]`), sallyport.CodeInvalidArgument, "must not be negative"},
		"limit that wraps":    {components(`[{"path":"a","content":"","script":{"limits":{"timeout_ms":9223372036854775807}}}]`), sallyport.CodeInvalidArgument, "timeout_ms must not be over 86400000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t).call(t, alice(), save, test.arguments)
			if r.code() != test.code || r.envelope.Kind != "save" || string(r.envelope.Data) != "null" {
				t.Fatalf("got %s, want %s without data", r.Structured, test.code)
			}
			if !strings.Contains(r.envelope.Error.Message, test.want) {
				t.Errorf("message: got %q, want it to contain %q", r.envelope.Error.Message, test.want)
			}
		})
	}
}

func TestSaveConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.skills.save = func(sallyport.Principal, registry.SaveRequest) (registry.SaveResult, error) {
		return registry.SaveResult{}, &sallyport.Error{Op: "x", Code: sallyport.CodeRevisionConflict}
	}
	if r := f.call(t, alice(), save, `{"name":"csv","instructions":"Do."}`); r.code() != sallyport.CodeRevisionConflict {
		t.Errorf("got %s, want REVISION_CONFLICT", r.Structured)
	}
	if r := newFixture(t).call(t, bob(), save, `{}`); r.code() != sallyport.CodeAccessDenied {
		t.Errorf("got %s, want ACCESS_DENIED", r.Structured)
	}
}
