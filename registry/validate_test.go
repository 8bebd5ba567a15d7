package registry_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/registry"
)

// place writes files below a new folder, as a test wants them.
func place(tb testing.TB, files map[string]string) string {
	tb.Helper()
	root := tb.TempDir()
	for name, content := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

// validation validates paths or fails the test.
func validation(tb testing.TB, paths ...string) (registry.ValidationReport, *registry.PathsTree) {
	tb.Helper()
	tree, err := registry.OpenPaths(tb.Context(), paths)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = tree.Close() })
	report, err := registry.Validate(tb.Context(), tree, registry.ValidateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return report, tree
}

// What validate says of a skill is what import does with it, byte for byte and problem for problem.
func TestValidateAgreesWithImport(t *testing.T) {
	t.Parallel()
	root := place(t, map[string]string{
		"good/SKILL.md":            skillMD("good"),
		"good/scripts/run.py":      "print(1)\n",
		"good/__pycache__/run.pyc": "x",
		"colon/SKILL.md":           "---\nname: colon\ndescription: Use: for colons\n---\n",
		"bad/SKILL.md":             "---\nname: bad\n---\n",
		"plain/SKILL.md":           "# no frontmatter\n",
		"nested/SKILL.md":          skillMD("nested"),
		"nested/deeper/SKILL.md":   skillMD("deeper"),
		"README.md":                "outside",
	})
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "good", "leak")); err != nil {
		t.Fatal(err)
	}
	report, _ := validation(t, root)
	tree, err := registry.OpenPaths(t.Context(), []string{root})
	if err != nil {
		t.Fatal(err)
	}
	imported, err := newBench(t).Import(t.Context(), alice, tree, registry.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Skills) != len(imported.Skills) || len(report.Skills) != 5 {
		t.Fatalf("validated %d skills, imported %d, want 5", len(report.Skills), len(imported.Skills))
	}
	for i, got := range report.Skills {
		want := imported.Skills[i]
		if got.Path != want.Path || got.Usable != want.Usable || got.SpecClean != want.SpecClean || got.Digest != string(want.Digest) {
			t.Errorf("validated %+v\nimported %+v", got, want)
		}
		if diff := cmp.Diff(want.Problems, got.Problems) + cmp.Diff(want.Files, got.Files); diff != "" {
			t.Errorf("%s: imported, then validated:\n%s", got.Path, diff)
		}
	}
	if diff := cmp.Diff(imported.Ignored, report.Ignored); diff != "" {
		t.Errorf("ignored: imported, then validated:\n%s", diff)
	}
	if got := report.Totals; got.Usable != 3 || got.Errors < 2 {
		t.Errorf("totals %+v", got)
	}
}

func TestValidateNamesWhereThingsAre(t *testing.T) {
	t.Parallel()
	root := place(t, map[string]string{"a/pdf/SKILL.md": skillMD("pdf"), "b/pdf/SKILL.md": skillMD("pdf") + "more\n"})
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	w, err := archive.Create("inner/SKILL.md")
	if err == nil {
		_, err = w.Write([]byte("---\nname: inner\n---\n"))
	}
	if err != nil || archive.Close() != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(root, "bundle.zip")
	if err := os.WriteFile(bundle, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	report, tree := validation(t, filepath.Join(root, "a", "pdf"), filepath.Join(root, "b", "pdf", "SKILL.md"), bundle)
	found := map[string]registry.ValidatedSkill{}
	for _, skill := range report.Skills {
		file, inside := tree.Locate(skill.FilePath(registry.SkillFile))
		rel, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		found[rel+"!"+inside] = skill
	}
	for _, name := range []string{"a/pdf/SKILL.md!", "b/pdf/SKILL.md!", "bundle.zip!inner/SKILL.md"} {
		if _, there := found[name]; !there {
			t.Errorf("%s was not found, only %v", name, found)
		}
	}
	// Sound skills of one name are each sound; what slug an import of all of them gives one is a note on it.
	clashes := 0
	for _, skill := range report.Skills {
		for _, p := range skill.Problems {
			if p.Code == registry.ProblemSlugPlaced {
				clashes++
				if p.Severity != registry.SeverityNote || !skill.Usable || !skill.SpecClean {
					t.Errorf("the clash makes %+v", skill)
				}
			}
		}
	}
	if clashes != 1 {
		t.Errorf("%d clashes, want 1", clashes)
	}
}
