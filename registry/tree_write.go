package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// maxUploadFileBytes bounds one file that WriteTar sends.
const maxUploadFileBytes = defaultTreeFileBytes

// WriteTar writes folders and files of this host as one tar stream that [OpenTar] reads. Every path becomes a folder of its own
// at the top, named after its last element; where two are equal the later ones go into folders 2, 3 and so on. A path may be a folder, a SKILL.md, which stands
// for the folder that holds it, or a tar, tar.gz or zip, which is unpacked. Symbolic links stay links, those into their
// own folder made relative, so that whoever reads the stream decides. What cannot be read is an entry that says why.
// Nothing is written before every path was looked at; a bad path is INVALID_ARGUMENT, an archive with a path that
// leaves it UNSAFE_PATH.
func WriteTar(ctx context.Context, w io.Writer, paths []string) error {
	var sources []source
	defer func() {
		for _, s := range sources {
			_ = s.tree.Close()
		}
	}()
	if len(paths) == 0 {
		return sallyport.Errorf("registry.upload", sallyport.CodeInvalidArgument, "no path was given; name a folder, a SKILL.md or an archive")
	}
	for _, name := range paths {
		s, err := openSource(name)
		if err != nil {
			return err
		}
		sources = append(sources, s)
		s.entries, err = s.tree.Entries(ctx)
		if err != nil {
			return err
		}
		for _, entry := range s.entries {
			if escapes(entry) {
				return unsafeEntry("registry.upload", entry.Path)
			}
		}
		sources[len(sources)-1] = s
	}
	separate(sources)
	archive := tar.NewWriter(w)
	for _, s := range sources {
		for _, entry := range s.entries {
			if err := writeEntry(ctx, archive, s, entry); err != nil {
				return err
			}
		}
	}
	return archive.Close()
}

// separate gives every source a place of its own. The last element of it stays, as the name of a skill should equal it.
func separate(sources []source) {
	taken := map[string]bool{}
	for _, s := range sources {
		taken[foldPath(s.base)] = true
	}
	seen := map[string]bool{}
	n := 1
	for i, s := range sources {
		if seen[foldPath(s.base)] {
			for n++; taken[strconv.Itoa(n)]; n++ {
			}
			sources[i].base = strconv.Itoa(n) + "/" + s.base
		}
		seen[foldPath(s.base)] = true
	}
}

// source is one path of an upload. file is held open for a zip.
type source struct {
	base    string
	tree    Tree
	entries []TreeEntry
}

// openSource finds out what a path is.
func openSource(name string) (source, error) {
	refuse := func(why string, err error) error {
		return &sallyport.Error{
			Op: "registry.upload", Code: sallyport.CodeInvalidArgument,
			Message: strconv.Quote(shorten(name)) + ": " + why, Err: err,
		}
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		return source{}, refuse("the path cannot be resolved", err)
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return source{}, refuse(reason(err), err)
	}
	if info.Mode().IsRegular() && strings.EqualFold(filepath.Base(absolute), SkillFile) {
		absolute = filepath.Dir(absolute)
		if info, err = os.Stat(absolute); err != nil {
			return source{}, refuse(reason(err), err)
		}
	}
	s := source{base: plainBase(filepath.Base(absolute))}
	switch {
	case info.IsDir():
		s.tree, err = openAs(OpenFolder(absolute))
	case info.Mode().IsRegular():
		s.base = plainBase(archiveBase(filepath.Base(absolute)))
		s.tree, err = openArchive(absolute, info.Size())
	default:
		err = errNoSource
	}
	if err != nil {
		if errors.Is(err, errNoSource) {
			return source{}, refuse(errNoSource.Error(), nil)
		}
		return source{}, refuse(sallyport.Public(err).Message, err)
	}
	return s, nil
}

// openAs keeps a nil tree from hiding in an interface.
func openAs[T Tree](tree T, err error) (Tree, error) {
	if err != nil {
		return nil, err
	}
	return tree, nil
}

var errNoSource = errors.New("it is neither a folder nor a SKILL.md nor a tar, tar.gz or zip")

