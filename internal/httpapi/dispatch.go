package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

const requestIDHeader = "X-Request-Id"

// ServeHTTP names the request, finds its route and logs what became of it.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	rec := &recorder{ResponseWriter: w, requestID: requestID(r.Header.Values(requestIDHeader))}
	// The headers are copied before they are changed: the request is the caller's when it comes from the same process.
	ctx := r.Context()
	if a.cfg.Context != nil {
		ctx = a.cfg.Context(ctx, rec.requestID, traceParent(r.Header.Values("Traceparent")))
	}
	r = r.WithContext(ctx)
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Header.Set(requestIDHeader, rec.requestID)
	header := rec.Header()
	header.Set(requestIDHeader, rec.requestID)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")

	defer a.log(rec, r, started)
	defer a.recoverPanic(rec, r)
	a.serve(rec, r)
}

func (a *api) serve(rec *recorder, r *http.Request) {
	if err := a.guard.Check(r); err != nil {
		a.refuse(rec, "error", &sallyport.Error{
			Op: "httpapi", Code: sallyport.CodeAccessDenied, Message: "a web page of another origin may not call this server", Err: err,
		})
		return
	}
	if !plainURL(r) {
		a.refuse(rec, "error", sallyport.Errorf("httpapi", sallyport.CodeUnsafePath,
			"the path of the URL has an empty, . or .. segment"))
		return
	}
	unmatched, pattern := a.mux.Handler(r)
	if pattern == "" {
		a.noRoute(rec, r, unmatched)
		return
	}
	_, rec.route, _ = strings.Cut(pattern, " ")
	a.mux.ServeHTTP(rec, r)
}

// plainURL reports whether the mux would take the path as it is. It would redirect any other, and a redirected request has
// lost its body or its key, or reaches what it did not name.
func plainURL(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	clean := path.Clean(escaped)
	return strings.HasPrefix(escaped, "/") && (clean == escaped || clean+"/" == escaped)
}

// noRoute answers what no pattern matches. The mux's own answer is asked for one thing, the methods it would allow.
func (a *api) noRoute(rec *recorder, r *http.Request, unmatched http.Handler) {
	if err := a.public(r); err != nil {
		a.refuse(rec, "error", err)
		return
	}
	probe := &headerOnly{header: http.Header{}}
	unmatched.ServeHTTP(probe, r)
	allow := probe.header.Get("Allow")
	if probe.status != http.StatusMethodNotAllowed || allow == "" {
		a.refuse(rec, "error", sallyport.Errorf("httpapi", sallyport.CodeRouteNotFound,
			"no such route; GET /openapi.json lists them"))
		return
	}
	err := sallyport.Errorf("httpapi", sallyport.CodeRouteNotFound, "this route answers %s only", allow)
	rec.err = err
	rec.Header().Set("Allow", allow)
	a.sent(rec, reply.WriteProblemStatus(rec, http.StatusMethodNotAllowed, "error", rec.requestID, err))
}

// headerOnly keeps the status and headers of an answer that is not sent.
type headerOnly struct {
	header http.Header
	status int
}

func (h *headerOnly) Header() http.Header            { return h.header }
func (h *headerOnly) Write(data []byte) (int, error) { return len(data), nil }
func (h *headerOnly) WriteHeader(status int)         { h.status = status }

// endpoint turns a route into an http.Handler: principal, query, handler, answer.
func (a *api) endpoint(to route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec, isRecorder := w.(*recorder)
		if !isRecorder {
			// Only this package calls it, through serve.
			panic("httpapi: an endpoint was called around ServeHTTP")
		}
		got, err := a.call(rec, r, to)
		if err != nil {
			a.refuse(rec, to.kind, err)
			return
		}
		rec.err = got.outcome
		if got.stream != nil {
			got.stream.send(r.Context(), rec)
			return
		}
		a.answer(rec, to.kind, got)
	})
}

