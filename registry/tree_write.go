package registry

import (
	"archive/tar"
	"context"
	"io"
	"path"
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
	t, err := OpenPaths(ctx, paths)
	if err != nil {
		return err
	}
	defer t.Close() //nolint:errcheck // read only
	return t.WriteTar(ctx, w)
}

// WriteTar writes what was opened, as [WriteTar] does.
func (t *PathsTree) WriteTar(ctx context.Context, w io.Writer) error {
	archive := tar.NewWriter(w)
	if commit := t.Commit(); commit != "" {
		header := &tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{commitRecord: commit}, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return &sallyport.Error{Op: "registry.upload", Code: sallyport.CodeInternal, Err: err}
		}
	}
	wanted := t.inSkills()
	for _, s := range t.sources {
		for _, entry := range s.entries {
			if err := writeEntry(ctx, archive, s, entry, wanted); err != nil {
				return err
			}
		}
	}
	return archive.Close()
}

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

// inSkills reports which paths lie in a skill. The others are sent without their content: the report names them, and nobody reads them.
func (t *PathsTree) inSkills() func(name string) bool {
	skills, err := discover(t.entries, &ImportReport{}, nil)
	if err != nil {
		return func(string) bool { return true } // whoever reads the stream refuses it
	}
	inside := map[string]bool{}
	for _, skill := range skills {
		for _, entry := range skill.entries {
			inside[entry.Path] = true
		}
	}
	return func(name string) bool { return inside[entryName(name)] }
}

func writeEntry(ctx context.Context, archive *tar.Writer, s source, entry TreeEntry, wanted func(name string) bool) error {
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
	case EntrySubmodule:
		header.Typeflag, header.PAXRecords = tar.TypeFifo, map[string]string{submoduleRecord: "1"}
	case EntryFile:
		if fault == "" && !ignored && wanted(header.Name) {
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
