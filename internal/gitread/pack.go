package gitread

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/sallyport-dev/sallyport"
)

func hashOf(text string) Hash { return plumbing.NewHash(text) }

// Pack is the objects of one pack, unpacked into a file.
type Pack struct {
	spool   *os.File
	end     int64
	limits  Limits
	objects map[Hash]stored
	total   int64
	// waiting are the deltas whose base was not met yet, by its place in the pack or by its name.
	atOffset map[int64][]delta
	atHash   map[Hash][]delta
	ready    []placed
}

// stored is an object in the spool. A large one is known by its size only.
type stored struct {
	kind         plumbing.ObjectType
	offset, size int64
	large        bool
}

// placed is an object that deltas may build on.
type placed struct {
	at   int64 // in the pack
	hash Hash
}

// delta is a delta in the spool.
type delta struct{ at, offset, size int64 }

// ReadPack reads a pack to its end and unpacks it into spool, which it owns from then on. Objects over the limit are left out; a pack over
// the others is REQUEST_TOO_LARGE, a damaged one INVALID_ARGUMENT.
func ReadPack(ctx context.Context, r io.Reader, spool *os.File, limits Limits) (*Pack, error) {
	p := &Pack{
		spool: spool, limits: limits.withDefaults(), objects: map[Hash]stored{}, atOffset: map[int64][]delta{}, atHash: map[Hash][]delta{},
	}
	err := p.scan(ctx, r)
	if err == nil {
		err = p.resolve(ctx)
	}
	if err != nil {
		return nil, errors.Join(readFault(err), spool.Close())
	}
	p.atOffset, p.atHash, p.ready = nil, nil, nil
	return p, nil
}

// readFault keeps errors of ours, of the reader's bound and of the context; everything else is damage.
func readFault(err error) error {
	if _, own := errors.AsType[*sallyport.Error](err); own || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		return err
	}
	if _, disk := errors.AsType[*os.PathError](err); disk {
		return broken(err)
	}
	return damaged(err)
}

// Close releases the file.
func (p *Pack) Close() error { return p.spool.Close() }

func (p *Pack) scan(ctx context.Context, r io.Reader) error {
	scanner := packfile.NewScanner(onlyReader{r})
	_, count, err := scanner.Header()
	if err != nil {
		return err
	}
	if int64(count) > int64(p.limits.Objects) {
		return tooLarge("the git repository has more than %d objects at that commit; name a smaller one", p.limits.Objects)
	}
	for range count {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		if err := p.object(scanner, header); err != nil {
			return err
		}
	}
	_, err = scanner.Checksum()
	return err
}

// onlyReader hides a Seek, which the scanner would use to look ahead.
type onlyReader struct{ io.Reader }

// grow counts unpacked bytes before they are unpacked.
func (p *Pack) grow(size int64) error {
	if size < 0 || p.total+size > p.limits.TotalBytes {
		return tooLarge("the git repository unpacks to more than %d bytes at that commit; name a smaller one", p.limits.TotalBytes)
	}
	p.total += size
	return nil
}

// object takes the next object of a pack.
func (p *Pack) object(scanner *packfile.Scanner, header *packfile.ObjectHeader) error {
	if err := p.grow(header.Length); err != nil {
		return err
	}
	switch header.Type {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.TagObject:
		if header.Length > maxTreeBytes {
			return tooLarge("a directory or a commit of the git repository has more than %d bytes", maxTreeBytes)
		}
	case plumbing.BlobObject, plumbing.OFSDeltaObject, plumbing.REFDeltaObject:
	case plumbing.InvalidObject, plumbing.AnyObject:
		return fmt.Errorf("an object of type %d", header.Type)
	default:
		return fmt.Errorf("an object of type %d", header.Type)
	}
	sum := plumbing.NewHasher(header.Type, header.Length)
	large := header.Length > p.limits.ObjectBytes
	to := io.Discard
	if !large {
		to = io.NewOffsetWriter(p.spool, p.end)
	}
	n, _, err := scanner.NextObject(io.MultiWriter(to, sum))
	if err != nil {
		return err
	}
	if n != header.Length {
		return errShort
	}
	item := delta{at: header.Offset, offset: p.end, size: n}
	if !large {
		p.end += n
	}
	switch {
	case header.Type == plumbing.OFSDeltaObject && !large:
		p.atOffset[header.OffsetReference] = append(p.atOffset[header.OffsetReference], item)
	case header.Type == plumbing.REFDeltaObject && !large:
		p.atHash[header.Reference] = append(p.atHash[header.Reference], item)
	case header.Type.IsDelta():
		// What it makes is over the limit as well, or nearly so.
	default:
		p.keep(header.Offset, sum.Sum(), stored{header.Type, item.offset, n, large})
	}
	return nil
}

