package registry_test

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

func TestSettings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	saved := b.save(t, alice, registry.SaveRequest{Files: []registry.File{
		file("SKILL.md", skillMD("pdf")), file("scripts/a.py", ""), file("scripts/b.py", ""), file("scripts/c.py", ""), file("tools/run", "x"),
		file("notes.txt", "x"), file("schemas/in.json", `{ "type": "object",  "minimum": 12345678901234567890 }`), file("schemas/in.yaml", "type: object\nrequired: [x]\n"),
		file("sallyport.yaml", bom+strings.ReplaceAll(`# comment
kinds: {notes.txt: reference}
scripts:
  scripts/a.py:
    runtime: python-3.12
    input: flags
    input_schema: {type: object, properties: {n: {type: integer, maximum: 1e3}}, additionalProperties: false}
    argv: {type: array, maxItems: 2}
    limits: {timeout_seconds: 5, memory_bytes: 20000000, processes: 3, cpu_millis: 500, scratch_bytes: 1, output_bytes: 2, artifact_bytes: 3, artifact_files: 4, cpu_time_ms: 2500}
    secrets: [B_KEY, A_KEY]
  scripts/b.py: {input: none, input_schema: schemas/in.json, argv: free, limits: {timeout_ms: 1500}}
  scripts/c.py: {input_schema: schemas/in.yaml, argv: none}
  tools/run:
`, "\n", "\r\n")),
	}})
	got := map[string]sallyport.ScriptSettings{}
	kinds := map[string]sallyport.Kind{}
	for _, c := range saved.Revision.Components {
		kinds[c.Path] = c.Kind
		if c.Script != nil {
			got[c.Path] = *c.Script
		}
	}
	want := map[string]sallyport.ScriptSettings{
		"scripts/a.py": {
			Runtime: "python-3.12", Input: sallyport.InputFlags, Argv: json.RawMessage(`{"type":"array","maxItems":2}`),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":1e3}},"additionalProperties":false}`),
			Limits: sallyport.Limits{
				Timeout: 5 * time.Second, MemoryBytes: 20000000, Processes: 3, CPUMillis: 500, ScratchBytes: 1, OutputBytes: 2,
				ArtifactBytes: 3, ArtifactFiles: 4, CPUTime: 2500 * time.Millisecond,
			},
			Secrets: []string{"A_KEY", "B_KEY"},
		},
		"scripts/b.py": {
			Runtime: "python", Input: sallyport.InputNone, Argv: json.RawMessage(`"free"`),
			InputSchema: json.RawMessage(`{"type":"object","minimum":12345678901234567890}`), Limits: sallyport.Limits{Timeout: 1500 * time.Millisecond},
		},
		"scripts/c.py": {Runtime: "python", Input: sallyport.InputStdin, InputSchema: json.RawMessage(`{"type":"object","required":["x"]}`), Argv: json.RawMessage(`"none"`)},
		"tools/run":    {Input: sallyport.InputStdin},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if kinds["notes.txt"] != sallyport.KindReference || kinds["tools/run"] != sallyport.KindScript || kinds["sallyport.yaml"] != sallyport.KindDocument {
		t.Errorf("kinds %v", kinds)
	}
}

func TestSettingsRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settings string
		code     string
		line     int
		says     string
	}{
		"not a mapping":         {"- a", "SETTINGS_INVALID", 1, "mapping"},
		"not YAML":              {"scripts: {", "YAML_INVALID", 0, "cannot be read"},
		"not UTF-8":             {"kinds: \xff", "SETTINGS_INVALID", 0, "UTF-8"},
		"too large":             {"# " + strings.Repeat("x", 300<<10), "SETTINGS_INVALID", 0, "bytes"},
		"duplicate key":         {"kinds: {}\nkinds: {}", "YAML_DUPLICATE_KEY", 2, "kinds"},
		"unknown key":           {"kinds: {}\nscript: {}", "SETTINGS_INVALID", 2, "script"},
		"kinds is a list":       {"kinds: [a]", "SETTINGS_INVALID", 1, "mapping"},
		"unknown kind":          {"kinds:\n  a.txt: tool", "SETTINGS_INVALID", 2, "kind"},
		"unknown path":          {"kinds:\n  b.txt: document", "SETTINGS_UNKNOWN_PATH", 2, "b.txt"},
		"unsafe path":           {"kinds:\n  ../b.txt: document", "SETTINGS_UNKNOWN_PATH", 2, "plain"},
		"SKILL.md as script":    {"kinds:\n  SKILL.md: script", "SETTINGS_INVALID", 2, "document"},
		"settings of SKILL.md":  {"scripts:\n  SKILL.md: {}", "SETTINGS_INVALID", 2, "script"},
		"no script by kind":     {"scripts:\n  a.py: {}\nkinds:\n  a.py: document", "SETTINGS_INVALID", 2, "script"},
		"settings is a text":    {"scripts:\n  a.py: fast", "SETTINGS_INVALID", 2, "mapping"},
		"unknown setting":       {"scripts:\n  a.py:\n    tmeout: 5", "SETTINGS_INVALID", 3, "tmeout"},
		"runtime a number":      {"scripts:\n  a.py:\n    runtime: 3", "SETTINGS_INVALID", 3, "runtime"},
		"runtime a path":        {"scripts:\n  a.py:\n    runtime: /usr/bin/python3", "SETTINGS_INVALID", 3, "runtime"},
		"unknown input":         {"scripts:\n  a.py:\n    input: json", "SETTINGS_INVALID", 3, "stdin"},
		"empty input":           {"scripts:\n  a.py:\n    input:", "SETTINGS_INVALID", 3, "stdin"},
		"schema a number":       {"scripts:\n  a.py:\n    input_schema: 3", "SETTINGS_INVALID", 3, "input_schema"},
		"bad schema":            {"scripts:\n  a.py:\n    input_schema: {type: strange}", "SETTINGS_SCHEMA", 3, "/type"},
		"bad pattern":           {"scripts:\n  a.py:\n    input_schema: {pattern: '('}", "SETTINGS_SCHEMA", 3, "schema"},
		"remote reference":      {"scripts:\n  a.py:\n    input_schema: {$ref: 'http://localhost:1/x.json'}", "SETTINGS_SCHEMA", 3, "localhost"},
		"file reference":        {"scripts:\n  a.py:\n    input_schema: {$ref: 'file:///etc/passwd'}", "SETTINGS_SCHEMA", 3, "/etc/passwd"},
		"relative reference":    {"scripts:\n  a.py:\n    input_schema: {$ref: 'other.json'}", "SETTINGS_SCHEMA", 3, "other.json"},
		"remote metaschema":     {"scripts:\n  a.py:\n    input_schema: {$schema: 'http://localhost:1/m'}", "SETTINGS_SCHEMA", 3, "localhost"},
		"schema file missing":   {"scripts:\n  a.py:\n    input_schema: in.json", "SETTINGS_UNKNOWN_PATH", 3, "in.json"},
		"schema file unsafe":    {"scripts:\n  a.py:\n    input_schema: ../in.json", "SETTINGS_UNKNOWN_PATH", 3, "in.json"},
		"schema file broken":    {"scripts:\n  a.py:\n    input_schema: a.txt", "SETTINGS_SCHEMA", 3, "a.txt"},
		"schema file is a list": {"scripts:\n  a.py:\n    input_schema: list.json", "SETTINGS_SCHEMA", 3, "object"},
		"schema out of range":   {"scripts:\n  a.py:\n    input_schema: range.json", "SETTINGS_SCHEMA", 3, "range"},
		"argv unknown":          {"scripts:\n  a.py:\n    argv: some", "SETTINGS_INVALID", 3, "argv"},
		"argv a list":           {"scripts:\n  a.py:\n    argv: [a]", "SETTINGS_INVALID", 3, "argv"},
		"limits a number":       {"scripts:\n  a.py:\n    limits: 3", "SETTINGS_INVALID", 3, "limits"},
		"unknown limit":         {"scripts:\n  a.py:\n    limits:\n      memory: 3", "SETTINGS_INVALID", 4, "memory_bytes"},
		"too little memory":     {"scripts:\n  a.py:\n    limits: {memory_bytes: 16777215}", "SETTINGS_INVALID", 3, "memory_bytes"},
		"limit zero":            {"scripts:\n  a.py:\n    limits: {processes: 0}", "SETTINGS_INVALID", 3, "processes"},
		"limit negative":        {"scripts:\n  a.py:\n    limits: {processes: -1}", "SETTINGS_INVALID", 3, "processes"},
		"limit a fraction":      {"scripts:\n  a.py:\n    limits: {processes: 1.5}", "SETTINGS_INVALID", 3, "whole"},
		"limit a text":          {"scripts:\n  a.py:\n    limits: {processes: '1'}", "SETTINGS_INVALID", 3, "whole"},
		"limit beyond range":    {"scripts:\n  a.py:\n    limits: {processes: 99999999999999999999}", "SETTINGS_INVALID", 3, "whole"},
		"timeout short":         {"scripts:\n  a.py:\n    limits: {timeout_ms: 999}", "SETTINGS_INVALID", 3, "second"},
		"timeout long":          {"scripts:\n  a.py:\n    limits: {timeout_seconds: 9223372036854775807}", "SETTINGS_INVALID", 3, "day"},
		"CPU budget short":      {"scripts:\n  a.py:\n    limits: {cpu_time_ms: 99}", "SETTINGS_INVALID", 3, "cpu_time_ms"},
		"CPU budget long":       {"scripts:\n  a.py:\n    limits: {cpu_time_ms: 86400001}", "SETTINGS_INVALID", 3, "cpu_time_ms"},
		"timeout twice":         {"scripts:\n  a.py:\n    limits: {timeout_ms: 1000, timeout_seconds: 1}", "SETTINGS_INVALID", 3, "both"},
		"secrets a text":        {"scripts:\n  a.py:\n    secrets: KEY", "SETTINGS_INVALID", 3, "list"},
		"secret with a dash":    {"scripts:\n  a.py:\n    secrets: [A-KEY]", "SETTINGS_INVALID", 3, "letters"},
		"secret shadows PATH":   {"scripts:\n  a.py:\n    secrets: [PATH]", "SETTINGS_INVALID", 3, "PATH"},
		"secret is a preload":   {"scripts:\n  a.py:\n    secrets: [LD_PRELOAD]", "SETTINGS_INVALID", 3, "LD_PRELOAD"},
		"secret twice":          {"scripts:\n  a.py:\n    secrets: [A, A]", "SETTINGS_INVALID", 3, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			_, err := b.Save(t.Context(), alice, registry.SaveRequest{Files: []registry.File{
				file("SKILL.md", skillMD("pdf")), file("a.py", ""), file("a.txt", "x"), file("list.json", "[]"), file("range.json", `{"maximum":1e400}`),
				file("sallyport.yaml", test.settings),
			}})
			wantCode(t, err, sallyport.CodeSkillInvalid)
			problems, _ := sallyport.Public(err).Details["problems"].([]registry.Problem)
			if len(problems) != 1 {
				t.Fatalf("problems %+v", problems)
			}
			p := problems[0]
			if p.Code != test.code || p.File != "sallyport.yaml" || test.line > 0 && p.Line != test.line || !strings.Contains(p.Message, test.says) || p.Severity != "error" {
				t.Errorf("problem %+v, want %s on line %d with %q", p, test.code, test.line, test.says)
			}
		})
	}
}

