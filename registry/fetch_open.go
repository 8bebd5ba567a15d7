package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mediatype"
)

// maxBareSkill bounds a SKILL.md that is fetched by itself.
const maxBareSkill = 1 << 20

// open finds out what was downloaded, by its bytes: what a server calls it is not believed.
func (f *Fetcher) open(spool *os.File, source Source) (Tree, error) {
	const ustarAt = 257
	head := make([]byte, ustarAt+5)
	n, err := spool.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &sallyport.Error{Op: opFetch, Code: sallyport.CodeInternal, Err: err}
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		tree, err := openAs(OpenZip(spool, source.SizeBytes, TreeLimits{}))
		if err != nil {
			return nil, err
		}
		return closingTree{tree, spool}, nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}), bytes.HasSuffix(head, []byte("ustar")):
		tree, err := openAs(OpenTar(spool, TreeLimits{}, f.cfg.SpoolDir))
		if err != nil {
			return nil, err
		}
		return closingTree{tree, spool}, nil
	}
	bare, err := openBare(spool, source)
	if err != nil {
		return nil, err
	}
	return closingTree{bare, spool}, nil
}

// openBare takes a text that begins as a SKILL.md does for the only file of a skill.
func openBare(spool *os.File, source Source) (bareTree, error) {
	if source.SizeBytes > maxBareSkill {
		return bareTree{}, refuseURL("it serves neither a zip, a tar nor a tar.gz, and is too large for a %s", SkillFile)
	}
	content, err := io.ReadAll(io.LimitReader(io.NewSectionReader(spool, 0, source.SizeBytes), maxBareSkill))
	if err != nil {
		return bareTree{}, &sallyport.Error{Op: opFetch, Code: sallyport.CodeInternal, Err: err}
	}
	start := strings.TrimLeft(string(bytes.TrimPrefix(content, []byte("\ufeff"))), " \t\r\n")
	switch {
	case mediatype.Text(content) && strings.HasPrefix(start, "---"):
	case strings.HasPrefix(start, "<"):
		return bareTree{}, refuseURL("it serves a web page; name the file itself: a zip, a tar, a tar.gz or a %s", SkillFile)
	default:
		return bareTree{}, refuseURL("it serves neither a zip, a tar, a tar.gz nor a %s", SkillFile)
	}
	return bareTree{path.Join(bareFolder(source.URL), SkillFile), content}, nil
}

// bareFolder is the folder that a SKILL.md by itself lies in, as far as its URL tells.
func bareFolder(source string) string {
	u, err := url.Parse(source)
	if err != nil {
		return ""
	}
	folder := strings.TrimSuffix(path.Base(u.Path), path.Ext(u.Path))
	if strings.EqualFold(path.Base(u.Path), SkillFile) {
		folder = path.Base(path.Dir(u.Path))
	}
	if sallyport.CheckPath(folder) != nil || strings.Contains(folder, "/") {
		return ""
	}
	return folder
}

// bareTree is a tree of one file.
type bareTree struct {
	name    string
	content []byte
}

func (t bareTree) Entries(ctx context.Context) ([]TreeEntry, error) {
	return []TreeEntry{{Path: t.name, Type: EntryFile, Size: int64(len(t.content)), Mode: defaultMode}}, ctx.Err()
}

func (t bareTree) ReadFile(_ context.Context, name string, limit int64) ([]byte, error) {
	if name != t.name {
		return nil, sallyport.Errorf(opFetch, sallyport.CodeInvalidArgument, "the file cannot be read: it is not there")
	}
	return t.content[:min(int64(len(t.content)), limit+1)], nil
}

func (bareTree) Close() error { return nil }
