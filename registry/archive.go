package registry

import (
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// ArchiveFormat is a kind of archive that [WriteArchive] writes.
type ArchiveFormat string

// The formats.
const (
	ArchiveTarGz ArchiveFormat = "tar.gz"
	ArchiveZip   ArchiveFormat = "zip"
)

// archiveTime is the time of every file in an archive: the earliest that both formats can say.
func archiveTime() time.Time { return time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC) }

// WriteArchive writes the files of a revision whose components carry Content, below one folder named top, or at the root of the
// archive when top is empty. Equal revisions give equal bytes, on every machine and with every release of Go: paths are sorted,
// times are fixed, modes are the recorded ones and nothing is compressed. Importing the archive gives the same digest. A
// component whose Content is not what its record says is INTERNAL, an unknown format INVALID_ARGUMENT; other errors are w's.
func WriteArchive(w io.Writer, revision sallyport.Revision, format ArchiveFormat, top string) error {
	if top != "" && (sallyport.CheckPath(top) != nil || strings.Contains(top, "/")) {
		return sallyport.Errorf("registry.archive", sallyport.CodeUnsafePath, "the folder of the archive is not a plain name")
	}
	components := slices.Clone(revision.Components)
	slices.SortFunc(components, func(a, b sallyport.Component) int { return strings.Compare(a.Path, b.Path) })
	for _, c := range components {
		if err := checkArchived(c); err != nil {
			return err
		}
	}
	switch format {
	case ArchiveTarGz:
		return writeTarGz(w, components, top)
	case ArchiveZip:
		return writeZip(w, components, top)
	default:
		return sallyport.Errorf("registry.archive", sallyport.CodeInvalidArgument, "the format is neither tar.gz nor zip")
	}
}

func checkArchived(c sallyport.Component) error {
	if err := sallyport.CheckPath(c.Path); err != nil {
		return err
	}
	if int64(len(c.Content)) != c.Size || sallyport.DigestOf(c.Content).Hex() != c.SHA256 {
		return &sallyport.Error{
			Op: "registry.archive", Code: sallyport.CodeInternal, Err: fmt.Errorf("the content of %q differs from its sha256", c.Path),
		}
	}
	return nil
}

func writeZip(w io.Writer, components []sallyport.Component, top string) error {
	archive := zip.NewWriter(w)
	for _, c := range components {
		header := &zip.FileHeader{Name: path.Join(top, c.Path), Method: zip.Store, Modified: archiveTime()}
		header.SetMode(archiveMode(c))
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(c.Content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeTarGz(w io.Writer, components []sallyport.Component, top string) error {
	packed, err := gzip.NewWriterLevel(w, gzip.NoCompression)
	if err != nil {
		return err
	}
	for _, c := range components {
		if err := writeTarFile(packed, path.Join(top, c.Path), int64(archiveMode(c)), c.Content); err != nil {
			return err
		}
	}
	// Two empty blocks end a tar.
	if _, err := packed.Write(make([]byte, 2*tarBlock)); err != nil {
		return err
	}
	return packed.Close()
}

// The sizes of the ustar format, in bytes.
const (
	tarBlock  = 512
	tarName   = 100
	tarPrefix = 155
)

// writeTarFile writes one file. The plain header holds the path as UTF-8 wherever it fits, for readers that know no extended
// header; a path that is long or not ASCII has an extended header too. Package archive/tar would leave the first out.
func writeTarFile(w io.Writer, name string, mode int64, content []byte) error {
	prefix, base, fits := splitTarPath(name)
	if !fits || strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		record := paxRecord("path", name)
		if err := writeTarBlock(w, 'x', "", "PaxHeader", defaultMode, []byte(record)); err != nil {
			return err
		}
	}
	return writeTarBlock(w, '0', prefix, base, mode, content)
}

func writeTarBlock(w io.Writer, typeFlag byte, prefix, name string, mode int64, content []byte) error {
	var header [tarBlock]byte
	copy(header[0:tarName], name)
	octal(header[100:108], mode)
	octal(header[108:116], 0)
	octal(header[116:124], 0)
	octal(header[124:136], int64(len(content)))
	octal(header[136:148], archiveTime().Unix())
	copy(header[148:156], "        ")
	header[156] = typeFlag
	copy(header[257:265], "ustar\x0000")
	octal(header[329:337], 0)
	octal(header[337:345], 0)
	copy(header[345:345+tarPrefix], prefix)
	sum := int64(0)
	for _, b := range header {
		sum += int64(b)
	}
	octal(header[148:155], sum)
	if _, err := w.Write(header[:]); err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	_, err := w.Write(make([]byte, (tarBlock-len(content)%tarBlock)%tarBlock))
	return err
}

// octal fills field with n in octal digits and a NUL.
func octal(field []byte, n int64) {
	digits := strconv.FormatInt(n, 8)
	copy(field, strings.Repeat("0", len(field)-1-len(digits))+digits+"\x00")
}

// FitsPlainTar reports whether every reader of tar finds the path whole, those included that know no extended header.
func FitsPlainTar(name string) bool {
	_, _, fits := splitTarPath(name)
	return fits
}

// splitTarPath splits a path for the two fields of a plain header; false when they cannot hold it, and then they hold its end.
func splitTarPath(name string) (prefix, base string, fits bool) {
	if len(name) <= tarName {
		return "", name, true
	}
	for i := min(len(name)-1, tarPrefix); i > 0; i-- {
		if name[i] == '/' && len(name)-i-1 <= tarName {
			return name[:i], name[i+1:], true
		}
	}
	return "", name[len(name)-tarName:], false
}

// paxRecord is one record of an extended header: its own length in decimal, a blank, key=value and a line end.
func paxRecord(key, value string) string {
	rest := len(key) + len(value) + len(" =\n")
	size := rest + len(strconv.Itoa(rest))
	if len(strconv.Itoa(size))+rest != size {
		size = rest + len(strconv.Itoa(size))
	}
	return strconv.Itoa(size) + " " + key + "=" + value + "\n"
}

// archiveMode is the recorded mode of a component; one that was never recorded is the usual one.
func archiveMode(c sallyport.Component) fs.FileMode {
	if c.Mode&0o777 == 0 {
		return defaultMode
	}
	return fs.FileMode(c.Mode & 0o777)
}
