// Package runtimes keeps the unpacked images that scripts run in, and looks into any root folder for what it holds.
//
// It owns the folder of unpacked images: how an image is read (source.go), how its layers become a tree (unpack.go, tree.go), and how the
// tree is held against what was written (files.go). It leaves naming runtimes to the settings, choosing one to the interpreter gate and
// starting anything to executors. Its one invariant: a folder has the name of a digest only when every byte below it came out of layers
// whose digests lead to that digest, and nothing in an image decides what is written outside of that folder.
package runtimes

import (
	"github.com/sallyport-dev/sallyport"
)

// Limits bound what one image may unpack to. The zero value is no limit to anything, so Open fills it.
type Limits struct {
	// Bytes of all files, and of all layers as they are unpacked.
	Bytes int64
	// Entries of all layers, and files and folders that are made.
	Entries int
	// Layers of an image.
	Layers int
}

// The default limits: more than any image of an interpreter and its packages, less than what fills a machine.
const (
	DefaultBytes   = 16 << 30
	DefaultEntries = 1_000_000
	DefaultLayers  = 256
)

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}
	if l.Entries == 0 {
		l.Entries = DefaultEntries
	}
	if l.Layers == 0 {
		l.Layers = DefaultLayers
	}
	return l
}

// Report counts what an image brought that the tree does not have.
type Report struct {
	// Devices, pipes and sockets are left out.
	Devices int `json:"devices"`
	// Privileges are setuid and setgid bits and file capabilities, which are dropped.
	Privileges int `json:"privileges"`
	// Examples are the paths of the first of both.
	Examples []string `json:"examples,omitempty"`
}

const maxExamples = 10

func (r *Report) note(count *int, path string) {
	*count++
	if len(r.Examples) < maxExamples {
		r.Examples = append(r.Examples, path)
	}
}

// Unpacked describes one unpacked image.
type Unpacked struct {
	// Digest is what the settings name: of the image's manifest or index, or, for a tarball, of its configuration.
	Digest string `json:"digest"`
	// Source is where it came from, as it was given.
	Source string `json:"source"`
	// Config is the digest of the image's configuration, which names the DiffIDs: the digests of the unpacked layers.
	Config  string   `json:"config"`
	DiffIDs []string `json:"diff_ids"`
	Bytes   int64    `json:"bytes"`
	Files   int      `json:"files"`
	// FilesDigest is that of the list of files.
	FilesDigest string `json:"files_digest"`
	LeftOut     Report `json:"left_out"`
}

// refused is the image's fault: it is told as it is, and nothing of the image stays.
func refused(format string, args ...any) error {
	return sallyport.Errorf("runtimes.unpack", sallyport.CodeInvalidArgument, "the image is refused: "+format, args...)
}
