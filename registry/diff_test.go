package registry_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// history saves revisions of one skill, each whole, and returns their ids.
func history(t *testing.T, b bench, revisions ...[]registry.File) (sallyport.SkillRef, []sallyport.RevisionID) {
	t.Helper()
	var ref sallyport.SkillRef
	var ids []sallyport.RevisionID
	for _, files := range revisions {
		saved := b.save(t, alice, registry.SaveRequest{Ref: ref, Files: files, ReplaceAll: true})
		ref = sallyport.SkillRef{SkillID: saved.Skill.ID}
		ids = append(ids, saved.Revision.ID)
	}
	return ref, ids
}

func compare(t *testing.T, b bench, ref sallyport.SkillRef, from, to sallyport.RevisionID) registry.RevisionDiff {
	t.Helper()
	d, err := b.Diff(t.Context(), alice, ref, from, to)
	if err != nil {
		t.Fatalf("diff: %v", err)
	}
	return d
}

// lines shows files as "change old path".
func lines(d registry.RevisionDiff) []string {
	out := []string{}
	for _, f := range d.Files {
		line := string(f.Change) + " " + f.Path
		if f.OldPath != "" {
			line += " from " + f.OldPath
		}
		if f.TextLeftOut != "" {
			line += ": " + f.TextLeftOut
		}
		out = append(out, line)
	}
	return out
}

