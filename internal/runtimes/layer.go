package runtimes

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// layer is one layer of an image.
type layer struct {
	// digest is that of the bytes that open returns; empty where only diffID is known.
	digest string
	// diffID is the digest of the unpacked archive, as the configuration names it.
	diffID string
	open   func() (io.ReadCloser, error)
}

// zstdWindow bounds the memory that a layer can ask for.
const zstdWindow = 128 << 20

// apply reads the layer into the tree and holds both digests against what was read. Nothing of it counts before that.
func (l layer) apply(ctx context.Context, t *tree) (err error) {
	stored, err := l.open()
	if err != nil {
		return fmt.Errorf("open the layer: %w", err)
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	outer := &hashed{from: stored, sum: sha256.New(), ctx: ctx}
	plain, err := decompress(outer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	inner := &hashed{from: plain, sum: sha256.New(), ctx: ctx, left: &t.left}

	t.touched = map[string]bool{}
	archive := tar.NewReader(inner)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = t.add(header, archive)
		}
		if err != nil {
			return faultOf(err)
		}
	}
	// What follows the archive is part of both digests.
	if _, err := io.Copy(io.Discard, inner); err != nil {
		return faultOf(err)
	}
	if _, err := io.Copy(io.Discard, outer); err != nil {
		return faultOf(err)
	}
	if got := outer.digest(); l.digest != "" && got != l.digest {
		return refused("a layer has the digest %s and should have %s", got, l.digest)
	}
	if got := inner.digest(); got != l.diffID {
		return refused("a layer unpacks to the digest %s and should to %s", got, l.diffID)
	}
	return nil
}

// archiveOverhead is what headers and padding of the allowed entries take at most in an ordinary archive.
func archiveOverhead(l Limits) int64 { return int64(l.Entries) * 2048 }

var errArchiveTooLarge = errors.New("the archive is too large")

// faultOf tells an archive that cannot be read from a machine that cannot write.
func faultOf(err error) error {
	switch {
	case errors.Is(err, errArchiveTooLarge):
		return refused("a layer unpacks to more than the limit; --max-bytes allows more")
	case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrInsecurePath), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum),
		errors.Is(err, gzip.ErrHeader), errors.Is(err, errDecompress):
		return refused("a layer cannot be read: %v", err)
	}
	return err
}

// hashed counts and hashes what is read through it.
type hashed struct {
	from io.Reader
	sum  hash.Hash
	ctx  context.Context //nolint:containedctx // a reader has no other way to end
	left *int64
}

func (h *hashed) Read(p []byte) (int, error) {
	if err := h.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := h.from.Read(p)
	if h.left != nil {
		if *h.left -= int64(n); *h.left < 0 {
			return 0, errArchiveTooLarge
		}
	}
	_, _ = h.sum.Write(p[:n])
	return n, err
}

func (h *hashed) digest() string { return "sha256:" + hex.EncodeToString(h.sum.Sum(nil)) }

var errDecompress = errors.New("it is not compressed as it says")

// decompress looks at the first bytes: what a layer says about itself is not needed.
func decompress(from io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(from, 1<<16)
	start, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		plain, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, refused("a layer cannot be read: %v", err)
		}
		return plain, nil
	case bytes.Equal(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		plain, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, refused("a layer cannot be read: %v", err)
		}
		return zstdReader{plain}, nil
	default:
		return io.NopCloser(buffered), nil
	}
}

type zstdReader struct{ *zstd.Decoder }

func (z zstdReader) Read(p []byte) (int, error) {
	n, err := z.Decoder.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", errDecompress, err)
	}
	return n, err
}

func (z zstdReader) Close() error { z.Decoder.Close(); return nil }
