package registry

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// ZipTree is a zip archive as a Tree.
type ZipTree struct {
	entries []TreeEntry
	files   map[string]*zip.File
	limits  TreeLimits
}

// OpenZip reads the directory of a zip. A damaged one is INVALID_ARGUMENT, one over the limits REQUEST_TOO_LARGE. Close does not
// close r.
func OpenZip(r io.ReaderAt, size int64, limits TreeLimits) (*ZipTree, error) {
	t := &ZipTree{files: map[string]*zip.File{}, limits: limits.withDefaults()}
	archive, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, readFault(err)
	}
	if err := t.limits.tooMany(len(archive.File)); err != nil {
		return nil, err
	}
	var total int64
	for _, file := range archive.File {
		declared := int64(min(file.UncompressedSize64, 1<<40))
		// A file over the limit is never unpacked, so its size is its own affair.
		if declared <= t.limits.FileBytes {
			total += declared
		}
		if err := t.limits.bomb(total, size); err != nil {
			return nil, err
		}
		t.add(file)
	}
	sortEntries(t.entries)
	return t, nil
}

// Close releases nothing: the reader is the caller's.
func (*ZipTree) Close() error { return nil }

// Entries lists the archive.
func (t *ZipTree) Entries(ctx context.Context) ([]TreeEntry, error) { return t.entries, ctx.Err() }

// zipEncrypted is the flag bit of an encrypted member.
const zipEncrypted = 0x1

func (t *ZipTree) add(file *zip.File) {
	name := forwardSlashes(zipName(file))
	isDirectory := strings.HasSuffix(name, "/")
	if name = entryName(name); name == "." || name == "" {
		return
	}
	shown, fault := checkEncoding(name)
	mode := file.Mode()
	entry := TreeEntry{
		Path: shown, Type: EntryOther, Fault: fault, Mode: uint32(mode.Perm()),
		Size: int64(min(file.UncompressedSize64, 1<<40)),
	}
	switch {
	case isDirectory || mode.IsDir():
		entry.Type, entry.Size = EntryDir, 0
	case file.Flags&zipEncrypted != 0:
		entry.Type, entry.Fault = EntryFile, "the file is encrypted; make the archive again without a password"
	case mode&fs.ModeSymlink != 0:
		entry.Type = EntrySymlink
		target, err := readZip(file, maxLinkTarget)
		if err != nil || len(target) > maxLinkTarget {
			entry.Fault = "the symbolic link cannot be read"
		}
		entry.Target, entry.Size = string(target), 0
	case mode.IsRegular():
		entry.Type = EntryFile
	}
	if entry.Type == EntryFile {
		t.files[shown] = file
	}
	t.entries = append(t.entries, entry)
}

// ReadFile unpacks one file. A size or checksum that does not match the directory of the archive is an error.
func (t *ZipTree) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, found := t.files[name]
	if !found {
		return nil, sallyport.Errorf("registry.zip", sallyport.CodeInvalidArgument, "the file cannot be read: it is not in the archive")
	}
	content, err := readZip(file, min(limit, t.limits.FileBytes))
	if err != nil {
		return nil, &sallyport.Error{
			Op: "registry.zip", Code: sallyport.CodeInvalidArgument,
			Message: "the file cannot be read: the archive is damaged or packed in a way that is not supported", Err: err,
		}
	}
	return content, nil
}

func readZip(file *zip.File, limit int64) ([]byte, error) {
	reader, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer reader.Close() //nolint:errcheck // read only
	return io.ReadAll(io.LimitReader(reader, limit+1))
}

// zipName returns the name of a member: the one in its Unicode extra field when that belongs to the name in the directory, else
// the name as it stands. Nothing guesses an encoding.
func zipName(file *zip.File) string {
	const unicodePath, head = 0x7075, 5
	for extra := file.Extra; len(extra) >= 4; {
		id, size := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if size > len(extra)-4 {
			break
		}
		field := extra[4 : 4+size]
		extra = extra[4+size:]
		if id != unicodePath || len(field) <= head || field[0] != 1 {
			continue
		}
		if name := string(field[head:]); binary.LittleEndian.Uint32(field[1:]) == crc32.ChecksumIEEE([]byte(file.Name)) && utf8.ValidString(name) {
			return name
		}
	}
	return file.Name
}

// forwardSlashes turns the backslashes that Windows tools write into slashes. In a name that is not UTF-8 a backslash may be
// half of a character; there it counts only behind an ASCII byte.
func forwardSlashes(name string) string {
	if utf8.ValidString(name) {
		return strings.ReplaceAll(name, `\`, "/")
	}
	out := []byte(name)
	for i, c := range out {
		if c == '\\' && (i == 0 || out[i-1] < utf8.RuneSelf) {
			out[i] = '/'
		}
	}
	return string(out)
}
