package registry_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func written(tb testing.TB, paths ...string) registry.Tree {
	tb.Helper()
	var out bytes.Buffer
	if err := registry.WriteTar(tb.Context(), &out, paths); err != nil {
		tb.Fatal(err)
	}
	return openTar(tb, out.Bytes())
}

func TestWriteTar(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"skills/pdf/SKILL.md": skillMD("pdf"), "skills/pdf/lib/c.py": "common", "skills/pdf/c.py": "-> lib/c.py", "skills/pdf/abs.py": "-> ROOT/skills/pdf/lib/c.py",
		"skills/pdf/out": "-> /etc/passwd", "skills/.git/config": "x", "skills/a.pyc": "big", "skills/gb\xd6\xd0": "x", "skills/empty/": "",
		"other/skills/csv/SKILL.md": skillMD("csv"), "2/x": "x",
	})
	if err := mkfifo(filepath.Join(root, "skills", "pipe")); err != nil {
		t.Fatal(err)
	}
	got := listing(t, written(t, filepath.Join(root, "skills"), filepath.Join(root, "other", "skills"), filepath.Join(root, "skills", "pdf", "SKILL.md"), filepath.Join(root, "2")))
	want := []string{
		"file 2/x", "file 3/skills/csv/SKILL.md", "file pdf/SKILL.md", "symlink pdf/abs.py -> lib/c.py", "symlink pdf/c.py -> lib/c.py", "file pdf/lib/c.py", "symlink pdf/out -> /etc/passwd",
		"dir skills/.git", "file skills/a.pyc", `file skills/gb\xd6\xd0 !`, "file skills/pdf/SKILL.md", "symlink skills/pdf/abs.py -> lib/c.py",
		"symlink skills/pdf/c.py -> lib/c.py", "file skills/pdf/lib/c.py", "symlink skills/pdf/out -> /etc/passwd", "other skills/pipe",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
}

// What the local import finds is what the upload finds, links and faults included.
func TestWriteTarAgreesWithFolder(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"pdf/SKILL.md": skillMD("pdf"), "pdf/lib/c.py": "common", "pdf/scripts": "-> lib", "pdf/abs.py": "-> ROOT/pdf/lib/c.py", "pdf/out": "-> /etc/passwd",
		"pdf/node_modules/x": "x", "gbk/SKILL.md": skillMD("gbk"), "gbk/\xd6": "x", "README": "x",
	})
	local := newBench(t).imports(t, openFolder(t, root), registry.ImportOptions{})
	remote := newBench(t).imports(t, written(t, root), registry.ImportOptions{})
	base := filepath.Base(root) + "/"
	for i := range remote.Skills {
		remote.Skills[i].Path = strings.TrimPrefix(remote.Skills[i].Path, base)
		if remote.Skills[i].Digest != local.Skills[i].Digest {
			t.Errorf("%s has two digests", remote.Skills[i].Path)
		}
	}
	for i := range remote.Ignored {
		remote.Ignored[i].Path = strings.TrimPrefix(remote.Ignored[i].Path, base)
	}
	if diff := cmp.Diff(outcome(local), outcome(remote)); diff != "" {
		t.Errorf("reports (-local +remote):\n%s", diff)
	}
}

func TestWriteTarIsDeterministic(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"b": "2", "a": "1", "c/d": "3"})
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := registry.WriteTar(t.Context(), out, []string{root}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two uploads of one folder differ")
	}
}