func (p *Pack) keep(at int64, hash Hash, object stored) {
	p.objects[hash] = object
	if !object.large {
		p.ready = append(p.ready, placed{at, hash})
	}
}

// resolve applies every delta once, after its base. Deltas that build on each other in a circle, or on what is not there, stay unresolved:
// what they would have made is missing when a tree names it.
func (p *Pack) resolve(ctx context.Context) error {
	for len(p.ready) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := p.ready[len(p.ready)-1]
		p.ready = p.ready[:len(p.ready)-1]
		deltas := append(p.atOffset[next.at], p.atHash[next.hash]...)
		delete(p.atOffset, next.at)
		delete(p.atHash, next.hash)
		if len(deltas) == 0 {
			continue
		}
		object := p.objects[next.hash]
		base, err := p.bytes(object.offset, object.size)
		if err != nil {
			return err
		}
		for _, d := range deltas {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := p.apply(base, object.kind, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply makes one object of a base and a delta.
func (p *Pack) apply(base []byte, kind plumbing.ObjectType, d delta) error {
	change, err := p.bytes(d.offset, d.size)
	if err != nil {
		return err
	}
	// The size that it will have is known before a byte of it is made.
	_, n := binary.Uvarint(change)
	if n <= 0 {
		return packfile.ErrInvalidDelta
	}
	size, m := binary.Uvarint(change[n:])
	if m <= 0 {
		return packfile.ErrInvalidDelta
	}
	if size > uint64(p.limits.ObjectBytes) || kind != plumbing.BlobObject && size > maxTreeBytes {
		return nil // missing, should a tree name it
	}
	if err := p.grow(int64(size)); err != nil {
		return err
	}
	content, err := packfile.PatchDelta(base, change)
	if err != nil {
		return err
	}
	if uint64(len(content)) != size {
		return packfile.ErrInvalidDelta
	}
	if _, err := p.spool.WriteAt(content, p.end); err != nil {
		return err
	}
	p.keep(d.at, plumbing.ComputeHash(kind, content), stored{kind, p.end, int64(size), false})
	p.end += int64(size)
	return nil
}

func (p *Pack) bytes(offset, size int64) ([]byte, error) {
	content := make([]byte, size)
	if _, err := p.spool.ReadAt(content, offset); err != nil && (size > 0 || !errors.Is(err, io.EOF)) {
		return nil, err
	}
	return content, nil
}

// Size of an object.
func (p *Pack) Size(hash Hash) (int64, error) {
	object, found := p.objects[hash]
	if !found {
		return 0, missing(hash)
	}
	return object.size, nil
}

// Read returns an object.
func (p *Pack) Read(ctx context.Context, hash Hash, limit int64) (plumbing.ObjectType, []byte, error) {
	object, found := p.objects[hash]
	if !found || object.large {
		return 0, nil, missing(hash)
	}
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	content, err := p.bytes(object.offset, min(object.size, limit+1))
	if err != nil {
		return 0, nil, broken(err)
	}
	return object.kind, content, nil
}

func parseHash(text []byte) (Hash, bool) {
	var hash Hash
	if len(text) != 2*len(hash) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], text)
	return hash, err == nil
}
