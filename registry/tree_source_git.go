package registry

import (
	"context"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/gitread"
)

// gitSource takes a path for a git repository of this host: file:///PATH, git+file:///PATH, a bare repository, or PATH#ref=NAME&subdir=PATH when
// there is no file of that whole name. A work tree by itself is a folder like any other: its files are imported as they are.
func gitSource(name string, absent bool) (folder, fragment string, git bool) {
	plain := strings.TrimPrefix(name, "git+")
	if rest, isURL := strings.CutPrefix(plain, "file://"); isURL {
		folder, fragment, _ = strings.Cut(rest, "#")
		if unescaped, err := url.PathUnescape(folder); err == nil {
			folder = unescaped
		}
		return folder, fragment, true
	}
	if !absent {
		return name, "", gitread.IsBare(name) && !hasSkillFile(name)
	}
	folder, fragment, found := strings.Cut(name, "#")
	if !found {
		return "", "", false
	}
	info, err := os.Stat(folder)
	return folder, fragment, err == nil && info.IsDir()
}

// hasSkillFile tells a skill with odd folders from a bare repository.
func hasSkillFile(folder string) bool {
	_, err := os.Lstat(filepath.Join(folder, SkillFile))
	return err == nil
}

// openGitSource opens a repository of this host. Its base is its own name without .git, or that of the folder that is read of it.
func openGitSource(ctx context.Context, folder, fragment string) (source, error) {
	if !filepath.IsAbs(folder) && folder == "" {
		return source{}, sallyport.Errorf("registry.upload", sallyport.CodeInvalidArgument, "the path is empty; write file:///PATH")
	}
	at, err := gitread.ParseFragment(fragment)
	if err != nil {
		return source{}, err
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return source{}, sallyport.Errorf("registry.upload", sallyport.CodeInvalidArgument, "the path cannot be resolved")
	}
	tree, err := OpenGit(ctx, absolute, at.Ref, at.Subdir)
	if err != nil {
		return source{}, err
	}
	base := strings.TrimSuffix(filepath.Base(absolute), ".git")
	if base == "" {
		base = filepath.Base(filepath.Dir(absolute)) // PATH/.git
	}
	s := source{base: plainBase(base), given: filepath.Clean(folder), inArchive: true, tree: tree, commit: tree.Commit()}
	if at.Subdir != "" {
		s.base, s.tree = plainBase(path.Base(at.Subdir)), subTree{tree, at.Subdir}
	}
	return s, nil
}

// subTree is a folder of a tree, with paths from there.
type subTree struct {
	*GitTree

	folder string
}

// Entries lists what lies below the folder.
func (t subTree) Entries(ctx context.Context) ([]TreeEntry, error) {
	entries, err := t.GitTree.Entries(ctx)
	out := make([]TreeEntry, 0, len(entries))
	for _, entry := range entries {
		if inside := relativeTo(t.folder, entry.Path); inside != entry.Path && inside != "" {
			entry.Path = inside
			out = append(out, entry)
		}
	}
	return out, err
}

// ReadFile reads one file.
func (t subTree) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	return t.GitTree.ReadFile(ctx, path.Join(t.folder, name), limit)
}
