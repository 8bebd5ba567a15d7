package registry_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// tree is a Tree whose entries are made up. The content of a file is its target.
type tree []registry.TreeEntry

func (t tree) Entries(context.Context) ([]registry.TreeEntry, error) { return t, nil }
func (t tree) Close() error                                          { return nil }

func (t tree) ReadFile(_ context.Context, path string, _ int64) ([]byte, error) {
	for _, e := range t {
		if e.Path == path {
			if e.Target == "BROKEN" {
				return nil, sallyport.Errorf("test", sallyport.CodeInvalidArgument, "the file cannot be read")
			}
			return []byte(e.Target), nil
		}
	}
	return nil, errors.New("no such entry")
}

func entry(path, content string) registry.TreeEntry {
	return registry.TreeEntry{Path: path, Type: registry.EntryFile, Size: int64(len(content)), Target: content}
}

// outcome is a report in lines: one for each skill, indented ones for its files and problems, then the ignored.
func outcome(report registry.ImportReport) []string {
	out := []string{}
	for _, s := range report.Skills {
		out = append(out, s.Result+" "+s.Path+" "+s.Slug)
		for _, f := range s.Files {
			out = append(out, "  "+f.Result+" "+f.Path)
		}
		for _, p := range s.Problems {
			out = append(out, "  "+p.Severity+" "+p.Code)
		}
	}
	for _, f := range report.Ignored {
		out = append(out, f.Result+" "+f.Path)
	}
	return out
}

func (b bench) imports(tb testing.TB, t registry.Tree, opts registry.ImportOptions) registry.ImportReport {
	tb.Helper()
	report, err := b.Import(tb.Context(), alice, t, opts)
	if err != nil {
		tb.Fatalf("import: %v", err)
	}
	checkTotals(tb, report)
	return report
}

// checkTotals counts the report again: everything is accounted for once.
func checkTotals(tb testing.TB, report registry.ImportReport) {
	tb.Helper()
	want := registry.ImportTotals{Skills: len(report.Skills)}
	count := func(f registry.ImportedFile) {
		want.Files++
		switch f.Result {
		case "kept", "repaired":
			want.FilesKept++
		case "refused":
			want.FilesRefused++
		case "ignored":
			want.FilesIgnored++
		default:
			tb.Errorf("file %+v has no result", f)
		}
		if f.Result != "kept" && f.Reason == "" {
			tb.Errorf("file %+v gives no reason", f)
		}
	}
	for _, s := range report.Skills {
		switch s.Result {
		case "imported":
			want.Imported++
		case "unchanged":
			want.Unchanged++
		case "refused":
			want.Refused++
			if !slices.ContainsFunc(s.Problems, func(p registry.Problem) bool { return p.Severity == "error" }) {
				tb.Errorf("%s is refused without an error", s.Path)
			}
		case "ignored":
			want.Ignored++
		}
		if s.SpecClean {
			want.SpecClean++
		}
		for _, f := range s.Files {
			count(f)
		}
	}
	for _, f := range report.Ignored {
		if f.Path != "." {
			count(f)
		}
	}
	if diff := cmp.Diff(want, report.Totals); diff != "" {
		tb.Errorf("totals (-want +got):\n%s", diff)
	}
}

