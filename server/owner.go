package server

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/sallyport-dev/sallyport"
)

// LockFile, SocketFile and DatabaseFile are the names inside a data folder that others may rely on.
const (
	LockFile     = "lock"
	SocketFile   = "sallyport.sock"
	DatabaseFile = "sallyport.db"
	keyFile      = "audit.key"
	secretsFile  = "secrets.key"
	checkpoints  = "checkpoints.jsonl"
	spoolFolder  = "spool"
)

// owner holds a data folder: no second process may open it. The kernel releases the lock when the process ends, however
// it ends, so a lock that can be taken proves that the last owner is gone.
type owner struct {
	root *os.Root
	lock *os.File
}

// own makes the folder when it is absent and takes its lock. STORE_UNAVAILABLE when another process owns it or it
// cannot be written.
func own(dir string) (*owner, error) {
	const op = "server.own"
	if dir == "" {
		return nil, sallyport.Errorf(op, sallyport.CodeInvalidArgument, "a data folder is required")
	}
	fail := func(err error, message string) error {
		return &sallyport.Error{Op: op, Code: sallyport.CodeStoreUnavailable, Message: message, Err: err}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:forbidigo // the operator's own path, and the root is opened below it
		return nil, fail(err, "the data folder cannot be made; choose another with --data")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fail(err, "the data folder cannot be opened; check its owner and mode")
	}
	if err := private(root); err != nil {
		return nil, errors.Join(fail(err, "other users may write to the data folder, and could put their own database or socket in it;"+
			" take that from them with chmod go-w, or choose another folder"), root.Close())
	}
	lock, err := root.OpenFile(LockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errors.Join(fail(err, "the data folder cannot be written; check its owner, mode and mount"), root.Close())
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		message := "the data folder cannot be locked"
		if errors.Is(err, syscall.EWOULDBLOCK) {
			message = "another process owns the data folder; talk to it, or stop it first"
		}
		return nil, errors.Join(fail(err, message), lock.Close(), root.Close())
	}
	if err := root.MkdirAll(spoolFolder, 0o700); err != nil {
		return nil, errors.Join(fail(err, "the data folder cannot be written; check its owner, mode and mount"), lock.Close(), root.Close())
	}
	return &owner{root, lock}, nil
}

// private returns an error when users other than the owner may write to the folder. An empty one was made for us a moment ago,
// so its mode is mended; that of a folder with anything in it is for the operator to change.
func private(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Stat()
	if err != nil || info.Mode().Perm()&0o022 == 0 {
		return err
	}
	if _, err := dir.Readdirnames(1); errors.Is(err, io.EOF) {
		return dir.Chmod(0o700)
	}
	return errShared
}

var errShared = errors.New("the data folder is writable by others")

func (o *owner) close() error { return errors.Join(o.lock.Close(), o.root.Close()) }
