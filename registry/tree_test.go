package registry_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"fmt"
	"hash/crc32"
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

// folder writes files below a new folder. A value "-> x" is a symbolic link to x, a name with a slash at its end a directory.
func folder(tb testing.TB, files map[string]string) string {
	tb.Helper()
	root := tb.TempDir()
	for name, content := range files {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			tb.Fatal(err)
		}
		var err error
		switch target, isLink := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o700)
		case isLink:
			err = os.Symlink(strings.ReplaceAll(target, "ROOT", root), full)
		default:
			err = os.WriteFile(full, []byte(content), 0o644)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

func openFolder(tb testing.TB, name string) registry.Tree {
	tb.Helper()
	t, err := registry.OpenFolder(name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = t.Close() })
	return t
}

// member is one entry of an archive that a test builds, exactly as given.
type member struct {
	name, content, link string
	kind                byte // tar type, 0 is a file
	mode                int64
}

func tarOf(tb testing.TB, members ...member) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		header := &tar.Header{Name: m.name, Typeflag: m.kind, Linkname: m.link, Mode: m.mode, Size: int64(len(m.content))}
		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}
		if header.Mode == 0 {
			header.Mode = 0o644
		}
		if err := w.WriteHeader(header); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(m.content)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(tb testing.TB, content []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func openTar(tb testing.TB, content []byte) registry.Tree {
	tb.Helper()
	t, err := registry.OpenTar(bytes.NewReader(content), registry.TreeLimits{}, tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = t.Close() })
	return t
}

func zipOf(tb testing.TB, headers ...zip.FileHeader) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, h := range headers {
		content := h.Comment
		h.Comment = ""
		h.Method = zip.Deflate
		f, err := w.CreateHeader(&h)
		if err != nil {
			tb.Fatal(err)
		}
		if content == "" {
			continue
		}
		if _, err := f.Write([]byte(content)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// zipFile is a header with its content in the comment.
func zipFile(name, content string) zip.FileHeader {
	return zip.FileHeader{Name: name, Comment: content}
}

func openZip(tb testing.TB, content []byte) registry.Tree {
	tb.Helper()
	t, err := registry.OpenZip(bytes.NewReader(content), int64(len(content)), registry.TreeLimits{})
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// listing reads a tree into "type path [target|!fault]" lines and checks that every file can be read at its size.
func listing(tb testing.TB, t registry.Tree) []string {
	tb.Helper()
	entries, err := t.Entries(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		line := string(e.Type) + " " + e.Path
		if e.Target != "" {
			line += " -> " + e.Target
		}
		if e.Fault != "" {
			line += " !"
		}
		out = append(out, line)
		if e.Type == registry.EntryFile && e.Fault == "" {
			content, err := t.ReadFile(tb.Context(), e.Path, 1<<20)
			if err != nil || int64(len(content)) != e.Size {
				tb.Errorf("%s: %d bytes, %v, want %d", e.Path, len(content), err, e.Size)
			}
		}
	}
	if !slices.IsSortedFunc(entries, func(a, b registry.TreeEntry) int { return strings.Compare(a.Path, b.Path) }) {
		tb.Errorf("not in path order: %v", out)
	}
	return out
}

func TestOpenFolder(t *testing.T) {
	t.Parallel()
	outside := folder(t, map[string]string{"secret": "key"})
	root := folder(t, map[string]string{
		"a/SKILL.md": "x", "a/empty": "", "a/dir/": "", "a/in": "-> SKILL.md", "a/absolute": "-> ROOT/a/SKILL.md", "a/out": "-> " + outside + "/secret",
		"a/dangling": "-> nowhere", ".git/config": "x", "node_modules/x/index.js": "x", "a/\xd6\xd0.txt": "x",
	})
	if err := mkfifo(filepath.Join(root, "a", "pipe")); err != nil {
		t.Fatal(err)
	}
	f := openFolder(t, root)
	want := []string{
		"dir .git", "dir a", "file a/SKILL.md", `file a/\xd6\xd0.txt !`, "symlink a/absolute -> SKILL.md", "symlink a/dangling -> nowhere", "dir a/dir",
		"file a/empty", "symlink a/in -> SKILL.md", "symlink a/out -> " + outside + "/secret", "other a/pipe", "dir node_modules",
	}
	if diff := cmp.Diff(want, listing(t, f)); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
	for _, name := range []string{"a/out", "a/in", "a/pipe", "a/dir", "a/nope", "../x", "/etc/passwd", "a/../../x", ""} {
		if content, err := f.ReadFile(t.Context(), name, 100); err == nil {
			t.Errorf("%q was read: %q", name, content)
		} else if message := sallyport.Public(err).Message; strings.Contains(message, root) || strings.Contains(message, outside) {
			t.Errorf("%q: the message shows a host path: %s", name, message)
		}
	}
	if content, err := f.ReadFile(t.Context(), "a/SKILL.md", 0); err != nil || len(content) != 1 {
		t.Errorf("limit plus one: %q, %v", content, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Entries(ctx); err == nil {
		t.Error("a cancelled walk went on")
	}
}

// A directory replaced by a link between listing and reading is not followed.
func TestOpenFolderSwap(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"a/dir/x": "mine", "b/x": "other"})
	f := openFolder(t, root)
	listing(t, f)
	if err := os.Rename(filepath.Join(root, "a/dir"), filepath.Join(root, "a/was")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../b", filepath.Join(root, "a/dir")); err != nil {
		t.Fatal(err)
	}
	if content, err := f.ReadFile(t.Context(), "a/dir/x", 100); err == nil {
		t.Errorf("the link was followed: %q", content)
	}
}

func TestOpenFolderRefuses(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"file": "x", "dir/x": "y", "link": "-> dir"})
	for name, want := range map[string]bool{"file": false, "nope": false, "dir": true, "link": true} {
		f, err := registry.OpenFolder(filepath.Join(root, name))
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			wantCode(t, err, sallyport.CodeInvalidArgument)
			if strings.Contains(sallyport.Public(err).Message, root) {
				t.Errorf("the message of %v shows a host path", err)
			}
			continue
		}
		if diff := cmp.Diff([]string{"file x"}, listing(t, f)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		_ = f.Close()
	}
}

func TestOpenFolderIsBounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", 40)
	f := openFolder(t, folder(t, map[string]string{"a/x": "x", "b/" + deep + "x": "x"}))
	faults := 0
	for _, line := range listing(t, f) {
		if strings.HasSuffix(line, "!") {
			faults++
		}
	}
	if faults != 1 {
		t.Errorf("%d faults, want one for the directory that is too deep", faults)
	}
}

