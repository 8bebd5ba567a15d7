package runtimes

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Bounds of one path, as Linux has them.
const (
	maxPath  = 4096
	maxDepth = 128
	maxLinks = 40
)

// tree is a root folder in the making. Every path is resolved link by link inside of it, so that a link decides as little about where
// something is written as it would in the image itself; os.Root holds the rest. It is used by one goroutine.
type tree struct {
	root   *os.Root
	limits Limits
	report Report

	left    int64 // bytes that all archives together may still have
	bytes   int64
	entries int
	touched map[string]bool // written by the layer that is being applied, with every folder above
}

func newTree(root *os.Root, limits Limits) *tree {
	return &tree{root: root, limits: limits, left: limits.Bytes + archiveOverhead(limits)}
}

func (t *tree) countEntry() error {
	if t.entries++; t.entries > t.limits.Entries {
		return refused("it has more than %d files and folders", t.limits.Entries)
	}
	return nil
}

func (t *tree) countBytes(n int64) error {
	if n < 0 || n > t.limits.Bytes-t.bytes {
		return refused("it unpacks to more than %d bytes; --max-bytes allows more", t.limits.Bytes)
	}
	t.bytes += n
	return nil
}

// entryPath is the path of an entry, relative and clean. A name that leads out of the image is no mistake.
func entryPath(name string) (string, error) {
	if len(name) > maxPath {
		return "", refused("a path is longer than %d bytes", maxPath)
	}
	parts := make([]string, 0, 8)
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return "", refused("the path %q leads out of it", shorten(name))
		case strings.ContainsRune(part, 0) || len(part) > 255:
			return "", refused("the path %q cannot be one", shorten(name))
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) > maxDepth {
		return "", refused("a path is deeper than %d folders", maxDepth)
	}
	if len(parts) == 0 {
		return ".", nil
	}
	return strings.Join(parts, "/"), nil
}

func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// resolve follows every link in dir as the image itself would: an absolute one from the tree's own top, and none to above it. The last part
// is followed too. What does not exist is returned as it would be called.
func (t *tree) resolve(dir string) (string, error) { return resolveIn(t.root, dir) }

func resolveIn(root *os.Root, name string) (string, error) {
	var done []string
	todo := strings.Split(name, "/")
	links := 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = done[:max(len(done)-1, 0)]
			continue
		}
		here := path.Join(append(slices.Clip(done), part)...)
		info, err := root.Lstat(here)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			if done = append(done, part); len(done) > maxDepth {
				return "", refused("a path is deeper than %d folders", maxDepth)
			}
			continue
		}
		if links++; links > maxLinks {
			return "", refused("the links at %q lead in a circle", shorten(name))
		}
		target, err := root.Readlink(here)
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(target, "/") {
			done = nil
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	if len(done) == 0 {
		return ".", nil
	}
	return path.Join(done...), nil
}

// place resolves the folder of name, makes it, and returns where name is, which is no link's word any more.
func (t *tree) place(name string) (string, error) {
	dir, err := t.resolve(path.Dir(name))
	if err != nil {
		return "", err
	}
	if err := t.makeDirs(dir); err != nil {
		return "", err
	}
	at := path.Join(dir, path.Base(name))
	t.touch(at)
	return at, nil
}

func (t *tree) touch(at string) {
	for ; at != "." && !t.touched[at]; at = path.Dir(at) {
		t.touched[at] = true
	}
}

// makeDirs makes a resolved folder and those above it.
func (t *tree) makeDirs(dir string) error {
	if dir == "." {
		return nil
	}
	info, err := t.root.Lstat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return refused("%q is a file, and something lies below it", shorten(dir))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := t.makeDirs(path.Dir(dir)); err != nil {
		return err
	}
	if err := t.countEntry(); err != nil {
		return err
	}
	return t.root.Mkdir(dir, 0o755)
}

// clear makes room for something that is no folder, or for a folder in place of something else.
func (t *tree) clear(at string, forDir bool) error {
	if at == "." {
		if forDir {
			return nil
		}
		return refused("it replaces its own top folder")
	}
	info, err := t.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || forDir && info.IsDir() {
		return err
	}
	return t.root.RemoveAll(at)
}

