package runtimes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/sallyport-dev/sallyport"
)

// source is an image that can be unpacked: its digests were compared, its layers are compared while they are read.
type source struct {
	digest string // what pins it
	config string
	layers []layer
}

// maxMetadata bounds a manifest and a configuration.
const maxMetadata = 8 << 20

// invalid is the caller's fault: it names another image than there is.
func invalid(format string, args ...any) error {
	return sallyport.Errorf("runtimes.source", sallyport.CodeInvalidArgument, format, args...)
}

// open finds the image that from names: an absolute path of a tarball or of an OCI layout, or a reference. pin is its digest; empty takes the
// one that is there now.
func open(ctx context.Context, from, pin string) (source, error) {
	if !strings.HasPrefix(from, "/") {
		return openReference(ctx, from, pin)
	}
	info, err := os.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return source{}, invalid("there is no image at %s", from)
	case err != nil:
		return source{}, invalid("the image at %s cannot be read: %v", from, err)
	case info.IsDir():
		return openLayout(from, pin)
	case info.Mode().IsRegular():
		return openTarball(from, pin)
	}
	return source{}, invalid("%s is neither a tarball nor an OCI layout", from)
}

func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

func openReference(ctx context.Context, from, pin string) (source, error) {
	host, _, found := strings.Cut(from, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		// What is no file must not become a question to a registry that nobody named.
		return source{}, invalid("there is no file %q here, and a reference begins with its registry, such as docker.io/library/python", shorten(from))
	}
	text := from
	if pin != "" {
		text += "@" + pin
	}
	ref, err := name.ParseReference(text)
	if err != nil {
		return source{}, invalid("%q is no reference of an image: want one such as registry.example.org/team/python@sha256:...", shorten(from))
	}
	transport := remote.DefaultTransport
	if plain, ok := transport.(*http.Transport); ok {
		transport = plain.Clone()
	}
	descriptor, err := remote.Get(ref, remote.WithContext(ctx), remote.WithPlatform(platform()), remote.WithTransport(transport),
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("sallyport"))
	if err != nil {
		return source{}, &sallyport.Error{
			Op: "runtimes.source", Code: sallyport.CodeInvalidArgument, Message: "the registry did not give the image: " + oneLine(err), Err: err,
		}
	}
	if err := hasDigest(descriptor.Manifest, descriptor.Digest.String(), "the manifest"); err != nil {
		return source{}, err
	}
	image, err := descriptor.Image()
	if err != nil {
		return source{}, refused("it has no image for linux/%s: %s", runtime.GOARCH, oneLine(err))
	}
	return fromManifest(image, descriptor.Digest.String(), pin)
}

// oneLine keeps what a registry says short.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return text
}

func hasDigest(content []byte, want, what string) error {
	sum := sha256.Sum256(content)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != want {
		return refused("%s has the digest %s and should have %s", what, got, want)
	}
	return nil
}

func openLayout(from, pin string) (source, error) {
	if err := checkLayout(from); err != nil {
		return source{}, err
	}
	found, err := layout.ImageIndexFromPath(from)
	if err != nil {
		return source{}, invalid("%s is no OCI layout: %s", from, oneLine(err))
	}
	index, err := found.IndexManifest()
	if err != nil {
		return source{}, invalid("%s is no OCI layout: %s", from, oneLine(err))
	}
	var chosen []v1.Descriptor
	for _, d := range index.Manifests {
		if pin == "" && (d.MediaType.IsImage() || d.MediaType.IsIndex()) || d.Digest.String() == pin {
			chosen = append(chosen, d)
		}
	}
	switch {
	case len(chosen) == 0:
		return source{}, invalid("%s holds no image %s", from, pin)
	case len(chosen) > 1 && pin == "":
		var digests []string
		for _, d := range chosen {
			digests = append(digests, d.Digest.String())
		}
		return source{}, invalid("%s holds several images; name one by its digest: %s@DIGEST with %s", from, from, strings.Join(digests, ", "))
	}
	outer := chosen[0].Digest
	image, err := layoutImage(layout.Path(from), found, chosen[0], 0)
	if err != nil {
		return source{}, err
	}
	return fromManifest(image, outer.String(), pin)
}

// checkLayout refuses metadata that is too large to be read at once.
func checkLayout(from string) error {
	info, err := os.Stat(filepath.Join(from, "index.json"))
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxMetadata {
		return invalid("%s is no OCI layout: want a folder with index.json and blobs", from)
	}
	return nil
}

