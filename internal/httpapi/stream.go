package httpapi

import (
	"context"
	"io"
	"net/http"
)

// stream is an answer of bytes that are made while they are sent. When it breaks on the way the connection is cut, so that nobody
// takes the part for the whole.
type stream struct {
	name, mediaType string
	write           func(ctx context.Context, w io.Writer) error
}

func (s *stream) send(ctx context.Context, rec *recorder) {
	header := rec.Header()
	header.Set("Content-Type", s.mediaType)
	header.Set("Content-Disposition", disposition(s.name))
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	rec.WriteHeader(http.StatusOK)
	if err := s.write(ctx, rec); err != nil {
		rec.err = err
		panic(http.ErrAbortHandler)
	}
}
