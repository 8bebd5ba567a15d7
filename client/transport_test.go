package client_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/client"
)

// served is an answer whose body is still to be read; the test's end closes it.
type served struct {
	status int
	header http.Header
	length int64
	body   io.ReadCloser
}

// serve sends one request to handler in this process.
func serve(ctx context.Context, t *testing.T, method, body string, handler http.HandlerFunc) (served, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost/a%2Fb/c?x=1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.InProcess(handler).RoundTrip(r)
	if err != nil {
		return served{}, err
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return served{resp.StatusCode, resp.Header, resp.ContentLength, resp.Body}, nil
}

func TestInProcessRequest(t *testing.T) {
	t.Parallel()
	resp, err := serve(t.Context(), t, http.MethodPost, "sent", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "sent" {
			t.Errorf("body %q, %v", body, err)
		}
		if r.URL.EscapedPath() != "/a%2Fb/c" || r.URL.RawQuery != "x=1" || r.Host != "localhost" || r.RequestURI != "/a%2Fb/c?x=1" {
			t.Errorf("request %+v", r)
		}
		if r.RemoteAddr != "in-process" {
			t.Errorf("remote address %q", r.RemoteAddr)
		}
		w.Header().Set("X-A", "1")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-A", "too late")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "answer")
	})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.body)
	if err != nil || string(body) != "answer" || resp.status != http.StatusTeapot || resp.header.Get("X-A") != "1" {
		t.Errorf("%d %v %q, %v", resp.status, resp.header, body, err)
	}
}

// The caller reads what the handler flushed while the handler still works.
func TestInProcessStreams(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	resp, err := serve(t.Context(), t, http.MethodGet, "", func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "one\n")
		<-more
		_, _ = io.WriteString(w, "two\n")
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.body)
	if !lines.Scan() || lines.Text() != "one" {
		t.Fatalf("got %q", lines.Text())
	}
	close(more)
	if !lines.Scan() || lines.Text() != "two" || lines.Scan() {
		t.Errorf("got %q, %v", lines.Text(), lines.Err())
	}
}

func TestInProcessCancel(t *testing.T) {
	t.Parallel()
	gone := make(chan error, 1)
	wait := func(r *http.Request) {
		<-r.Context().Done()
		gone <- r.Context().Err()
	}
	seen := func(what string) {
		t.Helper()
		select {
		case err := <-gone:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the handler was not told", what)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := serve(ctx, t, http.MethodGet, "", func(_ http.ResponseWriter, r *http.Request) { cancel(); wait(r) }); !errors.Is(err, context.Canceled) {
		t.Errorf("before the header: %v", err)
	}
	seen("before the header")

	ctx, cancel = context.WithCancel(t.Context())
	resp, err := serve(ctx, t, http.MethodGet, "", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK); wait(r) })
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(resp.body); !errors.Is(err, context.Canceled) {
		t.Errorf("in the body: %v", err)
	}
	seen("in the body")

	resp, err = serve(t.Context(), t, http.MethodGet, "", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK); wait(r) })
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.body.Close(); err != nil {
		t.Error(err)
	}
	seen("closing the body")

	if _, err := serve(ctx, t, http.MethodGet, "", func(http.ResponseWriter, *http.Request) { t.Error("served") }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

// A handler that waits for a body which never ends is woken by the caller's cancellation.
func TestInProcessCancelWhileTheBodyIsRead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	defer writer.Close() //nolint:errcheck // Nothing to lose.
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/", reader)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	transport := client.InProcess(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		_, err := io.ReadAll(r.Body)
		done <- err
	}))
	resp, err := transport.RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("the body ended well")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the handler still reads")
	}
}

func TestInProcessPanic(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]any{"abort": http.ErrAbortHandler, "error": errors.New("x"), "value": 7} {
		if _, err := serve(t.Context(), t, http.MethodGet, "", func(http.ResponseWriter, *http.Request) { panic(cause) }); err == nil {
			t.Errorf("%s: answered", name)
		}
		resp, err := serve(t.Context(), t, http.MethodGet, "", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic(cause)
		})
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.body); err == nil || string(body) != "half" {
			t.Errorf("%s: %q passed for the whole: %v", name, body, err)
		}
	}
}

func TestInProcessEdges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method  string
		handler http.HandlerFunc
		status  int
		body    string
		length  int64
	}{
		"nothing said": {http.MethodGet, func(http.ResponseWriter, *http.Request) {}, 200, "", -1},
		"length known": {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2")
			_, _ = io.WriteString(w, "ok")
		}, 200, "ok", 2},
		"head": {http.MethodHead, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "body") }, 200, "", -1},
		"no content": {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			_, _ = io.WriteString(w, "body")
		}, 204, "", -1},
		"early hints": {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusAccepted)
		}, 202, "", -1},
		"body unread": {http.MethodPost, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, 403, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := serve(t.Context(), t, test.method, "sent", test.handler)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.body)
			if err != nil || resp.status != test.status || string(body) != test.body || resp.length != test.length {
				t.Errorf("%d %q %d, %v", resp.status, body, resp.length, err)
			}
		})
	}
}
