package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"

	"github.com/sallyport-dev/sallyport"
)

const mediaLines = "application/x-ndjson"

// callLines is call for a route that reports its progress: each envelope of the kind is handed to told while the answer comes, by the
// goroutine of the call. A server that sends no lines is understood, too.
func callLines[T, P any](ctx context.Context, c *Client, req request, kind string, told func(P)) (sallyport.Envelope[T], error) {
	if req.header == nil {
		req.header = http.Header{}
	}
	req.header.Set("Accept", mediaLines+", application/json;q=0.9")
	resp, err := c.open(ctx, req)
	if err != nil {
		return sallyport.Envelope[T]{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || media != mediaLines {
		got, err := c.readAll(ctx, resp)
		if err != nil {
			return sallyport.Envelope[T]{}, err
		}
		return read[T](c, got)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, int(c.cfg.MaxResponseBytes))
	for lines.Scan() {
		var step struct {
			Kind string `json:"kind"`
			Data *P     `json:"data"`
		}
		line := bytes.Clone(lines.Bytes())
		if json.Unmarshal(line, &step) == nil && step.Kind == kind {
			if step.Data != nil {
				told(*step.Data)
			}
			continue
		}
		return read[T](c, answer{resp.StatusCode, http.Header{"Content-Type": {"application/json"}}, line})
	}
	if err := lines.Err(); err != nil {
		return sallyport.Envelope[T]{}, c.unreachable(ctx, err)
	}
	return sallyport.Envelope[T]{}, sallyport.Errorf("client", sallyport.CodeInternal, "the answer ends before its last line; look what was done before you send it again")
}
