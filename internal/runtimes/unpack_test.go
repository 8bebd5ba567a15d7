package runtimes_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	reference "github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runtimes"
)

// Layers lie on each other as they do in a container: later files win, whiteouts take away what was below and nothing beside it.
func TestLayers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		layers [][]entry
		want   []string
	}{
		"one": {
			[][]entry{{dir("./usr/"), file("usr/a", "1"), symlink("bin", "usr/bin"), hardlink("usr/b", "usr/a"), file("/etc/x", "2")}},
			[]string{"bin -> usr/bin", "etc/", "etc/x=2", "usr/", "usr/a=1", "usr/b=1"},
		},
		"a file over a file":     {[][]entry{{file("a", "1")}, {file("a", "2")}}, []string{"a=2"}},
		"a file over a folder":   {[][]entry{{file("a/b/c", "1")}, {file("a", "2")}}, []string{"a=2"}},
		"a folder over a file":   {[][]entry{{file("a", "1")}, {dir("a"), file("a/b", "2")}}, []string{"a/", "a/b=2"}},
		"a folder over a folder": {[][]entry{{file("a/b", "1")}, {dir("a")}}, []string{"a/", "a/b=1"}},
		"a folder over a link":   {[][]entry{{dir("b"), symlink("a", "b")}, {dir("a"), file("a/x", "1")}}, []string{"a/", "a/x=1", "b/"}},
		"a file over a link, and not through it": {
			[][]entry{{file("b", "1"), symlink("a", "b")}, {file("a", "2")}}, []string{"a=2", "b=1"},
		},
		"a link's name does not change what it shares": {
			[][]entry{{file("a", "1"), hardlink("b", "a")}, {file("a", "2")}}, []string{"a=2", "b=1"},
		},
		"through a link of the image": {
			[][]entry{{dir("usr/lib"), symlink("lib", "usr/lib")}, {file("lib/x", "1")}}, []string{"lib -> usr/lib", "usr/", "usr/lib/", "usr/lib/x=1"},
		},
		"through an absolute link": {
			[][]entry{{dir("run"), dir("var"), symlink("var/run", "/run")}, {file("var/run/x", "1")}},
			[]string{"run/", "run/x=1", "var/", "var/run -> /run"},
		},
		"through a link that leads nowhere yet": {
			[][]entry{{symlink("a", "b/c"), file("a/x", "1")}}, []string{"a -> b/c", "b/", "b/c/", "b/c/x=1"},
		},
		"a whiteout":              {[][]entry{{file("a/b", "1"), file("a/c", "2")}, {file("a/.wh.b", "")}}, []string{"a/", "a/c=2"}},
		"a whiteout of a folder":  {[][]entry{{file("a/b", "1"), file("c", "2")}, {file(".wh.a", "")}}, []string{"c=2"}},
		"a whiteout of nothing":   {[][]entry{{file("a", "1")}, {file("b/.wh.x", "")}}, []string{"a=1"}},
		"a whiteout of a link":    {[][]entry{{file("a", "1"), symlink("b", "a")}, {file(".wh.b", "")}}, []string{"a=1"}},
		"a whiteout before":       {[][]entry{{file("a/b", "1")}, {file(".wh.a", ""), file("a/c", "2")}}, []string{"a/", "a/c=2"}},
		"a whiteout after":        {[][]entry{{file("a/b", "1")}, {file("a/c", "2"), file(".wh.a", "")}}, []string{"a/", "a/c=2"}},
		"opaque":                  {[][]entry{{file("a/b", "1"), file("a/d/e", "1")}, {file("a/.wh..wh..opq", ""), file("a/c", "2")}}, []string{"a/", "a/c=2"}},
		"opaque, last":            {[][]entry{{file("a/b", "1"), file("a/d/e", "1")}, {file("a/c", "2"), file("a/d/f", "3"), file("a/.wh..wh..opq", "")}}, []string{"a/", "a/c=2", "a/d/", "a/d/f=3"}},
		"an older builder's":      {[][]entry{{file("a", "1"), file(".wh..wh.plnk", ""), file(".wh..wh.aufs", "")}}, []string{"a=1"}},
		"a whiteout through link": {[][]entry{{file("real/x", "1"), symlink("way", "real")}, {file("way/.wh.x", "")}}, []string{"real/", "way -> real"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, untouched := newStore(t, runtimes.Limits{})
			var layers [][]byte
			for _, entries := range test.layers {
				layers = append(layers, archive(t, entries...))
			}
			out, root, err := unpack(t, store, layers...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, treeOf(t, root)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
			for _, content := range []bool{false, true} {
				if err := store.Verify(t.Context(), out.Digest, content); err != nil {
					t.Errorf("verify: %v", err)
				}
			}
			untouched()
		})
	}
}

