package gitread

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Local is a repository on this host, bare or with a work tree. What is read of it are its objects: no hook, no filter, no
// configuration of it has any effect.
type Local struct {
	storage *filesystem.Storage
	limits  Limits
}

// IsBare reports whether a folder is a bare repository.
func IsBare(folder string) bool {
	head, err := os.Stat(filepath.Join(folder, "HEAD"))
	return err == nil && head.Mode().IsRegular() && isFolder(filepath.Join(folder, "objects")) && isFolder(filepath.Join(folder, "refs"))
}

func isFolder(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

// odd are settings that change how a repository is stored.
var odd = regexp.MustCompile(`(?im)^\s*(?:objectformat\s*=\s*sha256|refstorage\s*=\s*reftable)\b`)

// OpenLocal opens a repository. The error is INVALID_ARGUMENT.
func OpenLocal(folder string, limits Limits) (*Local, error) {
	if !IsBare(folder) {
		inside := filepath.Join(folder, ".git")
		switch info, err := os.Lstat(inside); {
		case err == nil && !info.IsDir():
			return nil, invalid("its .git is no folder: it is a work tree or a submodule of another repository; name that one")
		case err != nil || !IsBare(inside):
			return nil, invalid("it is no git repository")
		}
		folder = inside
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, invalid("the git repository cannot be opened")
	}
	defer root.Close() //nolint:errcheck // only looked at
	if _, err := root.Lstat("objects/info/alternates"); !errors.Is(err, fs.ErrNotExist) {
		return nil, invalid("the git repository borrows objects from another one; run: git repack -a -d, then remove objects/info/alternates")
	}
	if config, err := readSmall(root, "config"); err != nil || odd.Match(config) {
		return nil, invalid("the git repository is stored in a way that is not supported (sha256, reftable); push it to a plain one")
	}
	storage := filesystem.NewStorageWithOptions(osfs.New(folder, osfs.WithBoundOS()), cache.NewObjectLRU(16*cache.MiByte), filesystem.Options{
		LargeObjectThreshold: maxTreeBytes, KeepDescriptors: true,
	})
	return &Local{storage, limits.withDefaults()}, nil
}

func readSmall(root *os.Root, name string) ([]byte, error) {
	const most = 64 << 10
	file, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	return io.ReadAll(io.LimitReader(file, most))
}

// Close releases the files.
func (l *Local) Close() error { return l.storage.Close() }

// Choose resolves a ref.
func (l *Local) Choose(ref string) (Hash, error) {
	if commit, ok := asCommit(ref); ok {
		return commit, nil
	}
	return choose(ref, func(name string) (Hash, bool) {
		found, err := storer.ResolveReference(l.storage, plumbing.ReferenceName(name))
		if err != nil {
			return Hash{}, false
		}
		return found.Hash(), true
	})
}

// Size of an object.
func (l *Local) Size(hash Hash) (int64, error) {
	size, err := l.storage.EncodedObjectSize(hash)
	if err != nil {
		return 0, missing(hash)
	}
	return size, nil
}

// Read returns an object.
func (l *Local) Read(ctx context.Context, hash Hash, limit int64) (plumbing.ObjectType, []byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if size, err := l.Size(hash); err != nil || size > l.limits.ObjectBytes {
		return 0, nil, missing(hash)
	}
	object, err := l.storage.EncodedObject(plumbing.AnyObject, hash)
	if err != nil {
		return 0, nil, missing(hash)
	}
	reader, err := object.Reader()
	if err != nil {
		return 0, nil, damaged(err)
	}
	defer reader.Close() //nolint:errcheck // read only
	content, err := io.ReadAll(io.LimitReader(reader, limit+1))
	if err != nil {
		return 0, nil, damaged(err)
	}
	return object.Type(), content, nil
}