// blob reads a small blob of a layout and checks its digest, which the library leaves to its caller.
func blob(from layout.Path, digest v1.Hash) ([]byte, error) {
	f, err := from.Blob(digest)
	if err != nil {
		return nil, refused("the layout lacks the blob %s", digest)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxMetadata+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(content) > maxMetadata {
		return nil, refused("the blob %s is too large to be a manifest", digest)
	}
	return content, hasDigest(content, digest.String(), "a blob of the layout")
}

// layoutImage follows indexes to the image for this machine.
func layoutImage(from layout.Path, above v1.ImageIndex, d v1.Descriptor, depth int) (v1.Image, error) {
	content, err := blob(from, d.Digest)
	if err != nil {
		return nil, err
	}
	if !d.MediaType.IsIndex() {
		// Read again by the library, from a folder that is the operator's own.
		return above.Image(d.Digest)
	}
	if depth > 3 {
		return nil, refused("its indexes are too deep")
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(content, &index); err != nil {
		return nil, refused("its index cannot be read: %v", err)
	}
	here, err := above.ImageIndex(d.Digest)
	if err != nil {
		return nil, refused("its index cannot be read: %s", oneLine(err))
	}
	want := platform()
	for _, inner := range index.Manifests {
		if inner.Platform != nil && inner.Platform.OS == want.OS && inner.Platform.Architecture == want.Architecture {
			return layoutImage(from, here, inner, depth+1)
		}
	}
	return nil, refused("it has no image for linux/%s", runtime.GOARCH)
}

// fromManifest compares the manifest and the configuration with their digests. outer is the digest that leads to the manifest.
func fromManifest(image v1.Image, outer, pin string) (source, error) {
	if pin != "" && pin != outer {
		return source{}, refused("it has the digest %s and should have %s", outer, pin)
	}
	raw, err := image.RawManifest()
	if err != nil {
		return source{}, refused("its manifest cannot be read: %s", oneLine(err))
	}
	own, err := image.Digest()
	if err != nil {
		return source{}, refused("its manifest cannot be read: %s", oneLine(err))
	}
	if err := hasDigest(raw, own.String(), "the manifest"); err != nil {
		return source{}, err
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return source{}, refused("its manifest cannot be read: %v", err)
	}
	diffIDs, config, err := configuration(image, manifest.Config.Digest.String())
	if err != nil {
		return source{}, err
	}
	if len(diffIDs) != len(manifest.Layers) {
		return source{}, refused("it has %d layers and digests for %d", len(manifest.Layers), len(diffIDs))
	}
	s := source{digest: outer, config: config}
	for i, d := range manifest.Layers {
		if !usualLayer(d.MediaType) || len(d.URLs) > 0 {
			return source{}, refused("a layer is of the kind %q", shorten(string(d.MediaType)))
		}
		s.layers = append(s.layers, layer{digest: d.Digest.String(), diffID: diffIDs[i], open: func() (io.ReadCloser, error) {
			blob, err := image.LayerByDigest(d.Digest)
			if err != nil {
				return nil, err
			}
			return blob.Compressed()
		}})
	}
	return s, nil
}

func usualLayer(t types.MediaType) bool {
	return slices.Contains([]types.MediaType{
		types.OCILayer, types.OCILayerZStd, types.OCIUncompressedLayer, types.DockerLayer, types.DockerUncompressedLayer,
	}, t)
}

// configuration returns the digests of the unpacked layers, for an image that this machine can run.
func configuration(image v1.Image, want string) (diffIDs []string, digest string, err error) {
	raw, err := image.RawConfigFile()
	if err != nil {
		return nil, "", refused("its configuration cannot be read: %s", oneLine(err))
	}
	if len(raw) > maxMetadata {
		return nil, "", refused("its configuration is too large")
	}
	sum := sha256.Sum256(raw)
	digest = "sha256:" + hex.EncodeToString(sum[:])
	if want != "" && want != digest {
		return nil, "", refused("its configuration has the digest %s and should have %s", digest, want)
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, "", refused("its configuration cannot be read: %v", err)
	}
	if (config.OS != "" && config.OS != "linux") || (config.Architecture != "" && config.Architecture != runtime.GOARCH) {
		return nil, "", refused("it is for %s/%s, and this machine is linux/%s", config.OS, config.Architecture, runtime.GOARCH)
	}
	for _, d := range config.RootFS.DiffIDs {
		if d.Algorithm != "sha256" || len(d.Hex) != 64 {
			return nil, "", refused("a digest of a layer is none")
		}
		diffIDs = append(diffIDs, d.String())
	}
	return diffIDs, digest, nil
}

// openTarball opens what docker save writes. It is pinned by the digest of its configuration, which docker calls the image's id: a
// tarball has no manifest of its own, and the configuration names every layer by its content.
func openTarball(from, pin string) (source, error) {
	image, err := tarball.ImageFromPath(from, nil)
	if err != nil {
		return source{}, invalid("%s is no tarball of one image, as docker save writes it: %s; an OCI archive is unpacked into a folder and named as that",
			from, oneLine(err))
	}
	diffIDs, digest, err := configuration(image, "")
	if err != nil {
		return source{}, err
	}
	if pin != "" && pin != digest {
		return source{}, refused("it has the digest %s and should have %s", digest, pin)
	}
	layers, err := image.Layers()
	if err != nil {
		return source{}, refused("its layers cannot be read: %s", oneLine(err))
	}
	if len(layers) != len(diffIDs) {
		return source{}, refused("it has %d layers and digests for %d", len(layers), len(diffIDs))
	}
	s := source{digest: digest, config: digest}
	for i, l := range layers {
		s.layers = append(s.layers, layer{diffID: diffIDs[i], open: func() (io.ReadCloser, error) {
			plain, err := l.Uncompressed()
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errDecompress, err)
			}
			return plain, nil
		}})
	}
	return s, nil
}
