package registry

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/gitread"
)

// GitTree is one commit of a git repository as a Tree.
type GitTree struct {
	objects gitread.Objects
	commit  string
	entries []TreeEntry
	hashes  map[string]gitread.Hash
}

// OpenGit opens a repository on this host, bare or with a work tree, at a ref: a branch, a tag, a full ref name or a commit of 40 hex digits;
// empty means HEAD. subdir is the only folder that is read; empty means all. Nothing of the repository is run, no submodule and no filter is
// followed. INVALID_ARGUMENT, UNSAFE_PATH, REQUEST_TOO_LARGE.
func OpenGit(ctx context.Context, folder, ref, subdir string) (*GitTree, error) {
	local, err := gitread.OpenLocal(folder, gitread.Limits{})
	if err != nil {
		return nil, err
	}
	hash, err := local.Choose(ref)
	if err != nil {
		_ = local.Close()
		return nil, err
	}
	return openGit(ctx, local, hash, subdir)
}

// openGit takes objects over, and closes them when it fails.
func openGit(ctx context.Context, objects gitread.Objects, hash gitread.Hash, subdir string) (*GitTree, error) {
	files, err := gitread.List(ctx, objects, hash, gitread.ListOptions{Subdir: subdir, Skip: func(path string) bool {
		_, ignored := ignoredAt(path, true)
		return ignored
	}})
	if err != nil {
		_ = objects.Close()
		return nil, err
	}
	t := &GitTree{objects: objects, commit: files.Commit.String(), hashes: map[string]gitread.Hash{}}
	for _, file := range files.Entries {
		shown, fault := checkEncoding(file.Path)
		entry := TreeEntry{Path: shown, Type: gitTypes[file.Type], Size: file.Size, Mode: file.Mode, Target: file.Target, Fault: file.Fault}
		if fault != "" {
			entry.Fault = fault
		}
		if entry.Type == EntryFile {
			t.hashes[shown] = file.Hash
		}
		t.entries = append(t.entries, entry)
	}
	sortEntries(t.entries)
	return t, nil
}

var gitTypes = map[gitread.EntryType]EntryType{
	gitread.EntryFile: EntryFile, gitread.EntryDir: EntryDir, gitread.EntrySymlink: EntrySymlink, gitread.EntrySubmodule: EntrySubmodule,
	gitread.EntryOther: EntryOther,
}

// Commit is the id of the commit that was read.
func (t *GitTree) Commit() string { return t.commit }

// Entries lists the files of the commit.
func (t *GitTree) Entries(ctx context.Context) ([]TreeEntry, error) { return t.entries, ctx.Err() }

// ReadFile reads one file.
func (t *GitTree) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	hash, found := t.hashes[name]
	if !found {
		return nil, sallyport.Errorf("registry.git", sallyport.CodeInvalidArgument, "the file cannot be read: it is not in the commit")
	}
	return gitread.ReadFile(ctx, t.objects, hash, limit)
}

// Close releases the repository.
func (t *GitTree) Close() error { return t.objects.Close() }

// committed is a Tree that knows which commit it is of.
type committed interface{ Commit() string }

// CommitOf returns the commit that a tree is of, empty when it is of none.
func CommitOf(tree Tree) string {
	if t, knows := tree.(committed); knows && isCommit(t.Commit()) {
		return strings.ToLower(t.Commit())
	}
	return ""
}

func isCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(strings.ToLower(text), "0123456789abcdef") == ""
}

// withCommit names the commit in a message, unless it is named there already or does not fit.
func withCommit(message, commit string) string {
	if commit == "" || strings.Contains(message, commit) {
		return message
	}
	said := "git commit " + commit
	if message != "" {
		said = message + " (" + said + ")"
	}
	if len(said) > maxMessageBytes {
		return message
	}
	return said
}
