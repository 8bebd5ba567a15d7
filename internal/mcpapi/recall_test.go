package mcpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

const recall = "recall_cloud_skill"

func skill(slug string) sallyport.Skill {
	return sallyport.Skill{
		ID: sallyport.SkillID("id-" + slug), TenantID: "acme", TeamID: "default", Slug: slug, Name: slug,
		Description: "does  " + slug + "\nand more", PublishedRevisionID: "r1", LatestRevisionID: "r2",
	}
}

// recalled is the data of recall, as a client reads it.
type recalled struct {
	Level  int `json:"level"`
	Skills []struct {
		Slug        string `json:"slug"`
		SkillID     string `json:"skill_id"`
		Description string `json:"description"`
		Archived    bool   `json:"archived"`
	} `json:"skills"`
	LeftOut *int `json:"left_out"`
	Skill   *struct {
		Slug                  string          `json:"slug"`
		Frontmatter           json.RawMessage `json:"frontmatter"`
		Instructions          string          `json:"instructions"`
		InstructionsTruncated bool            `json:"instructions_truncated"`
		Revision              struct {
			RevisionID string `json:"revision_id"`
			Digest     string `json:"digest"`
			Files      int    `json:"files"`
		} `json:"revision"`
		Scripts []struct {
			Path               string          `json:"path"`
			Runtime            string          `json:"runtime"`
			InputSchema        json.RawMessage `json:"input_schema"`
			InputSchemaLeftOut bool            `json:"input_schema_left_out"`
		} `json:"scripts"`
		Components []struct {
			Path string `json:"path"`
			Kind string `json:"kind"`
		} `json:"components"`
		LeftOut map[string]any `json:"left_out"`
	} `json:"skill"`
	Resource *struct {
		Path          string  `json:"path"`
		MediaType     string  `json:"media_type"`
		Size          int64   `json:"size"`
		Content       *string `json:"content"`
		ContentBase64 *string `json:"content_base64"`
		Offset        int     `json:"offset"`
		ReturnedBytes int     `json:"returned_bytes"`
		Truncated     bool    `json:"truncated"`
		NextOffset    int     `json:"next_offset"`
	} `json:"resource"`
}

func (f *fixture) recall(t *testing.T, arguments string) (recalled, toolResult) {
	t.Helper()
	r := f.call(t, bob(), recall, arguments)
	if r.IsError {
		t.Fatalf("got %s", r.Structured)
	}
	var data recalled
	if err := json.Unmarshal(r.envelope.Data, &data); err != nil {
		t.Fatal(err)
	}
	return data, r
}

func TestRecallSearch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments string
		want      registry.ListRequest
	}{
		"nothing":       {`{}`, registry.ListRequest{Limit: 10}},
		"query":         {`{"query":"csv OR \"x","limit":50,"team_id":"t1"}`, registry.ListRequest{Query: `csv OR "x`, Limit: 50, TeamID: "t1"}},
		"empty strings": {`{"query":"","slug":"","skill_id":"","resource":"","revision_id":""}`, registry.ListRequest{Limit: 10}},
		"nulls":         {`{"query":null,"slug":null,"limit":null,"offset":null}`, registry.ListRequest{Limit: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			archived := skill("old")
			archived.ArchivedAt, archived.PublishedRevisionID = new(time.Now()), ""
			f.skills.list = func(p sallyport.Principal, req registry.ListRequest) (registry.ListResult, error) {
				if diff := cmp.Diff(bob(), p); diff != "" {
					t.Errorf("principal (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.want, req); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
				return registry.ListResult{Skills: []sallyport.Skill{skill("csv"), archived}, LeftOut: 3}, nil
			}
			data, r := f.recall(t, test.arguments)
			if data.Level != 0 || len(data.Skills) != 2 || data.Skills[0].SkillID != "id-csv" || !data.Skills[1].Archived || *data.LeftOut != 3 {
				t.Errorf("data: got %s", r.envelope.Data)
			}
			want := "- csv: does csv and more\n- old: does old and more (draft)\n3 more left out; use a narrower query or a higher limit.\nRead one with its slug."
			if r.Content[0].Text != want {
				t.Errorf("text:\n got %q\nwant %q", r.Content[0].Text, want)
			}
		})
	}
}

func TestRecallFindsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.skills.list = func(sallyport.Principal, registry.ListRequest) (registry.ListResult, error) {
		return registry.ListResult{}, nil
	}
	data, r := f.recall(t, `{"query":"x"}`)
	if data.Skills == nil || *data.LeftOut != 0 || !strings.Contains(r.Content[0].Text, "No skill matches") {
		t.Errorf("got %s", r.Structured)
	}
	if _, r := f.recall(t, `{}`); !strings.Contains(r.Content[0].Text, "no skills yet") {
		t.Errorf("got %s", r.Structured)
	}
}

