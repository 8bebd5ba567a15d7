package mcpapi

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
)

// Sessions are for clients of revision 2025-11-25, which asks for one in initialize: only within a session can the server ask its client
// anything. Whoever sends no session id is served without, as are all clients of later revisions.
const (
	// sessionIdle is how long a session lives without a request.
	sessionIdle = 30 * time.Minute
	// sessionsMost and sessionsEach bound the sessions of one handler, and of one principal in it.
	sessionsMost, sessionsEach = 1000, 50
)

const (
	sessionHeader = "Mcp-Session-Id"
	// callHeader names one request to the handler behind the SDK, which runs a session's calls on the context of its first. It is never
	// taken from a client.
	callHeader = "Sallyport-Call"
)

// owner is whom a session belongs to.
type owner struct {
	tenant    sallyport.TenantID
	principal sallyport.PrincipalID
}

func ownerOf(p sallyport.Principal) owner { return owner{p.TenantID, p.ID} }

// sessions knows whose each session is. It is safe for concurrent use.
type sessions struct {
	protocol http.Handler // the SDK's

	mu   sync.Mutex
	byID map[string]*session
}

type session struct {
	owner owner
	used  time.Time
	busy  int // requests under way
}

// admit makes room for one more session of who: it ends what is idle for too long, and the one of who that was used least lately when
// who has as many as one may. RATE_LIMITED when there is no room.
func (s *sessions) admit(ctx context.Context, who owner) error {
	var end []string
	s.mu.Lock()
	mine, oldest := 0, ""
	for id, each := range s.byID {
		switch {
		case each.busy == 0 && time.Since(each.used) > sessionIdle:
			end = append(end, id)
		case each.owner == who:
			mine++
			if each.busy == 0 && (oldest == "" || each.used.Before(s.byID[oldest].used)) {
				oldest = id
			}
		}
	}
	if mine >= sessionsEach && oldest != "" {
		end = append(end, oldest)
		mine--
	}
	for _, id := range end {
		delete(s.byID, id)
	}
	full := mine >= sessionsEach || len(s.byID) >= sessionsMost
	s.mu.Unlock()
	for _, id := range end {
		s.end(ctx, id)
	}
	if full {
		return sallyport.RateLimited("mcp.session", "too many MCP sessions are open; end one with DELETE, or send no session id", time.Minute, nil)
	}
	return nil
}

// end tells the SDK that a session is over.
func (s *sessions) end(ctx context.Context, id string) {
	r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodDelete, "http://localhost/mcp", http.NoBody)
	if err != nil {
		return
	}
	r.Header.Set(sessionHeader, id)
	s.protocol.ServeHTTP(nowhere{http.Header{}}, r)
}

// nowhere is an answer that nobody reads.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header          { return n.header }
func (nowhere) Write(data []byte) (int, error) { return len(data), nil }
func (nowhere) WriteHeader(int)                {}

// enter marks the session as in use when it is who's; done must then be called.
func (s *sessions) enter(id string, who owner) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.byID[id]
	if own == nil || own.owner != who {
		return nil, false
	}
	own.busy++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		own.busy--
		own.used = time.Now()
	}, true
}

func (s *sessions) add(id string, who owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[id] = &session{owner: who, used: time.Now()}
}

func (s *sessions) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// sessionWriter looks at the status and the session id of an answer.
type sessionWriter struct {
	http.ResponseWriter

	seen func(status int, id string)
	once sync.Once
}

func (w *sessionWriter) WriteHeader(status int) {
	w.once.Do(func() { w.seen(status, w.Header().Get(sessionHeader)) })
	w.ResponseWriter.WriteHeader(status)
}

func (w *sessionWriter) Write(data []byte) (int, error) {
	w.once.Do(func() { w.seen(http.StatusOK, w.Header().Get(sessionHeader)) })
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach the writer below.
func (w *sessionWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what was written: the SDK's streams ask for it.
func (w *sessionWriter) Flush() {
	w.once.Do(func() { w.seen(http.StatusOK, w.Header().Get(sessionHeader)) })
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// inSession reports whether the message belongs to a session, or begins one.
func inSession(r *http.Request, message mcpwire.Message) bool {
	const firstWithout = "2026-07-28"
	if message.ProtocolVersion != "" || r.Header.Get("Mcp-Protocol-Version") >= firstWithout {
		return false
	}
	return message.Method == "initialize" || r.Header.Get(sessionHeader) != ""
}

// serveSession hands a request of a session to the SDK. The session of another is as absent.
func (a *API) serveSession(w http.ResponseWriter, r *http.Request, from caller, s *sessions) {
	who := ownerOf(from.principal)
	id := r.Header.Get(sessionHeader)
	if id == "" {
		if err := s.admit(r.Context(), who); err != nil {
			a.deny(w, nil, err)
			return
		}
	} else {
		done, ok := s.enter(id, who)
		if !ok {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		defer done()
	}
	w = &sessionWriter{ResponseWriter: w, seen: func(status int, named string) {
		switch {
		case id == "" && status < http.StatusBadRequest && named != "":
			s.add(named, who)
		case id != "" && (status == http.StatusNotFound || r.Method == http.MethodDelete && status < http.StatusBadRequest):
			s.forget(id)
		}
	}}
	token, forget := a.calls.put(from)
	defer forget()
	r.Header.Set(callHeader, token)
	// The SDK keeps the values of the first request for the whole session; none may be who sent that.
	r = r.WithContext(withCaller(r.Context(), caller{}))
	s.protocol.ServeHTTP(w, r)
}

// callers are those of the requests that are with the SDK. It is safe for concurrent use.
type callers struct {
	mu      sync.Mutex
	pending map[string]caller
}

// lateCall is how long the caller of a notification is kept: its request is answered before it is handled.
const lateCall = time.Minute

// put keeps c until it is taken, or a while after forget is called.
func (c *callers) put(from caller) (token string, forget func()) {
	token = rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[token] = from
	return token, func() {
		c.mu.Lock()
		_, waits := c.pending[token]
		c.mu.Unlock()
		if waits {
			time.AfterFunc(lateCall, func() { c.take(token) })
		}
	}
}

// take returns the caller once, and afterwards one who may do nothing.
func (c *callers) take(token string) caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.pending[token]
	delete(c.pending, token)
	return from
}

// calledIn returns ctx with the caller of a message that came within a session.
func (a *API) calledIn(ctx context.Context, req mcp.Request) context.Context {
	extra := req.GetExtra()
	if extra == nil || extra.Header == nil {
		return ctx
	}
	token := extra.Header.Get(callHeader)
	if token == "" {
		return ctx
	}
	return withCaller(ctx, a.calls.take(token))
}

// EndStreams ends the streams on which sessions wait for what the server may say by itself, which have no end of their own. Call it
// when the server is about to stop.
func (a *API) EndStreams() { a.endStreams() }
