//go:build unix

package unsafelocal

import (
	"os"
	"time"
	"unicode/utf8"
)

// drain reads one stream to its end: it keeps the beginning, counts the rest, and so never makes a script wait.
type drain struct {
	pipe  *os.File
	limit int64
	done  chan struct{}
	kept  []byte // these two belong to the reader until done
	total int64
}

func newDrain(pipe *os.File, limit int64) *drain {
	d := &drain{pipe: pipe, limit: limit, done: make(chan struct{})}
	go d.read()
	return d
}

func (d *drain) read() {
	defer close(d.done)
	buffer := make([]byte, 32<<10)
	for {
		n, err := d.pipe.Read(buffer)
		d.total += int64(n)
		if room := d.limit - int64(len(d.kept)); room > 0 {
			d.kept = append(d.kept, buffer[:min(int64(n), room)]...)
		}
		if err != nil {
			return
		}
	}
}

// finish waits for the end of the stream, at most until deadline: something that got away may hold it open.
func (d *drain) finish(deadline time.Time) {
	_ = d.pipe.SetReadDeadline(deadline)
	<-d.done
	_ = d.pipe.Close()
	if d.truncated() {
		d.kept = whole(d.kept)
	}
}

func (d *drain) truncated() bool { return d.total > d.limit }

// whole drops a character that was cut at the end.
func whole(b []byte) []byte {
	for back := 1; back <= min(utf8.UTFMax-1, len(b)); back++ {
		if tail := b[len(b)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-back]
			}
			break
		}
	}
	return b
}
