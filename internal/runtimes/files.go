package runtimes

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

func sortStrings(s []string) { slices.Sort(s) }

// A list of files says of every file, folder and link below a root what it is, one a line, sorted by folder:
//
//	d "usr/bin"
//	l "bin" "usr/bin"
//	f 0555 35064 1700000000 SHA256 "usr/bin/true"
//
// Modes are normal and owners are left out: the first are set by us, and the second mean nothing inside.

// walk calls visit for everything below root, each folder before what is in it, in a fixed order.
func walk(ctx context.Context, root *os.Root, visit func(name string, info fs.FileInfo) error) error {
	var below func(dir string, depth int) error
	below = func(dir string, depth int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if depth > maxDepth+1 {
			return errors.New("the folder is too deep")
		}
		names, err := readNames(root, dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			at := path.Join(dir, name)
			info, err := root.Lstat(at)
			if err == nil {
				err = visit(at, info)
			}
			if err == nil && info.IsDir() {
				err = below(at, depth+1)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return below(".", 0)
}

// line says what is at name; content hashes it too.
func line(root *os.Root, name string, info fs.FileInfo, content bool) (string, error) {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return fmt.Sprintf("d %04o %q", mode.Perm(), name), nil
	case mode&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		return fmt.Sprintf("l %q %q", name, target), err
	case mode.IsRegular():
		sum := ""
		if content {
			var err error
			if sum, err = hashFile(root, name); err != nil {
				return "", err
			}
		}
		special := mode & (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
		return fmt.Sprintf("f %04o%s %d %d %s %q", mode.Perm(), plus(special != 0), info.Size(), info.ModTime().Unix(), sum, name), nil
	default:
		return fmt.Sprintf("? %s %q", mode.Type(), name), nil
	}
}

func plus(yes bool) string {
	if yes {
		return "+"
	}
	return ""
}

func hashFile(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}

// seal takes every right to write away and lists the tree into out. It returns the list's digest and counts.
func seal(ctx context.Context, root *os.Root, out io.Writer) (digest string, files int, bytes int64, err error) {
	sum := sha256.New()
	to := bufio.NewWriter(io.MultiWriter(out, sum))
	err = walk(ctx, root, func(name string, info fs.FileInfo) error {
		if info.IsDir() {
			if err := root.Chmod(name, 0o555); err != nil {
				return err
			}
			if info, err = root.Lstat(name); err != nil {
				return err
			}
		}
		text, err := line(root, name, info, true)
		if err != nil {
			return err
		}
		files++
		if info.Mode().IsRegular() {
			bytes += info.Size()
		}
		_, err = to.WriteString(text + "\n")
		return err
	})
	if err == nil {
		err = root.Chmod(".", 0o555)
	}
	err = errors.Join(err, to.Flush())
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), files, bytes, err
}

// errChanged is a tree that is not what was unpacked.
var errChanged = errors.New("it is not what was unpacked")

// compare holds the tree against its list. Without content it looks at names, kinds, modes, sizes and times only, which takes milliseconds
// and finds what an accident does; with content it reads every byte.
func compare(ctx context.Context, root *os.Root, list io.Reader, content bool) error {
	lines := bufio.NewScanner(list)
	lines.Buffer(make([]byte, 1<<16), 8*maxPath+1024)
	err := walk(ctx, root, func(name string, info fs.FileInfo) error {
		got, err := line(root, name, info, content)
		if err != nil {
			return err
		}
		if !lines.Scan() {
			return fmt.Errorf("%w: %q was added", errChanged, shorten(name))
		}
		want := lines.Text()
		if !content {
			want = withoutSum(want)
		}
		if got != want {
			return fmt.Errorf("%w: at %q", errChanged, shorten(name))
		}
		return nil
	})
	if err == nil && lines.Scan() {
		_, rest, _ := strings.Cut(lines.Text(), `"`)
		err = fmt.Errorf("%w: %s is missing", errChanged, strconv.Quote(shorten(strings.TrimSuffix(rest, `"`))))
	}
	return errors.Join(err, lines.Err())
}

// withoutSum drops the digest of a line for a file, so that it reads as one that was made without.
func withoutSum(text string) string {
	if !strings.HasPrefix(text, "f ") {
		return text
	}
	fields := strings.SplitN(text, " ", 6)
	if len(fields) != 6 {
		return text
	}
	fields[4] = ""
	return strings.Join(fields, " ")
}