// Kinds and settings that come with files are written into sallyport.yaml, so the files alone give the digest.
func TestDeclaredSettings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	script := &sallyport.ScriptSettings{
		Runtime: "python", Input: sallyport.InputFlags, InputSchema: json.RawMessage(`{"type":"object","properties":{"é\ud83d\ude00\u2028":{"const":"a: \"b\" #\u0000"}},"required":[]}`),
		Argv: json.RawMessage(`"none"`), Limits: sallyport.Limits{Timeout: 2 * time.Second, Processes: 4}, Secrets: []string{"Z", "A"},
	}
	request := registry.SaveRequest{Files: []registry.File{
		file("SKILL.md", skillMD("pdf")),
		{Path: "scripts/a.py", Content: []byte("1"), Script: script},
		{Path: "notes.txt", Content: []byte("x"), Kind: sallyport.KindReference},
		{Path: "plain.txt", Content: []byte("x"), Kind: sallyport.KindDocument},                 // what inference says anyway
		{Path: "b.sh", Content: []byte("x"), Script: &sallyport.ScriptSettings{Input: "stdin"}}, // so too
	}}
	saved := b.save(t, alice, request)
	settings, err := b.Component(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"}, "", "sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := `# Written by Sallyport from the kinds and settings that came with the files.
kinds:
  "notes.txt": "reference"
scripts:
  "scripts/a.py":
    input: "flags"
    input_schema: {"type": "object", "properties": {"é😀\u2028": {"const": "a: \"b\" #\u0000"}}, "required": []}
    argv: "none"
    limits: {"timeout_ms": 2000, "processes": 4}
    secrets: ["A", "Z"]
`
	if diff := cmp.Diff(want, string(settings.Content)); diff != "" {
		t.Errorf("sallyport.yaml (-want +got):\n%s", diff)
	}
	got, _ := saved.Revision.Component("scripts/a.py")
	wantScript := *script
	wantScript.Secrets = []string{"A", "Z"}
	wantScript.InputSchema = json.RawMessage(`{"type":"object","properties":{"é😀` + `\u2028` + `":{"const":"a: \"b\" #\u0000"}},"required":[]}`)
	if diff := cmp.Diff(&wantScript, got.Script); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	// The same request again, and the files without the declarations, have the same digest.
	if again := b.save(t, alice, request); !again.Unchanged {
		t.Error("the same request made another revision")
	}
	var files []registry.File
	for _, c := range b.store.revisions[saved.Skill.ID][0].Components {
		files = append(files, registry.File{Path: c.Path, Content: c.Content})
	}
	if again := b.save(t, alice, registry.SaveRequest{ReplaceAll: true, Files: files}); !again.Unchanged {
		t.Error("the files alone have another digest")
	}
	// A kept declaration stays, a removed file takes its own along.
	next := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Files: []registry.File{file("scripts/a.py", "2")}, Remove: []string{"notes.txt"}})
	kept, _ := next.Revision.Component("scripts/a.py")
	if kept.Script == nil || kept.Script.Input != sallyport.InputFlags {
		t.Errorf("kept settings %+v", kept.Script)
	}
	// Turned into a document, the script loses its settings; with nothing to say the file goes.
	last := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Remove: []string{"scripts/a.py"}})
	if _, found := last.Revision.Component("sallyport.yaml"); found {
		t.Errorf("an empty sallyport.yaml stayed: %v", paths(last.Revision))
	}
	document := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Files: []registry.File{{Path: "b.sh", Content: []byte("x"), Kind: sallyport.KindExample}}})
	if c, _ := document.Revision.Component("b.sh"); c.Kind != sallyport.KindExample || c.Script != nil {
		t.Errorf("declared example %+v", c)
	}
}

