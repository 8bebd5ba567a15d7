package runtimes_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runtimes"
)

// liar is an image with another configuration, and a manifest that leads to it.
type liar struct {
	v1.Image
	config *v1.ConfigFile
}

func (l liar) ConfigFile() (*v1.ConfigFile, error) { return l.config, nil }
func (l liar) RawConfigFile() ([]byte, error)      { return partial.RawConfigFile(l) }
func (l liar) ConfigName() (v1.Hash, error)        { return partial.ConfigName(l) }
func (l liar) Digest() (v1.Hash, error)            { return partial.Digest(l) }
func (l liar) RawManifest() ([]byte, error)        { return partial.RawManifest(l) }
func (l liar) Size() (int64, error)                { return partial.Size(l) }

func (l liar) Manifest() (*v1.Manifest, error) {
	m, err := l.Image.Manifest()
	if err != nil {
		return nil, err
	}
	m = m.DeepCopy()
	raw, err := l.RawConfigFile()
	if err != nil {
		return nil, err
	}
	m.Config.Size = int64(len(raw))
	m.Config.Digest, _, err = v1.SHA256(bytes.NewReader(raw))
	return m, err
}

// An image of a registry, by digest, by tag, and when the registry is gone.
func TestRegistry(t *testing.T) {
	t.Parallel()
	img := image(t, archive(t, file("usr/bin/python3", "1")))
	img = appended(t, img, zstdLayer(t, archive(t, file("b", "2"))))
	img = configured(t, img, runtime.GOARCH)
	reference, stop := serve(t, img)
	want := digestOf(t, img)
	store, untouched := newStore(t, runtimes.Limits{})

	if _, err := store.Add(t.Context(), reference, "sha256:"+strings.Repeat("0", 64), nil); err == nil {
		t.Error("a digest that the registry does not have was accepted")
	}
	if _, err := store.Add(t.Context(), "UPPER/case", "", nil); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
		t.Errorf("no reference: got %v", err)
	}
	var heard []int
	out, err := store.Add(t.Context(), reference+":v1", "", func(layer, layers int) { heard = append(heard, layer*10+layers) })
	if err != nil || out.Digest != want {
		t.Fatalf("by tag: got %s (%v), want %s", out.Digest, err, want)
	}
	if diff := cmp.Diff([]int{12, 22}, heard); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b=2", "usr/", "usr/bin/", "usr/bin/python3=1"}, treeOf(t, store.Root(want))); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if err := store.Remove(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if out, err = store.Add(t.Context(), reference, want, nil); err != nil || out.Digest != want {
		t.Fatalf("by digest: got %s (%v)", out.Digest, err)
	}
	stop()
	if _, err := store.Add(t.Context(), reference, want, nil); err != nil {
		t.Errorf("unpacked already, the registry gone: %v", err)
	}
	if err := store.Remove(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(t.Context(), reference, want, nil); err == nil {
		t.Error("a registry that is gone gave an image")
	}
	untouched()
}

// An index leads to the image for this machine; one without is refused.
func TestIndex(t *testing.T) {
	t.Parallel()
	mine, other := image(t, archive(t, file("mine", "1"))), configured(t, image(t, archive(t, file("other", "1"))), "s390x")
	for _, has := range []bool{true, false} {
		index := mutate.IndexMediaType(mutate.AppendManifests(empty.Index,
			mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}}), types.OCIImageIndex)
		if has {
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: mine, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
		}
		folder := t.TempDir()
		to, err := layout.Write(folder, empty.Index)
		if err == nil {
			err = to.AppendIndex(index)
		}
		if err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		store, untouched := newStore(t, runtimes.Limits{})
		out, err := store.Add(t.Context(), folder, "", nil)
		switch {
		case has && (err != nil || out.Digest != digest.String()):
			t.Errorf("got %s (%v), want %s", out.Digest, err, digest)
		case !has && (err == nil || !strings.Contains(sallyport.Public(err).Message, "no image for linux/"+runtime.GOARCH)):
			t.Errorf("without one for this machine: got %v", err)
		}
		untouched()
	}
	store, _ := newStore(t, runtimes.Limits{})
	folder, digest := layoutOf(t, other)
	if _, err := store.Add(t.Context(), folder, digest, nil); err == nil || !strings.Contains(sallyport.Public(err).Message, "it is for linux/s390x") {
		t.Errorf("another machine's: got %v", err)
	}
}

