package registry

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// faultRecord is the PAX record in which [WriteTar] says why it could not read an entry.
const faultRecord = "SALLYPORT.fault"

// TarTree is a tar or tar.gz as a Tree. The files are held in an unlinked temporary file, never in memory.
type TarTree struct {
	spool   *os.File
	entries []TreeEntry
	spans   map[string]span
	limits  TreeLimits
	commit  string
}

// maxFault bounds what such a record says, in characters.
const maxFault = 240

// commitRecord is the global PAX record in which git archive, and [PathsTree.WriteTar], name the commit.
const commitRecord = "comment"

// submoduleRecord marks a submodule in what [PathsTree.WriteTar] sends.
const submoduleRecord = "SALLYPORT.submodule"

// Commit is the commit that the archive says it was made from, empty when it says none.
func (t *TarTree) Commit() string { return t.commit }

// span is where a file lies in the spool; a file over the limit is not there.
type span struct {
	offset, size int64
	skipped      bool
}

// OpenTar reads a tar stream, gzipped or not, to its end. spoolDir is an existing folder for the temporary file, which is
// unlinked at once; empty means the system's. A damaged stream is INVALID_ARGUMENT, one over the limits REQUEST_TOO_LARGE; the
// reader's own error, such as a body limit, stays in the chain.
func OpenTar(r io.Reader, limits TreeLimits, spoolDir string) (*TarTree, error) {
	spool, err := openSpool(spoolDir)
	if err != nil {
		return nil, &sallyport.Error{Op: "registry.tar", Code: sallyport.CodeInternal, Err: err}
	}
	t := &TarTree{spool: spool, spans: map[string]span{}, limits: limits.withDefaults()}
	if err := t.index(r); err != nil {
		_ = t.Close()
		return nil, err
	}
	sortEntries(t.entries)
	return t, nil
}

func openSpool(directory string) (*os.File, error) {
	if directory == "" {
		directory = os.TempDir()
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only names were used
	name := "sallyport-import-" + rand.Text()
	spool, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := root.Remove(name); err != nil {
		_ = spool.Close()
		return nil, err
	}
	return spool, nil
}

// Close releases the temporary file.
func (t *TarTree) Close() error { return t.spool.Close() }

// Entries lists the archive.
func (t *TarTree) Entries(ctx context.Context) ([]TreeEntry, error) {
	return t.entries, ctx.Err()
}

// ReadFile reads one file from the spool.
func (t *TarTree) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	at, found := t.spans[name]
	if !found || at.skipped {
		return nil, sallyport.Errorf("registry.tar", sallyport.CodeInvalidArgument, "the file cannot be read: it was not unpacked")
	}
	content := make([]byte, min(at.size, limit+1))
	if _, err := t.spool.ReadAt(content, at.offset); err != nil && (len(content) > 0 || !errors.Is(err, io.EOF)) {
		return nil, &sallyport.Error{Op: "registry.tar", Code: sallyport.CodeInternal, Err: err}
	}
	return content, nil
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// meteredReader counts unpacked bytes, padding and headers included, and stops a bomb while it unpacks.
type meteredReader struct {
	r      io.Reader
	packed *countingReader
	n      int64
	zeros  int64 // at the end of what was read
	ended  bool  // its end was seen
	limits TreeLimits
}

func (m *meteredReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	m.ended = m.ended || errors.Is(err, io.EOF)
	if rest := len(bytes.TrimRight(p[:n], "\x00")); rest > 0 {
		m.zeros = int64(n - rest)
	} else {
		m.zeros += int64(n)
	}
	if over := m.limits.bomb(m.n, m.packed.n); over != nil {
		return 0, over
	}
	return n, err
}

// cutShort reports whether the stream ended where another entry could have followed: between two, without the blocks of zeros that end a tar. One
// block of them is enough, as it is for other readers, and nothing at all is an archive of nothing.
func (m *meteredReader) cutShort() bool {
	const block = 512
	return m.ended && m.n > 0 && (m.zeros < block || m.n%block != 0)
}

func (t *TarTree) index(r io.Reader) error {
	packed := &countingReader{r: r}
	buffered := bufio.NewReader(packed)
	metered := &meteredReader{r: buffered, packed: packed, limits: t.limits}
	if magic, err := buffered.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return readFault(err)
		}
		metered.r = unpacked
	}
	archive := tar.NewReader(metered)
	var offset int64
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) && metered.cutShort() {
			return sallyport.Errorf("registry.tree", sallyport.CodeInvalidArgument,
				"the archive ends without its end mark, so files may be missing; send all of it, or make it again")
		}
		if errors.Is(err, io.EOF) {
			// To the end, so that the checksum of a gzip stream is looked at.
			if _, err := io.Copy(io.Discard, metered); err != nil {
				return readFault(err)
			}
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return readFault(err)
		}
		if err := t.limits.tooMany(len(t.entries) + 1); err != nil {
			return err
		}
		if offset, err = t.add(archive, header, offset); err != nil {
			return err
		}
	}
}