// Every row of the archive and folder cases, as a folder, through the same import.
func TestImportFolder(t *testing.T) {
	t.Parallel()
	outside := folder(t, map[string]string{"key": "secret"})
	md := skillMD("pdf")
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"plain": {
			map[string]string{"pdf/SKILL.md": md, "pdf/scripts/a.py": "1", "README.md": "x"},
			[]string{"imported pdf pdf", "  kept SKILL.md", "  kept scripts/a.py", "ignored README.md"},
		},
		"nothing": {map[string]string{"README.md": "x"}, []string{"ignored README.md", "ignored ."}},
		"empty":   {map[string]string{}, []string{"ignored ."}},
		"F16 no frontmatter": {
			map[string]string{"a/SKILL.md": "# A", "pdf/SKILL.md": md},
			[]string{"refused a ", "  refused SKILL.md", "  error FRONTMATTER_MISSING", "imported pdf pdf", "  kept SKILL.md"},
		},
		"F21 Finder leftovers": {
			map[string]string{"pdf/SKILL.md": md, "pdf/.DS_Store": "x", "pdf/._SKILL.md": "x", "__MACOSX/pdf/._SKILL.md": "x", ".DS_Store": "x"},
			[]string{"imported pdf pdf", "  ignored .DS_Store", "  ignored ._SKILL.md", "  kept SKILL.md", "ignored .DS_Store", "ignored __MACOSX/"},
		},
		"F24 two folders deep": {
			map[string]string{"x/y/pdf/SKILL.md": md}, []string{"imported x/y/pdf pdf", "  kept SKILL.md"},
		},
		"F25 nested": {
			map[string]string{"pdf/SKILL.md": md, "pdf/notes/SKILL.md": skillMD("notes")},
			[]string{"imported pdf pdf", "  kept SKILL.md", "  kept notes/SKILL.md", "  note NESTED_SKILL"},
		},
		"F35 link out": {
			map[string]string{"pdf/SKILL.md": md, "pdf/key": "-> " + outside + "/key", "pdf/dir": "-> " + outside, "pdf/up": "-> ../../../../../../etc/passwd"},
			[]string{
				"imported pdf pdf", "  kept SKILL.md", "  refused dir", "  refused key", "  refused up",
				"  warning LINK_UNRESOLVED", "  warning LINK_UNRESOLVED", "  warning LINK_UNRESOLVED",
			},
		},
		"F35 link to a neighbour": {
			map[string]string{"pdf/SKILL.md": md, "pdf/x": "-> ../other/x", "other/x": "private"},
			[]string{"imported pdf pdf", "  kept SKILL.md", "  refused x", "  warning LINK_UNRESOLVED", "ignored other/x"},
		},
		"F36 links inside": {
			map[string]string{
				"pdf/SKILL.md": md, "pdf/lib/common.py": "c", "pdf/lib/__init__.py": "", "pdf/scripts/common.py": "-> ../lib/common.py",
				"pdf/scripts/lib": "-> ../lib", "pdf/scripts/again": "-> common.py", "pdf/scripts/round": "-> ../../pdf/lib/common.py",
			},
			[]string{
				"imported pdf pdf", "  kept SKILL.md", "  kept lib/__init__.py", "  kept lib/common.py", "  repaired scripts/again",
				"  repaired scripts/common.py", "  repaired scripts/lib/__init__.py", "  repaired scripts/lib/common.py", "  repaired scripts/round", "  note SCRIPT_RUNTIME",
			},
		},
		"F36 loops": {
			map[string]string{"pdf/SKILL.md": md, "pdf/a": "-> b", "pdf/b": "-> a", "pdf/self": "-> .", "pdf/dir/up": "-> ../dir", "pdf/dir/x": "x"},
			[]string{
				"imported pdf pdf", "  kept SKILL.md", "  refused a", "  refused b", "  refused dir/up", "  kept dir/x", "  refused self",
				"  warning LINK_UNRESOLVED", "  warning LINK_UNRESOLVED", "  warning LINK_UNRESOLVED", "  warning LINK_UNRESOLVED",
			},
		},
		"F37 dangling": {
			map[string]string{"pdf/SKILL.md": md, "pdf/x": "-> nowhere", "pdf/y": "-> SKILL.md/z"},
			[]string{"imported pdf pdf", "  kept SKILL.md", "  refused x", "  refused y", "  warning LINK_UNRESOLVED", "  warning LINK_UNRESOLVED"},
		},
		"F38 linked skill directory": {
			map[string]string{"real/SKILL.md": skillMD("real"), "skills/linked": "-> ../real"},
			[]string{"imported real real", "  kept SKILL.md", "ignored skills/linked"},
		},
		"F38 linked SKILL.md inside": {
			map[string]string{"pdf/docs/S.md": md, "pdf/SKILL.md": "-> docs/S.md"},
			[]string{"imported pdf pdf", "  repaired SKILL.md", "  kept docs/S.md"},
		},
		"F38 linked SKILL.md outside": {
			map[string]string{"pdf/SKILL.md": "-> " + outside + "/key"},
			[]string{"refused pdf ", "  refused SKILL.md", "  warning LINK_UNRESOLVED", "  error SKILL_MD_MISSING"},
		},
		"F46 every file": {
			map[string]string{"pdf/SKILL.md": md, "pdf/scripts/__init__.py": "", "pdf/.hidden": "x", "pdf/x/__pycache__/a.pyc": "x", "pdf/b.pyc": "x", "pdf/node_modules/m/i.js": "x", "pdf/.git/HEAD": "x"},
			[]string{
				"imported pdf pdf", "  ignored .git/", "  kept .hidden", "  kept SKILL.md", "  ignored b.pyc", "  ignored node_modules/",
				"  kept scripts/__init__.py", "  ignored x/__pycache__/",
			},
		},
		"F47 SKILL.md at the root": {
			map[string]string{"SKILL.md": md, "scripts/a.py": "1", "data/x.bin": "\x00", "LICENSE.txt": "x", "sub/SKILL.md": skillMD("sub")},
			[]string{"imported . pdf", "  kept LICENSE.txt", "  kept SKILL.md", "  kept data/x.bin", "  kept scripts/a.py", "  kept sub/SKILL.md", "  note NESTED_SKILL"},
		},
		"F50 one slug twice": {
			map[string]string{"a/SKILL.md": md, "b/SKILL.md": md + "other"},
			[]string{
				"imported a a-pdf", "  kept SKILL.md", "  warning NAME_NOT_DIRECTORY", "  note SLUG_FROM_PATH",
				"imported b b-pdf", "  kept SKILL.md", "  warning NAME_NOT_DIRECTORY", "  note SLUG_FROM_PATH",
			},
		},
		"F50 one skill twice": {
			map[string]string{"a/pdf/SKILL.md": md, "b/pdf/SKILL.md": md},
			[]string{"imported a/pdf pdf", "  kept SKILL.md", "ignored b/pdf pdf", "  kept SKILL.md", "  note SLUG_CLASH"},
		},
		"a shell script with CR LF": {
			map[string]string{"pdf/SKILL.md": md, "pdf/scripts/a.sh": "#!/bin/bash\r\necho 1\r\n", "pdf/scripts/b.py": "print(1)\r\n", "pdf/scripts/c": "#!/bin/sh\necho 1\r\n"},
			[]string{
				"imported pdf pdf", "  kept SKILL.md", "  kept scripts/a.sh", "  kept scripts/b.py", "  kept scripts/c", "  note SCRIPT_CRLF", "  note SCRIPT_CRLF",
			},
		},
		"a pointer of Git LFS": {
			map[string]string{"pdf/SKILL.md": md, "pdf/assets/a.png": "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 5\n", "pdf/b.md": "version https://git-lfs.github.com/spec/v1\n"},
			[]string{"imported pdf pdf", "  kept SKILL.md", "  kept assets/a.png", "  kept b.md", "  warning LFS_POINTER"},
		},
		"a path with a character that nobody sees": {
			map[string]string{"pdf/SKILL.md": md, "pdf/a\u200bb.md": "x"},
			[]string{"refused pdf pdf", "  refused SKILL.md", "  refused a\u200bb.md", "  error PATH_INVISIBLE"},
		},
		"joiners that an emoji and a word need": {
			map[string]string{"pdf/SKILL.md": md, "pdf/👩\u200d💻.md": "x", "pdf/می\u200cخواهم.md": "x"},
			[]string{"imported pdf pdf", "  kept SKILL.md", "  kept می\u200cخواهم.md", "  kept 👩\u200d💻.md"},
		},
		"F109 a script that nothing runs": {
			map[string]string{"pdf/SKILL.md": md, "pdf/scripts/a.ts": "x", "pdf/scripts/b.ts": "x"},
			[]string{"imported pdf pdf", "  kept SKILL.md", "  kept scripts/a.ts", "  kept scripts/b.ts", "  note SCRIPT_RUNTIME"},
		},
		"F16 an index of skills": {
			map[string]string{"skills/SKILL.md": "# Our skills\n", "skills/README.md": "x", "skills/pdf/SKILL.md": md},
			[]string{"imported skills/pdf pdf", "  kept SKILL.md", "ignored skills/README.md", "ignored skills/SKILL.md"},
		},
		"S2 lower case": {
			map[string]string{"pdf/skill.md": md}, []string{"imported pdf pdf", "  repaired SKILL.md", "  note SKILL_MD_CASE"},
		},
		"S2 both": {
			map[string]string{"pdf/skill.md": "junk", "pdf/SKILL.md": md},
			[]string{"imported pdf pdf", "  kept SKILL.md", "  ignored skill.md", "  note SKILL_MD_CASE"},
		},
		"another spelling": {
			map[string]string{"pdf/Skill.md": md}, []string{"imported pdf pdf", "  repaired SKILL.md", "  warning SKILL_MD_CASE"},
		},
		"name from the directory": {
			map[string]string{"pdf/SKILL.md": "---\ndescription: d\n---\n"}, []string{"imported pdf pdf", "  kept SKILL.md", "  warning NAME_MISSING", "  note NOT_LISTED"},
		},
		"F7 repaired header": {
			map[string]string{"pdf/SKILL.md": "---\nname: pdf\ndescription: a: b\n---\n"}, []string{"imported pdf pdf", "  repaired SKILL.md", "  warning YAML_REPAIRED", "  note NOT_LISTED"},
		},
		"case collision": {
			map[string]string{"pdf/SKILL.md": md, "pdf/A.md": "1", "pdf/a.md": "2"},
			[]string{"refused pdf pdf", "  refused A.md", "  refused SKILL.md", "  refused a.md", "  error UNSAFE_PATH"},
		},
		"unsafe name inside a skill": {
			map[string]string{"pdf/SKILL.md": md, "pdf/a\nb": "x", "csv/SKILL.md": skillMD("csv")},
			[]string{"imported csv csv", "  kept SKILL.md", "refused pdf pdf", "  refused SKILL.md", `  refused a\u000ab`, "  error UNSAFE_PATH"},
		},
		"backslash inside a skill": {
			map[string]string{"pdf/SKILL.md": md, `pdf/a\b`: "x"},
			[]string{"refused pdf pdf", "  refused SKILL.md", `  refused a\b`, "  error UNSAFE_PATH"},
		},
		"F23 name not UTF-8": {
			map[string]string{"pdf/SKILL.md": md, "pdf/\xd6\xd0.md": "x"},
			[]string{"refused pdf pdf", "  refused SKILL.md", `  refused \xd6\xd0.md`, "  error FILE_UNREADABLE"},
		},
		"bad settings": {
			map[string]string{"pdf/SKILL.md": md, "pdf/sallyport.yaml": "kinds: {nope: script}"},
			[]string{"refused pdf pdf", "  refused SKILL.md", "  refused sallyport.yaml", "  error SETTINGS_UNKNOWN_PATH"},
		},
		"too many links": {
			map[string]string{"pdf/SKILL.md": md, "pdf/d/x": "x", "pdf/d/l1": "-> ../e", "pdf/d/l2": "-> ../e", "pdf/e/y": "y", "pdf/e/m1": "-> ../d", "pdf/e/m2": "-> ../d"},
			nil, // only bounded, see below
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			report := b.imports(t, openFolder(t, folder(t, test.files)), registry.ImportOptions{})
			if test.want == nil {
				if report.Totals.Refused != 1 || report.Totals.Files > 2000 {
					t.Errorf("totals %+v", report.Totals)
				}
				return
			}
			if diff := cmp.Diff(test.want, outcome(report)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if b.store.saves != report.Totals.Imported {
				t.Errorf("%d saves, %d imported", b.store.saves, report.Totals.Imported)
			}
		})
	}
}

