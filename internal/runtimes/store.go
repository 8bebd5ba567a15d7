package runtimes

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// Store is the folder of unpacked images, one below another by digest:
//
//	sha256-HEX/root/          the tree, which nobody may write to
//	sha256-HEX/files          the list of what is in it
//	sha256-HEX/runtime.json   Unpacked
//	.building-ID/             one in the making, or on its way out
//
// It is safe for concurrent use by several processes.
type Store struct {
	dir    string
	limits Limits
}

const (
	rootName     = "root"
	filesName    = "files"
	describeName = "runtime.json"
	building     = ".building-"
)

// Open returns the store below a state folder. Nothing is made before something is added. limits are the defaults where they are zero.
func Open(stateDir string, limits Limits) *Store {
	return &Store{dir: filepath.Join(stateDir, "runtimes"), limits: limits.withDefaults()}
}

func folderOf(digest string) (string, error) {
	parsed, err := sallyport.ParseDigest(digest)
	if err != nil || string(parsed) != digest {
		return "", invalid("want a digest, sha256: and 64 lower-case hex digits")
	}
	return strings.Replace(digest, ":", "-", 1), nil
}

// Root is where the tree of a digest is, whether or not it is there.
func (s *Store) Root(digest string) string {
	return filepath.Join(s.dir, strings.Replace(digest, ":", "-", 1), rootName)
}

// Add unpacks the image that from names, an absolute path or a reference, and returns what came of it. digest pins it; empty takes the image
// that is there now, and says its digest. One that is there already is not unpacked again. progress, which may be nil, hears of each
// layer.
func (s *Store) Add(ctx context.Context, from, digest string, progress func(layer, layers int)) (Unpacked, error) {
	if digest != "" {
		if _, err := folderOf(digest); err != nil {
			return Unpacked{}, err
		}
		if found, err := s.Describe(digest); err == nil {
			return found, nil
		}
	}
	image, err := open(ctx, from, digest)
	if err != nil {
		return Unpacked{}, err
	}
	if found, err := s.Describe(image.digest); err == nil {
		return found, nil
	}
	if len(image.layers) > s.limits.Layers {
		return Unpacked{}, refused("it has %d layers, and %d is the most", len(image.layers), s.limits.Layers)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return Unpacked{}, err
	}
	defer unlock()
	if found, err := s.Describe(image.digest); err == nil {
		return found, nil // somebody was faster
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	return s.build(ctx, image, from, progress)
}

// build makes the folder under a name that nobody looks for, and names it when it is whole and on the disk. The lock is held.
func (s *Store) build(ctx context.Context, image source, from string, progress func(layer, layers int)) (out Unpacked, err error) {
	folder, err := folderOf(image.digest)
	if err != nil {
		return out, err
	}
	at := filepath.Join(s.dir, building+randomName())
	if err := makeDir(at, 0o755); err != nil {
		return out, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeTree(ctx, at))
		}
	}()
	if err := makeDir(filepath.Join(at, rootName), 0o755); err != nil {
		return out, err
	}
	root, err := os.OpenRoot(filepath.Join(at, rootName))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()

	t := newTree(root, s.limits)
	out = Unpacked{Digest: image.digest, Source: from, Config: image.config, DiffIDs: []string{}}
	for i, l := range image.layers {
		progress(i+1, len(image.layers))
		if err := l.apply(ctx, t); err != nil {
			return out, unpackFault(err)
		}
		out.DiffIDs = append(out.DiffIDs, l.diffID)
	}
	out.LeftOut = t.report

	list, err := os.OpenFile(filepath.Join(at, filesName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return out, err
	}
	out.FilesDigest, out.Files, out.Bytes, err = seal(ctx, root, list)
	if err = errors.Join(err, list.Close()); err != nil {
		return out, err
	}
	description, err := json.MarshalIndent(out, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(at, describeName), description, 0o444)
	}
	if err == nil {
		err = syncAll(at)
	}
	if err != nil {
		return out, err
	}
	// One that cannot be described is in the way and no use.
	if err := removeTree(ctx, filepath.Join(s.dir, folder)); err != nil {
		return out, err
	}
	return out, os.Rename(at, filepath.Join(s.dir, folder))
}

