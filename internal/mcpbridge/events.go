package mcpbridge

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errEventTooLarge says that one event is over its bound.
var errEventTooLarge = errors.New("an event is over the size limit")

// events reads the data of a text/event-stream.
type events struct {
	r     *bufio.Reader
	limit int
}

func newEvents(r io.Reader, limit int) *events { return &events{bufio.NewReaderSize(r, 32<<10), limit} }

// next returns the data of the next event that has some, its lines joined by newlines. An event that the stream ends in is dropped,
// as the format demands: io.EOF.
func (e *events) next() ([]byte, error) {
	var data []byte
	found := false
	for {
		line, err := e.line(e.limit - len(data))
		if err != nil {
			return nil, err
		}
		switch field, value, _ := bytes.Cut(line, []byte(":")); {
		case len(line) == 0 && found && len(data) > 0:
			return data, nil
		case len(line) == 0:
			data, found = nil, false
		case string(field) == "data":
			if found {
				data = append(data, '\n')
			}
			data, found = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
		}
	}
}

// line returns one line without its end.
func (e *events) line(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if len(line)+len(part) > limit+len("data: \r\n") {
			return nil, errEventTooLarge
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		default:
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		}
	}
}