func TestOpenTar(t *testing.T) {
	t.Parallel()
	content := tarOf(t,
		member{name: "./", kind: tar.TypeDir}, member{name: "./a/", kind: tar.TypeDir}, member{name: "./a/SKILL.md", content: "hello", mode: 0o755},
		member{name: "a/link", kind: tar.TypeSymlink, link: "SKILL.md"}, member{name: "a/hard", kind: tar.TypeLink, link: "./a/SKILL.md"},
		member{name: "a/lost", kind: tar.TypeLink, link: "nope"}, member{name: "a/pipe", kind: tar.TypeFifo}, member{name: "a/dev", kind: tar.TypeChar},
		member{name: "a/empty"}, member{name: "a/gbk\xd6\xd0", content: "x"}, member{name: "../up", content: "x"}, member{name: "/abs", content: "x"},
	)
	want := []string{
		"file ../up", "file /abs", "dir a", "file a/SKILL.md", "other a/dev", "file a/empty", `file a/gbk\xd6\xd0 !`, "file a/hard", "symlink a/link -> SKILL.md",
		"file a/lost !", "other a/pipe",
	}
	for name, archive := range map[string][]byte{"tar": content, "tar.gz": gzipped(t, content)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened := openTar(t, archive)
			if diff := cmp.Diff(want, listing(t, opened)); diff != "" {
				t.Errorf("listing (-want +got):\n%s", diff)
			}
			if got, err := opened.ReadFile(t.Context(), "a/hard", 100); err != nil || string(got) != "hello" {
				t.Errorf("hard link: %q, %v", got, err)
			}
			if got, err := opened.ReadFile(t.Context(), "a/SKILL.md", 2); err != nil || string(got) != "hel" {
				t.Errorf("limit plus one: %q, %v", got, err)
			}
			entries, _ := opened.Entries(t.Context())
			if entries[3].Mode != 0o755 {
				t.Errorf("mode %o", entries[3].Mode)
			}
		})
	}
}

