package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// tenantHeader names the tenant that the operator acts in.
const tenantHeader = "Sallyport-Tenant"

// request is one call before it is sent.
type request struct {
	method string
	// path holds the segments behind the server's URL, each escaped already.
	path  string
	query url.Values
	// body is JSON, unless media says otherwise; nil sends none.
	body   io.Reader
	media  string
	header http.Header
}

// idempotent names the call for the server, which then does it once; an empty key does nothing.
func (r *request) idempotent(key string) {
	if key == "" {
		return
	}
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set("Idempotency-Key", key)
}

func get(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query}
}

// post encodes body; nil sends none.
func post(path string, query url.Values, body any) (request, error) {
	req := request{method: http.MethodPost, path: path, query: query}
	if body == nil {
		return req, nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		return req, &sallyport.Error{
			Op: "client", Code: sallyport.CodeInvalidArgument, Message: "the request cannot be written as JSON", Err: err,
		}
	}
	req.body, req.media = bytes.NewReader(data), "application/json"
	return req, nil
}

// call sends req and reads its envelope. When err is nil, Data is not; when it is not, the envelope still holds what the server
// said, if it said anything.
func call[T any](ctx context.Context, c *Client, req request) (sallyport.Envelope[T], error) {
	got, err := c.send(ctx, req)
	if err != nil {
		return sallyport.Envelope[T]{}, err
	}
	return read[T](c, got)
}

// read makes an envelope of an answer.
func read[T any](c *Client, got answer) (sallyport.Envelope[T], error) {
	var envelope sallyport.Envelope[T]
	if !got.isEnvelope() {
		return envelope, got.strange()
	}
	if err := json.Unmarshal(got.body, &envelope); err != nil {
		return envelope, &sallyport.Error{Op: "client", Code: sallyport.CodeInternal, Err: err}
	}
	if c.cfg.Received != nil {
		c.cfg.Received(bytes.TrimRight(got.body, "\n"))
	}
	switch {
	case envelope.Error != nil && (envelope.Data == nil || got.status >= http.StatusBadRequest):
		return envelope, public(envelope.Error, got.status)
	case envelope.Data == nil || got.status >= http.StatusMultipleChoices:
		return envelope, got.strange()
	}
	return envelope, nil
}

// bytes sends req and returns the answer as it is, which a refusal is not.
func (c *Client) bytes(ctx context.Context, req request) ([]byte, http.Header, error) {
	got, err := c.send(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	if got.status == http.StatusOK {
		return got.body, got.header, nil
	}
	var envelope sallyport.Envelope[json.RawMessage]
	if !got.isEnvelope() || json.Unmarshal(got.body, &envelope) != nil || envelope.Error == nil {
		return nil, nil, got.strange()
	}
	if c.cfg.Received != nil {
		c.cfg.Received(bytes.TrimRight(got.body, "\n"))
	}
	return nil, nil, public(envelope.Error, got.status)
}

// answer is what came back, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send carries one request, once, and reads the bounded answer.
func (c *Client) send(ctx context.Context, req request) (answer, error) {
	resp, err := c.open(ctx, req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	return c.readAll(ctx, resp)
}

func (c *Client) readAll(ctx context.Context, resp *http.Response) (answer, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.cfg.MaxResponseBytes+1))
	if err != nil {
		return answer{}, c.unreachable(ctx, err)
	}
	if int64(len(body)) > c.cfg.MaxResponseBytes {
		return answer{}, sallyport.Errorf("client", sallyport.CodeInternal, "the answer is over %d bytes", c.cfg.MaxResponseBytes)
	}
	return answer{resp.StatusCode, resp.Header, body}, nil
}

// open carries one request, once; the caller closes the body.
func (c *Client) open(ctx context.Context, req request) (*http.Response, error) {
	target := c.base
	target.RawQuery = req.query.Encode()
	// Path and RawPath agree, so that the escaping of the segments is kept.
	target.RawPath = c.base.EscapedPath() + req.path
	path, err := url.PathUnescape(target.RawPath)
	if err != nil {
		return nil, invalid("the path of the request cannot be escaped")
	}
	target.Path = path
	r, err := http.NewRequestWithContext(ctx, req.method, target.String(), req.body)
	if err != nil {
		return nil, &sallyport.Error{Op: "client", Code: sallyport.CodeInvalidArgument, Err: err}
	}
	maps.Copy(r.Header, req.header)
	if req.media != "" {
		r.Header.Set("Content-Type", req.media)
	}
	if c.cfg.Tenant != "" {
		r.Header.Set(tenantHeader, string(c.cfg.Tenant))
	}
	if c.cfg.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return resp, nil
}