// A search keeps to its budget and counts what it cut.
func TestRecallSearchBudget(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.skills.list = func(sallyport.Principal, registry.ListRequest) (registry.ListResult, error) {
		result := registry.ListResult{LeftOut: 5}
		for i := range 50 {
			s := skill(fmt.Sprintf("s%d", i))
			s.Description = strings.Repeat("d", 1024)
			result.Skills = append(result.Skills, s)
		}
		return result, nil
	}
	data, r := f.recall(t, `{"limit":50}`)
	if len(data.Skills) == 50 || len(data.Skills) < 20 || len(data.Skills)+*data.LeftOut != 55 {
		t.Errorf("%d skills and %d left out, want fewer than 50 and 55 together", len(data.Skills), *data.LeftOut)
	}
	if size := len(r.envelope.Data); size > 34<<10 {
		t.Errorf("the data has %d bytes", size)
	}
}

// revision is one with every kind of component.
func revision(id sallyport.RevisionID) sallyport.Revision {
	return sallyport.Revision{
		ID: id, SkillID: "id-csv", Number: 3, State: sallyport.RevisionPublished, Digest: sallyport.DigestOf([]byte(id)),
		Frontmatter: json.RawMessage(`{"name":"csv","x":1.10}`), CreatedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Components: []sallyport.Component{
			{ID: "c1", Path: "SKILL.md", Kind: sallyport.KindDocument, MediaType: "text/markdown", Size: 5, SHA256: "aa"},
			{ID: "c2", Path: "references/a.md", Kind: sallyport.KindReference, MediaType: "text/markdown", Size: 6, SHA256: "bb"},
			{
				ID: "c3", Path: "scripts/x.py", Kind: sallyport.KindScript, MediaType: "text/x-python", Size: 7, SHA256: "cc",
				Script: &sallyport.ScriptSettings{
					Runtime: "python", Input: sallyport.InputStdin, InputSchema: json.RawMessage(`{"type":"object"}`),
					Argv: json.RawMessage(`"none"`), Limits: sallyport.Limits{Timeout: time.Second}, Secrets: []string{"KEY"},
				},
			},
		},
	}
}

const skillMD = "---\nname: csv\ndescription: |\n  reads\n  ---\n---\n\n# Do this\n\nWell.\n"

