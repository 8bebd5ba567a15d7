package registry

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// PathsTree is folders and archives of this host as one Tree, laid out as [WriteTar] sends them: every path is a folder of
// its own at the top.
type PathsTree struct {
	sources []source
	entries []TreeEntry
	files   map[string]sourceFile
}

// sourceFile is where a file of a PathsTree is read from.
type sourceFile struct {
	tree Tree
	name string
}

// OpenPaths opens folders, SKILL.md files and archives. A bad path is INVALID_ARGUMENT, an archive with a path that leaves it
// UNSAFE_PATH, and one that unpacks to too much REQUEST_TOO_LARGE.
func OpenPaths(ctx context.Context, paths []string) (*PathsTree, error) {
	sources, err := openSources(ctx, paths)
	if err != nil {
		return nil, err
	}
	t := &PathsTree{sources: sources, files: map[string]sourceFile{}}
	for _, s := range sources {
		for _, entry := range s.entries {
			inside := entry.Path
			if entry.Path = s.base; inside != "." {
				entry.Path += "/" + inside
			}
			if entry.Type == EntryFile {
				t.files[entry.Path] = sourceFile{s.tree, inside}
			}
			t.entries = append(t.entries, entry)
		}
	}
	sortEntries(t.entries)
	return t, nil
}

// Entries lists what is below every path.
func (t *PathsTree) Entries(ctx context.Context) ([]TreeEntry, error) { return t.entries, ctx.Err() }

// ReadFile reads one file.
func (t *PathsTree) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	file, found := t.files[name]
	if !found {
		return nil, sallyport.Errorf("registry.paths", sallyport.CodeInvalidArgument, "the file cannot be read: it was not listed")
	}
	return file.tree.ReadFile(ctx, file.name, limit)
}

// Commit is the commit of the one git repository that was opened; empty when there are more paths, or it is none.
func (t *PathsTree) Commit() string {
	if len(t.sources) != 1 {
		return ""
	}
	return t.sources[0].commit
}

// Close releases every path.
func (t *PathsTree) Close() error {
	closeSources(t.sources)
	return nil
}

// Locate says where a path of the tree is: a file of this host, named as the path it was opened by was named, or an archive
// of this host and the name inside it. It knows nothing of names that no path leads to.
func (t *PathsTree) Locate(name string) (file, inside string) {
	for _, s := range t.sources {
		if name != s.base && !strings.HasPrefix(name, s.base+"/") {
			continue
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(name, s.base), "/")
		if s.inArchive {
			return s.given, rest
		}
		return filepath.Join(s.given, filepath.FromSlash(rest)), ""
	}
	return name, ""
}
