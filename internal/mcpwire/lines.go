package mcpwire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxLine bounds one line on stdio, in bytes.
const MaxLine = 16 << 20

// ErrLineTooLong says that a line was over its bound; it was skipped and the next one can be read.
var ErrLineTooLong = errors.New("the line is over the size limit")

// Lines reads the lines of a stream. It is for one reader at a time.
type Lines struct {
	r     *bufio.Reader
	limit int
}

// NewLines reads lines of at most limit bytes from r.
func NewLines(r io.Reader, limit int) *Lines { return &Lines{bufio.NewReaderSize(r, 64<<10), limit} }

// Next returns the next line that is not blank, without its end, in memory of its own. It returns [ErrLineTooLong] for a
// skipped one and io.EOF at the end; a last line without an end counts.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if errors.Is(err, ErrLineTooLong) {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (l *Lines) line() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(part) > l.limit+1 {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong:
			return nil, ErrLineTooLong
		default:
			return line, err
		}
	}
}

// TooLong is the fault of a line that was skipped.
func TooLong(limit int) *Error {
	return &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf("invalid request: the message is over %d bytes", limit)}
}

// Writer writes whole lines to a stream that others share. It is safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// WriteLine writes data, which must hold no newline, and ends the line.
func (w *Writer) WriteLine(data []byte) error {
	line := make([]byte, 0, len(data)+1)
	line = append(append(line, data...), '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(line)
	return err
}
