package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

const (
	// folderPatience is how long a command waits for a folder whose owner has no socket: one that starts, or one that
	// serves its last callers.
	folderPatience = 90 * time.Second
	folderPoll     = 25 * time.Millisecond
	noticeAfter    = 2 * time.Second
)

// A folder carries requests to a data folder: through the socket of the process that owns it, else by owning it. When the
// owner goes away, the next request finds the next one, or becomes it. It is safe for concurrent use.
type folder struct {
	dir string
	// open takes the folder; errOwned means that another process has it.
	open func(ctx context.Context) (*owner, error)
	// waiting is told once when a request has to wait.
	waiting func()

	mu    sync.Mutex
	owner *owner
}

// errOwned means that another process owns the data folder.
var errOwned = errors.New("another process owns the data folder")

// RoundTrip carries one request. A request is sent once: what is tried again is finding somebody to send it to.
func (f *folder) RoundTrip(req *http.Request) (*http.Response, error) {
	transport, err := f.route(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return transport.RoundTrip(req)
}

// route finds who answers for the folder now.
func (f *folder) route(ctx context.Context) (http.RoundTripper, error) {
	begin, noticed := time.Now(), false
	for {
		if o := f.owned(); o != nil {
			return client.InProcess(o.local), nil
		}
		if conn, err := dialSocket(ctx, f.dir, socketName); err == nil {
			return overConn(conn), nil
		}
		err := f.take(ctx)
		switch {
		case err == nil:
			continue
		case !errors.Is(err, errOwned):
			return nil, err
		case time.Since(begin) > folderPatience:
			return nil, sallyport.Errorf("cli.folder", sallyport.CodeStoreUnavailable,
				"another process owns the data folder and does not answer; end it, or name another folder with --data")
		case time.Since(begin) > noticeAfter && !noticed && f.waiting != nil:
			noticed = true
			f.waiting()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(folderPoll):
		}
	}
}

func (f *folder) owned() *owner {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owner
}

// take makes this process the owner.
func (f *folder) take(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owner != nil {
		return nil
	}
	o, err := f.open(ctx)
	if err != nil {
		return err
	}
	f.owner = o
	return nil
}

// close lets go of the folder if this process owns it.
func (f *folder) close(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owner == nil {
		return nil
	}
	o := f.owner
	f.owner = nil
	return o.close(ctx)
}

// overConn is a transport for one request over a connection that exists already.
func overConn(conn net.Conn) http.RoundTripper {
	return &http.Transport{
		DisableKeepAlives: true,
		// Said at once by the socket's server, which is on this machine.
		ExpectContinueTimeout: time.Second,
		DialContext:           func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}
}
