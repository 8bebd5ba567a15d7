package examples_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/server"
)

// TestEverySkillHasCases holds the cases to their purpose: each script succeeds once, and each skill shows a refusal of
// arguments and a script that ends with an error.
func TestEverySkillHasCases(t *testing.T) {
	t.Parallel()
	cases, skills := readCases(t), skillDirs(t)
	if got := slices.Sorted(maps.Keys(cases)); !slices.Equal(got, skills) {
		t.Fatalf("tests/ covers %v, skills/ holds %v", got, skills)
	}
	for _, slug := range skills {
		var refusals, errors int
		succeeded, names := map[string]bool{}, map[string]bool{}
		for _, c := range cases[slug] {
			if names[c.Name] || c.Name == "" {
				t.Errorf("%s: the name %q is empty or taken", slug, c.Name)
			}
			names[c.Name] = true
			switch {
			case c.refused() && c.Want.ErrorCode == sallyport.CodeArgumentsMismatch:
				refusals++
			case c.Want.Status == sallyport.StatusError:
				errors++
			case c.Want.Status == sallyport.StatusSuccess:
				succeeded[c.Script] = true
			}
			if c.refused() && c.Want.ErrorCode == "" {
				t.Errorf("%s: the case %q expects neither a status nor a code", slug, c.Name)
			}
		}
		if refusals == 0 || errors == 0 {
			t.Errorf("%s: got %d refusals and %d errors, want one of each at least", slug, refusals, errors)
		}
		settings := readScripts(t, slug)
		if got := slices.Sorted(maps.Keys(succeeded)); !slices.Equal(got, settings) {
			t.Errorf("%s: cases succeed for %v, sallyport.yaml declares %v", slug, got, settings)
		}
	}
}

// TestSkills imports every example skill into a real server, grants it by its digest and runs its cases in a sandbox.
func TestSkills(t *testing.T) {
	t.Parallel()
	cases := readCases(t)
	srv := newServer(t)
	operator := server.Operator()
	for _, skill := range importSkills(t, srv, operator) {
		t.Run(skill.Slug, func(t *testing.T) {
			t.Parallel()
			if !skill.Usable || !skill.SpecClean || len(skill.Problems) > 0 || !skill.Published {
				t.Fatalf("usable %t, spec-clean %t, published %t, problems %v", skill.Usable, skill.SpecClean, skill.Published, skill.Problems)
			}
			ref := sallyport.SkillRef{Slug: skill.Slug}
			ungranted := run.Request{Ref: ref, ScriptPath: cases[skill.Slug][0].Script}
			if _, err := srv.Runs().Run(t.Context(), operator, ungranted); sallyport.CodeOf(err) != sallyport.CodeGrantMissing {
				t.Errorf("before the grant: got %v, want %s", err, sallyport.CodeGrantMissing)
			}
			if _, err := srv.Access().Issue(t.Context(), operator, access.IssueRequest{Ref: ref, ExpectedDigest: skill.Digest}); err != nil {
				t.Fatalf("grant: %v", err)
			}
			for _, c := range cases[skill.Slug] {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					checkCase(t, srv.Runs(), operator, ref, c)
				})
			}
		})
	}
}

// newServer starts a server of its own with the real sandbox, every layer of it demanded: the skill sandbox-check looks at it
// from inside.
func newServer(t *testing.T) *server.Server {
	t.Helper()
	executor, err := bubblewrap.New(bubblewrap.Config{StateDir: t.TempDir() + "/state"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := executor.Close(); err != nil {
			t.Errorf("close the executor: %v", err)
		}
	})
	srv, err := server.New(t.Context(), server.Config{
		DataDir: t.TempDir() + "/data", Executor: executor, ScriptsEnabled: true,
		Interpreters: bubblewrap.FindInterpreters(),
		// All cases queue at once, on a machine that may be busy with other tests.
		QueueLength: 1000, QueueWait: 5 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("close the server: %v", err)
		}
	})
	return srv
}

