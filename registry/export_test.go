package registry_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func formats() []registry.ArchiveFormat {
	return []registry.ArchiveFormat{registry.ArchiveZip, registry.ArchiveTarGz}
}

func export(tb testing.TB, b bench, ref sallyport.SkillRef, id sallyport.RevisionID, format registry.ArchiveFormat) registry.Export {
	tb.Helper()
	got, err := b.Export(tb.Context(), alice, ref, id, format)
	if err != nil {
		tb.Fatalf("export: %v", err)
	}
	return got
}

// unpacked opens an archive as import would.
func unpacked(tb testing.TB, archive []byte, format registry.ArchiveFormat) registry.Tree {
	tb.Helper()
	var (
		tree registry.Tree
		err  error
	)
	if format == registry.ArchiveZip {
		tree, err = registry.OpenZip(bytes.NewReader(archive), int64(len(archive)), registry.TreeLimits{})
	} else {
		tree, err = registry.OpenTar(bytes.NewReader(archive), registry.TreeLimits{}, "")
	}
	if err != nil {
		tb.Fatalf("the exported archive does not open: %v", err)
	}
	tb.Cleanup(func() { _ = tree.Close() })
	return tree
}

// comesBack exports a revision in every format, twice, imports it elsewhere and compares digest, bytes and modes.
func comesBack(t *testing.T, b bench, skill sallyport.SkillID) {
	t.Helper()
	ref := sallyport.SkillRef{SkillID: skill}
	for _, format := range formats() {
		first, second := export(t, b, ref, "", format), export(t, b, ref, "", format)
		if !bytes.Equal(first.Archive, second.Archive) {
			t.Errorf("%s: two exports differ", format)
		}
		elsewhere := newBench(t)
		report, err := elsewhere.Import(t.Context(), bob, unpacked(t, first.Archive, format), registry.ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Skills) != 1 || len(report.Ignored) != 0 || report.Skills[0].Digest != first.Revision.Digest {
			t.Fatalf("%s: exported %s, imported %+v", format, first.Revision.Digest, report)
		}
		if got := report.Skills[0].Slug; got != first.Skill.Slug {
			t.Errorf("%s: exported as %s, imported as %s", format, first.Skill.Slug, got)
		}
		was, err := b.ResolveRevision(t.Context(), alice, first.Skill, first.Revision.ID)
		if err != nil {
			t.Fatal(err)
		}
		back, err := elsewhere.store.RevisionContent(t.Context(), bob.TenantID, report.Skills[0].SkillID, report.Skills[0].RevisionID)
		if err != nil {
			t.Fatal(err)
		}
		for i := range was.Components {
			was.Components[i].ID, back.Components[i].ID = "", ""
		}
		if diff := cmp.Diff(was.Components, back.Components); diff != "" {
			t.Errorf("%s: exported, then imported:\n%s", format, diff)
		}
	}
}

func TestExportOfExamplesComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tree, err := registry.OpenFolder("../examples/skills")
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.Import(t.Context(), alice, tree, registry.ImportOptions{})
	if err != nil || report.Totals.Imported < 5 {
		t.Fatalf("the examples: %+v %v", report.Totals, err)
	}
	for _, skill := range report.Skills {
		t.Run(skill.Slug, func(t *testing.T) { t.Parallel(); comesBack(t, b, skill.SkillID) })
	}
}

// F41: any bytes under any plain path come back as they were.
func TestExportOfOddFilesComesBack(t *testing.T) {
	t.Parallel()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, files := range map[string][]registry.File{
		"bytes": {file("empty", ""), {Path: "assets/all.bin", Content: every}, file("crlf.txt", "a\r\nb\r"), file("nul.txt", "a\x00b")},
		"names": {
			file("with space/a b.md", "x"), file(" lead", "x"), file("trail ", "x"), file("技能/文.md", "x"), file("e\u0301.md", "x"), file("ß/ü.md", "x"), file(".hidden", "x"),
			file("-dash", "x"), file("sub/a:b", "x"), file("%41", "x"), file("~", "x"), file("PaxHeader/x", "x"), file("a.tar.gz", "x"), file("🙂", "x"),
		},
		"long paths": {
			file(strings.Repeat("d/", 60)+"f", "x"), file(strings.Repeat("n", 255), "x"), file(strings.Repeat("dir-of-24-characters-xyz/", 10)+strings.Repeat("f", 200), "x"),
			file("é/"+strings.Repeat("長", 80), "x"),
		},
		"nested skill": {file("notes/SKILL.md", skillMD("notes")), file("notes/scripts/a.py", "x")},
		"modes": {
			{Path: "a", Content: []byte("x"), Mode: 0o777},
			{Path: "b", Content: []byte("x"), Mode: 0o001},
			{Path: "c", Content: []byte("x"), Mode: 0o400},
			{Path: "scripts/d.sh", Content: []byte("x"), Mode: 0o755},
		},
		"settings": {
			file("scripts/run", "#!/usr/bin/env python3\n"), file("data/x.txt", "x"),
			file("sallyport.yaml", "kinds: {data/x.txt: template}\nscripts: {scripts/run: {input: flags, secrets: [B, A]}}\n"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			saved := b.save(t, alice, registry.SaveRequest{Files: append(files, file("SKILL.md", skillMD("odd")))})
			comesBack(t, b, saved.Skill.ID)
		})
	}
}