// openArchive opens an archive of this host, told by its first bytes.
func openArchive(name string, size int64) (Tree, error) {
	file, err := os.Open(name) // the operator named this path
	if err != nil {
		return nil, &sallyport.Error{Op: "registry.upload", Code: sallyport.CodeInvalidArgument, Message: "the file cannot be opened: " + reason(err), Err: err}
	}
	const ustarAt = 257
	head := make([]byte, ustarAt+5)
	n, _ := io.ReadFull(file, head)
	head = head[:n]
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		tree, err := openAs(OpenZip(file, size, TreeLimits{}))
		if err != nil {
			_ = file.Close()
			return nil, err
		}
		return closingTree{tree, file}, nil
	}
	defer file.Close() //nolint:errcheck // read only
	if !bytes.HasPrefix(head, []byte{0x1f, 0x8b}) && !bytes.HasSuffix(head, []byte("ustar")) {
		return nil, errNoSource
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, &sallyport.Error{Op: "registry.upload", Code: sallyport.CodeInternal, Err: err}
	}
	return openAs(OpenTar(file, TreeLimits{}, ""))
}

// closingTree closes the file below a tree with it.
type closingTree struct {
	Tree
	file io.Closer
}

func (t closingTree) Close() error { return errors.Join(t.Tree.Close(), t.file.Close()) }

// archiveBase drops the extension of an archive.
func archiveBase(name string) string {
	for _, extension := range []string{".tar.gz", ".tgz", ".tar", ".zip", ".skill"} {
		if len(name) > len(extension) && strings.EqualFold(name[len(name)-len(extension):], extension) {
			return name[:len(name)-len(extension)]
		}
	}
	return name
}

func plainBase(name string) string {
	if strings.Contains(name, "/") || sallyport.CheckPath(name) != nil {
		return "import"
	}
	return name
}

func writeEntry(ctx context.Context, archive *tar.Writer, s source, entry TreeEntry) error {
	name, fault := entry.Path, entry.Fault
	if strings.Contains(name, "\x00") {
		name, fault = printable(name), "the name has a NUL character"
	}
	header := &tar.Header{
		Name: s.base, Typeflag: tar.TypeReg, Mode: int64(entry.Mode), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	}
	if name != "." {
		header.Name += "/" + name
	}
	_, ignored := ignoredAt(entry.Path, entry.Type == EntryDir)
	var content []byte
	switch entry.Type {
	case EntryDir:
		if fault == "" && !ignored {
			return nil // a directory changes nothing
		}
		header.Typeflag = tar.TypeDir
		header.Name += "/"
	case EntrySymlink:
		header.Typeflag, header.Linkname = tar.TypeSymlink, strings.ReplaceAll(entry.Target, "\x00", "")
	case EntryOther:
		header.Typeflag = tar.TypeFifo
	case EntryFile:
		if fault == "" && !ignored {
			var err error
			if content, fault, err = readForUpload(ctx, s.tree, entry); err != nil {
				return err
			}
		}
	}
	if fault != "" {
		header.PAXRecords = map[string]string{faultRecord: fault}
	}
	header.Size = int64(len(content))
	if err := archive.WriteHeader(header); err != nil {
		return &sallyport.Error{
			Op: "registry.upload", Code: sallyport.CodeInvalidArgument,
			Message: "the entry " + strconv.Quote(shorten(path.Base(name))) + " cannot be sent", Err: err,
		}
	}
	_, err := archive.Write(content)
	return err
}

// readForUpload returns a file's content, or the fault to send in its place. Its error is the context's only.
func readForUpload(ctx context.Context, tree Tree, entry TreeEntry) (content []byte, fault string, err error) {
	const tooLarge = "the file is larger than 64 MiB and was not sent"
	if entry.Size > maxUploadFileBytes {
		return nil, tooLarge, nil
	}
	content, err = tree.ReadFile(ctx, entry.Path, maxUploadFileBytes)
	switch {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case err != nil:
		return nil, sallyport.Public(err).Message, nil
	case len(content) > maxUploadFileBytes:
		return nil, tooLarge, nil
	}
	return content, "", nil
}

// escapes reports whether an entry would leave the folder it is unpacked into.
func escapes(entry TreeEntry) bool {
	if entry.Fault != "" {
		return false // never unpacked, and its path may be escaped for the report
	}
	name := strings.ReplaceAll(entry.Path, `\`, "/")
	if strings.HasPrefix(name, "/") || len(name) >= 2 && name[1] == ':' && isLetter(name[0]) {
		return true
	}
	clean := path.Clean(name)
	return clean == ".." || strings.HasPrefix(clean, "../")
}

func unsafeEntry(op, name string) error {
	return &sallyport.Error{
		Op: op, Code: sallyport.CodeUnsafePath,
		Message: "the entry " + strconv.Quote(shorten(printable(name))) + " would leave the folder it is unpacked into; nothing was read; make the archive again with relative paths",
		Details: map[string]any{"path": printable(name)},
	}
}