// importSkills imports and publishes the folder of skills as an operator would.
func importSkills(t *testing.T, srv *server.Server, p sallyport.Principal) []registry.ImportedSkill {
	t.Helper()
	tree, err := registry.OpenFolder("skills")
	if err != nil {
		t.Fatal(err)
	}
	report, err := srv.Registry().Import(t.Context(), p, tree, registry.ImportOptions{Publish: true})
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Ignored) > 0 {
		t.Errorf("ignored files: %v", report.Ignored)
	}
	var slugs []string
	for _, skill := range report.Skills {
		slugs = append(slugs, skill.Slug)
		for _, file := range skill.Files {
			if file.Result != "kept" {
				t.Errorf("%s: %s is %s: %s", skill.Slug, file.Path, file.Result, file.Reason)
			}
		}
	}
	slices.Sort(slugs)
	if diff := cmp.Diff(skillDirs(t), slugs); diff != "" {
		t.Fatalf("imported skills (-want +got):\n%s", diff)
	}
	return report.Skills
}

// runner is what a case needs of the run service.
type runner interface {
	Run(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error)
	Artifact(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error)
}

func checkCase(t *testing.T, runs runner, p sallyport.Principal, ref sallyport.SkillRef, c testCase) {
	t.Helper()
	execution, err := runs.Run(t.Context(), p, run.Request{
		Ref: ref, ScriptPath: c.Script, Args: c.InputArgs, Argv: c.Argv, Files: c.inputFiles(),
	})
	if c.refused() {
		if got := sallyport.CodeOf(err); got != c.Want.ErrorCode {
			t.Fatalf("got %q (%v), want a refusal with %s", got, err, c.Want.ErrorCode)
		}
		if execution.ID != "" {
			t.Errorf("a refused call opened the execution %s", execution.ID)
		}
		return
	}
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	shown := fmt.Sprintf("status %s, stdout %q, stderr %q, output_data %s %s",
		execution.Status, execution.Stdout, execution.Stderr, execution.OutputData, execution.OutputDataNote)
	if execution.Status != c.Want.Status || execution.ErrorKind != c.Want.ErrorCode {
		t.Fatalf("got %s %s, want %s %s: %s", execution.Status, execution.ErrorKind, c.Want.Status, c.Want.ErrorCode, shown)
	}
	if c.Want.ExitCode != nil && (execution.ExitCode == nil || *execution.ExitCode != *c.Want.ExitCode) {
		t.Errorf("exit code: want %d: %s", *c.Want.ExitCode, shown)
	}
	for _, text := range c.Want.StdoutContains {
		if !strings.Contains(execution.Stdout, text) {
			t.Errorf("stdout lacks %q: %s", text, shown)
		}
	}
	for _, text := range c.Want.StderrContains {
		if !strings.Contains(execution.Stderr, text) {
			t.Errorf("stderr lacks %q: %s", text, shown)
		}
	}
	if c.Want.OutputData != nil {
		if execution.OutputData == nil {
			t.Fatalf("no output data: %s", shown)
		}
		if fault := lacks(decode(t, c.Want.OutputData), decode(t, execution.OutputData), ""); fault != "" {
			t.Errorf("output_data %s: %s", fault, shown)
		}
	}
	checkArtifacts(t, runs, p, execution, c.Want)
}

func checkArtifacts(t *testing.T, runs runner, p sallyport.Principal, execution sallyport.Execution, w want) {
	t.Helper()
	got := []string{}
	for _, artifact := range execution.Artifacts {
		got = append(got, artifact.Path)
	}
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(slices.Values(w.Artifacts)), got); diff != "" && len(got)+len(w.Artifacts) > 0 {
		t.Errorf("artifacts (-want +got):\n%s", diff)
	}
	for _, path := range got {
		artifact, content, err := runs.Artifact(t.Context(), p, execution.ID, path)
		if err != nil {
			t.Fatal(err)
		}
		if digest := sallyport.DigestOf(content).Hex(); digest != artifact.SHA256 || int64(len(content)) != artifact.Size {
			t.Errorf("%s: got %d bytes with %s, the record says %d with %s", path, len(content), digest, artifact.Size, artifact.SHA256)
		}
		for _, text := range w.ArtifactContains[path] {
			if !strings.Contains(string(content), text) {
				t.Errorf("%s lacks %q", path, text)
			}
		}
		for _, text := range w.ArtifactLacks[path] {
			if strings.Contains(string(content), text) {
				t.Errorf("%s contains %q", path, text)
			}
		}
	}
}
