//go:build amd64 || arm64

package bubblewrap

import (
	"os"
	"time"
	"unicode/utf8"
)

// drain reads one stream to its end and keeps the first limit bytes. It goes on reading after that, so that a script is
// never stopped by a full pipe and the memory used stays the same however much is written.
type drain struct {
	pipe  *os.File
	limit int64
	kept  []byte
	total int64
	done  chan struct{}
}

func newDrain(pipe *os.File, limit int64) *drain {
	d := &drain{pipe: pipe, limit: limit, done: make(chan struct{})}
	go d.run()
	return d
}

func (d *drain) run() {
	defer close(d.done)
	buffer := make([]byte, 32<<10)
	for {
		n, err := d.pipe.Read(buffer)
		d.total += int64(n)
		if room := d.limit - int64(len(d.kept)); room > 0 {
			d.kept = append(d.kept, buffer[:min(int64(n), room)]...)
		}
		if err != nil {
			return // end of file, or the deadline
		}
	}
}

// finish waits for the end of the stream, at most until deadline, and returns what was kept. Every writer is dead by now
// or soon; what they wrote before is still in the pipe and is read first.
func (d *drain) finish(deadline time.Time) (kept []byte, total int64, truncated bool) {
	_ = d.pipe.SetReadDeadline(deadline)
	<-d.done
	_ = d.pipe.Close()
	truncated = d.total > int64(len(d.kept))
	if truncated {
		d.kept = cutRune(d.kept)
	}
	return d.kept, d.total, truncated
}

// cutRune drops an incomplete character from the end: the cut was ours, so the script must not be blamed for it.
func cutRune(b []byte) []byte {
	for back := 1; back <= min(utf8.UTFMax-1, len(b)); back++ {
		last := b[len(b)-back]
		if utf8.RuneStart(last) {
			if last >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-back:]) {
				return b[:len(b)-back]
			}
			return b
		}
	}
	return b
}
