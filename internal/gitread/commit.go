package gitread

import (
	"bytes"
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/sallyport-dev/sallyport"
)

// EntryType is the type of an Entry.
type EntryType string

// The entry types.
const (
	EntryFile      EntryType = "file"
	EntryDir       EntryType = "dir" // listed when it was not entered
	EntrySymlink   EntryType = "symlink"
	EntrySubmodule EntryType = "submodule"
	EntryOther     EntryType = "other"
)

// Entry is one entry of a commit.
type Entry struct {
	Path   string
	Type   EntryType
	Size   int64
	Mode   uint32 // permission bits
	Target string // of a symlink, raw
	Hash   Hash
	Fault  string // why it cannot be read: a sentence
}

// Files is the files of one commit, or of one folder of it.
type Files struct {
	Commit  Hash
	Entries []Entry
}

// ListOptions say what to list.
type ListOptions struct {
	Subdir string
	Limits Limits
	// Skip reports the directories that are listed and not entered.
	Skip func(path string) bool
}

// List lists the files of what hash names: a commit, or a tag of one. Paths are those of the repository, below Subdir too. A path that
// would leave the repository, or that is .git in some spelling, is UNSAFE_PATH; what is over the limits REQUEST_TOO_LARGE.
func List(ctx context.Context, objects Objects, hash Hash, opts ListOptions) (Files, error) {
	commit, root, err := peel(ctx, objects, hash)
	if err != nil {
		return Files{}, err
	}
	w := &walk{ctx: ctx, objects: objects, limits: opts.Limits.withDefaults(), skip: opts.Skip}
	if opts.Subdir != "" {
		if root, err = w.descend(root, opts.Subdir); err != nil {
			return Files{}, err
		}
	}
	if err := w.tree(root, opts.Subdir, 0); err != nil {
		return Files{}, err
	}
	return Files{commit, w.entries}, nil
}

// peel follows tags to a commit and returns it and its tree.
func peel(ctx context.Context, objects Objects, hash Hash) (commit, tree Hash, err error) {
	for range maxTags {
		kind, content, err := objects.Read(ctx, hash, maxTreeBytes)
		if err != nil {
			return Hash{}, Hash{}, err
		}
		want := "tree "
		if kind == plumbing.TagObject {
			want = "object "
		} else if kind != plumbing.CommitObject {
			return Hash{}, Hash{}, invalid("the ref names no commit")
		}
		line, _, _ := bytes.Cut(content, []byte("\n"))
		text, found := bytes.CutPrefix(line, []byte(want))
		next, ok := parseHash(text)
		switch {
		case !found || !ok:
			return Hash{}, Hash{}, damaged(errShort)
		case kind == plumbing.CommitObject:
			return hash, next, nil
		}
		hash = next
	}
	return Hash{}, Hash{}, invalid("the ref names a tag of a tag of a tag, and no commit")
}

type walk struct {
	ctx     context.Context //nolint:containedctx // lives as long as one call of List
	objects Objects
	limits  Limits
	skip    func(string) bool
	entries []Entry
	seen    int
	total   int64
}

// The modes of entries that git writes.
const (
	modeType       = 0o170000
	modeDir        = 0o040000
	modeFile       = 0o100000
	modeSymlink    = 0o120000
	modeSubmodule  = 0o160000
	modeExecutable = 0o100
	plainMode      = 0o644
	programMode    = 0o755
)

// item is one row of a tree object.
type item struct {
	mode uint32
	name string
	hash Hash
}

