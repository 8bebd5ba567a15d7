package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/server"
)

const (
	socketName = server.SocketFile
	// drainName is what the socket is called while its owner serves the last callers.
	drainName = "sallyport.sock.closing"
	// socketPathMax is below what every system allows for the path of a socket.
	socketPathMax = 100
)

// withSocketPath calls use with a path that reaches name inside dir and fits a socket address, however deep dir lies.
func withSocketPath(dir, name string, use func(path string) error) error {
	path := filepath.Join(dir, name)
	if len(path) <= socketPathMax {
		return use(path)
	}
	if runtime.GOOS != "linux" {
		return invalid("the data folder's path is too long for a socket: use one under %d bytes", socketPathMax-len(socketName))
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name))
}

// dialSocket connects to the process that owns dir. errNoOwner means that nobody answers there.
func dialSocket(ctx context.Context, dir, name string) (net.Conn, error) {
	var conn net.Conn
	err := withSocketPath(dir, name, func(path string) error {
		var dialer net.Dialer
		var err error
		conn, err = dialer.DialContext(ctx, "unix", path)
		return err
	})
	return conn, err
}

// A socket serves the owner's handler at the data folder's socket.
type socket struct {
	dir      string
	listener *net.UnixListener
	server   *http.Server
	busy     *busy
	done     chan struct{}
}

// openSocket puts the socket of the folder's owner in place, over what an earlier owner may have left. Only the
// owner may call it. The socket is 0600 from the moment it can be seen.
func openSocket(ctx context.Context, dir string, handler http.Handler) (*socket, error) {
	private, err := os.MkdirTemp(dir, ".socket-")
	if err != nil {
		return nil, socketFault(err)
	}
	defer func() { _ = os.RemoveAll(private) }()
	var listener *net.UnixListener
	err = withSocketPath(private, socketName, func(path string) error {
		var config net.ListenConfig
		general, err := config.Listen(ctx, "unix", path)
		if err != nil {
			return err
		}
		unix, ok := general.(*net.UnixListener)
		if !ok {
			return errors.Join(errors.New("not a unix listener"), general.Close())
		}
		unix.SetUnlinkOnClose(false)
		listener = unix
		return nil
	})
	if err != nil {
		return nil, socketFault(err)
	}
	made := filepath.Join(private, socketName)
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, filepath.Join(dir, socketName))); err != nil {
		return nil, errors.Join(socketFault(err), listener.Close())
	}
	s := &socket{dir: dir, listener: listener, busy: newBusy(), done: make(chan struct{})}
	s.server = httpServer(ctx, handler, sallyport.MaxTimeout)
	s.server.ConnState = s.busy.conn
	go func() {
		defer close(s.done)
		// Serve returns when close is called; a listener that breaks before leaves the owner without a socket, and other
		// processes then wait for the folder.
		_ = s.server.Serve(listener)
	}()
	return s, nil
}

func socketFault(err error) error {
	return &sallyport.Error{
		Op: "cli.socket", Code: sallyport.CodeStoreUnavailable, Err: err,
		Message: "the socket in the data folder cannot be made",
	}
}

// close takes the socket away and serves everybody who had reached it before, for at most patience. Callers that come
// later find no socket and wait for the folder itself, so none of them is cut off half-way.
func (s *socket) close(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := os.Rename(filepath.Join(s.dir, socketName), filepath.Join(s.dir, drainName)); err == nil {
		s.drainBacklog(ctx)
	}
	s.busy.wait(ctx)
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close()
	}
	<-s.done
	for _, name := range []string{drainName, socketName} {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // the next owner replaces it
		}
	}
}

// drainBacklog returns when every connection made before is accepted: they are accepted in order, and this one is the
// last.
func (s *socket) drainBacklog(ctx context.Context) {
	conn, err := dialSocket(ctx, s.dir, drainName)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")); err != nil {
		return
	}
	_, _ = conn.Read(make([]byte, 1))
}
