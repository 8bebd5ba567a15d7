package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runnerwire"
)

// newClient makes the one HTTP client: a fresh connection for every request, no proxy, no redirect, no compression, HTTP/1.1.
func newClient(cfg Config) *http.Client {
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.TLS != nil {
		secured = cfg.TLS.Clone()
		secured.MinVersion = max(secured.MinVersion, tls.VersionTLS12)
	}
	secured.NextProtos = []string{"http/1.1"}
	// No session is resumed: every run looks at the runner's certificate.
	secured.ClientSessionCache = nil
	dialer := &net.Dialer{
		Timeout:         cfg.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: secured, TLSHandshakeTimeout: cfg.ConnectTimeout,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is a whole answer.
type answer struct {
	status int
	body   []byte
}

// exchangeError is a request that got no whole answer.
type exchangeError struct {
	err error
	// connected says that a connection was made, so the request may have been seen.
	connected bool
}

func (e *exchangeError) Error() string { return e.err.Error() }
func (e *exchangeError) Unwrap() error { return e.err }

var errTooLarge = errors.New("the answer is larger than any right one")

// exchange sends one request and reads its answer, of at most bound bytes.
func (e *Executor) exchange(ctx context.Context, p *peer, method, path string, body []byte, bound int64) (answer, error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	fail := func(err error) (answer, error) {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
		return answer{}, &exchangeError{err, connected.Load()}
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	// Without this the transport may send the body a second time.
	req.GetBody = nil
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	if e.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+string(e.cfg.Key))
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.ContentLength > bound {
		return fail(errTooLarge)
	}
	read, err := io.ReadAll(io.LimitReader(resp.Body, bound+1))
	if err != nil {
		return fail(err)
	}
	if int64(len(read)) > bound {
		return fail(errTooLarge)
	}
	return answer{resp.StatusCode, read}, nil
}

// attempt asks one runner. grace is what is left of the run's own.
func (e *Executor) attempt(ctx context.Context, c candidate, req sallyport.ExecRequest, grace time.Duration) (sallyport.Result, *failure) {
	c.peer.count(+1)
	defer c.peer.count(-1)
	s, _ := c.peer.now()
	if s.extended {
		// The runner answers well before we stop waiting.
		c.message.GraceSeconds = (grace * 3 / 4).Seconds()
	}
	if slices.Contains(s.said.Features, sallyport.FeatureRevision) && len(req.Files) > 1 {
		c.message.Revision = runnerwire.Key(req.Files)
		if !s.extended { // the operator says that it speaks this much
			c.message.ScriptPath = req.ScriptPath
		}
	}
	if !s.extended {
		full := runnerwire.FromRequest(req, true)
		if slices.Contains(s.said.Features, sallyport.FeatureArgv) {
			c.message.Argv = full.Argv
		}
		if slices.Contains(s.said.Features, sallyport.FeatureFiles) {
			c.message.Inputs = full.Inputs
		}
		if slices.Contains(s.said.Features, sallyport.FeatureSecrets) {
			c.message.Secrets = full.Secrets
		}
	}
	body, err := runnerwire.Encode(c.message)
	if err != nil {
		return sallyport.Result{}, &failure{err: &sallyport.Error{Op: "remote.encode", Code: sallyport.CodeInternal, Err: err}, certain: true}
	}
	for uploaded := false; ; uploaded = true {
		sent := time.Now()
		got, err := e.exchange(ctx, c.peer, http.MethodPost, runnerwire.PathRuns, body, runnerwire.MaxOutcomeBytes(req.Limits))
		if err != nil {
			c.peer.doubt()
			return sallyport.Result{}, broken(err)
		}
		if got.status == http.StatusOK {
			var outcome runnerwire.Outcome
			if err := runnerwire.Decode(got.body, &outcome); err != nil {
				return sallyport.Result{}, &failure{err: unreachable(fmt.Errorf("the runner's answer cannot be read: %w", err))}
			}
			return outcome.Result(Kind, sent), nil
		}
		failed, unknown := judge(got)
		if !unknown || uploaded || c.message.Revision == "" {
			c.peer.doubt()
			return sallyport.Result{}, failed
		}
		if failed := e.upload(ctx, c, req); failed != nil {
			c.peer.doubt()
			return sallyport.Result{}, failed
		}
	}
}

// upload gives a runner the files of a revision. Whatever goes wrong, nothing of the script began.
func (e *Executor) upload(ctx context.Context, c candidate, req sallyport.ExecRequest) *failure {
	body, err := runnerwire.Encode(runnerwire.FromFiles(req.Files))
	if err != nil {
		return &failure{err: &sallyport.Error{Op: "remote.encode", Code: sallyport.CodeInternal, Err: err}, certain: true}
	}
	got, err := e.exchange(ctx, c.peer, http.MethodPut, runnerwire.PathRevisions+c.message.Revision, body, maxFault)
	if err != nil {
		return &failure{err: unreachable(err), certain: true, next: true}
	}
	if got.status == http.StatusOK || got.status == http.StatusCreated || got.status == http.StatusNoContent {
		return nil
	}
	failed, _ := judge(got)
	failed.certain = true
	return failed
}

const maxFault = 64 << 10

// broken judges a request that got no whole answer.
func broken(err error) *failure {
	f := &failure{err: unreachable(err)}
	lost, ok := errors.AsType[*exchangeError](err)
	f.certain = ok && !lost.connected
	// A runner that does not like our certificate says so where its answer would be: before it reads anything.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" && strings.Contains(op.Error(), "certificate") {
		f.certain = true
	}
	f.next = f.certain
	return f
}

// judge reads an answer that is no outcome. unknown says that the runner only lacks the revision.
func judge(got answer) (f *failure, unknown bool) {
	var fault runnerwire.Fault
	if len(got.body) > maxFault || runnerwire.Decode(got.body, &fault) != nil {
		fault = runnerwire.Fault{}
	}
	cause := fmt.Errorf("the runner answered %d %s: %s", got.status, short(fault.Code), short(fault.Message))
	f = &failure{err: unreachable(cause)}
	if fault.Started == nil {
		// A minimal runner, or something in between: only a request that was refused as such certainly started nothing.
		switch got.status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
			http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusTooManyRequests:
			f.certain = true
		}
		return f, false
	}
	f.certain = !*fault.Started
	switch fault.Code {
	case runnerwire.CodeRevisionUnknown:
		return f, f.certain
	case runnerwire.CodeDraining:
		f.next = f.certain
	case string(sallyport.CodeSlotsExhausted), string(sallyport.CodeSandboxUnavailable):
		f.err = &sallyport.Error{Op: "remote.execute", Code: sallyport.Code(fault.Code), Err: cause}
		f.next = f.certain
	case string(sallyport.CodeUnauthenticated):
	default:
		f.err = &sallyport.Error{Op: "remote.execute", Code: sallyport.CodeInternal, Err: cause}
	}
	return f, false
}
