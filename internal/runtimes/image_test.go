package runtimes_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	reference "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/sallyport-dev/sallyport/internal/runtimes"
)

// entry is one entry of a layer made by hand.
type entry struct {
	name    string
	kind    byte // tar.TypeReg when zero
	content string
	link    string
	mode    int64
	size    int64 // of a file whose content is zeros
	pax     map[string]string
}

func dir(name string) entry           { return entry{name: name, kind: tar.TypeDir} }
func file(name, content string) entry { return entry{name: name, content: content} }
func symlink(name, to string) entry   { return entry{name: name, kind: tar.TypeSymlink, link: to} }
func hardlink(name, to string) entry  { return entry{name: name, kind: tar.TypeLink, link: to} }
func device(name string) entry        { return entry{name: name, kind: tar.TypeChar} }
func zeros(name string, n int64) entry {
	return entry{name: name, size: n}
}

var writtenAt = time.Unix(1_700_000_000, 0)

// archive is the layer as a tar.
func archive(tb testing.TB, entries ...entry) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Size: max(e.size, int64(len(e.content))), ModTime: writtenAt,
			PAXRecords: e.pax,
		}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if e.size > 0 {
			if _, err := io.CopyN(w, endless{}, e.size); err != nil {
				tb.Fatal(err)
			}
			continue
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// image is one of layers, for this machine.
func image(tb testing.TB, layers ...[]byte) v1.Image {
	tb.Helper()
	var list []v1.Layer
	for _, content := range layers {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, l)
	}
	return configured(tb, appended(tb, mutate.MediaType(empty.Image, types.OCIManifestSchema1), list...), runtime.GOARCH)
}

func appended(tb testing.TB, base v1.Image, layers ...v1.Layer) v1.Image {
	tb.Helper()
	img, err := mutate.AppendLayers(base, layers...)
	if err != nil {
		tb.Fatal(err)
	}
	return img
}

func configured(tb testing.TB, img v1.Image, arch string) v1.Image {
	tb.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		tb.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		tb.Fatal(err)
	}
	return img
}

// layoutOf writes an OCI layout and returns its folder and the image's digest.
func layoutOf(tb testing.TB, img v1.Image) (string, string) {
	tb.Helper()
	folder := tb.TempDir()
	to, err := layout.Write(folder, empty.Index)
	if err == nil {
		err = to.AppendImage(img)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return folder, digestOf(tb, img)
}

func digestOf(tb testing.TB, img v1.Image) string {
	tb.Helper()
	digest, err := img.Digest()
	if err != nil {
		tb.Fatal(err)
	}
	return digest.String()
}

func configDigestOf(tb testing.TB, img v1.Image) string {
	tb.Helper()
	digest, err := img.ConfigName()
	if err != nil {
		tb.Fatal(err)
	}
	return digest.String()
}

// newStore returns a store in a folder that lies beside a file nothing in an image may touch.
func newStore(tb testing.TB, limits runtimes.Limits) (*runtimes.Store, func()) {
	tb.Helper()
	outside := tb.TempDir()
	state := filepath.Join(outside, "state")
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("untouched"), 0o600); err != nil {
		tb.Fatal(err)
	}
	store := runtimes.Open(state, limits)
	tb.Cleanup(func() {
		list, err := store.List()
		if err != nil {
			tb.Error(err)
		}
		for _, u := range list {
			if err := store.Remove(context.WithoutCancel(tb.Context()), u.Digest); err != nil {
				tb.Error(err)
			}
		}
	})
	return store, func() {
		tb.Helper()
		if got, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(got) != "untouched" {
			tb.Errorf("the file outside is %q (%v)", got, err)
		}
		names, err := os.ReadDir(outside)
		if err != nil {
			tb.Fatal(err)
		}
		for _, n := range names {
			if n.Name() != "secret" && n.Name() != "state" {
				tb.Errorf("%s was made outside", n.Name())
			}
		}
		left, err := os.ReadDir(filepath.Join(state, "runtimes"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			tb.Fatal(err)
		}
		for _, n := range left {
			if strings.HasPrefix(n.Name(), ".building") {
				tb.Errorf("%s was left", n.Name())
			}
		}
	}
}

// unpack adds the image of these layers.
func unpack(tb testing.TB, store *runtimes.Store, layers ...[]byte) (runtimes.Unpacked, string, error) {
	tb.Helper()
	folder, digest := layoutOf(tb, image(tb, layers...))
	out, err := store.Add(tb.Context(), folder, digest, nil)
	return out, store.Root(digest), err
}

// treeOf lists what is below a folder: path, and content, target or /.
func treeOf(tb testing.TB, folder string) []string {
	tb.Helper()
	var list []string
	err := filepath.WalkDir(folder, func(at string, e fs.DirEntry, err error) error {
		if err != nil || at == folder {
			return err
		}
		name, err := filepath.Rel(folder, at)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			name += "/"
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			name += " -> " + target
		default:
			content, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			name += "=" + string(content)
		}
		list = append(list, name)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	slices.Sort(list)
	return list
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

func zstdLayer(tb testing.TB, content []byte) v1.Layer {
	tb.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	packed := w.EncodeAll(content, nil)
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }, tarball.WithMediaType(types.OCILayerZStd))
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// serve starts a registry on loopback that holds img as name.
func serve(tb testing.TB, img v1.Image) (at string, stop func()) {
	tb.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo))))
	tb.Cleanup(server.Close)
	at = strings.TrimPrefix(server.URL, "http://") + "/team/image"
	ref, err := reference.ParseReference(at + ":v1")
	if err == nil {
		err = remote.Write(ref, img)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return at, server.Close
}