func TestRecallSkill(t *testing.T) {
	t.Parallel()
	older := revision("r0")
	for name, test := range map[string]struct {
		arguments string
		ref       sallyport.SkillRef
		view      registry.SkillView
		want      string
	}{
		"published":      {`{"slug":"csv"}`, sallyport.SkillRef{Slug: "csv"}, registry.SkillView{Published: new(revision("r1")), Latest: new(revision("r2"))}, "r1"},
		"draft":          {`{"slug":"csv","team_id":"t1"}`, sallyport.SkillRef{Slug: "csv", TeamID: "t1"}, registry.SkillView{Latest: new(revision("r2"))}, "r2"},
		"named revision": {`{"skill_id":"id-csv","revision_id":"r0"}`, sallyport.SkillRef{SkillID: "id-csv"}, registry.SkillView{Published: new(revision("r1"))}, "r0"},
		"query beside":   {`{"query":"x","slug":"csv"}`, sallyport.SkillRef{Slug: "csv"}, registry.SkillView{Published: new(revision("r1"))}, "r1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.skills.show = func(_ sallyport.Principal, ref sallyport.SkillRef) (registry.SkillView, error) {
				if diff := cmp.Diff(test.ref, ref); diff != "" {
					t.Errorf("ref (-want +got):\n%s", diff)
				}
				view := test.view
				view.Skill = skill("csv")
				return view, nil
			}
			f.skills.revision = func(_ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
				if ref.SkillID != "id-csv" || id != "r0" {
					t.Errorf("Revision(%+v, %s)", ref, id)
				}
				return older, nil
			}
			f.skills.component = func(_ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, path string) (sallyport.Component, error) {
				if ref.SkillID != "id-csv" || string(id) != test.want || path != "SKILL.md" {
					t.Errorf("Component(%+v, %s, %s), want SKILL.md of the revision that is shown", ref, id, path)
				}
				return sallyport.Component{Path: path, Content: []byte(skillMD)}, nil
			}
			data, r := f.recall(t, test.arguments)
			s := data.Skill
			if data.Level != 1 || s == nil || s.Revision.RevisionID != test.want || s.Revision.Files != 3 || s.Instructions != "# Do this\n\nWell.\n" {
				t.Fatalf("data: got %s", r.envelope.Data)
			}
			if len(s.Scripts) != 1 || string(s.Scripts[0].InputSchema) != `{"type":"object"}` || len(s.Components) != 3 {
				t.Errorf("data: got %s", r.envelope.Data)
			}
			if string(s.Frontmatter) != `{"name":"csv","x":1.10}` {
				t.Errorf("frontmatter: got %s", s.Frontmatter)
			}
			for _, part := range []string{"revision_id " + test.want, "# Do this", `- scripts/x.py (python) input_args: {"type":"object"}`, "- references/a.md (reference, 6 bytes)"} {
				if !strings.Contains(r.Content[0].Text, part) {
					t.Errorf("text %q lacks %q", r.Content[0].Text, part)
				}
			}
		})
	}
}

// Level 1 keeps to its budgets, cuts whole characters and counts all it cut.
func TestRecallSkillBudget(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := revision("r1")
	r.Frontmatter = json.RawMessage(`{"x":"` + strings.Repeat("y", 20<<10) + `"}`)
	for i := range 400 {
		r.Components = append(r.Components, sallyport.Component{
			ID: sallyport.ComponentID(strconv.Itoa(i)), Path: fmt.Sprintf("scripts/%d.py", i), Kind: sallyport.KindScript,
			Script: &sallyport.ScriptSettings{InputSchema: json.RawMessage(`{"description":"` + strings.Repeat("z", 1000) + `"}`)},
		})
	}
	f.skills.show = func(sallyport.Principal, sallyport.SkillRef) (registry.SkillView, error) {
		return registry.SkillView{Skill: skill("csv"), Published: &r}, nil
	}
	f.skills.component = func(sallyport.Principal, sallyport.SkillRef, sallyport.RevisionID, string) (sallyport.Component, error) {
		return sallyport.Component{Content: []byte("---\nname: x\n---\nx" + strings.Repeat("é", 50_000))}, nil
	}
	data, result := f.recall(t, `{"slug":"csv"}`)
	s := data.Skill
	want := map[string]any{"instruction_bytes": 34466.0, "scripts": 351.0, "input_schemas": 17.0, "components": 303.0, "frontmatter": true}
	if diff := cmp.Diff(want, s.LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if !s.InstructionsTruncated || len(s.Instructions) != 65535 || len(s.Scripts) != 50 || len(s.Components) != 100 || s.Frontmatter != nil {
		t.Errorf("%d bytes, %d scripts, %d components", len(s.Instructions), len(s.Scripts), len(s.Components))
	}
	if !s.Scripts[49].InputSchemaLeftOut || s.Scripts[0].InputSchemaLeftOut {
		t.Error("the schemas that were cut are not marked")
	}
	if !strings.Contains(result.Content[0].Text, "Left out of this answer: 34466 bytes of instructions, 351 scripts, 17 schemas, 303 files.") {
		t.Errorf("text ends with %q", result.Content[0].Text[len(result.Content[0].Text)-200:])
	}
}

func TestRecallSkillWithout(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		view registry.SkillView
		code sallyport.Code
	}{
		"revision": {registry.SkillView{Skill: skill("csv")}, sallyport.CodeRevisionNotFound},
		"SKILL.md": {registry.SkillView{Skill: skill("csv"), Latest: &sallyport.Revision{ID: "r1", State: sallyport.RevisionDraft}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.skills.show = func(sallyport.Principal, sallyport.SkillRef) (registry.SkillView, error) { return test.view, nil }
			if r := f.call(t, bob(), recall, `{"slug":"csv"}`); r.code() != test.code {
				t.Errorf("got %s, want code %q", r.Structured, test.code)
			}
		})
	}
}

