//go:build unix

package unsafelocal

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport"
)

// Bounds that no request can change.
const (
	maxOutputData = 1 << 20
	maxEntries    = 10_000
	maxDepth      = 16
)

// collect reads what the script left in SKILL_OUTPUT and SKILL_ARTIFACTS: regular files with one name, within the limits.
func (p *place) collect(result *sallyport.Result, limits sallyport.Limits) {
	c := &collector{root: p.root, result: result, bytes: limits.ArtifactBytes, files: limits.ArtifactFiles, entries: maxEntries}
	_ = p.root.Chmod("out", 0o700) // a script may have closed it
	if info, err := p.root.Lstat("out/output"); err == nil {
		switch {
		case !info.Mode().IsRegular():
			c.note("SKILL_OUTPUT", "not a regular file")
		case info.Size() > maxOutputData:
			result.OutputDataTruncated = true
		default:
			if content, fault := c.read("out/output", maxOutputData); fault != "" {
				c.note("SKILL_OUTPUT", fault)
			} else {
				result.OutputData = content
			}
		}
	}
	if info, err := p.root.Lstat("out/artifacts"); err == nil && info.IsDir() {
		c.folder("out/artifacts", "", 0)
	}
	slices.SortFunc(result.Artifacts, func(a, b sallyport.ArtifactFile) int { return strings.Compare(a.Path, b.Path) })
}

type collector struct {
	root                  *os.Root
	result                *sallyport.Result
	bytes, files, entries int64
}

func (c *collector) note(name, fault string) {
	if len(c.result.ArtifactNotes) < 100 {
		c.result.ArtifactNotes = append(c.result.ArtifactNotes, strconv.Quote(name)+": "+fault)
	}
}

func (c *collector) folder(dir, name string, depth int) {
	if depth > maxDepth {
		c.note(name, "nested too deeply")
		return
	}
	_ = c.root.Chmod(dir, 0o700)
	entries, err := fs.ReadDir(c.root.FS(), dir)
	if err != nil {
		c.note(name, "the folder cannot be read")
		return
	}
	for _, e := range entries {
		if c.entries--; c.entries < 0 {
			c.note(name, "too many entries")
			return
		}
		at, as := path.Join(dir, e.Name()), path.Join(name, e.Name())
		info, err := c.root.Lstat(at)
		switch {
		case err != nil:
			c.note(as, "cannot be read")
		case sallyport.CheckPath(as) != nil:
			c.note(as, "the name is not plain")
		case info.IsDir():
			c.folder(at, as, depth+1)
		case !info.Mode().IsRegular():
			c.note(as, "not a regular file")
		case c.files <= 0:
			c.note(as, "over the number of files")
		case info.Size() > c.bytes:
			c.note(as, "over the bytes of artifacts")
		default:
			content, fault := c.read(at, c.bytes)
			if fault != "" {
				c.note(as, fault)
				continue
			}
			c.files--
			c.bytes -= int64(len(content))
			c.result.Artifacts = append(c.result.Artifacts, sallyport.ArtifactFile{Path: as, Content: content})
		}
	}
}

// read reads a file that is still regular, has no second name and is within bound.
func (c *collector) read(name string, bound int64) (content []byte, fault string) {
	open := func() (*os.File, error) {
		return c.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	}
	f, err := open()
	if err != nil {
		_ = c.root.Chmod(name, 0o600)
		if f, err = open(); err != nil {
			return nil, "cannot be read"
		}
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, "not a regular file"
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Nlink > 1 {
		return nil, "has more than one name"
	}
	content, err = io.ReadAll(io.LimitReader(f, bound+1))
	if err != nil || int64(len(content)) > bound {
		return nil, "cannot be read within the bytes of artifacts"
	}
	return content, ""
}
