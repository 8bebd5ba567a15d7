package gitread_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/gitread"
)

// The types of objects in a pack.
const (
	commitType = 1
	treeType   = 2
	blobType   = 3
	tagType    = 4
	ofsType    = 6
	refType    = 7
)

// packer writes packs by hand, the broken ones too.
type packer struct {
	body  bytes.Buffer
	count uint32
}

func deflated(content []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}

func (p *packer) at() int { return 12 + p.body.Len() }

// raw writes an object as it is said to be.
func (p *packer) raw(kind int, size uint64, base, packed []byte) int {
	at := p.at()
	first := byte(kind<<4) | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.body.WriteByte(first | 0x80)
		first = byte(size & 0x7f)
	}
	p.body.WriteByte(first)
	p.body.Write(base)
	p.body.Write(packed)
	p.count++
	return at
}

func hashOf(kind string, content []byte) [20]byte {
	return sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...))
}

func (p *packer) object(kind int, content []byte) [20]byte {
	p.raw(kind, uint64(len(content)), nil, deflated(content))
	return hashOf(map[int]string{commitType: "commit", treeType: "tree", blobType: "blob", tagType: "tag"}[kind], content)
}

// tree writes a tree of rows: mode, name and hash.
func (p *packer) tree(rows ...row) [20]byte {
	var content []byte
	for _, r := range rows {
		content = fmt.Appendf(content, "%s %s\x00%s", r.mode, r.name, r.hash[:])
	}
	return p.object(treeType, content)
}

type row struct {
	mode, name string
	hash       [20]byte
}

func (p *packer) commit(tree [20]byte) [20]byte {
	return p.object(commitType, fmt.Appendf(nil, "tree %x\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nm\n", tree))
}

// offset is how far back a base is.
func offset(back int) []byte {
	out := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		out = append([]byte{byte(back&0x7f) | 0x80}, out...)
	}
	return out
}

// copyDelta makes size bytes of a base by copying its beginning again and again.
func copyDelta(base, size uint64) []byte {
	out := binary.AppendUvarint(binary.AppendUvarint(nil, base), size)
	for size > 0 {
		n := min(size, base, 0xffff)
		out = append(out, 0x80|0x10|0x20, byte(n), byte(n>>8))
		size -= n
	}
	return out
}

