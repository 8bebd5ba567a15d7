package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// UploadTree is files that came one by one, such as the parts of a form, as a Tree. They are held in an unlinked temporary file. It is not
// safe for concurrent use until the last file was added.
type UploadTree struct {
	*TarTree

	end int64
}

// NewUpload returns an empty tree. spoolDir is as for [OpenTar].
func NewUpload(limits TreeLimits, spoolDir string) (*UploadTree, error) {
	spool, err := openSpool(spoolDir)
	if err != nil {
		return nil, &sallyport.Error{Op: "registry.upload", Code: sallyport.CodeStoreUnavailable, Message: "the upload cannot be stored on this server", Err: err}
	}
	return &UploadTree{TarTree: &TarTree{spool: spool, spans: map[string]span{}, limits: limits.withDefaults()}}, nil
}

// Add reads one file to its end. A name is a path relative to the root, as its sender wrote it; Import judges it. Too many files or bytes are
// REQUEST_TOO_LARGE, a name that is there already INVALID_ARGUMENT; the reader's own error stays in the chain.
func (u *UploadTree) Add(name string, content io.Reader) error {
	if err := u.limits.tooMany(len(u.entries) + 1); err != nil {
		return err
	}
	shown, fault := checkEncoding(entryName(forwardSlashes(name)))
	if _, twice := u.spans[shown]; twice {
		return sallyport.Errorf("registry.upload", sallyport.CodeInvalidArgument,
			"two files are named %q; send every file with its path, such as pdf/scripts/run.py", shorten(printable(shown)))
	}
	room := u.limits.TotalBytes - u.end // the first may be an archive of everything
	if len(u.entries) > 0 {
		room = min(u.limits.FileBytes, room)
	}
	n, err := io.Copy(io.NewOffsetWriter(u.spool, u.end), io.LimitReader(content, room+1))
	if err != nil {
		return err
	}
	at := span{offset: u.end, size: n}
	if n > room {
		rest, err := io.Copy(io.Discard, content)
		if err != nil {
			return err
		}
		at.size, at.skipped = n+rest, true
		if room != u.limits.FileBytes {
			return u.limits.bomb(u.limits.TotalBytes+1, 1)
		}
	} else {
		u.end += n
	}
	u.spans[shown] = at
	u.entries = append(u.entries, TreeEntry{Path: shown, Type: EntryFile, Size: at.size, Mode: defaultMode, Fault: fault})
	return nil
}

// Entries lists the files.
func (u *UploadTree) Entries(ctx context.Context) ([]TreeEntry, error) {
	sortEntries(u.entries)
	return u.TarTree.Entries(ctx)
}

// Archive returns what the only file holds when it is a zip, a tar or a tar.gz; false when it is none, or there are several. The caller
// closes both trees.
func (u *UploadTree) Archive(spoolDir string) (Tree, bool, error) {
	if len(u.entries) != 1 {
		return nil, false, nil
	}
	at := u.spans[u.entries[0].Path]
	file := io.NewSectionReader(u.spool, at.offset, at.size)
	const ustarAt = 257
	head := make([]byte, ustarAt+5)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, &sallyport.Error{Op: "registry.upload", Code: sallyport.CodeInternal, Err: err}
	}
	head = head[:n]
	var tree Tree
	switch {
	case at.skipped:
		return nil, false, nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		tree, err = openAs(OpenZip(file, at.size, u.limits))
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}), bytes.HasSuffix(head, []byte("ustar")):
		tree, err = openAs(OpenTar(file, u.limits, spoolDir))
	default:
		return nil, false, nil
	}
	return tree, err == nil, err
}

// CheckFolders is INVALID_ARGUMENT when the files came without the folders they lie in, as some clients send them: then nothing tells which of
// them are whose. A single file may be a SKILL.md by itself.
func (u *UploadTree) CheckFolders() error {
	for _, entry := range u.entries {
		if !strings.Contains(entry.Path, "/") && (len(u.entries) > 1 || !strings.EqualFold(entry.Path, SkillFile)) {
			return sallyport.Errorf("registry.upload", sallyport.CodeInvalidArgument,
				"the file name %q has no folder; send every file with its path from the skill's folder on, such as pdf/SKILL.md and pdf/scripts/run.py, or one archive",
				shorten(printable(entry.Path)))
		}
	}
	return nil
}