// An archive as a path is unpacked under its own name.
func TestWriteTarOfArchives(t *testing.T) {
	t.Parallel()
	md := skillMD("pdf")
	root := t.TempDir()
	for name, content := range map[string][]byte{
		"pdf.zip": zipOf(t, zipFile("SKILL.md", md), zipFile("x.pyc", "junk")), "a.tar": tarOf(t, member{name: "pdf/SKILL.md", content: md}),
		"b.tar.gz": gzipped(t, tarOf(t, member{name: "./pdf/SKILL.md", content: md})), "c.TGZ": gzipped(t, tarOf(t, member{name: "x", content: "x"})),
		"evil.zip": zipOf(t, zipFile("SKILL.md", md), zipFile("C:/x", "x")), "evil.tar": tarOf(t, member{name: "../x", content: "x"}), "text": []byte("no archive"),
	} {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	got := listing(t, written(t, at("pdf.zip"), at("a.tar"), at("b.tar.gz"), at("c.TGZ"), at("d")))
	want := []string{"file a/pdf/SKILL.md", "file b/pdf/SKILL.md", "file c/x", "file pdf/SKILL.md", "file pdf/x.pyc"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
	for name, test := range map[string]struct {
		paths []string
		code  sallyport.Code
		says  string
	}{
		"nothing":     {nil, sallyport.CodeInvalidArgument, "no path"},
		"missing":     {[]string{at("d"), at("nope")}, sallyport.CodeInvalidArgument, "does not exist"},
		"text":        {[]string{at("text")}, sallyport.CodeInvalidArgument, "neither"},
		"drive entry": {[]string{at("evil.zip")}, sallyport.CodeUnsafePath, "C:/x"},
		"parent":      {[]string{at("d"), at("evil.tar")}, sallyport.CodeUnsafePath, "../x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := registry.WriteTar(t.Context(), &out, test.paths)
			wantCode(t, err, test.code)
			if out.Len() != 0 || !strings.Contains(sallyport.Public(err).Message, test.says) {
				t.Errorf("%d bytes were written, %v", out.Len(), err)
			}
		})
	}
}

func TestWriteTarPipe(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"pdf/SKILL.md": skillMD("pdf"), "pdf/big": strings.Repeat("x", 1<<20)})
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(registry.WriteTar(t.Context(), writer, []string{root})) }()
	opened, err := registry.OpenTar(reader, registry.TreeLimits{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close() //nolint:errcheck // a test
	if lines := listing(t, opened); len(lines) != 2 {
		t.Errorf("listing %v", lines)
	}
}

// Whatever bytes are called an archive: no panic, nothing unsafe is stored, every file is accounted for.
func FuzzImportArchive(f *testing.F) {
	md := skillMD("pdf")
	f.Add(tarOf(f, member{name: "pdf/SKILL.md", content: md}, member{name: "pdf/x", kind: '2', link: "SKILL.md"}))
	f.Add(gzipped(f, tarOf(f, member{name: "pdf/SKILL.md", content: md})))
	f.Add(zipOf(f, zipFile("pdf/SKILL.md", md), zipFile(`pdf\scripts\`, ""), zipFile("pdf/../x", "x")))
	limits := registry.TreeLimits{Entries: 100, TotalBytes: 1 << 20, FileBytes: 1 << 16}
	f.Fuzz(func(t *testing.T, content []byte) {
		trees := []registry.Tree{}
		if opened, err := registry.OpenTar(bytes.NewReader(content), limits, t.TempDir()); err == nil {
			defer opened.Close() //nolint:errcheck // a test
			trees = append(trees, opened)
		}
		if opened, err := registry.OpenZip(bytes.NewReader(content), int64(len(content)), limits); err == nil {
			trees = append(trees, opened)
		}
		for _, tree := range trees {
			b := newBench(t)
			report, err := b.Import(t.Context(), alice, tree, registry.ImportOptions{})
			if err != nil {
				continue
			}
			checkTotals(t, report)
			for _, revisions := range b.store.revisions {
				for _, c := range slices.Concat(revisions[0].Components) {
					if err := sallyport.CheckPath(c.Path); err != nil {
						t.Errorf("%q was stored", c.Path)
					}
				}
			}
		}
	})
}

// A fault that is sent along arrives with its remedy.
func TestWriteTarKeepsTheRemedy(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(archive, zipOf(t, zip.FileHeader{Name: "a/\xd6\xd0\xce\xc4.md", Comment: "x"}), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := registry.OpenPaths(t.Context(), []string{archive})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close() //nolint:errcheck // read only
	before, err := opened.Entries(t.Context())
	if err != nil || len(before) != 1 || before[0].Fault == "" {
		t.Fatalf("%v, %v", before, err)
	}
	var sent bytes.Buffer
	if err := registry.WriteTar(t.Context(), &sent, []string{archive}); err != nil {
		t.Fatal(err)
	}
	after, err := openTar(t, sent.Bytes()).Entries(t.Context())
	if err != nil || len(after) != 1 || after[0].Fault != before[0].Fault {
		t.Errorf("sent %q, arrived %v, %v", before[0].Fault, after, err)
	}
}
