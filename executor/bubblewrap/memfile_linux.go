//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/seccomp"
)

// memoryFile returns a file in memory that holds data, sealed against every change and read from its start. It is how
// bubblewrap is given content: nothing of a run is written to the host's disk.
func memoryFile(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("sallyport", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "memory")
	if _, err := f.Write(data); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(0, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sharedFile is a memory file that many runs read at the same time.
type sharedFile struct{ file *os.File }

// reopen returns a descriptor with a position of its own.
func (s sharedFile) reopen() (*os.File, error) {
	return os.Open("/proc/self/fd/" + strconv.Itoa(int(s.file.Fd())))
}

// static is what every run is given.
type static struct {
	helper sharedFile
	etc    []staticFile
	filter []byte
}

type staticFile struct {
	path    string
	content sharedFile
}

func newStatic(helper []byte, goarch, profile string) (*static, error) {
	filter, err := seccomp.Filter(goarch, profile)
	if err != nil {
		return nil, err
	}
	s := &static{filter: filter}
	program, err := memoryFile(helper)
	if err != nil {
		return nil, err
	}
	s.helper = sharedFile{program}
	for path, text := range etcFiles(insideUID) {
		content, err := memoryFile([]byte(text))
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.etc = append(s.etc, staticFile{path, sharedFile{content}})
	}
	slices.SortFunc(s.etc, func(a, b staticFile) int { return strings.Compare(a.path, b.path) })
	return s, nil
}

func (s *static) close() error {
	err := s.helper.file.Close()
	for _, f := range s.etc {
		err = errors.Join(err, f.content.file.Close())
	}
	return err
}