func (p *packer) bytes() []byte {
	out := append([]byte("PACK"), 0, 0, 0, 2)
	out = binary.BigEndian.AppendUint32(out, p.count)
	out = append(out, p.body.Bytes()...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

func spool(tb testing.TB) *os.File {
	tb.Helper()
	file, err := os.CreateTemp(tb.TempDir(), "spool")
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// list reads a pack and lists what a hash names.
func list(tb testing.TB, content []byte, hash [20]byte, limits gitread.Limits) (gitread.Files, *gitread.Pack, error) {
	tb.Helper()
	pack, err := gitread.ReadPack(tb.Context(), bytes.NewReader(content), spool(tb), limits)
	if err != nil {
		return gitread.Files{}, nil, err
	}
	tb.Cleanup(func() { _ = pack.Close() })
	files, err := gitread.List(tb.Context(), pack, hash, gitread.ListOptions{Limits: limits})
	return files, pack, err
}

func wantCode(tb testing.TB, err error, code sallyport.Code) {
	tb.Helper()
	if got := sallyport.CodeOf(err); err == nil || got != code {
		tb.Errorf("error %v has the code %q, want %q", err, got, code)
	}
}

func TestReadPack(t *testing.T) {
	t.Parallel()
	var p packer
	base := []byte(strings.Repeat("a line\n", 100))
	blob := p.object(blobType, base)
	at := p.at()
	first := p.raw(blobType, uint64(len(base)), nil, deflated(base)) // the same once more, as the base of a delta
	if at != first {
		t.Fatal("the packer cannot count")
	}
	// A delta of a delta by place, and one by name whose base comes after it.
	grown := append(bytes.Clone(base), base[:7]...)
	change := copyDelta(uint64(len(base)), uint64(len(grown)))
	second := p.at()
	p.raw(ofsType, uint64(len(change)), offset(second-first), deflated(change))
	again := append(bytes.Clone(grown), grown[:7]...)
	change = copyDelta(uint64(len(grown)), uint64(len(again)))
	p.raw(ofsType, uint64(len(change)), offset(p.at()-second), deflated(change))
	late := []byte("late base, late base")
	lateHash := hashOf("blob", late)
	doubled := append(bytes.Clone(late), late...)
	change = copyDelta(uint64(len(late)), uint64(len(doubled)))
	p.raw(refType, uint64(len(change)), lateHash[:], deflated(change))
	p.object(blobType, late)
	link := p.object(blobType, []byte("a"))
	inner := p.tree(row{"100644", "c", hashOf("blob", again)}, row{"100644", "d", hashOf("blob", doubled)})
	root := p.tree(row{"100644", "a", blob}, row{"100755", "b", hashOf("blob", grown)}, row{"40000", "dir", inner}, row{"120000", "l", link}, row{"160000", "sub", blob},
		row{"100644", "lost", [20]byte{1}}, row{"010000", "pipe", blob})
	commit := p.commit(root)
	tag := p.object(tagType, fmt.Appendf(nil, "object %x\ntype commit\ntag v1\n", commit))
	tagged := p.object(tagType, fmt.Appendf(nil, "object %x\ntype tag\ntag v2\n", tag))
	for name, hash := range map[string][20]byte{"commit": commit, "tag": tag, "tag of a tag": tagged} {
		files, pack, err := list(t, p.bytes(), hash, gitread.Limits{})
		if err != nil || files.Commit != commit {
			t.Fatalf("%s: %v %v", name, files.Commit, err)
		}
		var got []string
		for _, e := range files.Entries {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %d %o %s %s", e.Type, e.Path, e.Size, e.Mode, e.Target, strings.ReplaceAll(e.Fault, " ", "_"))))
		}
		want := []string{
			"file a 700 644", "file b 707 755", "file dir/c 714 644", "file dir/d 40 644", "symlink l 0 644 a", "submodule sub 0 644",
			"file lost 0 644  the_object_010000000000_is_not_there,_or_is_too_large", "other pipe 0 644",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: entries (-want +got):\n%s", name, diff)
		}
		if _, content, err := pack.Read(t.Context(), hashOf("blob", again), 1<<20); err != nil || !bytes.Equal(content, again) {
			t.Errorf("a delta of a delta: %d bytes, %v", len(content), err)
		}
	}
}

// Every pack here is made to hurt. None does more than its bounds allow, and none is an import of something else.
func TestReadPackOfHostilePacks(t *testing.T) {
	t.Parallel()
	small := gitread.Limits{Objects: 50, TotalBytes: 1 << 20, ObjectBytes: 64 << 10, Entries: 500}
	base := bytes.Repeat([]byte("x"), 60_000)
	for name, test := range map[string]struct {
		content func(p *packer) []byte
		code    sallyport.Code
	}{
		"no pack":              {func(*packer) []byte { return []byte("ERR no such thing") }, sallyport.CodeInvalidArgument},
		"nothing":              {func(*packer) []byte { return nil }, sallyport.CodeInvalidArgument},
		"cut off":              {func(p *packer) []byte { p.object(blobType, base); return p.bytes()[:40] }, sallyport.CodeInvalidArgument},
		"wrong sum":            {func(p *packer) []byte { p.object(blobType, base); return append(p.bytes()[:len(p.bytes())-1], 0) }, sallyport.CodeInvalidArgument},
		"four billion objects": {func(p *packer) []byte { p.count = 1<<32 - 1; return p.bytes() }, sallyport.CodeRequestTooLarge},
		"more objects than said": {func(p *packer) []byte {
			p.object(blobType, base)
			p.object(blobType, []byte("y"))
			p.count = 1
			return p.bytes()
		}, sallyport.CodeInvalidArgument},
		"fewer objects than said": {func(p *packer) []byte { p.object(blobType, base); p.count = 3; return p.bytes() }, sallyport.CodeInvalidArgument},
		"a size of petabytes":     {func(p *packer) []byte { p.raw(blobType, 1<<50, nil, deflated(base)); return p.bytes() }, sallyport.CodeRequestTooLarge},
		"a size beyond numbers":   {func(p *packer) []byte { p.raw(blobType, 1<<63, nil, deflated(base)); return p.bytes() }, sallyport.CodeInvalidArgument},
		"inflates to more":        {func(p *packer) []byte { p.raw(blobType, 10, nil, deflated(base)); return p.bytes() }, sallyport.CodeInvalidArgument},
		"inflates to less":        {func(p *packer) []byte { p.raw(blobType, 61_000, nil, deflated(base)); return p.bytes() }, sallyport.CodeInvalidArgument},
		"an expansion bomb": {func(p *packer) []byte {
			for range 20 {
				p.object(blobType, bytes.Repeat([]byte("x"), 63<<10))
			}
			return p.bytes()
		}, sallyport.CodeRequestTooLarge},
		"a delta bomb": {func(p *packer) []byte {
			at := p.raw(blobType, uint64(len(base)), nil, deflated(base))
			change := copyDelta(uint64(len(base)), 64<<10)
			for range 40 {
				next := p.at()
				p.raw(ofsType, uint64(len(change)), offset(next-at), deflated(change))
			}
			return p.bytes()
		}, sallyport.CodeRequestTooLarge},
		"a chain of growing deltas": {func(p *packer) []byte {
			at, size := p.raw(blobType, 1000, nil, deflated(base[:1000])), uint64(1000)
			for range 40 {
				change := copyDelta(size, min(2*size, 64<<10))
				next := p.at()
				p.raw(ofsType, uint64(len(change)), offset(next-at), deflated(change))
				at, size = next, min(2*size, 64<<10)
			}
			return p.bytes()
		}, sallyport.CodeRequestTooLarge},
		"a delta of another base": {func(p *packer) []byte {
			at := p.raw(blobType, 10, nil, deflated(base[:10]))
			change := copyDelta(99, 5)
			p.raw(ofsType, uint64(len(change)), offset(p.at()-at), deflated(change))
			return p.bytes()
		}, sallyport.CodeInvalidArgument},
		"a delta that reads beyond": {func(p *packer) []byte {
			at := p.raw(blobType, 10, nil, deflated(base[:10]))
			change := []byte{10, 100, 0x80 | 0x01 | 0x10, 200, 100}
			p.raw(ofsType, uint64(len(change)), offset(p.at()-at), deflated(change))
			return p.bytes()
		}, sallyport.CodeInvalidArgument},
		"a delta without an end": {func(p *packer) []byte {
			at := p.raw(blobType, 10, nil, deflated(base[:10]))
			change := bytes.Repeat([]byte{0xff}, 30)
			p.raw(ofsType, uint64(len(change)), offset(p.at()-at), deflated(change))
			return p.bytes()
		}, sallyport.CodeInvalidArgument},
		"a delta before the pack": {func(p *packer) []byte {
			p.raw(ofsType, 3, offset(4000), deflated([]byte{1, 1, 1}))
			return p.bytes()
		}, sallyport.CodeInvalidArgument},
		"an object of no type": {func(p *packer) []byte { p.raw(5, 1, nil, deflated([]byte("x"))); return p.bytes() }, sallyport.CodeInvalidArgument},
		"no zlib":              {func(p *packer) []byte { p.raw(blobType, 4, nil, []byte("junk")); return p.bytes() }, sallyport.CodeInvalidArgument},
		"a huge tree":          {func(p *packer) []byte { p.raw(treeType, 9<<20, nil, nil); return p.bytes() }, sallyport.CodeRequestTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := gitread.ReadPack(t.Context(), bytes.NewReader(test.content(&packer{})), spool(t), small)
			wantCode(t, err, test.code)
		})
	}
}

// Deltas that build on each other in a circle make nothing; a blob over the limit is known by its size, and nobody reads it.
func TestReadPackLeavesOut(t *testing.T) {
	t.Parallel()
	var p packer
	large := bytes.Repeat([]byte("x"), 10_000)
	blob := p.object(blobType, large)
	one, two := [20]byte{1}, [20]byte{2}
	change := copyDelta(5, 5)
	p.raw(refType, uint64(len(change)), one[:], deflated(change))
	p.raw(refType, uint64(len(change)), two[:], deflated(change))
	commit := p.commit(p.tree(row{"100644", "large", blob}, row{"100644", "lost", one}))
	files, pack, err := list(t, p.bytes(), commit, gitread.Limits{ObjectBytes: 5000})
	if err != nil || len(files.Entries) != 2 || files.Entries[0].Size != 10_000 || files.Entries[0].Fault != "" || files.Entries[1].Fault == "" {
		t.Fatalf("%+v %v", files, err)
	}
	_, _, err = pack.Read(t.Context(), blob, 1<<20)
	wantCode(t, err, sallyport.CodeInvalidArgument)
}

// A tree that calls another tree a file does not make one of it.
func TestReadFileOfAnotherKind(t *testing.T) {
	t.Parallel()
	var p packer
	blob := p.object(blobType, []byte("x"))
	folder := p.tree(row{"100644", "x", blob})
	commit := p.commit(p.tree(row{"100644", "file", blob}, row{"100644", "folder", folder}))
	_, pack, err := list(t, p.bytes(), commit, gitread.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if content, err := gitread.ReadFile(t.Context(), pack, blob, 10); err != nil || string(content) != "x" {
		t.Errorf("a file: %q, %v", content, err)
	}
	_, err = gitread.ReadFile(t.Context(), pack, folder, 10)
	wantCode(t, err, sallyport.CodeInvalidArgument)
}

func TestListRefusesHostileTrees(t *testing.T) {
	t.Parallel()
	limits := gitread.Limits{Entries: 1000, TotalBytes: 1 << 20}
	plain := func(name string) func(p *packer) [20]byte {
		return func(p *packer) [20]byte {
			return p.commit(p.tree(row{"100644", name, p.object(blobType, []byte("x"))}))
		}
	}
	for name, test := range map[string]struct {
		build func(p *packer) [20]byte
		code  sallyport.Code
	}{
		"dot dot":             {plain(".."), sallyport.CodeUnsafePath},
		"dot":                 {plain("."), sallyport.CodeUnsafePath},
		"no name":             {plain(""), sallyport.CodeUnsafePath},
		"absolute":            {plain("/etc/passwd"), sallyport.CodeUnsafePath},
		"a path":              {plain("a/../../b"), sallyport.CodeUnsafePath},
		"dot git":             {plain(".git"), sallyport.CodeUnsafePath},
		"dot git, upper case": {plain(".GIT"), sallyport.CodeUnsafePath},
		"dot git, HFS":        {plain(".g\u200cit"), sallyport.CodeUnsafePath},
		"dot git, NTFS":       {plain(".git . "), sallyport.CodeUnsafePath},
		"dot git, a stream":   {plain(".git::$INDEX_ALLOCATION"), sallyport.CodeUnsafePath},
		"dot git, short":      {plain("GIT~1"), sallyport.CodeUnsafePath},
		"dot git below": {func(p *packer) [20]byte {
			inner := p.tree(row{"100644", "config", p.object(blobType, []byte("x"))})
			return p.commit(p.tree(row{"40000", "a", p.tree(row{"40000", ".git", inner})}))
		}, sallyport.CodeUnsafePath},
		"NUL": {func(p *packer) [20]byte { // what follows the NUL is read as a hash, and what is left is no row
			return p.commit(p.object(treeType, append([]byte("100644 a\x00.sh\x00"), make([]byte, 20)...)))
		}, sallyport.CodeInvalidArgument},
		"cut row": {func(p *packer) [20]byte { return p.commit(p.object(treeType, []byte("100644 a\x00short"))) }, sallyport.CodeInvalidArgument},
		"odd mode": {func(p *packer) [20]byte {
			return p.commit(p.object(treeType, append([]byte("1006x4 a\x00"), make([]byte, 20)...)))
		}, sallyport.CodeInvalidArgument},
		"long mode": {func(p *packer) [20]byte {
			return p.commit(p.object(treeType, append([]byte("0000100644 a\x00"), make([]byte, 20)...)))
		}, sallyport.CodeInvalidArgument},
		"no tree":     {func(p *packer) [20]byte { return p.commit([20]byte{9}) }, sallyport.CodeInvalidArgument},
		"blob, tree":  {func(p *packer) [20]byte { return p.commit(p.object(blobType, []byte("x"))) }, sallyport.CodeInvalidArgument},
		"no commit":   {func(p *packer) [20]byte { return p.object(blobType, []byte("x")) }, sallyport.CodeInvalidArgument},
		"odd commit":  {func(p *packer) [20]byte { return p.object(commitType, []byte("parent x\n")) }, sallyport.CodeInvalidArgument},
		"endless tag": {endlessTag, sallyport.CodeInvalidArgument},
		"a tree bomb": {func(p *packer) [20]byte {
			next := p.tree(row{"100644", "x", p.object(blobType, []byte("x"))})
			for range 12 { // ten to the twelfth files
				var rows []row
				for i := range 10 {
					rows = append(rows, row{"40000", fmt.Sprint(i), next})
				}
				next = p.tree(rows...)
			}
			return p.commit(next)
		}, sallyport.CodeRequestTooLarge},
		"one blob a thousand times": {func(p *packer) [20]byte {
			blob := p.object(blobType, make([]byte, 100_000))
			var rows []row
			for i := range 900 {
				rows = append(rows, row{"100644", fmt.Sprintf("%03d", i), blob})
			}
			return p.commit(p.tree(rows...))
		}, sallyport.CodeRequestTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p packer
			hash := test.build(&p)
			_, _, err := list(t, p.bytes(), hash, limits)
			wantCode(t, err, test.code)
		})
	}
}

func endlessTag(p *packer) [20]byte {
	hash := p.commit(p.tree())
	for range 20 {
		hash = p.object(tagType, fmt.Appendf(nil, "object %x\ntype tag\n", hash))
	}
	return hash
}

// A tree that is deep is listed down to where it is not searched, and says so.
func TestListStopsAtADepth(t *testing.T) {
	t.Parallel()
	var p packer
	next := p.tree(row{"100644", "x", p.object(blobType, []byte("x"))})
	for range 60 {
		next = p.tree(row{"40000", "d", next})
	}
	commit := p.commit(next)
	files, _, err := list(t, p.bytes(), commit, gitread.Limits{})
	if err != nil || len(files.Entries) != 1 || files.Entries[0].Type != gitread.EntryDir || files.Entries[0].Fault == "" {
		t.Errorf("%+v %v", files.Entries, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gitread.ReadPack(ctx, bytes.NewReader(p.bytes()), spool(t), gitread.Limits{}); err == nil {
		t.Error("a caller who went away got a pack")
	}
}

func FuzzReadPack(f *testing.F) {
	var p packer
	at := p.raw(blobType, 10, nil, deflated([]byte("0123456789")))
	change := copyDelta(10, 15)
	p.raw(ofsType, uint64(len(change)), offset(p.at()-at), deflated(change))
	p.commit(p.tree(row{"100644", "a", hashOf("blob", []byte("0123456789"))}))
	f.Add(p.bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		limits := gitread.Limits{Objects: 100, TotalBytes: 1 << 20, ObjectBytes: 1 << 16, Entries: 100}
		pack, err := gitread.ReadPack(t.Context(), bytes.NewReader(content), spool(t), limits)
		if err == nil {
			_ = pack.Close()
		}
	})
}
