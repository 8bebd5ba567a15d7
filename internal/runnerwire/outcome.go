package runnerwire

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// FromResult is the message about what a script did. arrived is when its request came. Both streams are at most limit bytes
// of valid UTF-8 for a server that knows the five fields only; the exact bytes go beside them where they differ.
func FromResult(r sallyport.Result, limit int64, arrived time.Time) Outcome {
	o := Outcome{
		ExitCode: r.ExitCode, TimedOut: r.TimedOut, Truncated: r.StdoutTruncated || r.StderrTruncated,
		StandardOutputTruncated: &r.StdoutTruncated, StandardErrorTruncated: &r.StderrTruncated,
		StandardOutputWritten: &r.StdoutBytes, StandardErrorWritten: &r.StderrBytes,
		Signal: r.Signal, Limit: string(r.Limit), StartError: r.StartError,
		OutputData: r.OutputData, OutputDataTruncated: r.OutputDataTruncated,
		ArtifactsLost: r.ArtifactsLost,
		Usage:         &Usage{r.Usage.MemoryPeakBytes, r.Usage.CPUTimeMS, r.Usage.OOMKills, r.Usage.ProcessLimitHits},
		Isolation:     &Isolation{r.Isolation.Executor, r.Isolation.Layers, r.Isolation.Missing, r.Isolation.Warm, r.Isolation.Plan, r.Isolation.Profile, r.Isolation.Notes, r.Isolation.RuntimeDigest},
	}
	if o.TimedOut {
		o.ExitCode = nil
	}
	var cut bool
	o.StandardOutput, o.StandardOutputBytes, cut = stream(r.Stdout, limit)
	o.Truncated = o.Truncated || cut
	o.StandardError, o.StandardErrorBytes, cut = stream(r.Stderr, limit)
	o.Truncated = o.Truncated || cut
	if r.StartError != "" && len(r.Stderr) == 0 {
		o.StandardError = r.StartError
	}
	for _, note := range r.ArtifactNotes {
		o.ArtifactNotes = append(o.ArtifactNotes, strings.ToValidUTF8(note, "\uFFFD"))
	}
	for _, a := range r.Artifacts {
		if !utf8.ValidString(a.Path) {
			o.ArtifactNotes = append(o.ArtifactNotes, strconv.Quote(a.Path)+": the name is not valid UTF-8")
			continue
		}
		o.Artifacts = append(o.Artifacts, File{Path: a.Path, Content: a.Content})
	}
	o.StartError = strings.ToValidUTF8(o.StartError, "\uFFFD")
	if !r.StartedAt.IsZero() {
		o.StartedAfterMS = new(max(r.StartedAt.Sub(arrived).Milliseconds(), 0))
	}
	return o
}

// stream is content as text within limit, and as bytes when the text differs. cut says that the text, and not the bytes, had
// to be made shorter.
func stream(content []byte, limit int64) (text string, exact []byte, cut bool) {
	content = content[:min(int64(len(content)), max(limit, 0))]
	if utf8.Valid(content) {
		return string(content), nil, false
	}
	text = strings.ToValidUTF8(string(content), "\uFFFD")
	if int64(len(text)) > limit {
		text, cut = strings.ToValidUTF8(text[:limit], ""), true
	}
	return text, content, cut
}

// Result is the outcome as the contract says it. sent is when the request left. It trusts nothing: the caller bounds
// and normalises.
func (o Outcome) Result(kind string, sent time.Time) sallyport.Result {
	r := sallyport.Result{
		ExitCode: o.ExitCode, Signal: o.Signal, TimedOut: o.TimedOut, Limit: sallyport.LimitName(o.Limit),
		Stdout: either(o.StandardOutput, o.StandardOutputBytes), Stderr: either(o.StandardError, o.StandardErrorBytes),
		StdoutTruncated: o.Truncated, StderrTruncated: o.Truncated, StartError: o.StartError,
		OutputData: o.OutputData, OutputDataTruncated: o.OutputDataTruncated,
		ArtifactsLost: o.ArtifactsLost, ArtifactNotes: o.ArtifactNotes,
		Isolation: sallyport.Isolation{Executor: kind, Layers: []sallyport.Layer{}},
	}
	if o.TimedOut {
		r.ExitCode = nil
		if r.Limit == "" {
			r.Limit = sallyport.LimitWall
		}
	}
	if o.StandardOutputTruncated != nil && o.StandardErrorTruncated != nil {
		r.StdoutTruncated, r.StderrTruncated = *o.StandardOutputTruncated, *o.StandardErrorTruncated
	}
	r.StdoutBytes, r.StderrBytes = int64(len(r.Stdout)), int64(len(r.Stderr))
	if n := o.StandardOutputWritten; n != nil {
		r.StdoutBytes = max(*n, r.StdoutBytes)
	}
	if n := o.StandardErrorWritten; n != nil {
		if *n == 0 {
			r.Stderr, r.StderrBytes = nil, 0 // a start error's second home
		}
		r.StderrBytes = max(*n, r.StderrBytes)
	}
	for _, a := range o.Artifacts {
		r.Artifacts = append(r.Artifacts, sallyport.ArtifactFile{Path: a.Path, Content: a.Content})
	}
	if u := o.Usage; u != nil {
		r.Usage = sallyport.Usage{MemoryPeakBytes: u.MemoryPeakBytes, CPUTimeMS: u.CPUTimeMS, OOMKills: u.OOMKills, ProcessLimitHits: u.ProcessLimitHits}
	}
	if i := o.Isolation; i != nil {
		r.Isolation.Missing, r.Isolation.Warm = i.Missing, i.Warm
		r.Isolation.Plan, r.Isolation.Profile, r.Isolation.Notes = i.Plan, i.Profile, i.Notes
		r.Isolation.RuntimeDigest = i.RuntimeDigest
		if i.Layers != nil {
			r.Isolation.Layers = i.Layers
		}
	}
	if ms := o.StartedAfterMS; ms != nil && *ms >= 0 && *ms < (24*time.Hour).Milliseconds() {
		r.StartedAt = sent.Add(time.Duration(*ms) * time.Millisecond)
	}
	return r
}

// MaxOutcomeBytes bounds the body of an outcome under these limits, whatever it is filled with: every byte of a stream
// escaped as six and beside it in base64, artifacts in base64, and a mebibyte each for SKILL_OUTPUT and all the rest.
func MaxOutcomeBytes(l sallyport.Limits) int64 {
	const mebibyte = 1 << 20
	base64 := func(n int64) int64 { return n + n/3 + 4 }
	return 2*(6*l.OutputBytes+base64(l.OutputBytes)) + base64(mebibyte) + base64(l.ArtifactBytes) + l.ArtifactFiles*(6*sallyport.PathMaxLength+64) + mebibyte
}