// readFault keeps an Error of ours or of the reader and calls everything else damage.
func readFault(err error) error {
	if _, ok := errors.AsType[*sallyport.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return damaged(err)
}

func (t *TarTree) add(archive *tar.Reader, header *tar.Header, offset int64) (int64, error) {
	if header.Typeflag == tar.TypeXGlobalHeader {
		if said := header.PAXRecords[commitRecord]; isCommit(said) {
			t.commit = said
		}
		return offset, nil
	}
	name := entryName(header.Name)
	if name == "." || name == "" {
		return offset, nil
	}
	shown, fault := checkEncoding(name)
	entry := TreeEntry{Path: shown, Type: EntryOther, Mode: uint32(fs.FileMode(header.Mode).Perm()), Fault: fault}
	if said := header.PAXRecords[faultRecord]; said != "" {
		entry.Fault = shortenTo(printable(said), maxFault)
	}
	if header.PAXRecords[submoduleRecord] != "" {
		entry.Type = EntrySubmodule
		t.entries = append(t.entries, entry)
		return offset, nil
	}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeRegA, tar.TypeGNUSparse: //nolint:staticcheck // old archives have the old flag
		entry.Type, entry.Size = EntryFile, header.Size
		if strings.HasSuffix(header.Name, "/") {
			entry.Type = EntryDir
			break
		}
		var err error
		if offset, err = t.store(archive, shown, header.Size, offset); err != nil {
			return offset, err
		}
	case tar.TypeDir:
		entry.Type = EntryDir
	case tar.TypeSymlink:
		entry.Type, entry.Target = EntrySymlink, header.Linkname
	case tar.TypeLink:
		// A hard link names an earlier entry of the same archive: the same bytes once more.
		target, found := t.spans[entryName(header.Linkname)]
		entry.Type, entry.Size = EntryFile, target.size
		if found {
			t.spans[shown] = target
		} else {
			entry.Fault = "the hard link names no earlier file of the archive"
		}
	}
	t.entries = append(t.entries, entry)
	return offset, nil
}

// store copies a file to the spool unless it is over the limit.
func (t *TarTree) store(archive *tar.Reader, name string, size, offset int64) (int64, error) {
	if size > t.limits.FileBytes {
		t.spans[name] = span{size: size, skipped: true}
		return offset, nil
	}
	if offset+size > t.limits.TotalBytes {
		return offset, t.limits.bomb(offset+size, offset+size)
	}
	written, err := io.Copy(io.NewOffsetWriter(t.spool, offset), archive)
	if err != nil {
		return offset, readFault(err)
	}
	t.spans[name] = span{offset: offset, size: written}
	return offset + written, nil
}

// entryName drops what archivers put into a name without meaning: ./ before it, /./ and // within it, slashes behind it. An absolute name stays
// absolute, and .. stays for those who refuse it.
func entryName(name string) string {
	if path.Clean(name) == "." {
		return "."
	}
	var kept []string
	for segment := range strings.SplitSeq(name, "/") {
		if segment != "" && segment != "." {
			kept = append(kept, segment)
		}
	}
	plain := strings.Join(kept, "/")
	if strings.HasPrefix(name, "/") {
		return "/" + plain
	}
	return plain
}