func (a *api) call(rec *recorder, r *http.Request, to route) (answer, error) {
	if to.public {
		if err := a.public(r); err != nil {
			return answer{}, err
		}
	} else {
		p, err := a.cfg.Auth.Principal(r)
		if err != nil {
			return answer{}, err
		}
		rec.principal = p
	}
	parsed, err := parseQuery(r.URL.RawQuery, to.query)
	if err != nil {
		return answer{}, err
	}
	return to.handle(&call{api: a, w: rec, r: r, id: rec.requestID, query: parsed}, rec.principal)
}

// public asks whether a caller who has not said who it is may be served.
func (a *api) public(r *http.Request) error {
	if a.cfg.Public == nil {
		return nil
	}
	return a.cfg.Public(r)
}

func (a *api) answer(rec *recorder, kind string, got answer) {
	if got.raw != nil {
		a.sent(rec, got.raw.write(rec))
		return
	}
	if got.document != nil {
		rec.Header().Set("Content-Type", reply.MediaJSON)
		_, err := rec.Write(got.document)
		a.sent(rec, err)
		return
	}
	if got.location != "" {
		rec.Header().Set("Location", got.location)
	}
	status := got.status
	if status == 0 {
		status = http.StatusOK
	}
	envelope := sallyport.Success(kind, rec.requestID, got.data)
	envelope.Error = sallyport.Public(got.outcome)
	if rec.lines {
		a.sent(rec, rec.line(envelope))
		return
	}
	rec.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	a.sent(rec, reply.WriteEnvelope(rec, status, envelope))
}

func (a *api) refuse(rec *recorder, kind string, err error) {
	rec.err = err
	if rec.lines && rec.status != 0 {
		a.sent(rec, rec.line(sallyport.Failure[struct{}](kind, rec.requestID, err)))
		return
	}
	if challenge := reply.ChallengeAt(err, rec.principal, a.cfg.Resource.MetadataURL("")); challenge != "" {
		rec.Header().Set("WWW-Authenticate", challenge)
	}
	a.sent(rec, reply.WriteProblem(rec, kind, rec.requestID, err))
}

// sent notes what went wrong while answering, unless something went wrong before.
func (a *api) sent(rec *recorder, err error) {
	if err != nil && rec.err == nil {
		rec.err = err
	}
}

// recoverPanic answers INTERNAL for a handler that crashed. When part of an answer is out already, the connection is cut, so
// that nobody takes the part for the whole.
func (a *api) recoverPanic(rec *recorder, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, isError := cause.(error); isError && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	a.cfg.Logger.ErrorContext(r.Context(), "an HTTP handler panicked",
		"request_id", rec.requestID, "route", rec.route, "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if rec.status != 0 {
		panic(http.ErrAbortHandler)
	}
	a.refuse(rec, "error", &sallyport.Error{Op: "httpapi", Code: sallyport.CodeInternal})
}

// log writes one line per request: no URL, no header and no body, so no secret that a caller put there.
func (a *api) log(rec *recorder, r *http.Request, started time.Time) {
	attrs := []any{
		"request_id", rec.requestID, "method", r.Method, "route", rec.route, "status", rec.status, "bytes", rec.bytes,
		"duration_ms", time.Since(started).Milliseconds(),
	}
	if rec.principal.ID != "" {
		attrs = append(attrs, "tenant_id", rec.principal.TenantID, "principal_id", rec.principal.ID)
	}
	if rec.err != nil {
		attrs = append(attrs, "code", sallyport.CodeOf(rec.err))
	}
	if rec.status >= http.StatusInternalServerError {
		// The cause is for the operator; no caller ever sees it.
		a.cfg.Logger.ErrorContext(r.Context(), "http request broke", append(attrs, "error", rec.err)...)
		return
	}
	a.cfg.Logger.InfoContext(r.Context(), "http request", attrs...)
}

// requestID takes the caller's id when it is plain, else makes one.
func requestID(sent []string) string {
	if len(sent) == 1 && plainID(sent[0]) {
		return sent[0]
	}
	return newRequestID()
}

func plainID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
