package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
)

// Unix returns a transport to the server behind a socket file; the address in a URL means nothing to it.
func Unix(path string) http.RoundTripper {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}
}

// InProcess returns a transport that calls handler in this process. Answers stream: RoundTrip returns as soon as the handler wrote
// its header, and the handler writes no faster than the body is read. The handler's context ends when the request's does and when
// the body of the answer is closed, so the caller must close it; the end of the body means that the handler returned.
func InProcess(handler http.Handler) http.RoundTripper { return inProcess{handler} }

type inProcess struct{ handler http.Handler }

// remoteAddr is no address: who trusts loopback or a socket file must not take it for one.
const remoteAddr = "in-process"

// RoundTrip serves one request.
func (t inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	ctx, cancel := context.WithCancel(req.Context())
	served := serverSide(ctx, req)
	reader, writer := io.Pipe()
	w := &responseWriter{header: http.Header{}, pipe: writer, silent: req.Method == http.MethodHead, ready: make(chan struct{})}
	// A caller who cancels is told so by the body he reads, and the handler by the body it reads.
	stop := context.AfterFunc(req.Context(), func() {
		_ = writer.CloseWithError(req.Context().Err())
		_ = served.Body.Close()
	})
	go func() {
		defer cancel()
		defer stop()
		defer func() { _ = served.Body.Close() }()
		w.serve(t.handler, served)
	}()
	select {
	case <-w.ready:
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if w.broken != nil {
		return nil, w.broken
	}
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, ContentLength: contentLength(w.sent),
		Body: &inProcessBody{reader, cancel}, Request: req,
	}, nil
}

// serverSide is the request as a server would have read it off the wire.
func serverSide(ctx context.Context, req *http.Request) *http.Request {
	served := req.Clone(ctx)
	served.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	if served.URL.Path == "" {
		served.URL.Path = "/"
	}
	served.RequestURI = served.URL.RequestURI()
	served.RemoteAddr = remoteAddr
	served.Proto, served.ProtoMajor, served.ProtoMinor = "HTTP/1.1", 1, 1
	if served.Host == "" {
		served.Host = req.URL.Host
	}
	if served.Header == nil {
		served.Header = http.Header{}
	}
	if served.Body == nil {
		served.Body = http.NoBody
	}
	if served.Method == "" {
		served.Method = http.MethodGet
	}
	return served
}

func contentLength(header http.Header) int64 {
	n, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// inProcessBody ends the handler's context when it is closed.
type inProcessBody struct {
	*io.PipeReader

	cancel context.CancelFunc
}

func (b *inProcessBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// responseWriter is what the handler writes to. Its methods are called by the handler's goroutine; ready orders them before what
// RoundTrip reads.
type responseWriter struct {
	header http.Header
	pipe   *io.PipeWriter
	silent bool // the answer to HEAD has no body

	once   sync.Once
	ready  chan struct{}
	status int
	sent   http.Header // as it was when the header was written
	broken error
}

// Header returns the header that will be sent.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader sends the header, once; an informational status is not passed on.
func (w *responseWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.ready)
	})
}

// Write waits until the caller read the data.
func (w *responseWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.silent || w.status == http.StatusNoContent || w.status == http.StatusNotModified {
		return len(data), nil
	}
	return w.pipe.Write(data)
}

// Flush sends the header; data never waits.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

var errAborted = errors.New("the handler gave up in the middle of its answer")

// serve calls the handler and ends the answer: properly, or cut when the handler panicked.
func (w *responseWriter) serve(handler http.Handler, r *http.Request) {
	defer func() {
		cause := recover()
		if cause == nil {
			w.WriteHeader(http.StatusOK)
			// A handler that returned because its caller went away has not answered in full.
			_ = w.pipe.CloseWithError(r.Context().Err())
			return
		}
		err := errAborted
		if fault, isError := cause.(error); !isError || !errors.Is(fault, http.ErrAbortHandler) {
			err = fmt.Errorf("the handler panicked: %v", cause)
		}
		w.once.Do(func() {
			w.broken = err
			close(w.ready)
		})
		_ = w.pipe.CloseWithError(err)
	}()
	handler.ServeHTTP(w, r)
}