// rows parses a tree object. A name that could lead anywhere is UNSAFE_PATH.
func (w *walk) rows(hash Hash) ([]item, error) {
	kind, content, err := w.objects.Read(w.ctx, hash, maxTreeBytes)
	if err != nil {
		return nil, err
	}
	if kind != plumbing.TreeObject || len(content) > maxTreeBytes {
		return nil, damaged(errShort)
	}
	var rows []item
	for len(content) > 0 {
		mode, rest, found := bytes.Cut(content, []byte(" "))
		name, rest, ends := bytes.Cut(rest, []byte{0})
		row := item{name: string(name)}
		if !found || !ends || len(mode) == 0 || len(mode) > 6 || len(rest) < len(row.hash) {
			return nil, damaged(errShort)
		}
		for _, digit := range mode {
			if digit < '0' || digit > '7' {
				return nil, damaged(errShort)
			}
			row.mode = row.mode<<3 | uint32(digit-'0')
		}
		copy(row.hash[:], rest)
		content = rest[len(row.hash):]
		if unsafeName(row.name) {
			return nil, sallyport.Errorf(op, sallyport.CodeUnsafePath,
				"the git repository has a file or folder named %q, which no honest one has; nothing was imported", shorten(row.name))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// unsafeName refuses what git itself refuses to check out: names that are no names, and .git as some file system would read it.
func unsafeName(name string) bool {
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		return true
	}
	// HFS+ ignores these characters; NTFS ignores blanks and dots at the end, and what follows a colon, and has short names.
	folded := strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name))
	folded, _, _ = strings.Cut(folded, ":")
	folded = strings.TrimRight(folded, " .")
	return folded == ".git" || folded == "git~1"
}

func shorten(name string) string {
	const most = 60
	if len(name) > most {
		return name[:most]
	}
	return name
}

// descend finds the tree of a folder.
func (w *walk) descend(tree Hash, subdir string) (Hash, error) {
	for segment := range strings.SplitSeq(subdir, "/") {
		rows, err := w.rows(tree)
		if err != nil {
			return Hash{}, err
		}
		found := false
		for _, row := range rows {
			if row.name == segment && row.mode&modeType == modeDir {
				tree, found = row.hash, true
				break
			}
		}
		if !found {
			return Hash{}, invalid("subdir is no folder of the git repository at that commit")
		}
	}
	return tree, nil
}

func (w *walk) tree(hash Hash, prefix string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	rows, err := w.rows(hash)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if w.seen++; w.seen > w.limits.Entries {
			return tooLarge("the git repository has more than %d files and folders at that commit; name a folder of it with #subdir=PATH", w.limits.Entries)
		}
		path := row.name
		if prefix != "" {
			path = prefix + "/" + row.name
		}
		if err := w.entry(row, path, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(row item, path string, depth int) error {
	entry := Entry{Path: path, Type: EntryOther, Mode: plainMode, Hash: row.hash}
	if row.mode&modeExecutable != 0 {
		entry.Mode = programMode
	}
	switch row.mode & modeType {
	case modeDir:
		entry.Type = EntryDir
		switch {
		case len(path) > maxPath || depth >= maxDepth:
			entry.Fault = "the folder lies too deep and was not searched"
		case w.skip != nil && w.skip(path):
		default:
			return w.tree(row.hash, path, depth+1)
		}
	case modeFile:
		entry.Type = EntryFile
		if err := w.measure(&entry); err != nil {
			return err
		}
	case modeSymlink:
		entry.Type = EntrySymlink
		_, target, err := w.objects.Read(w.ctx, row.hash, maxLink)
		if err != nil || len(target) > maxLink {
			entry.Fault = "the symbolic link cannot be read"
		}
		entry.Target = string(target)
	case modeSubmodule:
		entry.Type = EntrySubmodule
	}
	w.entries = append(w.entries, entry)
	return nil
}

func (w *walk) measure(entry *Entry) error {
	size, err := w.objects.Size(entry.Hash)
	if err != nil {
		entry.Fault = sallyport.Public(err).Message
		return nil
	}
	entry.Size = size
	if size <= w.limits.ObjectBytes {
		w.total += size
	}
	if w.total > w.limits.TotalBytes {
		return tooLarge("the git repository has more than %d bytes at that commit; name a folder of it with #subdir=PATH", w.limits.TotalBytes)
	}
	return nil
}