// An archive that was cut off between two files is no archive of the first one.
func TestOpenTarCutShort(t *testing.T) {
	t.Parallel()
	whole := tarOf(t, member{name: "a/SKILL.md", content: "hello"}, member{name: "a/x.py", content: "print(1)"})
	const block, first = 512, 1024 // a header and a block of content
	for name, n := range map[string]int{"in the padding": first - 300, "behind a file": first, "behind all files": 2 * first} {
		_, err := registry.OpenTar(bytes.NewReader(whole[:n]), registry.TreeLimits{}, t.TempDir())
		if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(err.Error(), "end mark") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := registry.OpenTar(bytes.NewReader(gzipped(t, whole[:n])), registry.TreeLimits{}, t.TempDir()); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("gzipped %s: %v", name, err)
		}
	}
	for name, n := range map[string]int{"one block of zeros": 2*first + block, "two": 2*first + 2*block} {
		if got := listing(t, openTar(t, whole[:n])); len(got) != 2 {
			t.Errorf("%s: %v", name, got)
		}
		if got := listing(t, openTar(t, gzipped(t, whole[:n]))); len(got) != 2 {
			t.Errorf("gzipped %s: %v", name, got)
		}
	}
}

// Dots and slashes that change nothing are left out of names: tar writes a/./SKILL.md when it is told to pack a/. itself.
func TestArchiveNamesWithoutMeaning(t *testing.T) {
	t.Parallel()
	want := []string{"file ../up", "file /abs/b", "dir a", "file a/../b", "file a/SKILL.md", "file a/b/c"}
	names := []string{"a/./", "a/./SKILL.md", ".//a///b/./c", "/abs//b", "./../up", "a/../b"}
	var members []member
	var headers []zip.FileHeader
	for _, name := range names {
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(name, "/") {
			kind = tar.TypeDir
		}
		members, headers = append(members, member{name: name, kind: kind}), append(headers, zip.FileHeader{Name: name})
	}
	if diff := cmp.Diff(want, listing(t, openTar(t, tarOf(t, members...)))); diff != "" {
		t.Errorf("tar (-want +got):\n%s", diff)
	}
	archive := zipOf(t, headers...)
	opened, err := registry.OpenZip(bytes.NewReader(archive), int64(len(archive)), registry.TreeLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, listing(t, opened)); diff != "" {
		t.Errorf("zip (-want +got):\n%s", diff)
	}
}

func TestOpenTarLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opened, err := registry.OpenTar(bytes.NewReader(tarOf(t, member{name: "a", content: "x"})), registry.TreeLimits{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the spool has a name: %v, %v", left, err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	if _, err := registry.OpenTar(bytes.NewReader(nil), registry.TreeLimits{}, filepath.Join(dir, "nope")); sallyport.CodeOf(err) != sallyport.CodeInternal {
		t.Errorf("without a spool folder: %v", err)
	}
}

// zeros is an endless stream of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

const bombBlocks = 40 // MiB

// tarBomb is a tar.gz of one file of zeros, packed a thousand to one.
func tarBomb(tb testing.TB) []byte {
	tb.Helper()
	var head bytes.Buffer
	if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "a/zeros", Typeflag: tar.TypeReg, Size: bombBlocks << 20}); err != nil {
		tb.Fatal(err)
	}
	return append(gzipped(tb, head.Bytes()), bytes.Repeat(gzipped(tb, make([]byte, 1<<20)), bombBlocks)...)
}

