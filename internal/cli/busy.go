package cli

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// busy is a set of things under way that somebody may wait for. It is safe for concurrent use; one may wait.
type busy struct {
	changed chan struct{} // holds one signal

	mu  sync.Mutex
	set map[any]struct{}
}

func newBusy() *busy { return &busy{changed: make(chan struct{}, 1), set: map[any]struct{}{}} }

func (b *busy) add(thing any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set[thing] = struct{}{}
}

func (b *busy) remove(thing any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.set, thing)
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// wait returns when nothing is under way, or ctx ends.
func (b *busy) wait(ctx context.Context) {
	for {
		b.mu.Lock()
		n := len(b.set)
		b.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return
		}
	}
}

// conn is the ConnState of a server: a connection is busy while it carries a call or is about to. [http.Server.Shutdown]
// drops a call that arrived but was not read yet, so it is no way to wait for those.
func (b *busy) conn(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew, http.StateActive:
		b.add(conn)
	case http.StateIdle, http.StateClosed, http.StateHijacked:
		b.remove(conn)
	}
}

// handler counts the calls of next.
func (b *busy) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.add(r)
		defer b.remove(r)
		next.ServeHTTP(w, r)
	})
}

// httpServer bounds what a slow or silent peer can hold. A call may take as long as the longest run.
func httpServer(ctx context.Context, handler http.Handler, longest time.Duration) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Minute, // an import may be large and its line slow
		WriteTimeout:      15*time.Minute + longest,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// Shutdown ends calls by itself; a signal must not cut them.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
}