func TestRecallResource(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 200<<10) // 400 KiB
	binary := make([]byte, 300<<10)
	binary[7] = 0xff
	for name, test := range map[string]struct {
		content    []byte
		offset     int
		wantText   string
		wantBytes  []byte
		wantNext   int
		shownParts []string
	}{
		"text":           {content: []byte("hi"), wantText: "hi", shownParts: []string{"hi"}},
		"empty":          {content: []byte{}, wantText: ""},
		"long":           {content: []byte(long), wantText: long[:256<<10], wantNext: 256 << 10, shownParts: []string{"(truncated: 262144 of 409600 bytes; read on with offset 262144)"}},
		"rest":           {content: []byte(long), offset: 256 << 10, wantText: long[256<<10:]},
		"odd budget":     {content: []byte("x" + long), wantText: "x" + long[:256<<10-2], wantNext: 256<<10 - 1},
		"binary":         {content: []byte{0xff, 0}, wantBytes: []byte{0xff, 0}, shownParts: []string{"references/a is binary (x/y, 2 bytes); 2 bytes are in structured content as content_base64."}},
		"NUL":            {content: []byte("a\x00b"), wantBytes: []byte("a\x00b")},
		"long binary":    {content: binary, wantBytes: binary[:256<<10], wantNext: 256 << 10, shownParts: []string{"The rest starts at offset 262144."}},
		"inside a rune":  {content: []byte("éa"), offset: 1, wantBytes: []byte("\xa9a")},
		"end":            {content: []byte("hi"), offset: 2, wantText: ""},
		"rest of binary": {content: binary, offset: 256 << 10, wantBytes: binary[256<<10:]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.skills.component = func(p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, path string) (sallyport.Component, error) {
				if p.ID != "bob" || ref.Slug != "csv" || id != "r1" || path != "references/a" {
					t.Errorf("Component(%+v, %+v, %s, %s)", p, ref, id, path)
				}
				return sallyport.Component{ID: "c1", Path: path, Kind: sallyport.KindReference, MediaType: "x/y", Size: int64(len(test.content)), Content: test.content}, nil
			}
			data, r := f.recall(t, fmt.Sprintf(`{"slug":"csv","resource":"references/a","revision_id":"r1","offset":%d}`, test.offset))
			got := data.Resource
			if data.Level != 2 || got == nil || got.Size != int64(len(test.content)) || got.Offset != test.offset {
				t.Fatalf("data: got %.300s", r.envelope.Data)
			}
			returned := test.wantText
			if test.wantBytes != nil {
				returned = string(test.wantBytes)
				if got.Content != nil || got.ContentBase64 == nil || *got.ContentBase64 != base64.StdEncoding.EncodeToString(test.wantBytes) {
					t.Errorf("content is not the expected base64")
				}
			} else if got.ContentBase64 != nil || got.Content == nil || *got.Content != test.wantText {
				t.Errorf("content is not the expected text")
			}
			if got.ReturnedBytes != len(returned) || got.Truncated != (test.wantNext > 0) || got.NextOffset != test.wantNext {
				t.Errorf("returned %d truncated %v next %d, want %d %v %d", got.ReturnedBytes, got.Truncated, got.NextOffset, len(returned), test.wantNext > 0, test.wantNext)
			}
			for _, part := range test.shownParts {
				if !strings.Contains(r.Content[0].Text, part) {
					t.Errorf("text lacks %q", part)
				}
			}
		})
	}
}

func TestRecallRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ arguments, want string }{
		"resource alone":  {`{"resource":"a"}`, "slug or skill_id is required"},
		"revision alone":  {`{"revision_id":"a"}`, "slug or skill_id is required"},
		"limit 0":         {`{"limit":0}`, "limit must be a whole number from 1 to 50"},
		"limit 51":        {`{"limit":51}`, "limit must be a whole number from 1 to 50"},
		"limit text":      {`{"limit":"5"}`, "limit must be a whole number from 1 to 50"},
		"limit fraction":  {`{"limit":1.5}`, "limit must be a whole number from 1 to 50"},
		"offset negative": {`{"offset":-1}`, "offset must be a whole number"},
		"unknown":         {`{"q":"x"}`, "unknown field at /q; recall_cloud_skill takes limit, offset, query"},
		"wrong type":      {`{"query":["x"]}`, "wrong type at /query"},
		"beyond the end":  {`{"slug":"csv","resource":"a","offset":3}`, "offset is beyond the end: a has 2 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.skills.component = func(_ sallyport.Principal, _ sallyport.SkillRef, _ sallyport.RevisionID, path string) (sallyport.Component, error) {
				return sallyport.Component{Path: path, Content: []byte("hi")}, nil
			}
			r := f.call(t, bob(), recall, test.arguments)
			if r.code() != sallyport.CodeInvalidArgument || !strings.Contains(r.envelope.Error.Message, test.want) || r.envelope.Kind != "recall" {
				t.Errorf("got %s, want INVALID_ARGUMENT with %q", r.Structured, test.want)
			}
		})
	}
}

func TestRecallPassesErrorsOn(t *testing.T) {
	t.Parallel()
	notFound := sallyport.Errorf("x", sallyport.CodeSkillNotFound, "no skill is named csv")
	fail := map[string]func(*fakeSkills, error){
		`{}`: func(f *fakeSkills, err error) {
			f.list = func(sallyport.Principal, registry.ListRequest) (registry.ListResult, error) {
				return registry.ListResult{}, err
			}
		},
		`{"slug":"csv"}`: func(f *fakeSkills, err error) {
			f.show = func(sallyport.Principal, sallyport.SkillRef) (registry.SkillView, error) {
				return registry.SkillView{}, err
			}
		},
		`{"slug":"csv","resource":"a"}`: func(f *fakeSkills, err error) {
			f.component = func(sallyport.Principal, sallyport.SkillRef, sallyport.RevisionID, string) (sallyport.Component, error) {
				return sallyport.Component{}, err
			}
		},
	}
	for arguments, set := range fail {
		t.Run(arguments, func(t *testing.T) {
			t.Parallel()
			for _, test := range []struct {
				err  error
				code sallyport.Code
			}{{notFound, sallyport.CodeSkillNotFound}, {errors.New("MARKER"), sallyport.CodeInternal}} {
				f := newFixture(t)
				set(f.skills, test.err)
				r := f.call(t, bob(), recall, arguments)
				if r.code() != test.code || strings.Contains(string(r.Structured), "MARKER") {
					t.Errorf("got %s, want %s", r.Structured, test.code)
				}
			}
		})
	}
}
