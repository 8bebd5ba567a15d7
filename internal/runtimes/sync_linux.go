package runtimes

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll waits until everything below dir is on the disk: a folder with the name of a digest must be whole after a power cut.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