// A changed tree is found: by a look at names, sizes and times, or, where nothing else gives it away, by its content.
func TestVerify(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(root string) error
		cheap  bool // found without reading content
	}{
		"a file was added":  {func(r string) error { return os.WriteFile(filepath.Join(r, "usr", "new"), nil, 0o444) }, true},
		"a file is missing": {func(r string) error { return os.Remove(filepath.Join(r, "usr", "b")) }, true},
		"the last one is":   {func(r string) error { return os.Remove(filepath.Join(r, "z")) }, true},
		"a link leads away": {func(r string) error {
			return errors.Join(os.Remove(filepath.Join(r, "l")), os.Symlink("/etc", filepath.Join(r, "l")))
		}, true},
		"a file is longer":   {func(r string) error { return os.WriteFile(filepath.Join(r, "usr", "a"), []byte("longer"), 0o444) }, true},
		"a mode was changed": {func(r string) error { return os.Chmod(filepath.Join(r, "usr", "a"), 0o4555) }, true},
		"setuid":             {func(r string) error { return os.Chmod(filepath.Join(r, "usr", "a"), 0o444|os.ModeSetuid) }, true},
		"a file for a link": {func(r string) error {
			return errors.Join(os.Remove(filepath.Join(r, "l")), os.WriteFile(filepath.Join(r, "l"), []byte("x"), 0o444))
		}, true},
		"content alone": {func(r string) error {
			at := filepath.Join(r, "usr", "a")
			return errors.Join(os.WriteFile(at, []byte("2"), 0o444), os.Chtimes(at, writtenAt, writtenAt))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, _ := newStore(t, runtimes.Limits{})
			out, root, err := unpack(t, store, archive(t, file("usr/a", "1"), file("usr/b", "1"), symlink("l", "usr/a"), file("z", "1")))
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{root, filepath.Join(root, "usr")} {
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, at := range []string{filepath.Join(root, "usr", "a")} {
				if err := os.Chmod(at, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := test.change(root); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(name, "mode") && !strings.Contains(name, "setuid") {
				if err := os.Chmod(filepath.Join(root, "usr", "a"), 0o444); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range []string{root, filepath.Join(root, "usr")} {
				if err := os.Chmod(dir, 0o555); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Verify(t.Context(), out.Digest, false); (err != nil) != test.cheap {
				t.Errorf("a look: got %v", err)
			}
			if err := store.Verify(t.Context(), out.Digest, true); err == nil {
				t.Error("every byte: nothing was found")
			}
		})
	}

	store, _ := newStore(t, runtimes.Limits{})
	if err := store.Verify(t.Context(), "sha256:"+strings.Repeat("0", 64), false); !errors.Is(err, runtimes.ErrNotUnpacked) {
		t.Errorf("not there: got %v", err)
	}
	out, root, err := unpack(t, store, archive(t, file("a", "1")))
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(filepath.Dir(root), "files")
	if err := errors.Join(os.Remove(list), os.WriteFile(list, []byte("f 0444 0 0  \"a\"\n"), 0o444)); err != nil {
		t.Fatal(err)
	}
	if err := store.Verify(t.Context(), out.Digest, false); err == nil || !strings.Contains(err.Error(), "its list of files") {
		t.Errorf("another list: got %v", err)
	}
}

// One image is unpacked once, whoever asks for it at the same time; what was given up is not there.
func TestAddTogether(t *testing.T) {
	t.Parallel()
	store, untouched := newStore(t, runtimes.Limits{})
	folder, digest := layoutOf(t, image(t, archive(t, zeros("a", 1<<20))))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if out, err := store.Add(t.Context(), folder, digest, nil); err != nil || out.Digest != digest {
				t.Errorf("got %s (%v)", out.Digest, err)
			}
		})
	}
	all.Wait()
	if list, err := store.List(); err != nil || len(list) != 1 {
		t.Errorf("got %d images (%v), want 1", len(list), err)
	}
	untouched()

	other, otherDigest := layoutOf(t, image(t, archive(t, zeros("b", 1<<20))))
	canceled, cancel := context.WithCancel(t.Context())
	_, err := store.Add(canceled, other, otherDigest, func(int, int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("given up: got %v", err)
	}
	if _, err := store.Describe(otherDigest); !errors.Is(err, runtimes.ErrNotUnpacked) {
		t.Errorf("given up and there: %v", err)
	}
	untouched()
}