// Links are stored as the content they point to.
func TestImportLinkContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.imports(t, openFolder(t, folder(t, map[string]string{"pdf/SKILL.md": skillMD("pdf"), "pdf/lib/c.py": "common", "pdf/scripts/c.py": "-> ../lib/c.py", "pdf/scripts/abs.py": "-> ROOT/pdf/lib/c.py"})), registry.ImportOptions{})
	for _, path := range []string{"scripts/c.py", "scripts/abs.py"} {
		c, err := b.Component(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"}, "", path)
		if err != nil || string(c.Content) != "common" || c.Kind != sallyport.KindScript {
			t.Errorf("%s: %+v, %v", path, c, err)
		}
	}
}

// A pipe is reported and never opened; opening it would hang the test.
func TestImportSpecialFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	root := folder(t, map[string]string{"pdf/SKILL.md": skillMD("pdf"), "fifo/x": "x"})
	for _, name := range []string{"pdf/pipe", "fifo/SKILL.md"} {
		if err := mkfifo(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"refused fifo ", "  refused SKILL.md", "  refused x", "  warning FILE_SPECIAL", "  error SKILL_MD_MISSING",
		"imported pdf pdf", "  kept SKILL.md", "  refused pipe", "  warning FILE_SPECIAL",
	}
	if diff := cmp.Diff(want, outcome(b.imports(t, openFolder(t, root), registry.ImportOptions{}))); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// F28, F29, F30, F41, F21: one skill through a folder, a tar, a tar.gz and zips of several tools has one digest.
func TestImportSourcesAgree(t *testing.T) {
	t.Parallel()
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	md, blob := skillMD("pdf"), string(everyByte)
	plainTar := tarOf(t, member{name: "pdf/SKILL.md", content: md}, member{name: "pdf/scripts/run.py", content: "1"}, member{name: "pdf/assets/b.png", content: blob}, member{name: "pdf/empty"})
	b := newBench(t)
	first := b.imports(t, openFolder(t, folder(t, map[string]string{"pdf/SKILL.md": md, "pdf/scripts/run.py": "1", "pdf/assets/b.png": blob, "pdf/empty": ""})), registry.ImportOptions{})
	want := first.Skills[0].Digest
	for name, opened := range map[string]registry.Tree{
		"tar":    openTar(t, plainTar),
		"tar.gz": openTar(t, gzipped(t, plainTar)),
		"tar with directories": openTar(t, tarOf(t, member{name: "./", kind: tar.TypeDir}, member{name: "./pdf/", kind: tar.TypeDir}, member{name: "./pdf/SKILL.md", content: md},
			member{name: "./pdf/scripts/", kind: tar.TypeDir}, member{name: "./pdf/scripts/run.py", content: "1", mode: 0o755}, member{name: "./pdf/assets/b.png", content: blob}, member{name: "./pdf/empty"})),
		"zip":                  openZip(t, zipOf(t, zipFile("pdf/SKILL.md", md), zipFile("pdf/scripts/run.py", "1"), zipFile("pdf/assets/b.png", blob), zipFile("pdf/empty", ""))),
		"zip with directories": openZip(t, zipOf(t, zipFile("pdf/", ""), zipFile("pdf/SKILL.md", md), zipFile("pdf/scripts/", ""), zipFile("pdf/scripts/run.py", "1"), zipFile("pdf/assets/b.png", blob), zipFile("pdf/empty", ""))),
		"Finder zip":           openZip(t, zipOf(t, zipFile("pdf/SKILL.md", md), zipFile("__MACOSX/pdf/._SKILL.md", "x"), zipFile("pdf/.DS_Store", "x"), zipFile("pdf/scripts/run.py", "1"), zipFile("pdf/assets/b.png", blob), zipFile("pdf/empty", ""))),
		"PowerShell zip":       openZip(t, zipOf(t, zipFile(`pdf\`, ""), zipFile(`pdf\SKILL.md`, md), zipFile(`pdf\scripts\`, ""), zipFile(`pdf\scripts\run.py`, "1"), zipFile(`pdf\assets\b.png`, blob), zipFile(`pdf\empty`, ""))),
		"root zip":             openZip(t, zipOf(t, zipFile("SKILL.md", md), zipFile("scripts/run.py", "1"), zipFile("assets/b.png", blob), zipFile("empty", ""))),
		"two folders deep":     openZip(t, zipOf(t, zipFile("x/y/SKILL.md", md), zipFile("x/y/scripts/run.py", "1"), zipFile("x/y/assets/b.png", blob), zipFile("x/y/empty", ""))),
	} {
		report := b.imports(t, opened, registry.ImportOptions{})
		if len(report.Skills) != 1 || report.Skills[0].Result != "unchanged" || report.Skills[0].Digest != want {
			t.Errorf("%s: %v", name, outcome(report))
		}
	}
	c, err := b.Component(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"}, "", "assets/b.png")
	if err != nil || string(c.Content) != blob {
		t.Errorf("every byte: %q, %v", c.Content, err)
	}
}

// F32: a path that leaves the archive refuses the whole import before anything is written; one inside a skill refuses that skill.
func TestImportUnsafePaths(t *testing.T) {
	t.Parallel()
	md := skillMD("pdf")
	for _, name := range []string{"../x", "/x", `C:\x`, "C:x", `..\x`, "a/../../x", "pdf/../../x", "other/../x"} {
		for kind, opened := range map[string]registry.Tree{
			"tar": openTar(t, tarOf(t, member{name: "pdf/SKILL.md", content: md}, member{name: name, content: "x"})),
			"zip": openZip(t, zipOf(t, zipFile("pdf/SKILL.md", md), zipFile(name, "x"))),
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				_, err := b.Import(t.Context(), alice, opened, registry.ImportOptions{})
				wantCode(t, err, sallyport.CodeUnsafePath)
				if b.store.saves != 0 {
					t.Error("something was saved")
				}
			})
		}
	}
	b := newBench(t)
	report := b.imports(t, openTar(t, tarOf(t, member{name: "csv/SKILL.md", content: skillMD("csv")}, member{name: "pdf/SKILL.md", content: md}, member{name: "pdf/../x", content: "x"})), registry.ImportOptions{})
	want := []string{"imported csv csv", "  kept SKILL.md", "refused pdf pdf", "  refused ../x", "  refused SKILL.md", "  error UNSAFE_PATH"}
	if diff := cmp.Diff(want, outcome(report)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestImportHostileArchives(t *testing.T) {
	t.Parallel()
	md := skillMD("pdf")
	link := zipFile("pdf/key", "/etc/passwd")
	link.SetMode(fs.ModeSymlink | 0o777)
	gbk := zipFile("pdf/\xd6\xd0.md", "x")
	gbk.NonUTF8 = true
	encrypted := zipOf(t, zipFile("pdf/SKILL.md", md), zipFile("pdf/x", "x"))
	encrypted[bytes.LastIndex(encrypted, []byte("PK\x01\x02"))+8] |= 1
	for name, test := range map[string]struct {
		opened registry.Tree
		want   []string
	}{
		"zip link out": {openZip(t, zipOf(t, zipFile("pdf/SKILL.md", md), link)), []string{"imported pdf pdf", "  kept SKILL.md", "  refused key", "  warning LINK_UNRESOLVED"}},
		"F23 GBK":      {openZip(t, zipOf(t, zipFile("pdf/SKILL.md", md), gbk)), []string{"refused pdf pdf", "  refused SKILL.md", `  refused \xd6\xd0.md`, "  error FILE_UNREADABLE"}},
		"encrypted":    {openZip(t, encrypted), []string{"refused pdf pdf", "  refused SKILL.md", "  refused x", "  error FILE_UNREADABLE"}},
		"tar twice":    {openTar(t, tarOf(t, member{name: "pdf/SKILL.md", content: md}, member{name: "pdf/a", content: "1"}, member{name: "pdf/a", content: "2"})), []string{"refused pdf pdf", "  refused SKILL.md", "  refused a", "  refused a", "  error UNSAFE_PATH"}},
		"zip twice":    {openZip(t, zipOf(t, zipFile("pdf/SKILL.md", md), zipFile("pdf/SKILL.md", md+"evil"))), []string{"refused pdf pdf", "  refused SKILL.md", "  refused SKILL.md", "  error UNSAFE_PATH"}},
		"device": {openTar(t, tarOf(t, member{name: "pdf/SKILL.md", content: md}, member{name: "pdf/null", kind: tar.TypeChar})), []string{
			"imported pdf pdf", "  kept SKILL.md", "  refused null", "  warning FILE_SPECIAL",
		}},
		"file as directory": {openTar(t, tarOf(t, member{name: "pdf/SKILL.md", content: md}, member{name: "pdf/a", content: "1"}, member{name: "pdf/a/b", content: "2"})), []string{
			"refused pdf pdf", "  refused SKILL.md", "  refused a", "  refused a/b", "  error UNSAFE_PATH",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if diff := cmp.Diff(test.want, outcome(b.imports(t, test.opened, registry.ImportOptions{}))); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImportBounds(t *testing.T) {
	t.Parallel()
	md := skillMD("big")
	many := tree{entry("big/SKILL.md", md), entry("csv/SKILL.md", skillMD("csv"))}
	for _, f := range manyFiles(512) {
		many = append(many, entry("big/"+f.Path, "x"))
	}
	huge := entry("big/huge", "x")
	huge.Size = 16 << 20
	liar := entry("big/liar", strings.Repeat("x", 16<<20))
	liar.Size = 1
	deep := strings.Repeat("d/", 17)
	for name, test := range map[string]struct {
		tree tree
		want []string
	}{
		"513 files":      {many, nil},
		"too many bytes": {tree{entry("big/SKILL.md", md), huge}, []string{"refused big big", "  refused SKILL.md", "  refused huge", "  error SKILL_TOO_LARGE"}},
		"a size that lies": {tree{entry("big/SKILL.md", md), liar}, []string{
			"refused big big", "  refused SKILL.md", "  refused liar", "  error SKILL_TOO_LARGE",
		}},
		"unreadable file": {tree{entry("big/SKILL.md", md), entry("big/x", "BROKEN")}, []string{
			"refused big big", "  refused SKILL.md", "  refused x", "  error FILE_UNREADABLE",
		}},
		"unreadable SKILL.md": {tree{entry("big/SKILL.md", "BROKEN")}, []string{
			"refused big ", "  refused SKILL.md", "  error FILE_UNREADABLE", "  error SKILL_MD_MISSING",
		}},
		"unreadable directory": {tree{entry("big/SKILL.md", md), {Path: "big/dir", Type: registry.EntryDir, Fault: "permission denied"}}, []string{
			"refused big big", "  refused SKILL.md", "  refused dir", "  error FILE_UNREADABLE",
		}},
		"unreadable root of a skill": {tree{entry("big/SKILL.md", md), {Path: "big", Type: registry.EntryDir, Fault: "too many"}}, []string{
			"refused big big", "  refused SKILL.md", "  refused ./", "  error FILE_UNREADABLE",
		}},
		"unreadable elsewhere": {tree{{Path: "x", Type: registry.EntryDir, Fault: "permission denied"}, entry("big/SKILL.md", md)}, []string{
			"imported big big", "  kept SKILL.md", "ignored x",
		}},
		"too deep": {tree{entry(deep+"SKILL.md", md)}, []string{"ignored " + deep + "SKILL.md", "ignored ."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			report := b.imports(t, test.tree, registry.ImportOptions{})
			if test.want != nil {
				if diff := cmp.Diff(test.want, outcome(report)); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
				return
			}
			if report.Totals.Refused != 1 || report.Totals.Imported != 1 || codes(report.Skills[0].Problems)[0] != "error SKILL_TOO_LARGE" {
				t.Errorf("totals %+v", report.Totals)
			}
		})
	}
}

// Importing again: unchanged, then a new revision of the same skill, published on request.
func TestImportAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := tree{entry("pdf/SKILL.md", skillMD("pdf")), entry("pdf/a", "1")}
	first := b.imports(t, files, registry.ImportOptions{Message: "hello"}).Skills[0]
	if first.Result != "imported" || first.Published || first.SkillID == "" || first.RevisionID == "" || first.Digest == "" || !first.Usable || !first.SpecClean {
		t.Errorf("first %+v", first)
	}
	second := b.imports(t, files, registry.ImportOptions{}).Skills[0]
	if second.Result != "unchanged" || second.RevisionID != first.RevisionID {
		t.Errorf("second %+v", second)
	}
	third := b.imports(t, files, registry.ImportOptions{Publish: true}).Skills[0]
	if third.Result != "unchanged" || !third.Published || third.RevisionID != first.RevisionID {
		t.Errorf("third %+v", third)
	}
	// A file that is gone from the source is gone from the revision.
	fourth := b.imports(t, tree{entry("pdf/SKILL.md", skillMD("pdf"))}, registry.ImportOptions{Publish: true}).Skills[0]
	revision, err := b.Revision(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"}, "")
	if err != nil || fourth.Result != "imported" || !fourth.Published || revision.ID != fourth.RevisionID || len(revision.Components) != 1 || revision.Number != 2 {
		t.Errorf("fourth %+v, %+v, %v", fourth, revision, err)
	}
	if _, err := b.Archive(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"}); err != nil {
		t.Fatal(err)
	}
	archived := b.imports(t, files, registry.ImportOptions{})
	want := []string{"refused pdf pdf", "  refused SKILL.md", "  refused a", "  error SKILL_NOT_SAVED"}
	if diff := cmp.Diff(want, outcome(archived)); diff != "" {
		t.Errorf("archived (-want +got):\n%s", diff)
	}
}

func TestImportDryRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := tree{entry("pdf/SKILL.md", skillMD("pdf")), entry("csv/SKILL.md", "no")}
	rehearsed := b.imports(t, files, registry.ImportOptions{DryRun: true, Publish: true})
	if b.store.saves != 0 || len(b.trail.entries) != 0 || rehearsed.Skills[0].RevisionID != "" || rehearsed.Skills[0].Published {
		t.Errorf("a dry run wrote: %+v", rehearsed)
	}
	real := b.imports(t, files, registry.ImportOptions{})
	if diff := cmp.Diff(outcome(rehearsed), outcome(real)); diff != "" || real.Skills[1].Digest != rehearsed.Skills[1].Digest {
		t.Errorf("the dry run said something else (-dry +real):\n%s", diff)
	}
	if again := b.imports(t, files, registry.ImportOptions{DryRun: true}); again.Totals.Unchanged != 1 {
		t.Errorf("a dry run of the same: %+v", again.Totals)
	}
}

func TestImportPlaces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := tree{entry("pdf/SKILL.md", skillMD("pdf"))}
	ids := map[sallyport.SkillID]bool{}
	for _, opts := range []registry.ImportOptions{{}, {TeamID: "eng"}, {Personal: true}} {
		ids[b.imports(t, files, opts).Skills[0].SkillID] = true
	}
	if len(ids) != 3 {
		t.Errorf("three places, %d skills", len(ids))
	}
	for name, test := range map[string]struct {
		opts registry.ImportOptions
		code sallyport.Code
	}{
		"another's team":    {registry.ImportOptions{TeamID: "eng"}, sallyport.CodeAccessDenied},
		"team and personal": {registry.ImportOptions{TeamID: "default", Personal: true}, sallyport.CodeInvalidArgument},
		"long message":      {registry.ImportOptions{Message: strings.Repeat("x", 5000)}, sallyport.CodeInvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := b.Import(t.Context(), carol, files, test.opts)
			wantCode(t, err, test.code)
		})
	}
}

// A store that stops working ends the import with what was done so far; a cancelled caller too.
func TestImportStops(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := tree{entry("a/SKILL.md", skillMD("a")), entry("b/SKILL.md", skillMD("b"))}
	b.store.beforeCAS = func() {
		if b.store.saves == 1 {
			b.store.failSave = &sallyport.Error{Op: "memory", Code: sallyport.CodeStoreUnavailable}
		}
	}
	report, err := b.Import(t.Context(), alice, files, registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeStoreUnavailable)
	if report.Totals.Imported != 1 {
		t.Errorf("report %+v", report.Totals)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Import(ctx, alice, openFolder(t, folder(t, map[string]string{"a/SKILL.md": skillMD("a")})), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeCanceled)
}

// A folder that the importer may not read is reported. Root may read everything, so then the folder source is not the one that
// refuses, and the made-up tree of TestImportBounds is the test.
func TestImportUnreadableFolder(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"pdf/SKILL.md": skillMD("pdf"), "pdf/x/y": "z", "csv/SKILL.md": skillMD("csv")})
	locked := filepath.Join(root, "pdf", "x")
	if err := os.Chmod(locked, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
	report := newBench(t).imports(t, openFolder(t, root), registry.ImportOptions{})
	want := 1
	if os.Geteuid() == 0 {
		want = 2
	}
	if report.Totals.Imported != want || report.Totals.Imported+report.Totals.Refused != 2 {
		t.Errorf("totals %+v, want %d imported", report.Totals, want)
	}
}

// A large import accounts for every skill.
func TestImportMany(t *testing.T) {
	t.Parallel()
	var files tree
	for _, f := range manyFiles(400) {
		files = append(files, entry(f.Path+"/SKILL.md", skillMD("n"+strings.ReplaceAll(f.Path, "/", "-"))), entry(f.Path+"/a.py", "1"))
	}
	report := newBench(t).imports(t, files, registry.ImportOptions{})
	if report.Totals.Skills != 400 {
		t.Errorf("totals %+v", report.Totals)
	}
}

// Scripts read the report by its keys: they are there even where a value says nothing.
func TestReportKeepsItsShape(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(registry.ImportedSkill{
		Files: []registry.ImportedFile{{Path: "SKILL.md", Result: registry.ResultKept}}, Problems: []registry.Problem{{Code: "SKILL_TOO_LARGE"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"path", "slug", "name", "usable", "spec_clean", "result", "files", "problems", "reason", "code", "file", "line", "message"} {
		if !bytes.Contains(data, []byte(`"`+key+`":`)) {
			t.Errorf("%s is missing in %s", key, data)
		}
	}
}
