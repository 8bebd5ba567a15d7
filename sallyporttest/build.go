package sallyporttest

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
)

// Case describes a run to build. The zero value is a small Python script without arguments that every standard gate lets pass.
type Case struct {
	// Slug of the skill; empty means "example".
	Slug string
	// Files of the skill by path. Nil means SKILL.md and scripts/hello.py. Kinds follow the folder: scripts, references,
	// examples, templates, assets; anything else is a document.
	Files map[string]string
	// ScriptPath is the file to run; empty means the first file below scripts/.
	ScriptPath string
	// Settings of the script; nil means what its extension says, JSON on standard input.
	Settings *sallyport.ScriptSettings
	// Args is input_args as JSON; empty means that the caller sent none.
	Args string
	// Argv is nil when the caller sent none.
	Argv []string
	// Inputs are files that the caller sends, by name.
	Inputs map[string]string
	// Program that runs the script; empty means /usr/bin/ and python3, bash or node.
	Program string
	// Limits of the run; the zero value means [sallyport.DefaultLimits].
	Limits sallyport.Limits
}

const helloSkill = "---\nname: example\ndescription: Says hello. Use it to see a skill run.\n---\n\nRun scripts/hello.py.\n"

// builtAt is the time at which everything in a built Candidate was made.
var builtAt = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)

// Candidate builds what a gate looks at: the skill is published, its digest is the real one, and one wide grant without an
// expiry pins it. Interpreter is resolved; Grant is left for the pin gate. It fails the test when the case has no such script.
func (c Case) Candidate(tb testing.TB) *sallyport.Candidate {
	tb.Helper()
	slug := c.Slug
	if slug == "" {
		slug = "example"
	}
	components := c.components(tb)
	digest, err := canonical.RevisionDigest(components)
	if err != nil {
		tb.Fatalf("sallyporttest: the files make no revision: %v", err)
	}
	at := slices.IndexFunc(components, func(component sallyport.Component) bool { return component.Script != nil })
	for i, component := range components {
		if c.ScriptPath != "" && component.Path == c.ScriptPath {
			at = i
		}
	}
	if at < 0 || c.ScriptPath != "" && components[at].Path != c.ScriptPath {
		tb.Fatalf("sallyporttest: the case has no script %q", c.ScriptPath)
	}
	revision := sallyport.Revision{
		ID: "revision-1", TenantID: sallyport.DefaultTenant, SkillID: "skill-1", Number: 1, State: sallyport.RevisionPublished,
		Digest: digest, Frontmatter: json.RawMessage(`{}`), Author: "author", CreatedAt: builtAt, PublishedAt: &builtAt,
		Components: components,
	}
	candidate := &sallyport.Candidate{
		Principal: sallyport.Principal{
			ID: "caller", TenantID: sallyport.DefaultTenant, Teams: []sallyport.TeamID{sallyport.DefaultTeam},
			Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite},
		},
		Skill: sallyport.Skill{
			ID: "skill-1", TenantID: sallyport.DefaultTenant, TeamID: sallyport.DefaultTeam, Slug: slug, Name: slug,
			PublishedRevisionID: revision.ID, LatestRevisionID: revision.ID, CreatedAt: builtAt, UpdatedAt: builtAt,
		},
		Revision: revision, Digest: digest, Script: components[at], Interpreter: c.interpreter(components[at]),
		Args: json.RawMessage("{}"), Argv: c.Argv, Limits: sallyport.DefaultLimits(),
		Grants: []sallyport.Grant{{
			ID: "grant-1", TenantID: sallyport.DefaultTenant, SkillID: "skill-1", Slug: slug, Pin: digest,
			RevisionID: revision.ID, IssuedBy: "reviewer", IssuedAt: builtAt,
		}},
	}
	if c.Args != "" {
		candidate.Args, candidate.ArgsGiven = json.RawMessage(c.Args), true
	}
	if !c.Limits.IsZero() {
		candidate.Limits = c.Limits
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		candidate.Files = append(candidate.Files, sallyport.InputFile{Name: name, Content: []byte(c.Inputs[name])})
	}
	return candidate
}

// ExecRequest builds what an executor is called with, for the same run as [Case.Candidate] builds.
func (c Case) ExecRequest(tb testing.TB) sallyport.ExecRequest {
	tb.Helper()
	candidate := c.Candidate(tb)
	return sallyport.ExecRequest{
		ExecutionID: "execution-1", TenantID: candidate.Principal.TenantID, Slug: candidate.Skill.Slug,
		Digest: candidate.Digest, ScriptPath: candidate.Script.Path, Interpreter: *candidate.Interpreter,
		Content: candidate.Script.Content, ContentSHA256: candidate.Script.SHA256, Files: candidate.Revision.Components,
		Stdin: candidate.Args, Argv: candidate.Argv, Inputs: candidate.Files, Limits: candidate.Limits,
		Grace: sallyport.DefaultGrace,
	}
}

func (c Case) components(tb testing.TB) []sallyport.Component {
	tb.Helper()
	files := c.Files
	if files == nil {
		files = map[string]string{"SKILL.md": helloSkill, "scripts/hello.py": "print(\"hello\")\n"}
	}
	var components []sallyport.Component
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := sallyport.CheckPath(name); err != nil {
			tb.Fatalf("sallyporttest: the file %q: %v", name, err)
		}
		content := []byte(files[name])
		component := sallyport.Component{
			ID: sallyport.ComponentID("component:" + name), Path: name, Kind: kindOf(name), Size: int64(len(content)),
			SHA256: sallyport.DigestOf(content).Hex(), Mode: 0o644, MediaType: mediaTypeOf(name), Content: content,
		}
		if component.Kind == sallyport.KindScript || name == c.ScriptPath {
			component.Kind = sallyport.KindScript
			component.Script = &sallyport.ScriptSettings{Runtime: runtimeOf(name), Input: sallyport.InputStdin}
			if c.Settings != nil && (name == c.ScriptPath || c.ScriptPath == "") {
				component.Script = c.Settings
			}
		}
		components = append(components, component)
	}
	return components
}

func (c Case) interpreter(script sallyport.Component) *sallyport.Interpreter {
	runtime, program := script.Script.Runtime, c.Program
	if program == "" {
		program = "/usr/bin/" + runtime
		if runtime == "python" {
			program = "/usr/bin/python3"
		}
	}
	return &sallyport.Interpreter{
		Extension: strings.ToLower(strings.TrimPrefix(path.Ext(script.Path), ".")), Runtime: runtime, Program: program,
	}
}

func kindOf(name string) sallyport.Kind {
	folder, _, _ := strings.Cut(name, "/")
	switch folder {
	case "scripts":
		return sallyport.KindScript
	case "references":
		return sallyport.KindReference
	case "examples":
		return sallyport.KindExample
	case "templates":
		return sallyport.KindTemplate
	case "assets":
		return sallyport.KindArtifact
	}
	return sallyport.KindDocument
}

func runtimeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".sh", ".bash":
		return "bash"
	case ".js", ".mjs", ".cjs":
		return "node"
	}
	return "python"
}

func mediaTypeOf(name string) string {
	if path.Ext(name) == ".md" {
		return "text/markdown; charset=utf-8"
	}
	return "text/plain; charset=utf-8"
}
