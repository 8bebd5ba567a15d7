package container

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// stream is the connection to a container's standard streams. Reading it gives what PID 1 says; what comes on the third stream,
// which nobody of ours writes to, is the engine's or its runtime's, and its beginning is kept.
type stream struct {
	conn   net.Conn
	reader *bufio.Reader
	left   uint32 // of the chunk that is being read
	noise  []byte
}

// attach connects to the streams of a container that has not started.
func (e *engine) attach(ctx context.Context, api, id string) (*stream, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	conn, err := e.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("the engine did not answer: %w", err)
	}
	s, err := hijack(ctx, conn, api+"/containers/"+id+"/attach?stream=1&stdin=1&stdout=1&stderr=1")
	if err != nil {
		_ = conn.Close()
	}
	return s, err
}

// hijack makes the request that turns conn into the container's streams.
func hijack(ctx context.Context, conn net.Conn, target string) (*stream, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request := "POST " + target + " HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, fmt.Errorf("the engine did not take a request to attach: %w", err)
	}
	// The bound holds for the headers only; what follows is the container's.
	bounded := &io.LimitedReader{R: conn, N: maxHeaders}
	reader := bufio.NewReader(bounded)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		return nil, fmt.Errorf("the engine did not attach: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols && resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxHeaders))
		_ = resp.Body.Close()
		return nil, &engineError{"attach", resp.StatusCode, refusalText(text)}
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	bounded.N = 1 << 62
	return &stream{conn: conn, reader: reader}, nil
}

var errStream = errors.New("the engine's stream of a container is malformed")

// Read returns bytes of the container's standard output.
func (s *stream) Read(p []byte) (int, error) {
	for s.left == 0 {
		var header [8]byte
		if _, err := io.ReadFull(s.reader, header[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(header[4:])
		switch header[0] {
		case 1:
			s.left = size
		case 2:
			if err := s.keepNoise(size); err != nil {
				return 0, err
			}
		default:
			return 0, errStream
		}
	}
	n, err := s.reader.Read(p[:min(len(p), int(s.left))])
	s.left -= uint32(n)
	return n, err
}

func (s *stream) keepNoise(size uint32) error {
	keep := min(int64(size), int64(maxMessage-len(s.noise)))
	kept, err := io.ReadAll(io.LimitReader(s.reader, keep))
	s.noise = append(s.noise, kept...)
	if err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, s.reader, int64(size)-keep)
	return err
}