// Nothing in an image decides what is written outside of its folder, and an image that tries is refused whole.
func TestHostileImagesAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("d/", 200)
	small := runtimes.Limits{Bytes: 1 << 20, Entries: 100, Layers: 4}
	many := make([]entry, 101)
	for i := range many {
		many[i] = dir(fmt.Sprintf("d%d", i))
	}
	for name, test := range map[string]struct {
		layers [][]entry
		want   string
	}{
		"traversal":                    {[][]entry{{file("../../../secret", "x")}}, `the path "../../../secret" leads out of it`},
		"traversal in the middle":      {[][]entry{{file("a/../../secret", "x")}}, "leads out of it"},
		"a folder above":               {[][]entry{{dir("..")}}, "leads out of it"},
		"a link above":                 {[][]entry{{symlink("../x", "y")}}, "leads out of it"},
		"a hard link out":              {[][]entry{{hardlink("a", "../../../secret")}}, "leads out of it"},
		"a hard link to the host":      {[][]entry{{hardlink("a", "/etc/hostname")}}, `the hard link "a" leads to no file of it`},
		"a hard link through a link":   {[][]entry{{symlink("up", "../../../.."), hardlink("a", "up/secret")}}, "leads to no file of it"},
		"a hard link to a link":        {[][]entry{{symlink("l", "/etc/passwd"), hardlink("a", "l")}}, "leads to no file of it"},
		"a hard link to a folder":      {[][]entry{{dir("d"), hardlink("a", "d")}}, "leads to no file of it"},
		"a whiteout above":             {[][]entry{{file("../.wh.secret", "")}}, "leads out of it"},
		"a whiteout of ..":             {[][]entry{{file("a/.wh...", "")}}, `the whiteout "a/.wh..." leads out of it`},
		"a whiteout of .":              {[][]entry{{file("a/.wh..", "")}}, "leads out of it"},
		"a whiteout of nothing at all": {[][]entry{{file("a/.wh.", "")}}, "leads out of it"},
		"a file for a top":             {[][]entry{{file(".", "x")}}, "replaces its own top folder"},
		"a link for a top":             {[][]entry{{symlink("./", "/etc")}}, "replaces its own top folder"},
		"below a file":                 {[][]entry{{file("a", "1")}, {file("a/b", "2")}}, "is a file, and something lies below it"},
		"below a device":               {[][]entry{{file("a", "1"), symlink("d", "a")}, {file("d/b", "2")}}, "is a file, and something lies below it"},
		"links in a circle":            {[][]entry{{symlink("a", "b"), symlink("b", "a"), file("a/x", "1")}}, "lead in a circle"},
		"an endless link":              {[][]entry{{symlink("a", "a/a/a"), file("a/x", "1")}}, "lead in a circle"},
		"an empty link":                {[][]entry{{{name: "a", kind: tar.TypeSymlink}}}, "leads nowhere"},
		"a link of many bytes":         {[][]entry{{symlink("a", strings.Repeat("x", 5000))}}, "leads nowhere"},
		"too deep":                     {[][]entry{{file(long+"x", "1")}}, "deeper than 128 folders"},
		"too long":                     {[][]entry{{file(strings.Repeat("x/", 3000)+"x", "1")}}, "longer than 4096 bytes"},
		"a name that is too long":      {[][]entry{{file(strings.Repeat("x", 256), "1")}}, "cannot be one"},
		"deep through links":           {[][]entry{{symlink("l", strings.Repeat("d/", 100)), file("l/l/"+strings.Repeat("e/", 100)+"x", "1")}}, "deeper than 128 folders"},
		"one huge file":                {[][]entry{{zeros("z", 1<<20+1)}}, "more than 1048576 bytes; --max-bytes"},
		"huge together":                {[][]entry{{zeros("a", 1<<19), zeros("b", 1<<19)}, {file("c", "x")}}, "more than 1048576 bytes"},
		"huge and replaced":            {[][]entry{{zeros("a", 1<<19)}, {zeros("a", 1<<19)}, {zeros("a", 1)}}, "more than 1048576 bytes"},
		"too many entries":             {[][]entry{many}, "more than 100 files and folders"},
		"too many folders on the way":  {[][]entry{{file(strings.Repeat("d/", 101)+"x", "1")}}, "more than 100 files and folders"},
		"too many layers":              {[][]entry{{}, {}, {}, {}, {}}, "it has 5 layers, and 4 is the most"},
		"an unknown kind":              {[][]entry{{{name: "a", kind: 'Z'}}}, "of a kind that no image has"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, untouched := newStore(t, small)
			var layers [][]byte
			for _, entries := range test.layers {
				layers = append(layers, archive(t, entries...))
			}
			_, root, err := unpack(t, store, layers...)
			if err == nil {
				t.Fatalf("accepted: %q", treeOf(t, root))
			}
			if got := sallyport.Public(err).Message; sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(got, test.want) {
				t.Errorf("got %s %q, want %q", sallyport.CodeOf(err), got, test.want)
			}
			if _, err := os.Lstat(root); err == nil {
				t.Error("something was left of it")
			}
			untouched()
		})
	}
}

