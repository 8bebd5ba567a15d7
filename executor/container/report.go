package container

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// report reads what PID 1 says. PID 1 is ours, and yet it comes from a machine that a script is on, through an engine: nothing
// of it is taken without bounds.
type report struct {
	from   io.Reader
	limits sallyport.Limits
	// events carries every frame that changes the state of the run; it is closed when the report ends. The fields below belong to
	// the reader until then.
	events chan event

	streams         [2]captured
	output          []byte
	outputTruncated bool
	artifacts       []sallyport.ArtifactFile
	notes           []string
	usage           sallyport.Usage
	oomKnown        bool
	complete        bool // frameEnd was read
	err             error
}

type event struct {
	frame
	at time.Time
}

// captured is one stream of the script.
type captured struct {
	kept  []byte
	total int64
}

// result is what is kept, without half a character at a cut that was ours.
func (c captured) result() (kept []byte, total int64, truncated bool) {
	total = max(c.total, int64(len(c.kept)))
	if total == int64(len(c.kept)) {
		return c.kept, total, false
	}
	return cutRune(c.kept), total, true
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

func newReport(from io.Reader, limits sallyport.Limits) *report {
	// More room than there are such frames in a report: the reader never waits for who has stopped listening.
	r := &report{from: from, limits: limits, events: make(chan event, 8)}
	go r.run()
	return r
}

func (r *report) run() {
	defer close(r.events)
	for told := 0; !r.complete; {
		if r.err = r.next(&told); r.err != nil {
			return
		}
	}
	slices.SortFunc(r.artifacts, func(a, b sallyport.ArtifactFile) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(r.notes)
}

var errReport = errors.New("the report of PID 1 is malformed")

// next reads one frame with what belongs to it.
func (r *report) next(told *int) error {
	var header [frameBytes]byte
	if _, err := io.ReadFull(r.from, header[:]); err != nil {
		return err
	}
	f := decodeFrame(header)
	if f.pathLen > artifactPathMax {
		return errReport
	}
	path := make([]byte, f.pathLen)
	if _, err := io.ReadFull(r.from, path); err != nil {
		return err
	}
	switch f.kind {
	case frameReady, frameStarted, frameStartFailed, frameExited:
		if *told++; *told > cap(r.events) {
			return errReport
		}
		r.events <- event{f, time.Now()}
	case frameStream:
		return r.stream(f)
	case frameTotal:
		if f.value < 1 || f.value > 2 {
			return errReport
		}
		r.streams[f.value-1].total = f.number()
	case frameUsage:
		r.used(f)
	case frameOutput:
		content, err := r.content(f.size, maxOutputData)
		r.output = content
		return err
	case frameArtifact:
		return r.artifact(string(path), f.size)
	case frameSkipped:
		r.skipped(string(path), f.value)
	case frameEnd:
		if f.value != 0 {
			r.note("more files were left out")
		}
		r.complete = true
	default:
		return errReport
	}
	return nil
}

func (r *report) stream(f frame) error {
	if f.value < 1 || f.value > 2 || f.size > streamChunk {
		return errReport
	}
	c := &r.streams[f.value-1]
	if int64(len(c.kept))+int64(f.size) > r.limits.OutputBytes {
		return errReport
	}
	at := len(c.kept)
	c.kept = append(c.kept, make([]byte, f.size)...)
	n, err := io.ReadFull(r.from, c.kept[at:])
	c.kept = c.kept[:at+n]
	return err
}

func (r *report) used(f frame) {
	switch f.value {
	case usageCPU:
		r.usage.CPUTimeMS = new(f.number() / 1000)
	case usageMemoryPeak:
		r.usage.MemoryPeakBytes = new(f.number())
	case usageOOMKills:
		r.usage.OOMKills, r.oomKnown = f.number(), true
	case usageProcessLimit:
		r.usage.ProcessLimitHits = f.number()
	}
}

func (r *report) content(size uint64, limit int64) ([]byte, error) {
	if size > uint64(max(limit, 0)) {
		return nil, errReport
	}
	content := make([]byte, size)
	_, err := io.ReadFull(r.from, content)
	return content, err
}

func (r *report) artifact(path string, size uint64) error {
	left := r.limits.ArtifactBytes
	for _, a := range r.artifacts {
		left -= int64(len(a.Content))
	}
	if int64(len(r.artifacts)) >= r.limits.ArtifactFiles {
		return errReport
	}
	content, err := r.content(size, left)
	if err != nil {
		return err
	}
	// The name is the script's choice. One that no store or reader should meet is not passed on.
	if plain := sallyport.CheckPath(path) == nil; plain {
		r.artifacts = append(r.artifacts, sallyport.ArtifactFile{Path: path, Content: content})
	} else {
		r.note(about(path, "the name is not a plain path"))
	}
	return nil
}

func (r *report) skipped(path string, reason uint32) {
	if path == "" { // SKILL_OUTPUT itself
		r.outputTruncated = reason == skipTooLarge
		r.note("SKILL_OUTPUT: " + skipReason(reason))
		return
	}
	r.note(about(path, skipReason(reason)))
}

// about says reason of path. A long path is cut here, where the reason can be spared.
func about(path, reason string) string {
	const most = 100 // four times as many once quoted
	if len(path) > most {
		return fmt.Sprintf("%q...: %s", strings.ToValidUTF8(path[:most], ""), reason)
	}
	return fmt.Sprintf("%q: %s", path, reason)
}

// note keeps a bounded number of notes; PID 1 stops naming files earlier.
func (r *report) note(text string) {
	if len(r.notes) < 4*skipMaxFrames {
		r.notes = append(r.notes, text)
	}
}

func skipReason(reason uint32) string {
	switch reason {
	case skipNotRegular:
		return "not a regular file"
	case skipHardLink:
		return "has more than one name"
	case skipTooLarge:
		return "over the size limit"
	case skipTooMany:
		return "over the limit of files"
	case skipTooDeep:
		return "in folders nested too deep"
	case skipPathTooLong:
		return "the path is too long"
	case skipUnreadable:
		return "cannot be read"
	}
	return "skipped"
}
