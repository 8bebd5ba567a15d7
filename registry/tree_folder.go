package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport"
)

// FolderTree is a folder on this host as a Tree. It never leaves the folder and never follows a symbolic link.
type FolderTree struct {
	root *os.Root
	// absolute is where the folder is, as given and with links resolved: an absolute link into it becomes a relative one.
	absolute []string
	limit    int
}

// OpenFolder opens a folder; the name itself may be a symbolic link. The error is INVALID_ARGUMENT.
func OpenFolder(name string) (*FolderTree, error) {
	refuse := func(err error) error {
		return &sallyport.Error{
			Op: "registry.folder", Code: sallyport.CodeInvalidArgument,
			Message: "the folder cannot be opened: " + reason(err), Err: err,
		}
	}
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, refuse(err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, refuse(err)
	}
	if special := specialAt(root); special != "" {
		_ = root.Close()
		return nil, sallyport.Errorf("registry.folder", sallyport.CodeInvalidArgument,
			"the folder is of the file system %s, which holds no skills; name the folder of the skills", special)
	}
	t := &FolderTree{root: root, limit: defaultFolderEntries}
	if absolute, err := filepath.Abs(name); err == nil {
		t.absolute = append(t.absolute, absolute)
		if resolved, err := filepath.EvalSymlinks(absolute); err == nil && resolved != absolute {
			t.absolute = append(t.absolute, resolved)
		}
	}
	return t, nil
}

// Close releases the folder.
func (t *FolderTree) Close() error { return t.root.Close() }

// Entries walks the folder. Ignored directories are listed and not entered. What cannot be read, lies too deep or is over
// the number of entries is an entry with a Fault.
func (t *FolderTree) Entries(ctx context.Context) ([]TreeEntry, error) {
	walk := folderWalk{tree: t, left: t.limit}
	if err := walk.directory(ctx, t.root, "", 0); err != nil {
		return nil, err
	}
	if walk.left < 0 && !slices.ContainsFunc(walk.entries, isSkillFile) {
		return nil, sallyport.Errorf("registry.folder", sallyport.CodeInvalidArgument,
			"the folder has more than %d entries, and no %s among the first; name a folder nearer to the skills", t.limit, SkillFile)
	}
	sortEntries(walk.entries)
	return walk.entries, nil
}

type folderWalk struct {
	tree    *FolderTree
	entries []TreeEntry
	left    int
}

func (w *folderWalk) fault(name, sentence string) {
	w.entries = append(w.entries, TreeEntry{Path: cmp.Or(name, "."), Type: EntryDir, Fault: sentence})
}

// directory lists one directory and what is below it. Its error is the context's only.
func (w *folderWalk) directory(ctx context.Context, root *os.Root, name string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth > maxTreeDepth {
		w.fault(name, fmt.Sprintf("the directory is more than %d deep and was not searched", maxTreeDepth))
		return nil
	}
	names, err := readNames(root, w.left+1)
	if special, ok := errors.AsType[specialError](err); ok {
		w.fault(name, special.Error())
		return nil
	}
	if err != nil {
		w.fault(name, "the directory cannot be read: "+reason(err))
		return nil
	}
	for _, base := range names {
		if w.left--; w.left < 0 {
			w.fault(name, fmt.Sprintf("the folder has more than %d entries and was not searched further; import a smaller one", w.tree.limit))
			return nil
		}
		if err := w.entry(ctx, root, path.Join(name, base), base, depth); err != nil {
			return err
		}
	}
	return nil
}

// specialError is a directory of a special file system.
type specialError struct{ name string }

func (e specialError) Error() string {
	return "the directory is of the file system " + e.name + ", which holds no skills, and was not searched"
}

// specialAt names the special file system that a folder is of, empty for any other.
func specialAt(root *os.Root) string {
	directory, err := root.Open(".")
	if err != nil {
		return "" // reading it will say why
	}
	defer directory.Close() //nolint:errcheck // only looked at
	return specialFileSystem(directory)
}

