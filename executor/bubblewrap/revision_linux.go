//go:build amd64 || arm64

package bubblewrap

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
)

type counter = atomic.Int64

// revisionKey names a set of files by what is in it. The caller's digest is not used: it covers settings that change
// nothing here, and a wrong one must not reach another tenant's files.
func revisionKey(files []sallyport.Component) string {
	h := sha256.New()
	for _, f := range files {
		_, _ = fmt.Fprintf(h, "%d:%s:%d:%s\n", len(f.Path), f.Path, len(f.Content), f.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// stagedBytes is what a revision takes in a file system of whole pages, its folders included.
func stagedBytes(files []sallyport.Component) int64 {
	const page = 4096
	var total int64
	dirs := map[string]bool{}
	for _, f := range files {
		total += (int64(len(f.Content))+page-1)/page*page + page
		for dir := path.Dir(f.Path); dir != "." && !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
			total += page
		}
	}
	return total
}

// revision returns an open folder with exactly files, materialised now or earlier. It is locked against eviction as long
// as the returned file, or a copy of it in another process, is open.
func (s *state) revision(files []sallyport.Component) (*os.File, error) {
	name := revisionKey(files) + "." + strconv.FormatInt(stagedBytes(files), 10)
	for range 3 { // an eviction can win the race once, hardly twice
		dir, err := s.openRevision(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
		if err := s.materialise(name, files); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the revision was evicted while it was being opened; CacheBytes is too small")
}

func (s *state) openRevision(name string) (*os.File, error) {
	full := filepath.Join(s.dir, "revisions", name)
	dir, err := os.OpenFile(full, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		// Only an eviction locks it exclusively.
		return nil, errors.Join(fs.ErrNotExist, dir.Close())
	}
	// Between open and lock it may have been moved away to be deleted.
	opened, err := dir.Stat()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	named, err := os.Lstat(full)
	if err != nil || !os.SameFile(opened, named) {
		return nil, errors.Join(fs.ErrNotExist, dir.Close())
	}
	now := time.Now()
	_ = os.Chtimes(full, now, now) // the order of eviction; losing it costs nothing
	return dir, nil
}

// errContent is the caller's fault, not the host's: the bytes are not what their digest says.
var errContent = errors.New("content does not have its digest")

// materialise writes the files to a folder of their own, checks every byte against its digest, and gives the folder its
// name only when it is complete.
func (s *state) materialise(name string, files []sallyport.Component) (err error) {
	building := s.temporaryName()
	if err := os.Mkdir(building, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(building))
		}
	}()
	root, err := os.OpenRoot(building)
	if err != nil {
		return err
	}
	err = writeComponents(root, files)
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	s.evict(name)
	err = os.Rename(building, filepath.Join(s.dir, "revisions", name))
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
		return os.RemoveAll(building) // somebody else was faster, with the same bytes
	}
	return err
}

// writeComponents sets every mode by name: the umask of the process must not decide what a run can read.
func writeComponents(root *os.Root, files []sallyport.Component) error {
	dirs := map[string]bool{".": true}
	for _, f := range files {
		if err := writeComponent(root, f, dirs); err != nil {
			return err
		}
	}
	for dir := range dirs {
		if err := root.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// writeComponent writes one file and adds the folders it made to dirs.
func writeComponent(root *os.Root, f sallyport.Component, dirs map[string]bool) error {
	if err := sallyport.CheckPath(f.Path); err != nil {
		return err
	}
	sum := sha256.Sum256(f.Content)
	if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sum[:])), []byte(f.SHA256)) != 1 {
		return fmt.Errorf("%w: component %q", errContent, f.Path)
	}
	if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
		return err
	}
	for dir := path.Dir(f.Path); !dirs[dir]; dir = path.Dir(dir) {
		dirs[dir] = true
	}
	file, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Content)
	return errors.Join(err, file.Chmod(0o444), file.Close())
}

// evict makes room for the revision name: unused ones go, longest unused first, until three quarters of the bound are
// left. What is in use stays, even if that means to exceed the bound for a while.
func (s *state) evict(name string) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "revisions"))
	if err != nil {
		return
	}
	type cached struct {
		name  string
		bytes int64
		used  time.Time
	}
	var all []cached
	total := nameBytes(name)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		all = append(all, cached{e.Name(), nameBytes(e.Name()), info.ModTime()})
		total += nameBytes(e.Name())
	}
	if total <= s.bound {
		return
	}
	slices.SortFunc(all, func(a, b cached) int { return a.used.Compare(b.used) })
	for _, c := range all {
		if total <= s.bound*3/4 {
			return
		}
		if s.discard(c.name) == nil {
			total -= c.bytes
		}
	}
}

// discard deletes one revision, unless it is in use. It is renamed first: a half-deleted one must not be found.
func (s *state) discard(name string) error {
	full := filepath.Join(s.dir, "revisions", name)
	dir, err := os.OpenFile(full, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	away := s.temporaryName()
	if err := os.Rename(full, away); err != nil {
		return err
	}
	return os.RemoveAll(away)
}

func (s *state) temporaryName() string {
	return filepath.Join(s.dir, "building", s.instance+"-"+strconv.FormatInt(s.building.Add(1), 10))
}

func nameBytes(name string) int64 {
	_, size, _ := strings.Cut(name, ".")
	n, _ := strconv.ParseInt(size, 10, 64)
	return n
}
