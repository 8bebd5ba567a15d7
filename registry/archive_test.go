package registry_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// archived saves a skill with everything that is hard for an archive and returns its revision with content.
func archived(tb testing.TB, b bench, more ...registry.File) sallyport.Revision {
	tb.Helper()
	files := append([]registry.File{
		file("SKILL.md", skillMD("pack")),
		{Path: "scripts/run.sh", Content: []byte("#!/bin/bash\necho\n"), Mode: 0o755},
		file("data/blob.bin", "\x00\xff\x7fELF"), file("empty", ""), file("références/données 1.md", "é\n"),
		file("nested/SKILL.md", skillMD("nested")), file("sallyport.yaml", "kinds: {empty: artifact}\n"),
	}, more...)
	saved := b.save(tb, alice, registry.SaveRequest{Files: files})
	revision, err := b.Content(tb.Context(), alice, registry.CatalogueEntry{Skill: saved.Skill, Revision: saved.Revision})
	if err != nil {
		tb.Fatal(err)
	}
	return revision
}

func archive(tb testing.TB, revision sallyport.Revision, format registry.ArchiveFormat, top string) []byte {
	tb.Helper()
	var out bytes.Buffer
	if err := registry.WriteArchive(&out, revision, format, top); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// Importing what was exported gives the same digest, the same bytes and the same modes, whatever the paths are.
func TestArchiveRoundTrip(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("d", 120) + "/" + strings.Repeat("e", 120) + "/" + strings.Repeat("f", 120) + ".txt"
	split := strings.Repeat("d", 100) + "/" + strings.Repeat("e", 90) + ".txt"
	want := archived(t, newBench(t), file(long, "long"), file(split, "split"))
	for _, format := range []registry.ArchiveFormat{registry.ArchiveTarGz, registry.ArchiveZip} {
		for _, top := range []string{"pack", ""} {
			t.Run(string(format)+" "+top, func(t *testing.T) {
				t.Parallel()
				packed := archive(t, want, format, top)
				var from registry.Tree
				if format == registry.ArchiveZip {
					tree, err := registry.OpenZip(bytes.NewReader(packed), int64(len(packed)), registry.TreeLimits{})
					if err != nil {
						t.Fatal(err)
					}
					from = tree
				} else {
					from = openTar(t, packed)
				}
				b := newBench(t)
				report := b.imports(t, from, registry.ImportOptions{})
				if len(report.Skills) != 1 || report.Skills[0].Digest != want.Digest {
					t.Fatalf("imported %+v, want one skill of %s", report.Skills, want.Digest)
				}
				skill, err := b.Resolve(t.Context(), alice, sallyport.SkillRef{Slug: "pack"})
				if err != nil {
					t.Fatal(err)
				}
				got, err := b.ResolveRevision(t.Context(), alice, skill, "")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(contents(want), contents(got)); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
			})
		}
	}
}

type packedFile struct {
	Content string
	Mode    uint32
}

func contents(r sallyport.Revision) map[string]packedFile {
	out := map[string]packedFile{}
	for _, c := range r.Components {
		out[c.Path] = packedFile{string(c.Content), c.Mode}
	}
	return out
}

// The bytes are a contract: whoever kept the digest of an archive finds it again after an upgrade.
func TestArchiveBytesAreFixed(t *testing.T) {
	t.Parallel()
	revision := archived(t, newBench(t))
	again := revision
	again.Components = append([]sallyport.Component{}, revision.Components...)
	for i, j := 0, len(again.Components)-1; i < j; i, j = i+1, j-1 {
		again.Components[i], again.Components[j] = again.Components[j], again.Components[i]
	}
	want := map[registry.ArchiveFormat]string{
		registry.ArchiveTarGz: "889bd8da5687f906361cb2c4eae39cbdb3e9524ac2048517a3ead94b387027e6",
		registry.ArchiveZip:   "7f02b2740c0c1db3e9be0052da9ad0d007472439ea12d5066aa8562e06abc556",
	}
	for format, digest := range want {
		first, second := archive(t, revision, format, "pack"), archive(t, again, format, "pack")
		if !bytes.Equal(first, second) {
			t.Errorf("%s: the order of the components shows", format)
		}
		if sum := sha256.Sum256(first); hex.EncodeToString(sum[:]) != digest {
			t.Errorf("%s: the bytes have the sha256 %x, want %s", format, sum, digest)
		}
	}
}

func TestArchiveRefuses(t *testing.T) {
	t.Parallel()
	whole := sallyport.Revision{Components: []sallyport.Component{{Path: "a", Size: 1, SHA256: sallyport.DigestOf([]byte("x")).Hex(), Content: []byte("x")}}}
	changed := sallyport.Revision{Components: []sallyport.Component{{Path: "a", Size: 1, SHA256: sallyport.DigestOf([]byte("x")).Hex(), Content: []byte("y")}}}
	bare := sallyport.Revision{Components: []sallyport.Component{{Path: "a", Size: 1, SHA256: sallyport.DigestOf([]byte("x")).Hex()}}}
	leaves := sallyport.Revision{Components: []sallyport.Component{{Path: "../a", SHA256: sallyport.DigestOf(nil).Hex()}}}
	for name, test := range map[string]struct {
		revision sallyport.Revision
		format   registry.ArchiveFormat
		top      string
		want     sallyport.Code
	}{
		"changed content":      {changed, registry.ArchiveZip, "", sallyport.CodeInternal},
		"no content":           {bare, registry.ArchiveTarGz, "", sallyport.CodeInternal},
		"a path that leaves":   {leaves, registry.ArchiveTarGz, "", sallyport.CodeUnsafePath},
		"a folder that leaves": {whole, registry.ArchiveTarGz, "..", sallyport.CodeUnsafePath},
		"two folders":          {whole, registry.ArchiveTarGz, "a/b", sallyport.CodeUnsafePath},
		"another format":       {whole, "rar", "", sallyport.CodeInvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			wantCode(t, registry.WriteArchive(&out, test.revision, test.format, test.top), test.want)
			if out.Len() > 0 {
				t.Errorf("%d bytes were written before the refusal", out.Len())
			}
		})
	}
}