// unreachable is the error of a call that got no answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return &sallyport.Error{Op: "client", Code: sallyport.CodeOf(cause), Err: err}
	}
	// A transport of ours, or the reader of an upload, may know better.
	if own, ok := errors.AsType[*sallyport.Error](err); ok {
		return own
	}
	return &sallyport.Error{
		Op: "client", Code: sallyport.CodeStoreUnavailable,
		Message: "no server answers at " + c.base.Scheme + "://" + c.base.Host, Err: err,
	}
}

func (a answer) isEnvelope() bool {
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	return err == nil && (media == "application/json" || media == "application/problem+json")
}

// public makes the server's refusal an error. A code that this client does not know yet keeps its sentence under the code of its
// status.
func public(e *sallyport.PublicError, status int) error {
	code := e.Code
	if sallyport.Lookup(code).Code != code {
		code = byStatus(status)
	}
	return &sallyport.Error{Op: "client", Code: code, Message: e.Message, Details: e.Details}
}

// strange is the error of an answer that no Sallyport server gives: a proxy's page, a redirect, another program.
func (a answer) strange() error {
	e := sallyport.Errorf("client", byStatus(a.status),
		"the answer (HTTP %d) is not a Sallyport server's; is the URL right, and is nothing in between?", a.status)
	if a.status >= http.StatusMultipleChoices && a.status < http.StatusBadRequest {
		e.Message = "the server redirects elsewhere, which is not followed; name its final URL"
	}
	return e
}

// byStatus is the code that comes nearest to an HTTP status.
func byStatus(status int) sallyport.Code {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return sallyport.CodeUnauthenticated
	case http.StatusForbidden:
		return sallyport.CodeAccessDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return sallyport.CodeRouteNotFound
	case http.StatusConflict:
		return sallyport.CodeRevisionConflict
	case http.StatusRequestEntityTooLarge:
		return sallyport.CodeRequestTooLarge
	case http.StatusTooManyRequests:
		return sallyport.CodeRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return sallyport.CodeStoreUnavailable
	case http.StatusGatewayTimeout:
		return sallyport.CodeDeadlineExceeded
	case http.StatusInternalServerError:
		return sallyport.CodeInternal
	}
	return sallyport.CodeInvalidArgument
}

// segment escapes one path segment.
func segment[T ~string](s T) string { return "/" + url.PathEscape(string(s)) }

// plainPath escapes a path inside a skill or a run, segment by segment. UNSAFE_PATH when it is not plain.
func plainPath(path string) (string, error) {
	if err := sallyport.CheckPath(path); err != nil {
		return "", err
	}
	var b strings.Builder
	for part := range strings.SplitSeq(path, "/") {
		b.WriteString(segment(part))
	}
	return b.String(), nil
}

// set adds a parameter that is not empty.
func set[T ~string](query url.Values, name string, value T) {
	if value != "" {
		query.Set(name, string(value))
	}
}

func setTrue(query url.Values, name string, value bool) {
	if value {
		query.Set(name, "true")
	}
}

// skillPath is the path of a skill, and the query that goes with it.
func skillPath(ref sallyport.SkillRef) (string, url.Values, error) {
	query := url.Values{}
	set(query, "team_id", ref.TeamID)
	switch {
	case ref.SkillID == "" && ref.Slug == "":
		return "", nil, invalid("name a skill by its slug or its id")
	case ref.SkillID != "" && ref.Slug != "":
		return "", nil, invalid("name a skill by its slug or its id, not by both")
	case ref.SkillID != "":
		return "/v1/skills" + segment(ref.SkillID), query, nil
	}
	return "/v1/skills" + segment(ref.Slug), query, nil
}

// refQuery is a skill that may be left out, as query parameters.
func refQuery(ref sallyport.SkillRef) url.Values {
	query := url.Values{}
	set(query, "slug", ref.Slug)
	set(query, "skill_id", ref.SkillID)
	set(query, "team_id", ref.TeamID)
	return query
}