// F59: a comparison names every file that differs, with the digests of both sides.
func TestDiffOfFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	md := file("SKILL.md", skillMD("x"))
	ref, ids := history(t, b,
		[]registry.File{md, file("a", "one\ntwo\nthree\n"), file("gone", "bye\n"), file("old/name", "moved\n"), file("bin", "\x00\x01"), file("kept", "k"), file("twin1", "t"), file("twin2", "t")},
		[]registry.File{md, file("a", "one\n2\nthree\n"), file("new", "hi"), file("name", "moved\n"), file("bin", "\x00\x02"), file("kept", "k"), file("twin3", "t")},
	)
	d := compare(t, b, ref, ids[0], ids[1])
	if diff := cmp.Diff([]string{
		"changed a", "changed bin: binary", "removed gone", "renamed name from old/name", "added new", "removed twin2", "renamed twin3 from twin1",
	}, lines(d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(registry.DiffTotals{Added: 1, Removed: 2, Changed: 2, Renamed: 2, Unchanged: 2}, d.Totals); diff != "" {
		t.Error(diff)
	}
	want := "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
	if got := d.Files[0].Text; got != want {
		t.Errorf("text: got %q, want %q", got, want)
	}
	if got := d.Files[2].Text; !strings.Contains(got, "+++ /dev/null\n") || !strings.Contains(got, "-bye\n") {
		t.Errorf("text of a removed file: %q", got)
	}
	if got := d.Files[4].Text; !strings.Contains(got, "--- /dev/null\n") || !strings.Contains(got, "+hi\n\\ No newline at end of file\n") {
		t.Errorf("text of a new file: %q", got)
	}
	if f := d.Files[1]; f.Before.Size != 2 || f.Before.SHA256 == f.After.SHA256 {
		t.Errorf("the sides of a binary file: %+v %+v", f.Before, f.After)
	}
	if d.Identical || d.From.ID != ids[0] || d.To.ID != ids[1] || d.From.Components != nil || d.To.Components != nil {
		t.Errorf("%+v", d)
	}
}

func TestDiffOfFrontmatterAndSettings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	header := func(fields string) registry.File {
		return file("SKILL.md", "---\nname: x\ndescription: d\n"+fields+"---\n")
	}
	ref, ids := history(t, b,
		[]registry.File{header("license: MIT\nmetadata: {author: a, n: 1.0}\n"), file("scripts/a.py", "1"), file("scripts/c.py", "1"), file("sallyport.yaml", "scripts: {scripts/a.py: {secrets: [A]}}\n")},
		[]registry.File{header("metadata: {author: b, n: 1.0, deep: {x: [1]}}\nversion: 2\n"), file("scripts/a.py", "1"), file("scripts/b.sh", "1"), file("sallyport.yaml", "scripts: {scripts/a.py: {input: flags, limits: {memory_bytes: 50000000}}}\n")},
	)
	d := compare(t, b, ref, ids[0], ids[1])
	show := func(fields []registry.FieldDiff) []string {
		var out []string
		for _, f := range fields {
			out = append(out, string(f.Change)+" "+f.Name+": "+string(f.Before)+" -> "+string(f.After))
		}
		return out
	}
	if diff := cmp.Diff([]string{
		`removed license: "MIT" -> `, `changed metadata.author: "a" -> "b"`, `added metadata.deep:  -> {"x":[1]}`, `added version:  -> 2`,
	}, show(d.Frontmatter)); diff != "" {
		t.Errorf("frontmatter (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		`changed scripts/a.py input: "stdin" -> "flags"`, `added scripts/a.py limits:  -> {"memory_bytes":50000000}`, `removed scripts/a.py secrets: ["A"] -> `,
		`added scripts/b.sh input:  -> "stdin"`, `added scripts/b.sh runtime:  -> "bash"`, `removed scripts/c.py input: "stdin" -> `, `removed scripts/c.py runtime: "python" -> `,
	}, show(d.Settings)); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestDiffChoosesSides(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	version := func(n string) []registry.File { return []registry.File{file("SKILL.md", skillMD("x")), file("a", n)} }
	ref, ids := history(t, b, version("1"))
	first := compare(t, b, ref, "", "")
	if first.From != nil || first.Totals.Added != 2 || first.Identical {
		t.Errorf("an only revision: %+v", first)
	}
	_, more := history(t, b, version("1"), version("2"), version("3"))
	if more[0] != ids[0] {
		t.Fatal("the history did not go on")
	}
	if d := compare(t, b, ref, "", ""); d.From.ID != more[1] || d.To.ID != more[2] {
		t.Errorf("nothing published: %s..%s", d.From.ID, d.To.ID)
	}
	if _, err := b.Publish(t.Context(), alice, ref, more[0]); err != nil {
		t.Fatal(err)
	}
	if d := compare(t, b, ref, "", ""); d.From.ID != more[0] || d.To.ID != more[2] {
		t.Errorf("published..latest: %s..%s", d.From.ID, d.To.ID)
	}
	if d := compare(t, b, ref, more[2], more[0]); d.From.ID != more[2] || d.To.ID != more[0] {
		t.Errorf("backwards: %s..%s", d.From.ID, d.To.ID)
	}
	if d := compare(t, b, ref, more[2], more[2]); !d.Identical || len(d.Files) != 0 {
		t.Errorf("with itself: %+v", d)
	}
	_, err := b.Diff(t.Context(), alice, ref, more[0], "none")
	wantCode(t, err, sallyport.CodeRevisionNotFound)
	_, err = b.Diff(t.Context(), alice, ref, "none", more[0])
	wantCode(t, err, sallyport.CodeRevisionNotFound)
	stranger := principal("eve")
	_, err = b.Diff(t.Context(), stranger, ref, "", "")
	wantCode(t, err, sallyport.CodeAccessDenied)
}

// The answer stays small whatever is compared, and says what it left out.
func TestDiffIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	md := file("SKILL.md", skillMD("x"))
	before, after := []registry.File{md}, []registry.File{md}
	for i := range 20 {
		name := "f" + string(rune('a'+i))
		before = append(before, file(name, ""))
		after = append(after, registry.File{Path: name, Content: bytes.Repeat([]byte(name+" line\n"), 10_000)})
	}
	after = append(after, registry.File{Path: "large", Content: bytes.Repeat([]byte("x\n"), 200_000)})
	ref, ids := history(t, b, before, after)
	d := compare(t, b, ref, ids[0], ids[1])
	total, left := 0, 0
	for _, f := range d.Files {
		total += len(f.Text)
		if f.TextLeftOut != "" {
			left++
		}
		if (f.Text == "") == (f.TextLeftOut == "") {
			t.Errorf("%s has neither a text nor a reason, or both", f.Path)
		}
	}
	if total > 600_000 || total == 0 || left == 0 || len(d.Files) != 21 {
		t.Errorf("%d bytes of text in %d files, %d left out", total, len(d.Files), left)
	}
}