// add applies one entry of a layer.
func (t *tree) add(h *tar.Header, content io.Reader) error {
	if err := t.countEntry(); err != nil {
		return err
	}
	name, err := entryPath(h.Name)
	if err != nil {
		return err
	}
	if base := path.Base(name); strings.HasPrefix(base, whiteout) {
		return t.whiteOut(path.Dir(name), base)
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return refused("it replaces its own top folder")
		}
		return nil
	}
	t.notePrivileges(h, name)
	switch h.Typeflag {
	case tar.TypeDir:
		at, err := t.place(name)
		if err == nil {
			err = t.clear(at, true)
		}
		if err != nil {
			return err
		}
		return t.makeDirs(at)
	case tar.TypeReg, tar.TypeRegA, tar.TypeGNUSparse: //nolint:staticcheck // old archives have TypeRegA
		return t.file(name, h, content)
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) >= maxPath || strings.ContainsRune(h.Linkname, 0) {
			return refused("the link %q leads nowhere", shorten(name))
		}
		at, err := t.place(name)
		if err == nil {
			err = t.clear(at, false)
		}
		if err != nil {
			return err
		}
		return t.root.Symlink(h.Linkname, at)
	case tar.TypeLink:
		return t.hardLink(name, h.Linkname)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		t.report.note(&t.report.Devices, name)
		return nil
	case tar.TypeXGlobalHeader:
		return nil
	default:
		return refused("%q is of a kind that no image has (%q)", shorten(name), h.Typeflag)
	}
}

// notePrivileges counts what makeFile does not take over.
func (t *tree) notePrivileges(h *tar.Header, name string) {
	const setIDs = 0o6000
	capability := h.PAXRecords["SCHILY.xattr.security.capability"] != ""
	if h.Typeflag == tar.TypeReg && (h.Mode&setIDs != 0 || capability) {
		t.report.note(&t.report.Privileges, name)
	}
}

// file writes one file. Its size is counted before it is written: a sparse one takes what it says, not what it has.
func (t *tree) file(name string, h *tar.Header, content io.Reader) error {
	if err := t.countBytes(h.Size); err != nil {
		return err
	}
	at, err := t.place(name)
	if err == nil {
		err = t.clear(at, false)
	}
	if err != nil {
		return err
	}
	// Everybody may read it and nobody write it: inside, a run's uid is nobody's owner.
	mode := fs.FileMode(0o444)
	if h.Mode&0o111 != 0 {
		mode = 0o555
	}
	f, err := t.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	// Compiled Python names the time of its source.
	at0 := h.ModTime.Truncate(time.Second)
	if year := at0.Year(); year < 1970 || year > 2200 {
		at0 = time.Unix(0, 0)
	}
	return t.root.Chtimes(at, at0, at0)
}

// hardLink gives an earlier file a second name.
func (t *tree) hardLink(name, target string) error {
	from, err := entryPath(target)
	if err != nil {
		return err
	}
	dir, err := t.resolve(path.Dir(from))
	if err != nil {
		return err
	}
	from = path.Join(dir, path.Base(from))
	info, err := t.root.Lstat(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !info.Mode().IsRegular() {
		return refused("the hard link %q leads to no file of it", shorten(name))
	}
	at, err := t.place(name)
	if err != nil || at == from {
		return err
	}
	if err := t.clear(at, false); err != nil {
		return err
	}
	return t.root.Link(from, at)
}

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// whiteOut removes what lower layers put at a name, or into a whole folder.
func (t *tree) whiteOut(dir, base string) error {
	at, err := t.resolve(dir)
	if err != nil {
		return err
	}
	if base == opaque {
		return t.removeLower(at)
	}
	if strings.HasPrefix(base, whiteout+whiteout) {
		return nil // the bookkeeping of an older builder
	}
	name := strings.TrimPrefix(base, whiteout)
	if name == "" || name == "." || name == ".." {
		return refused("the whiteout %q leads out of it", shorten(path.Join(dir, base)))
	}
	at = path.Join(at, name)
	if t.touched[at] {
		return t.removeLower(at)
	}
	return t.root.RemoveAll(at)
}

// removeLower removes what is below a resolved folder and not of the layer that is being applied.
func (t *tree) removeLower(at string) error {
	info, err := t.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := readNames(t.root, at)
	if err != nil {
		return err
	}
	for _, name := range names {
		child := path.Join(at, name)
		if t.touched[child] {
			err = t.removeLower(child)
		} else {
			err = t.root.RemoveAll(child)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readNames lists a folder, sorted.
func readNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	sortStrings(names)
	return names, nil
}
