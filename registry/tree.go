package registry

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// Tree is a source of files for Import: a folder, a tar, a zip.
type Tree interface {
	// Entries lists every entry below the root, in path order. Directories may be absent.
	Entries(ctx context.Context) ([]TreeEntry, error)
	// ReadFile reads a regular file that Entries listed, at most limit bytes plus one.
	ReadFile(ctx context.Context, name string, limit int64) ([]byte, error)
	Close() error
}

// EntryType is the type of a TreeEntry.
type EntryType string

// The entry types.
const (
	EntryFile    EntryType = "file"
	EntryDir     EntryType = "dir"
	EntrySymlink EntryType = "symlink"
	EntryOther   EntryType = "other" // device, FIFO, socket
	// EntrySubmodule is another git repository inside of one. It is never followed.
	EntrySubmodule EntryType = "submodule"
)

// TreeEntry is one entry of a Tree.
type TreeEntry struct {
	Path string // slash-separated; raw as the source had it, checked by Import
	Type EntryType
	Size int64
	Mode uint32
	// Target of a symlink, raw.
	Target string
	// Fault is set when the source could not read the entry: a sentence for the report.
	Fault string
}

// TreeLimits bound what an archive may unpack to. Zero fields mean the defaults.
type TreeLimits struct {
	Entries    int   // 200,000
	TotalBytes int64 // of all files together: 1 GiB
	FileBytes  int64 // of one file that is read; a larger one is listed with its size: 64 MiB
	Ratio      int64 // unpacked bytes for each packed one, above 32 MiB: 200
}

const (
	defaultTreeEntries    = 200_000
	defaultFolderEntries  = 100_000
	defaultTreeTotalBytes = 1 << 30
	defaultTreeFileBytes  = 64 << 20
	defaultTreeRatio      = 200
	ratioFreeBytes        = 32 << 20
	// maxTreeDepth bounds the directories that a folder is walked down.
	maxTreeDepth = 32
	// maxLinkTarget bounds the target of a symbolic link.
	maxLinkTarget = 4096
)

func (l TreeLimits) withDefaults() TreeLimits {
	if l.Entries <= 0 {
		l.Entries = defaultTreeEntries
	}
	if l.TotalBytes <= 0 {
		l.TotalBytes = defaultTreeTotalBytes
	}
	if l.FileBytes <= 0 {
		l.FileBytes = defaultTreeFileBytes
	}
	if l.Ratio <= 0 {
		l.Ratio = defaultTreeRatio
	}
	return l
}

// bomb returns an error when unpacked bytes are out of proportion to packed ones.
func (l TreeLimits) bomb(unpacked, packed int64) error {
	switch {
	case unpacked > l.TotalBytes:
		return sallyport.Errorf("registry.tree", sallyport.CodeRequestTooLarge, "the archive unpacks to more than %d bytes; split it", l.TotalBytes)
	case unpacked > ratioFreeBytes && unpacked/max(packed, 1) > l.Ratio:
		return sallyport.Errorf("registry.tree", sallyport.CodeRequestTooLarge,
			"the archive unpacks to more than %d times its size; it looks like an expansion bomb", l.Ratio)
	}
	return nil
}

func (l TreeLimits) tooMany(entries int) error {
	if entries <= l.Entries {
		return nil
	}
	return sallyport.Errorf("registry.tree", sallyport.CodeRequestTooLarge, "the archive has more than %d entries; split it", l.Entries)
}

func damaged(err error) error {
	return &sallyport.Error{
		Op: "registry.tree", Code: sallyport.CodeInvalidArgument,
		Message: "the archive is damaged or of another kind; send a tar, a tar.gz or a zip", Err: err,
	}
}

// sortEntries puts entries in path order.
func sortEntries(entries []TreeEntry) {
	slices.SortStableFunc(entries, func(a, b TreeEntry) int { return strings.Compare(a.Path, b.Path) })
}

// The names that Import leaves out, and that are never part of a skill.
var (
	ignoredDirectories = []string{".git", "__MACOSX", "__pycache__", "node_modules"}
	ignoredFiles       = []string{".DS_Store", "._*", "*.pyc"}
)

// IgnoredNames lists the names that Import leaves out and reports: directories, then patterns of files.
func IgnoredNames() []string { return slices.Concat(ignoredDirectories, ignoredFiles) }

// ignoredAt returns the part of name that makes Import leave it out, with a slash when it is a directory; else false.
func ignoredAt(name string, isDirectory bool) (string, bool) {
	segments := strings.Split(name, "/")
	for i, segment := range segments {
		if slices.Contains(ignoredDirectories, segment) {
			whole := strings.Join(segments[:i+1], "/")
			if i < len(segments)-1 || isDirectory {
				whole += "/"
			}
			return whole, true
		}
	}
	if isDirectory {
		return "", false
	}
	for _, pattern := range ignoredFiles {
		if fits, err := path.Match(pattern, segments[len(segments)-1]); err == nil && fits {
			return name, true
		}
	}
	return "", false
}

// printable returns name with what is not plain text escaped, for a report.
func printable(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, unprintable) {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(name[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, name[i])
		case unprintable(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029
}

// checkEncoding is the fault of a name that is not UTF-8; the path it is reported under is escaped.
func checkEncoding(name string) (shown, fault string) {
	if utf8.ValidString(name) {
		return name, ""
	}
	return printable(name), "the name is not UTF-8 (GBK or another old encoding?); make the archive again with UTF-8 names"
}
