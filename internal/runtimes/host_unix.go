//go:build unix

package runtimes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFile waits until this process alone has the lock.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// trusted reports a folder that somebody else may change: it must be this user's or root's, and no others' to write.
func trusted(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a folder that only this user can write to", dir)
	}
	return nil
}

// reachable reports a folder above dir that the uid of a run cannot pass. An ordinary user's runs have the user's own uid.
func reachable(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if os.Geteuid() == 0 && info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%s is closed to the users that scripts run as", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