func readNames(root *os.Root, most int) ([]string, error) {
	directory, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer directory.Close() //nolint:errcheck // read only
	if special := specialFileSystem(directory); special != "" {
		return nil, specialError{special}
	}
	names, err := directory.Readdirnames(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

func (w *folderWalk) entry(ctx context.Context, root *os.Root, name, base string, depth int) error {
	shown, fault := checkEncoding(name)
	entry := TreeEntry{Path: shown, Type: EntryOther, Fault: fault}
	info, err := root.Lstat(base)
	if err != nil {
		entry.Fault = "the entry cannot be read: " + reason(err)
		w.entries = append(w.entries, entry)
		return nil
	}
	entry.Size, entry.Mode = info.Size(), uint32(info.Mode().Perm())
	switch {
	case info.IsDir():
		entry.Type = EntryDir
	case info.Mode().IsRegular():
		entry.Type = EntryFile
	case info.Mode()&fs.ModeSymlink != 0:
		entry.Type, entry.Size = EntrySymlink, 0
		if target, err := root.Readlink(base); err == nil {
			entry.Target = w.tree.relativeTarget(name, target)
		} else {
			entry.Fault = "the symbolic link cannot be read: " + reason(err)
		}
	}
	w.entries = append(w.entries, entry)
	if _, ignored := ignoredAt(name, true); entry.Type != EntryDir || fault != "" || ignored {
		return nil
	}
	below, err := descend(root, base, info)
	if err != nil {
		w.fault(name, "the directory cannot be read: "+reason(err))
		return nil
	}
	defer below.Close() //nolint:errcheck // read only
	return w.directory(ctx, below, name, depth+1)
}

// relativeTarget turns an absolute target inside the folder into one relative to the link.
func (t *FolderTree) relativeTarget(name, target string) string {
	if !filepath.IsAbs(target) {
		return filepath.ToSlash(target)
	}
	for _, absolute := range t.absolute {
		inside, err := filepath.Rel(absolute, target)
		if err != nil || !filepath.IsLocal(inside) {
			continue
		}
		if relative, err := filepath.Rel(filepath.FromSlash(path.Dir(name)), inside); err == nil {
			return filepath.ToSlash(relative)
		}
	}
	return filepath.ToSlash(target)
}

var errSwapped = errors.New("it was replaced while it was read")

// descend opens the directory that info describes and no other: a directory swapped for a link meanwhile is an error.
func descend(root *os.Root, base string, info fs.FileInfo) (*os.Root, error) {
	below, err := root.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	opened, err := below.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = errSwapped
	}
	if err != nil {
		_ = below.Close()
		return nil, err
	}
	return below, nil
}

// ReadFile reads a regular file, following no link on the way.
func (t *FolderTree) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	content, err := t.read(name, limit)
	if err != nil {
		return nil, &sallyport.Error{
			Op: "registry.folder", Code: sallyport.CodeInvalidArgument,
			Message: "the file cannot be read: " + reason(err), Err: err,
		}
	}
	return content, nil
}

func (t *FolderTree) read(name string, limit int64) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	root := t.root
	directories := strings.Split(name, "/")
	base := directories[len(directories)-1]
	for _, directory := range directories[:len(directories)-1] {
		info, err := root.Lstat(directory)
		if err == nil && !info.IsDir() {
			err = errSwapped
		}
		if err != nil {
			return nil, err
		}
		below, err := descend(root, directory, info)
		if err != nil {
			return nil, err
		}
		defer below.Close() //nolint:errcheck,gocritic // read only; a path has few directories
		root = below
	}
	info, err := root.Lstat(base)
	if err == nil && !info.Mode().IsRegular() {
		err = errSwapped
	}
	if err != nil {
		return nil, err
	}
	// Not blocking: a pipe put in place of the file must not hold the import.
	file, err := root.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	opened, err := file.Stat()
	if err == nil && (!opened.Mode().IsRegular() || !os.SameFile(info, opened)) {
		err = errSwapped
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, limit+1))
}

// reason says in a few words, without a host path, why the system refused.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, syscall.ENOTDIR):
		return "it is not a folder"
	case errors.Is(err, errSwapped):
		return errSwapped.Error()
	}
	return "the system refused"
}