func TestExportOfRandomSkillsComesBack(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("abzAZ09 .-_éß技🙂#%&+,;=@[]^`{}~'\"()!$*?<>|")
	for range 25 {
		files := map[string]registry.File{"SKILL.md": file("SKILL.md", skillMD("random"))}
		for i := range random.IntN(20) {
			var name strings.Builder
			for depth := range 1 + random.IntN(4) {
				if depth > 0 {
					name.WriteByte('/')
				}
				fmt.Fprintf(&name, "x%d", i) // no segment is . or .. or a name that is left out, and no file is a directory
				for range random.IntN(40) {
					name.WriteRune(letters[random.IntN(len(letters))])
				}
			}
			content := make([]byte, random.IntN(3000))
			for i := range content {
				content[i] = byte(random.Uint32())
			}
			files[name.String()] = registry.File{Path: name.String(), Content: content, Mode: uint32(1 + random.IntN(0o777))}
		}
		request := registry.SaveRequest{}
		for _, f := range files {
			request.Files = append(request.Files, f)
		}
		b := newBench(t)
		comesBack(t, b, b.save(t, alice, request).Skill.ID)
	}
}

// F24, F28: the archive is what any tool makes of it: one folder, sorted, nothing but files, times fixed, modes as recorded.
func TestExportIsPlain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	saved := b.save(t, alice, registry.SaveRequest{Files: []registry.File{
		file("SKILL.md", skillMD("plain")), {Path: "scripts/a.sh", Content: []byte("echo\n"), Mode: 0o755}, file("Z", "z"),
	}})
	ref := sallyport.SkillRef{SkillID: saved.Skill.ID}
	want := []string{"plain/SKILL.md 0644 1980", "plain/Z 0644 1980", "plain/scripts/a.sh 0755 1980"}

	packed := export(t, b, ref, "", registry.ArchiveZip)
	archive, err := zip.NewReader(bytes.NewReader(packed.Archive), int64(len(packed.Archive)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range archive.File {
		got = append(got, fmt.Sprintf("%s %04o %d", f.Name, f.Mode().Perm(), f.Modified.Year()))
	}
	if diff := cmp.Diff(want, got); diff != "" || packed.Name != "plain.zip" || packed.MediaType != "application/zip" {
		t.Errorf("%s %s:\n%s", packed.Name, packed.MediaType, diff)
	}

	packed = export(t, b, ref, saved.Revision.ID, registry.ArchiveTarGz)
	unzipped, err := gzip.NewReader(bytes.NewReader(packed.Archive))
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for stream := tar.NewReader(unzipped); ; {
		header, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %04o %d", header.Name, header.Mode, header.ModTime.UTC().Year()))
	}
	if diff := cmp.Diff(want, got); diff != "" || packed.Name != "plain.tar.gz" || packed.MediaType != "application/gzip" {
		t.Errorf("%s %s:\n%s", packed.Name, packed.MediaType, diff)
	}
	for _, c := range packed.Revision.Components {
		if c.Content != nil {
			t.Error("the manifest beside the archive carries content")
		}
	}
}

// F53: the revision that was asked for is the one in the archive, whatever is published or latest.
func TestExportServesTheRevisionAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("x")), file("a", "one")}, Publish: true})
	second := b.save(t, alice, registry.SaveRequest{Ref: sallyport.SkillRef{SkillID: first.Skill.ID}, Files: []registry.File{file("a", "two")}})
	ref := sallyport.SkillRef{Slug: "x"}
	for name, test := range map[string]struct {
		id   sallyport.RevisionID
		want sallyport.RevisionID
	}{
		"none named: published": {"", first.Revision.ID},
		"first":                 {first.Revision.ID, first.Revision.ID},
		"second":                {second.Revision.ID, second.Revision.ID},
	} {
		if got := export(t, b, ref, test.id, ""); got.Revision.ID != test.want {
			t.Errorf("%s: got %s, want %s", name, got.Revision.ID, test.want)
		}
	}
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	saved := b.save(t, alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("x"))}, Personal: true})
	ref := sallyport.SkillRef{SkillID: saved.Skill.ID}
	blind := alice
	blind.Scopes = nil
	for name, test := range map[string]struct {
		who    sallyport.Principal
		id     sallyport.RevisionID
		format registry.ArchiveFormat
		want   sallyport.Code
	}{
		"unknown format":      {alice, "", "rar", sallyport.CodeInvalidArgument},
		"unknown revision":    {alice, "none", "", sallyport.CodeRevisionNotFound},
		"somebody else's":     {bob, "", "", sallyport.CodeAccessDenied},
		"without memory:read": {blind, "", "", sallyport.CodeAccessDenied},
	} {
		_, err := b.Export(t.Context(), test.who, ref, test.id, test.format)
		if got := sallyport.CodeOf(err); got != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// What import would leave out cannot be saved either: otherwise an export would not come back whole.
func TestSaveRefusesNamesThatImportLeavesOut(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"node_modules/a.js", ".git/config", "scripts/__pycache__/a.txt", "a.pyc", ".DS_Store", "docs/._a", "__MACOSX/a"} {
		b := newBench(t)
		_, err := b.Save(t.Context(), alice, registry.SaveRequest{Files: []registry.File{file("SKILL.md", skillMD("x")), file(name, "x")}})
		if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(sallyport.Public(err).Message, "left out") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