// zipBomb is a zip of many files of zeros, packed a thousand to one.
func zipBomb(tb testing.TB) []byte {
	tb.Helper()
	block := make([]byte, 1<<20)
	var packed, out bytes.Buffer
	deflate, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := deflate.Write(block); err != nil {
		tb.Fatal(err)
	}
	if err := deflate.Close(); err != nil {
		tb.Fatal(err)
	}
	w := zip.NewWriter(&out)
	for i := range bombBlocks {
		raw, err := w.CreateRaw(&zip.FileHeader{
			Name: fmt.Sprintf("a/%d", i), Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(block),
			CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(block)),
		})
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := raw.Write(packed.Bytes()); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func TestArchivesAreBounded(t *testing.T) {
	t.Parallel()
	big := tarOf(t, member{name: "a/zeros", content: string(make([]byte, 2<<20))})
	many := []member{}
	manyZip := []zip.FileHeader{}
	for _, m := range manyFiles(30) {
		many = append(many, member{name: m.Path})
		manyZip = append(manyZip, zipFile(m.Path, "x"))
	}
	openTar := func(content []byte, limits registry.TreeLimits) error {
		opened, err := registry.OpenTar(bytes.NewReader(content), limits, t.TempDir())
		if err == nil {
			_ = opened.Close()
		}
		return err
	}
	openZip := func(content []byte, limits registry.TreeLimits) error {
		_, err := registry.OpenZip(bytes.NewReader(content), int64(len(content)), limits)
		return err
	}
	for name, test := range map[string]struct {
		err  error
		code sallyport.Code
	}{
		"tar bomb":           {openTar(tarBomb(t), registry.TreeLimits{}), sallyport.CodeRequestTooLarge},
		"big tar":            {openTar(big, registry.TreeLimits{TotalBytes: 1 << 20}), sallyport.CodeRequestTooLarge},
		"big tar is no bomb": {openTar(big, registry.TreeLimits{}), ""},
		"tar entries":        {openTar(tarOf(t, many...), registry.TreeLimits{Entries: 29}), sallyport.CodeRequestTooLarge},
		"zip bomb":           {openZip(zipBomb(t), registry.TreeLimits{}), sallyport.CodeRequestTooLarge},
		"zip entries":        {openZip(zipOf(t, manyZip...), registry.TreeLimits{Entries: 29}), sallyport.CodeRequestTooLarge},
		"zip total":          {openZip(zipOf(t, manyZip...), registry.TreeLimits{TotalBytes: 20}), sallyport.CodeRequestTooLarge},
		"no tar":             {openTar([]byte(strings.Repeat("no tar at all ", 100)), registry.TreeLimits{}), sallyport.CodeInvalidArgument},
		"cut tar":            {openTar(big[:1<<20], registry.TreeLimits{}), sallyport.CodeInvalidArgument},
		"cut gzip":           {openTar(gzipped(t, tarOf(t, member{name: "a", content: "x"}))[:40], registry.TreeLimits{}), sallyport.CodeInvalidArgument},
		"no zip":             {openZip([]byte("PK\x03\x04 no"), registry.TreeLimits{}), sallyport.CodeInvalidArgument},
		"empty":              {openTar(nil, registry.TreeLimits{}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantCode(t, test.err, test.code)
		})
	}
	endless, err := registry.OpenTar(zeros{}, registry.TreeLimits{TotalBytes: 1 << 20}, t.TempDir())
	wantCode(t, err, sallyport.CodeRequestTooLarge)
	if err == nil {
		_ = endless.Close()
	}
}

// A file over the limit is listed with its size and not unpacked.
func TestArchiveFileLimit(t *testing.T) {
	t.Parallel()
	limits := registry.TreeLimits{FileBytes: 10}
	fromTar, err := registry.OpenTar(bytes.NewReader(tarOf(t, member{name: "a", content: strings.Repeat("x", 11)}, member{name: "b", content: "y"})), limits, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer fromTar.Close() //nolint:errcheck // a test
	content := zipOf(t, zipFile("a", strings.Repeat("x", 11)), zipFile("b", "y"))
	fromZip, err := registry.OpenZip(bytes.NewReader(content), int64(len(content)), limits)
	if err != nil {
		t.Fatal(err)
	}
	for name, opened := range map[string]registry.Tree{"tar": fromTar, "zip": fromZip} {
		entries, err := opened.Entries(t.Context())
		if err != nil || entries[0].Size != 11 {
			t.Errorf("%s: %+v, %v", name, entries, err)
		}
		if content, err := opened.ReadFile(t.Context(), "a", 100); err == nil && len(content) > 11 {
			t.Errorf("%s: %d bytes were unpacked", name, len(content))
		}
		if content, err := opened.ReadFile(t.Context(), "b", 100); err != nil || string(content) != "y" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}

func TestOpenZip(t *testing.T) {
	t.Parallel()
	link := zipFile("a/link", "SKILL.md")
	link.SetMode(fs.ModeSymlink | 0o777)
	pipe := zipFile("a/pipe", "")
	pipe.SetMode(fs.ModeNamedPipe | 0o600)
	mode := zipFile("a/run", "x")
	mode.SetMode(0o755)
	gbk := zipFile("a/\xd6\xd0\\x.txt", "x")
	gbk.NonUTF8 = true
	trail := zipFile("a/\x81\x5c.txt", "x") // the second byte of this GBK character is a backslash
	trail.NonUTF8 = true
	content := zipOf(t, zipFile("a/", ""), zipFile("a/SKILL.md", "hello"), zipFile(`a\scripts\run.py`, "x"), zipFile(`a\empty\`, ""), zipFile("a/技能.md", "x"),
		zipFile("a/zero", ""), zipFile(`..\up`, "x"), zipFile(`C:\drive`, "x"), zipFile("/abs", "x"), link, pipe, mode, gbk, trail)
	want := []string{
		"file ../up", "file /abs", "file C:/drive", "dir a", "file a/SKILL.md", `file a/\x81\.txt !`, `file a/\xd6\xd0\x.txt !`, "dir a/empty", "symlink a/link -> SKILL.md",
		"other a/pipe", "file a/run", "file a/scripts/run.py", "file a/zero", "file a/技能.md",
	}
	if diff := cmp.Diff(want, listing(t, openZip(t, content))); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
}

// Encrypted members, sizes that lie and members that are cut are faults, never content.
func TestOpenZipHostile(t *testing.T) {
	t.Parallel()
	good := zipOf(t, zipFile("a/SKILL.md", strings.Repeat("hello ", 100)))
	change := func(at, offset int, value ...byte) []byte {
		out := bytes.Clone(good)
		copy(out[at+offset:], value)
		return out
	}
	central := bytes.Index(good, []byte("PK\x01\x02"))
	for name, test := range map[string]struct {
		content   []byte
		encrypted bool
	}{
		"encrypted":      {change(central, 8, 1), true},
		"says less":      {change(central, 24, 5, 0, 0, 0), false},
		"says more":      {change(central, 24, 0, 16, 0, 0), false},
		"other checksum": {change(central, 16, 1, 2, 3, 4), false},
		"other method":   {change(central, 10, 99), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened := openZip(t, test.content)
			entries, err := opened.Entries(t.Context())
			if err != nil || len(entries) != 1 || (entries[0].Fault != "") != test.encrypted {
				t.Fatalf("entries %+v, %v", entries, err)
			}
			if test.encrypted {
				return
			}
			if got, err := opened.ReadFile(t.Context(), "a/SKILL.md", 1<<20); err == nil {
				t.Errorf("read %d bytes", len(got))
			}
		})
	}
}

// The UTF-8 name in the extra field counts when it belongs to the name in the directory.
func TestOpenZipUnicodeExtra(t *testing.T) {
	t.Parallel()
	h := zipFile("a/\xd6\xd0.md", "x")
	h.NonUTF8 = true
	h.Extra = append([]byte{0x75, 0x70, 5 + 8, 0, 1}, crcOf(h.Name)...)
	h.Extra = append(h.Extra, "a/中.md"...)
	stale := zipFile("b/\xd6\xd0.md", "x")
	stale.NonUTF8 = true
	stale.Extra = h.Extra
	want := []string{`file b/\xd6\xd0.md !`, "file a/中.md"}
	slices.Sort(want)
	if diff := cmp.Diff(want, sorted(listing(t, openZip(t, zipOf(t, h, stale))))); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
}