// unpackFault tells an image that does not fit from a machine that is full.
func unpackFault(err error) error {
	if sallyport.CodeOf(err) != sallyport.CodeInternal || errors.Is(err, context.Canceled) {
		return err
	}
	return &sallyport.Error{Op: "runtimes.unpack", Code: sallyport.CodeInternal, Message: "the image was not unpacked: " + oneLine(pathless(err)), Err: err}
}

// pathless is the cause without the path, which can be as long as an image likes.
func pathless(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// ErrNotUnpacked is a digest that the store does not have.
var ErrNotUnpacked = errors.New("it is not unpacked on this machine")

// Describe returns what is known of an unpacked image. It looks at nothing below its root. ErrNotUnpacked when it is not there.
func (s *Store) Describe(digest string) (Unpacked, error) {
	var out Unpacked
	folder, err := folderOf(digest)
	if err != nil {
		return out, err
	}
	data, err := readSmall(filepath.Join(s.dir, folder, describeName))
	if errors.Is(err, fs.ErrNotExist) {
		return out, ErrNotUnpacked
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil || out.Digest != digest {
		return out, errors.Join(errChanged, err)
	}
	return out, nil
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxMetadata))
	return data, errors.Join(err, f.Close())
}

// Verify holds an unpacked image against the list that was made of it. Without content it reads no file, which finds accidents and takes
// milliseconds; with content it reads all of them.
func (s *Store) Verify(ctx context.Context, digest string, content bool) (err error) {
	described, err := s.Describe(digest)
	if err != nil {
		return err
	}
	folder, err := folderOf(digest)
	if err != nil {
		return err
	}
	at := filepath.Join(s.dir, folder)
	if err := trusted(at); err != nil {
		return err
	}
	if sum, err := hashPath(filepath.Join(at, filesName)); err != nil || sum != described.FilesDigest {
		return errors.Join(fmt.Errorf("%w: its list of files", errChanged), err)
	}
	list, err := os.Open(filepath.Join(at, filesName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	root, err := os.OpenRoot(filepath.Join(at, rootName))
	if err != nil {
		return err
	}
	return errors.Join(compare(ctx, root, list, content), root.Close())
}

func hashPath(path string) (string, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	sum, err := hashFile(root, filepath.Base(path))
	return "sha256:" + sum, errors.Join(err, root.Close())
}

// List returns every unpacked image, sorted by digest. What cannot be described is left out, and is unpacked anew when it is added.
func (s *Store) List() ([]Unpacked, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Unpacked
	for _, e := range entries {
		digest := strings.Replace(e.Name(), "sha256-", "sha256:", 1)
		if found, err := s.Describe(digest); err == nil {
			list = append(list, found)
		}
	}
	slices.SortFunc(list, func(a, b Unpacked) int { return strings.Compare(a.Digest, b.Digest) })
	return list, nil
}

// Remove deletes an unpacked image. A run that uses it loses its files under way.
func (s *Store) Remove(ctx context.Context, digest string) error {
	folder, err := folderOf(digest)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	away := filepath.Join(s.dir, building+randomName())
	if err := os.Rename(filepath.Join(s.dir, folder), away); errors.Is(err, fs.ErrNotExist) {
		return ErrNotUnpacked
	} else if err != nil {
		return err
	}
	return removeTree(ctx, away)
}

// lock makes the folder and keeps other processes from building in it. What a dead one was building is removed.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(s.dir)), 0o755); err != nil {
		return nil, err
	}
	// 0711: a uid of a run may pass through, and list nothing.
	for _, dir := range []string{filepath.Dir(s.dir), s.dir} {
		if err := makeDir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := trusted(dir); err != nil {
			return nil, err
		}
	}
	unlock, err = lockFile(filepath.Join(s.dir, ".lock"))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), building) {
			err = errors.Join(err, removeTree(ctx, filepath.Join(s.dir, e.Name())))
		}
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// makeDir sets the mode by name, whatever the umask is.
func makeDir(dir string, mode fs.FileMode) error {
	if err := os.Mkdir(dir, mode); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

func randomName() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// removeTree deletes a folder whose folders may not be written to, whole: nobody's impatience leaves half of one.
func removeTree(ctx context.Context, dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = root.Chmod(".", 0o700)
	err = errors.Join(err, walk(context.WithoutCancel(ctx), root, func(name string, info fs.FileInfo) error {
		if info.IsDir() {
			return root.Chmod(name, 0o700)
		}
		return nil
	}))
	return errors.Join(err, root.Close(), os.RemoveAll(dir))
}