// What the author wrote in sallyport.yaml stays when a declaration for another file is added: the schema's path too.
func TestDeclaredBesideWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.save(t, alice, registry.SaveRequest{Files: []registry.File{
		file("SKILL.md", skillMD("pdf")), file("a.py", ""), file("b.py", ""), file("in.json", `{"type":"object"}`), file(strings.Repeat("x", 250)+"/"+strings.Repeat("é", 125)+"/"+strings.Repeat("\"", 250)+"/"+strings.Repeat("y", 200), ""),
		file("sallyport.yaml", "scripts:\n  a.py: {input_schema: in.json, limits: {timeout_seconds: 3}}\n"),
	}})
	long := strings.Repeat("x", 250) + "/" + strings.Repeat("é", 125) + "/" + strings.Repeat("\"", 250) + "/" + strings.Repeat("y", 200)
	saved := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{Slug: "pdf"}, Files: []registry.File{
		{Path: "b.py", Script: &sallyport.ScriptSettings{Input: sallyport.InputNone}}, {Path: long, Kind: sallyport.KindExample},
	}})
	settings, err := b.Component(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"}, "", "sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`    input_schema: "in.json"`, `    limits: {"timeout_seconds": 3}`, `    input: "none"`} {
		if !strings.Contains(string(settings.Content), line) {
			t.Errorf("%s lacks %q", settings.Content, line)
		}
	}
	a, _ := saved.Revision.Component("a.py")
	if string(a.Script.InputSchema) != `{"type":"object"}` || a.Script.Limits.Timeout != 3*time.Second {
		t.Errorf("a.py %+v", a.Script)
	}
	if c, _ := saved.Revision.Component(long); c.Kind != sallyport.KindExample {
		t.Errorf("a long path lost its kind: %s", c.Kind)
	}
}

// Whatever JSON a caller declares as a schema comes back from sallyport.yaml with the same meaning, or is refused.
func FuzzDeclaredSchema(f *testing.F) {
	for _, seed := range []string{`{}`, `{"const":"é\u2028\ud83d\ude00\u0000"}`, `{"const":1E5}`, `{"const":-0.0}`, `{"const":[null,true,"~","1"]}`, `{"a":1,"a":2}`, `{"const":"\ud800"}`, `{"true":{},"1":{},"":{}}`, `{"const":1e999}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		b := newBench(t)
		saved, err := b.Save(t.Context(), alice, registry.SaveRequest{Files: []registry.File{
			file("SKILL.md", skillMD("pdf")), {Path: "a.py", Script: &sallyport.ScriptSettings{InputSchema: json.RawMessage(schema)}},
		}})
		if err != nil {
			if code := sallyport.CodeOf(err); code != sallyport.CodeInvalidArgument && code != sallyport.CodeSkillInvalid {
				t.Errorf("%s: %v", schema, err)
			}
			return
		}
		if schema == "" || strings.TrimSpace(schema) == "null" {
			return
		}
		script, _ := saved.Revision.Component("a.py")
		var want, got any
		if err := json.Unmarshal([]byte(schema), &want); err != nil {
			t.Fatalf("%s was accepted: %v", schema, err)
		}
		if err := json.Unmarshal(script.Script.InputSchema, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(unsigned(want), unsigned(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", schema, diff)
		}
	})
}

// unsigned prints a value with -0 as 0, which YAML does not tell apart.
func unsigned(v any) string {
	return strings.NewReplacer(":-0]", ":0]", ":-0 ", ":0 ", "[-0 ", "[0 ", "[-0]", "[0]", " -0 ", " 0 ", " -0]", " 0]").Replace(fmt.Sprint(v))
}
