package registry_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// treeOf is a tree of files in memory.
type treeOf map[string]string

func (t treeOf) Entries(ctx context.Context) ([]registry.TreeEntry, error) {
	var out []registry.TreeEntry
	for name, content := range t {
		out = append(out, registry.TreeEntry{Path: name, Type: registry.EntryFile, Size: int64(len(content)), Mode: 0o644})
	}
	return out, ctx.Err()
}

func (t treeOf) ReadFile(_ context.Context, name string, limit int64) ([]byte, error) {
	return []byte(t[name])[:min(int64(len(t[name])), limit+1)], nil
}

func (treeOf) Close() error { return nil }

// Of several imports of one skill at once, one is first. Who brings the same content has nothing left to do, who brings other content is told
// of the conflict and overwrites nothing; the skill itself is never called invalid.
func TestImportRaces(t *testing.T) {
	t.Parallel()
	const writers = 6
	for name, test := range map[string]struct {
		content   func(i int) string
		before    bool // the skill exists already
		unchanged int
	}{
		"new, other content each":      {func(i int) string { return skillMD("pdf") + strings.Repeat("x", i) }, false, 0},
		"new, the same content":        {func(int) string { return skillMD("pdf") + "x" }, false, writers - 1},
		"existing, other content each": {func(i int) string { return skillMD("pdf") + strings.Repeat("x", i+1) }, true, 0},
		"existing, the same content":   {func(int) string { return skillMD("pdf") + "x" }, true, writers - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if test.before {
				b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
			}
			saves := b.store.saves
			var gate, all sync.WaitGroup
			gate.Add(writers)
			b.store.beforeCAS = func() { gate.Done(); gate.Wait() } // everybody has read before anybody writes
			reports := make([]registry.ImportReport, writers)
			for i := range writers {
				all.Go(func() {
					var err error
					reports[i], err = b.Import(t.Context(), alice, treeOf{"pdf/SKILL.md": test.content(i)}, registry.ImportOptions{Publish: true})
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			got := map[string]int{}
			for _, report := range reports {
				skill := report.Skills[0]
				got[skill.Result]++
				if skill.Result == registry.ResultRefused {
					last := skill.Problems[len(skill.Problems)-1]
					if last.Code != registry.ProblemConflict || skill.RevisionID != "" {
						t.Errorf("a loser is told %+v", last)
					}
				}
			}
			want := map[string]int{registry.ResultImported: 1}
			if test.unchanged > 0 {
				want[registry.ResultUnchanged] = test.unchanged
			} else {
				want[registry.ResultRefused] = writers - 1
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if b.store.saves != saves+1 || len(b.store.skills) != 1 {
				t.Errorf("%d saves, %d skills", b.store.saves-saves, len(b.store.skills))
			}
		})
	}
}

// A URL that is saved while somebody else saves the skill is a conflict, too, and not an invalid skill.
func TestSaveURLRace(t *testing.T) {
	t.Parallel()
	s := newSite(t, serve([]byte(skillMD("pdf")+"theirs")))
	b := fetching(s.config())
	b.store.beforeCAS = func() {
		b.store.beforeCAS = nil
		b.save(t, bob, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("pdf"))}})
	}
	_, _, err := b.SaveURL(t.Context(), alice, s.at("/pdf/SKILL.md"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeRevisionConflict)
	if b.store.saves != 1 {
		t.Errorf("%d saves", b.store.saves)
	}
}

// Skills of one name for several hosts or languages are all imported, each under a slug after its folder, in whatever order they are listed.
func TestImportNamesSlugsAfterFolders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tree treeOf
		want map[string]string
	}{
		"hosts": {
			treeOf{".claude/skills/pdf/SKILL.md": skillMD("pdf") + "1", ".codex/skills/pdf/SKILL.md": skillMD("pdf") + "2"},
			map[string]string{".claude/skills/pdf": "claude-pdf", ".codex/skills/pdf": "codex-pdf"},
		},
		"languages": {
			treeOf{"skills/en/notes/pdf/SKILL.md": skillMD("pdf") + "1", "skills/de/notes/pdf/SKILL.md": skillMD("pdf") + "2", "skills/en/csv/SKILL.md": skillMD("csv")},
			map[string]string{"skills/en/notes/pdf": "en-pdf", "skills/de/notes/pdf": "de-pdf", "skills/en/csv": "csv"},
		},
		"some the same": {
			treeOf{"a/pdf/SKILL.md": skillMD("pdf") + "1", "b/pdf/SKILL.md": skillMD("pdf") + "2", "c/pdf/SKILL.md": skillMD("pdf") + "1"},
			map[string]string{"a/pdf": "a-pdf", "b/pdf": "b-pdf", "c/pdf": "a-pdf"},
		},
		"all the same": {
			treeOf{"a/pdf/SKILL.md": skillMD("pdf"), "b/pdf/SKILL.md": skillMD("pdf")},
			map[string]string{"a/pdf": "pdf", "b/pdf": "pdf"},
		},
		"a folder deeper": {
			treeOf{"pdf/SKILL.md": skillMD("pdf") + "1", "old/pdf/SKILL.md": skillMD("pdf") + "2"},
			map[string]string{"pdf": "pdf", "old/pdf": "old-pdf"},
		},
		"copies": {
			treeOf{"pdf/SKILL.md": skillMD("pdf") + "1", "pdf copy/SKILL.md": skillMD("pdf") + "2"},
			map[string]string{"pdf": "pdf", "pdf copy": "pdf-copy-pdf"},
		},
		"a slug that is taken": {
			treeOf{"a/pdf/SKILL.md": skillMD("pdf") + "1", "b/pdf/SKILL.md": skillMD("pdf") + "2", "x/SKILL.md": skillMD("a-pdf")},
			map[string]string{"a/pdf": "pdf-6f3d1c73", "b/pdf": "b-pdf", "x": "a-pdf"},
		},
		"folders that fold to one": {
			treeOf{"ä/pdf/SKILL.md": skillMD("pdf") + "1", "a/pdf/SKILL.md": skillMD("pdf") + "2"},
			map[string]string{"a/pdf": "a-pdf", "ä/pdf": "pdf-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			report, err := b.Import(t.Context(), alice, test.tree, registry.ImportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			valid, err := registry.Validate(t.Context(), test.tree, registry.ValidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			digests := map[sallyport.Digest]bool{}
			for i, skill := range report.Skills {
				digests[skill.Digest] = true
				if want := test.want[skill.Path]; skill.Slug != want && (!strings.HasPrefix(want, "pdf-") || !strings.HasPrefix(skill.Slug, "pdf-")) {
					t.Errorf("%s has the slug %q, want %q", skill.Path, skill.Slug, want)
				}
				if skill.Result == registry.ResultRefused || valid.Skills[i].Slug != skill.Slug {
					t.Errorf("%+v, and validation says %q", skill, valid.Skills[i].Slug)
				}
			}
			if len(b.store.skills) != len(digests) {
				t.Errorf("%d skills for %d contents", len(b.store.skills), len(digests))
			}
			again, err := b.Import(t.Context(), alice, test.tree, registry.ImportOptions{})
			if err != nil || again.Totals.Imported != 0 || again.Totals.Unchanged != report.Totals.Imported {
				t.Errorf("again: %+v %v", again.Totals, err)
			}
		})
	}
}

func TestImportTellsItsProgress(t *testing.T) {
	t.Parallel()
	var told []registry.ImportProgress
	_, err := newBench(t).Import(t.Context(), alice, treeOf{"a/SKILL.md": skillMD("a"), "b/SKILL.md": "no skill"}, registry.ImportOptions{
		Progress: func(p registry.ImportProgress) { told = append(told, p) },
	})
	want := []registry.ImportProgress{{1, 2, "a", "a", "imported"}, {2, 2, "b", "", "refused"}}
	if diff := cmp.Diff(want, told); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