// A sparse file takes what it says, and a stream of zeros that packs to nothing takes what it unpacks to.
func TestBombs(t *testing.T) {
	t.Parallel()
	sparse := "1\n0\n512\n"
	sparse += strings.Repeat("\x00", 512-len(sparse)) + strings.Repeat("x", 512)
	bomb := archive(t, entry{name: "a", content: sparse, pax: map[string]string{
		"GNX.sparse.major": "1", "GNX.sparse.minor": "0", "GNX.sparse.name": "a", "GNX.sparse.realsize": "1099511627776",
	}})
	bomb = bytes.ReplaceAll(bomb, []byte("GNX.sparse"), []byte("GNU.sparse")) // which the writer does not write
	padded := append(archive(t, file("a", "1")), make([]byte, 64<<20)...)
	for name, layer := range map[string][]byte{"sparse": bomb, "zeros behind the archive": padded} {
		store, untouched := newStore(t, runtimes.Limits{Bytes: 1 << 20, Entries: 100})
		_, root, err := unpack(t, store, layer)
		if err == nil || !strings.Contains(sallyport.Public(err).Message, "--max-bytes") {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := os.Lstat(root); err == nil {
			t.Errorf("%s: something was left of it", name)
		}
		untouched()
	}
}

// What an image may have and a sandbox has no use for is left out and counted.
func TestPrivilegesAreDropped(t *testing.T) {
	t.Parallel()
	store, untouched := newStore(t, runtimes.Limits{})
	out, root, err := unpack(t, store, archive(t,
		device("dev/null"), entry{name: "dev/sda", kind: tar.TypeBlock}, entry{name: "pipe", kind: tar.TypeFifo},
		entry{name: "su", content: "s", mode: 0o4755}, entry{name: "wall", content: "s", mode: 0o2755},
		entry{name: "ping", content: "s", mode: 0o755, pax: map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02"}},
		entry{name: "shadow", content: "s", mode: 0o000}, entry{name: "open", content: "s", mode: 0o777},
		entry{name: "private", kind: tar.TypeDir, mode: 0o700}, entry{name: "sticky", kind: tar.TypeDir, mode: 0o1777}, file("private/x", "1"),
	))
	if err != nil {
		t.Fatal(err)
	}
	if out.LeftOut.Devices != 3 || out.LeftOut.Privileges != 3 {
		t.Errorf("left out %+v, want 3 devices and 3 privileges", out.LeftOut)
	}
	for name, want := range map[string]os.FileMode{
		"su": 0o555, "wall": 0o555, "ping": 0o555, "shadow": 0o444, "open": 0o555, "private": 0o555 | os.ModeDir, "sticky": 0o555 | os.ModeDir,
		"private/x": 0o444, ".": 0o555 | os.ModeDir,
	} {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v (%v), want %v", name, info.Mode(), err, want)
		}
		if err == nil && info.Mode().IsRegular() && !info.ModTime().Equal(writtenAt) {
			t.Errorf("%s is of %v, want %v", name, info.ModTime(), writtenAt)
		}
	}
	for _, gone := range []string{"dev/null", "dev/sda", "pipe"} {
		if _, err := os.Lstat(filepath.Join(root, gone)); err == nil {
			t.Errorf("%s is there", gone)
		}
	}
	untouched()
}

// Every digest on the way is compared: of the manifest, the configuration, the layer as stored and the layer unpacked.
func TestDigests(t *testing.T) {
	t.Parallel()
	img := image(t, archive(t, file("a", "1")), archive(t, file("b", "2")))
	for what, pick := range map[string]func(v1.Image) (v1.Hash, error){
		"manifest":      v1.Image.Digest,
		"configuration": v1.Image.ConfigName,
		"layer": func(i v1.Image) (v1.Hash, error) {
			layers, err := i.Layers()
			if err != nil {
				return v1.Hash{}, err
			}
			return layers[1].Digest()
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store, untouched := newStore(t, runtimes.Limits{})
			folder, digest := layoutOf(t, img)
			hash, err := pick(img)
			if err != nil {
				t.Fatal(err)
			}
			blob := filepath.Join(folder, "blobs", "sha256", hash.Hex)
			content, err := os.ReadFile(blob)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(content), "sha256", "sha255", 1)
			if what == "layer" {
				changed = string(gzipped(t, archive(t, file("b", "evil"))))
			}
			if err := os.WriteFile(blob, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = store.Add(t.Context(), folder, digest, nil)
			if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(sallyport.Public(err).Message, "and should have") {
				t.Errorf("got %v", err)
			}
			untouched()
		})
	}

	// A configuration that names other content than the layers have, with digests that fit.
	t.Run("diff id", func(t *testing.T) {
		t.Parallel()
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		config = config.DeepCopy()
		config.RootFS.DiffIDs[0], config.RootFS.DiffIDs[1] = config.RootFS.DiffIDs[1], config.RootFS.DiffIDs[0]
		store, untouched := newStore(t, runtimes.Limits{})
		folder, digest := layoutOf(t, liar{img, config})
		_, err = store.Add(t.Context(), folder, digest, nil)
		if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(sallyport.Public(err).Message, "unpacks to the digest") {
			t.Errorf("got %v", err)
		}
		untouched()
	})
}

// A tarball as docker save writes it is pinned by its configuration.
func TestTarball(t *testing.T) {
	t.Parallel()
	img := image(t, archive(t, file("a", "1")), archive(t, file("b", "2")))
	path := filepath.Join(t.TempDir(), "image.tar")
	tag, err := reference.NewTag("team/image:v1")
	if err == nil {
		err = tarball.WriteToFile(path, tag, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, untouched := newStore(t, runtimes.Limits{})
	want := configDigestOf(t, img)
	if _, err := store.Add(t.Context(), path, "sha256:"+strings.Repeat("0", 64), nil); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
		t.Errorf("another digest: got %v", err)
	}
	out, err := store.Add(t.Context(), path, "", nil)
	if err != nil || out.Digest != want {
		t.Fatalf("got %s (%v), want %s", out.Digest, err, want)
	}
	if diff := cmp.Diff([]string{"a=1", "b=2"}, treeOf(t, store.Root(want))); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	// It is there: nothing is read again.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if again, err := store.Add(t.Context(), path, want, nil); err != nil || again.Digest != want {
		t.Errorf("again: got %s (%v)", again.Digest, err)
	}
	untouched()
}
