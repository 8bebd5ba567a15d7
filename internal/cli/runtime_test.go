package cli_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/testscript"
)

// bashImage FOLDER VAR writes an OCI layout with the host's bash, what it loads and /etc/marker, and sets VAR to its digest. Its bash is
// called teamsh, so that nothing of the host's can be taken for it, and is setuid root.
func bashImage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bashimage FOLDER VAR")
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	add := func(name string, data []byte, mode int64) {
		ts.Check(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: mode}))
		_, err := w.Write(data)
		ts.Check(err)
	}
	bash, err := os.ReadFile("/bin/bash")
	ts.Check(err)
	add("opt/team/teamsh", bash, 0o4755)
	add("etc/marker", []byte("of the image"), 0o600)
	loaded, err := exec.Command("ldd", "/bin/bash").Output()
	ts.Check(err)
	for word := range strings.FieldsSeq(string(loaded)) {
		if strings.HasPrefix(word, "/") {
			library, err := os.ReadFile(word)
			ts.Check(err)
			add(strings.TrimPrefix(word, "/"), library, 0o755)
		}
	}
	ts.Check(w.WriteHeader(&tar.Header{Typeflag: tar.TypeChar, Name: "dev/null", Devmajor: 1, Devminor: 3}))
	ts.Check(w.Close())

	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	ts.Check(err)
	var img v1.Image
	img, err = mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), l)
	ts.Check(err)
	config, err := img.ConfigFile()
	ts.Check(err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	img, err = mutate.ConfigFile(img, config)
	ts.Check(err)
	to, err := layout.Write(ts.MkAbs(args[0]), empty.Index)
	ts.Check(err)
	ts.Check(to.AppendImage(img))
	digest, err := img.Digest()
	ts.Check(err)
	ts.Setenv(args[1], digest.String())
	ts.Setenv(args[1]+"_FOLDER", filepath.Join(strings.Replace(digest.String(), ":", "-", 1), "root"))
}
