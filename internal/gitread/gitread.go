// Package gitread reads the files of one commit of a git repository: from a server that speaks smart HTTP, or from a repository on
// this host.
//
// It owns the names of refs, the messages of the protocol, packs, and trees. It leaves connections and their guard to its caller, and
// every rule about skills. Its one invariant: whatever a server or a repository holds, reading it is bounded, runs nothing, writes
// nothing but the spool it was given, and yields no path that leaves the repository.
package gitread

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/sallyport-dev/sallyport"
)

const op = "git"

// Limits bound what is read of one repository. Zero fields mean the defaults.
type Limits struct {
	Objects     int   // of a pack: 200,000
	TotalBytes  int64 // of all objects of a pack, unpacked, and of all files of a commit: 1 GiB
	ObjectBytes int64 // of one object that is kept; a larger file is listed with its size: 64 MiB
	Entries     int   // files and directories of a commit: 100,000
}

const (
	defaultObjects     = 200_000
	defaultTotalBytes  = 1 << 30
	defaultObjectBytes = 64 << 20
	defaultEntries     = 100_000
	// maxTreeBytes bounds a tree, a commit and a tag.
	maxTreeBytes = 8 << 20
	maxDepth     = 32
	maxPath      = sallyport.PathMaxLength
	maxLink      = 4096
	// maxTags bounds tags of tags.
	maxTags = 8
)

func (l Limits) withDefaults() Limits {
	if l.Objects <= 0 {
		l.Objects = defaultObjects
	}
	if l.TotalBytes <= 0 {
		l.TotalBytes = defaultTotalBytes
	}
	if l.ObjectBytes <= 0 {
		l.ObjectBytes = defaultObjectBytes
	}
	if l.Entries <= 0 {
		l.Entries = defaultEntries
	}
	return l
}

// Hash names an object.
type Hash = plumbing.Hash

// Objects holds the objects of a repository. Missing objects and those over the limit are errors of [Objects.Size] and
// [Objects.Read], which concern that object alone.
type Objects interface {
	// Size of an object, without reading it.
	Size(hash Hash) (int64, error)
	// Read returns an object's kind and at most limit bytes plus one of it.
	Read(ctx context.Context, hash Hash, limit int64) (plumbing.ObjectType, []byte, error)
	Close() error
}

func invalid(format string, args ...any) error {
	return sallyport.Errorf(op, sallyport.CodeInvalidArgument, format, args...)
}

func tooLarge(format string, args ...any) error {
	return sallyport.Errorf(op, sallyport.CodeRequestTooLarge, format, args...)
}

func damaged(err error) error {
	return &sallyport.Error{
		Op: op, Code: sallyport.CodeInvalidArgument, Message: "the git repository is damaged, or its server does not speak git as this program does", Err: err,
	}
}

func broken(err error) error {
	return &sallyport.Error{Op: op, Code: sallyport.CodeInternal, Err: err}
}

func missing(hash Hash) error {
	return invalid("the object %s is not there, or is too large", hash.String()[:12])
}

var errShort = errors.New("an object ends too early, or is none")

// ReadFile reads what an entry of a tree calls a file, at most limit bytes plus one. An object of another kind is no file.
func ReadFile(ctx context.Context, objects Objects, hash Hash, limit int64) ([]byte, error) {
	kind, content, err := objects.Read(ctx, hash, limit)
	if err == nil && kind != plumbing.BlobObject {
		return nil, invalid("the object %s is no file", hash.String()[:12])
	}
	return content, err
}
