//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// report reads what PID 1 says. PID 1 is ours, yet nothing it says is taken without bounds.
type report struct {
	pipe   *os.File
	limits sallyport.Limits
	// events carries every frame that changes the state of the run; it is closed when the report ends. The fields below
	// belong to the reader until then.
	events chan event

	output          []byte
	outputTruncated bool
	artifacts       []sallyport.ArtifactFile
	notes           []string
	cpuTime         time.Duration
	complete        bool // FRAME_END was read
	err             error
}

type event struct {
	frame
	at time.Time
}

func newReport(pipe *os.File, limits sallyport.Limits) *report {
	r := &report{pipe: pipe, limits: limits, events: make(chan event, 8)}
	go r.run()
	return r
}

func (r *report) run() {
	defer close(r.events)
	for !r.complete {
		if r.err = r.next(); r.err != nil {
			return
		}
	}
	slices.SortFunc(r.artifacts, func(a, b sallyport.ArtifactFile) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(r.notes)
}

var errReport = errors.New("the report of PID 1 is malformed")

// next reads one frame with what belongs to it.
func (r *report) next() error {
	var header [frameBytes]byte
	if _, err := io.ReadFull(r.pipe, header[:]); err != nil {
		return err
	}
	f := decodeFrame(header)
	if f.pathLen > artifactPathMax {
		return errReport
	}
	path := make([]byte, f.pathLen)
	if _, err := io.ReadFull(r.pipe, path); err != nil {
		return err
	}
	switch f.kind {
	case frameReady, frameStarted, frameStartFailed, frameExited:
		r.events <- event{f, time.Now()}
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
		r.cpuTime = time.Duration(f.size) * time.Microsecond
		r.complete = true
	default:
		return errReport
	}
	return nil
}

func (r *report) content(size uint64, limit int64) ([]byte, error) {
	if size > uint64(max(limit, 0)) {
		return nil, errReport
	}
	content := make([]byte, size)
	_, err := io.ReadFull(r.pipe, content)
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
