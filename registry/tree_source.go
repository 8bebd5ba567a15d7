package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// openSources opens every path and lists what is below it. A bad path is INVALID_ARGUMENT, an archive with a path that leaves
// it UNSAFE_PATH; then nothing stays open.
func openSources(ctx context.Context, paths []string) (_ []source, err error) {
	if len(paths) == 0 {
		return nil, sallyport.Errorf("registry.upload", sallyport.CodeInvalidArgument, "no path was given; name a folder, a SKILL.md or an archive")
	}
	var sources []source
	defer func() {
		if err != nil {
			closeSources(sources)
		}
	}()
	for _, name := range paths {
		s, err := openSource(ctx, name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
		entries, err := s.tree.Entries(ctx)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if escapes(entry) {
				return nil, unsafeEntry("registry.upload", entry.Path)
			}
		}
		sources[len(sources)-1].entries = entries
	}
	separate(sources)
	return sources, nil
}

func closeSources(sources []source) {
	for _, s := range sources {
		_ = s.tree.Close()
	}
}

// separate gives every source a place of its own. The last element of it stays, as the name of a skill should equal it.
func separate(sources []source) {
	taken := map[string]bool{}
	for _, s := range sources {
		taken[foldPath(s.base)] = true
	}
	seen := map[string]bool{}
	n := 1
	for i, s := range sources {
		if seen[foldPath(s.base)] {
			for n++; taken[strconv.Itoa(n)]; n++ {
			}
			sources[i].base = strconv.Itoa(n) + "/" + s.base
		}
		seen[foldPath(s.base)] = true
	}
}

// source is one path of an upload. file is held open for a zip.
type source struct {
	base string
	// given is the folder or the archive as it was named; inArchive tells which.
	given     string
	inArchive bool
	tree      Tree
	entries   []TreeEntry
	// commit is set for a git repository that was read at one.
	commit string
}

// openSource finds out what a path is.
func openSource(ctx context.Context, name string) (source, error) {
	refuse := func(why string, err error) error {
		return &sallyport.Error{
			Op: "registry.upload", Code: sallyport.CodeInvalidArgument,
			Message: strconv.Quote(shorten(name)) + ": " + why, Err: err,
		}
	}
	if name == "" { // a variable that was not set; the current folder is what nobody meant
		return source{}, refuse("the path is empty", nil)
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		return source{}, refuse("the path cannot be resolved", err)
	}
	info, err := os.Stat(absolute)
	if err == nil { // what Abs makes of a#subdir=../.. is another folder, and there
		_, err = os.Stat(name)
	}
	if folder, at, git := gitSource(name, err != nil); git {
		s, err := openGitSource(ctx, folder, at)
		if err != nil {
			return source{}, refuse(sallyport.Public(err).Message, err)
		}
		return s, nil
	}
	if err != nil {
		return source{}, refuse(reason(err), err)
	}
	if info.Mode().IsRegular() && strings.EqualFold(filepath.Base(absolute), SkillFile) {
		absolute, name = filepath.Dir(absolute), filepath.Dir(name)
		if info, err = os.Stat(absolute); err != nil {
			return source{}, refuse(reason(err), err)
		}
	}
	s := source{base: plainBase(filepath.Base(absolute)), given: filepath.Clean(name)}
	switch {
	case info.IsDir():
		s.tree, err = openAs(OpenFolder(absolute))
	case info.Mode().IsRegular():
		s.base, s.inArchive = plainBase(archiveBase(filepath.Base(absolute))), true
		s.tree, err = openArchive(absolute, info.Size())
	default:
		err = errNoSource
	}
	if err != nil {
		if errors.Is(err, errNoSource) {
			return source{}, refuse(errNoSource.Error(), nil)
		}
		public := sallyport.Public(err) // with its own code: a bomb is too large here as it is over HTTP
		return source{}, &sallyport.Error{
			Op: "registry.upload", Code: public.Code, Message: strconv.Quote(shorten(name)) + ": " + public.Message, Err: err,
		}
	}
	return s, nil
}

// openAs keeps a nil tree from hiding in an interface.
func openAs[T Tree](tree T, err error) (Tree, error) {
	if err != nil {
		return nil, err
	}
	return tree, nil
}

var errNoSource = errors.New("it is neither a folder nor a SKILL.md nor a tar, tar.gz or zip")

// openArchive opens an archive of this host, told by its first bytes.
func openArchive(name string, size int64) (Tree, error) {
	file, err := os.Open(name) // the operator named this path
	if err != nil {
		return nil, &sallyport.Error{Op: "registry.upload", Code: sallyport.CodeInvalidArgument, Message: "the file cannot be opened: " + reason(err), Err: err}
	}
	const ustarAt = 257
	head := make([]byte, ustarAt+5)
	n, _ := io.ReadFull(file, head)
	head = head[:n]
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		tree, err := openAs(OpenZip(file, size, TreeLimits{}))
		if err != nil {
			_ = file.Close()
			return nil, err
		}
		return closingTree{tree, file}, nil
	}
	defer file.Close() //nolint:errcheck // read only
	if !bytes.HasPrefix(head, []byte{0x1f, 0x8b}) && !bytes.HasSuffix(head, []byte("ustar")) {
		return nil, errNoSource
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, &sallyport.Error{Op: "registry.upload", Code: sallyport.CodeInternal, Err: err}
	}
	return openAs(OpenTar(file, TreeLimits{}, ""))
}

// closingTree closes the file below a tree with it.
type closingTree struct {
	Tree
	file io.Closer
}

// Commit passes on what the tree knows.
func (t closingTree) Commit() string { return CommitOf(t.Tree) }

func (t closingTree) Close() error { return errors.Join(t.Tree.Close(), t.file.Close()) }
