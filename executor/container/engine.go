package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds on what an engine may answer.
const (
	maxAnswer  = 4 << 20
	maxHeaders = 64 << 10
	maxMessage = 300
)

// The versions of the API that this client speaks. Docker and Podman both serve older ones than their own.
const (
	oldestAPI = 40 // 1.40
	newestAPI = 44
)

// engine is a client of Docker's API. It waits for no answer without end and reads none without a bound.
type engine struct {
	socket  string
	timeout time.Duration
	http    *http.Client
}

func newEngine(socket string, timeout time.Duration) *engine {
	e := &engine{socket: socket, timeout: timeout}
	e.http = &http.Client{
		Transport: &http.Transport{
			DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return e.dial(ctx) },
			MaxResponseHeaderBytes: maxHeaders, DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
		},
		// An engine has no reason to send us elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return e
}

func (e *engine) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", e.socket)
}

func (e *engine) close() { e.http.CloseIdleConnections() }

// engineError is an engine's refusal.
type engineError struct {
	call    string
	status  int
	message string
}

func (e *engineError) Error() string {
	return "the engine answered " + e.call + " with " + strconv.Itoa(e.status) + ": " + e.message
}

// refusedWith reports whether err is an answer with one of the statuses.
func refusedWith(err error, statuses ...int) bool {
	refusal, ok := errors.AsType[*engineError](err)
	return ok && slices.Contains(statuses, refusal.status)
}

// decoder reads an answer that is not one JSON value.
type decoder func(text []byte) error

// call makes one request and decodes a successful answer into out: nil, a decoder, or what JSON is decoded into. in is nil, the
// bytes of a tar archive, or what becomes JSON.
func (e *engine) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	var body io.Reader
	kind := ""
	switch in := in.(type) {
	case nil:
	case []byte:
		body, kind = bytes.NewReader(in), "application/x-tar"
	default:
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body, kind = bytes.NewReader(text), "application/json"
	}
	target := url.URL{Scheme: "http", Host: "engine", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return fmt.Errorf("the engine did not answer %s %s: %w", method, path, withoutURL(err))
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("the engine's answer to %s %s broke off: %w", method, path, err)
	case len(text) > maxAnswer:
		return fmt.Errorf("the engine's answer to %s %s is longer than %d bytes", method, path, maxAnswer)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return &engineError{method + " " + path, resp.StatusCode, refusalText(text)}
	case out == nil:
		return nil
	}
	decode, special := out.(decoder)
	if !special {
		decode = func(text []byte) error { return json.Unmarshal(text, out) }
	}
	// Engines add members with every version: unknown ones are not a fault.
	if err := decode(text); err != nil {
		return fmt.Errorf("the engine's answer to %s %s is not what the API says: %w", method, path, err)
	}
	return nil
}

// refusalText is the message of an error answer, on one line and bounded: it can become part of a reason that people read.
func refusalText(body []byte) string {
	var answer struct{ Message, Cause string }
	text := string(body)
	if json.Unmarshal(body, &answer) == nil && answer.Message != "" {
		text = answer.Message
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}

func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
