package runnerwire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// ScriptName is what a script is called that came without a path.
const ScriptName = "scripts/script"

// FromRequest is the message for one approved run. extended adds what a minimal runner would not understand.
func FromRequest(req sallyport.ExecRequest, extended bool) Run {
	r := Run{
		Tenant: string(req.TenantID), Runtime: req.Interpreter.Program, SourceSHA256: req.ContentSHA256,
		TimeoutSeconds: req.Limits.Timeout.Seconds(), MaxOutputBytes: req.Limits.OutputBytes,
	}
	r.Source, r.SourceBytes = text(req.Content)
	r.StandardInput, r.StandardInputBytes = text(req.Stdin)
	if !extended {
		return r
	}
	r.ExecutionID, r.Slug, r.Digest, r.ScriptPath = string(req.ExecutionID), req.Slug, string(req.Digest), req.ScriptPath
	r.Argv, r.TraceParent, r.GraceSeconds = req.Argv, req.TraceParent, req.Grace.Seconds()
	for _, in := range req.Inputs {
		r.Inputs = append(r.Inputs, File{Path: in.Name, Content: in.Content})
	}
	for name, value := range req.Secrets {
		if r.Secrets == nil {
			r.Secrets = map[string]string{}
		}
		r.Secrets[name] = string(value)
	}
	r.Limits = &Limits{
		MemoryBytes: req.Limits.MemoryBytes, Processes: req.Limits.Processes, CPUMillis: req.Limits.CPUMillis,
		ScratchBytes: req.Limits.ScratchBytes, ArtifactBytes: req.Limits.ArtifactBytes, ArtifactFiles: req.Limits.ArtifactFiles,
		CPUTimeMS: req.Limits.CPUTime.Milliseconds(),
	}
	return r
}

// text is content as a string, or as bytes when a string cannot hold it.
func text(content []byte) (string, []byte) {
	if utf8.Valid(content) {
		return string(content), nil
	}
	return "", content
}

// Plain reports whether a minimal runner can be told everything in r.
func (r Run) Plain() bool { return r.SourceBytes == nil && r.StandardInputBytes == nil }

// Script is the source's bytes.
func (r Run) Script() []byte { return either(r.Source, r.SourceBytes) }

func either(text string, exact []byte) []byte {
	if exact != nil {
		return exact
	}
	return []byte(text)
}

// Request is the run as the contract says it. files are the staged revision, nil for the source alone. What is unset is
// taken from defaults; what cannot be meant, or is over tops, is an INVALID_ARGUMENT error that names the field.
func (r Run) Request(interpreter sallyport.Interpreter, files []sallyport.Component, defaults, tops sallyport.Limits) (sallyport.ExecRequest, error) {
	req := sallyport.ExecRequest{
		ExecutionID: sallyport.ExecutionID(r.ExecutionID), TenantID: sallyport.TenantID(r.Tenant), Slug: r.Slug,
		Digest: sallyport.Digest(r.Digest), ScriptPath: r.ScriptPath, Interpreter: interpreter, Content: r.Script(),
		Files: files, Stdin: either(r.StandardInput, r.StandardInputBytes), Argv: r.Argv, TraceParent: r.TraceParent,
		Grace: sallyport.DefaultGrace,
	}
	req.ContentSHA256 = hexOf(req.Content)
	if r.Tenant == "" {
		return req, invalid("tenant is missing")
	}
	if !strings.EqualFold(req.ContentSHA256, r.SourceSHA256) {
		return req, &sallyport.Error{Op: "runnerwire.request", Code: sallyport.CodePinMismatch, Message: "the source is not what sourceSha256 says"}
	}
	if req.Slug == "" {
		req.Slug = "skill"
	}
	if req.ScriptPath == "" {
		req.ScriptPath = ScriptName
		if interpreter.Extension != "" {
			req.ScriptPath += "." + interpreter.Extension
		}
	}
	if err := sallyport.CheckPath(req.ScriptPath); err != nil {
		return req, invalid("scriptPath is not a plain path")
	}
	if err := r.stage(&req); err != nil {
		return req, err
	}
	for _, in := range r.Inputs {
		req.Inputs = append(req.Inputs, sallyport.InputFile{Name: in.Path, Content: in.Content})
	}
	for name, value := range r.Secrets {
		if req.Secrets == nil {
			req.Secrets = map[string]sallyport.Secret{}
		}
		req.Secrets[name] = sallyport.Secret(value)
	}
	return req, r.limit(&req, defaults, tops)
}

// stage makes the script one of the request's files, or checks that it is.
func (r Run) stage(req *sallyport.ExecRequest) error {
	if req.Files == nil {
		req.Files = []sallyport.Component{{
			Path: req.ScriptPath, Kind: sallyport.KindScript, Size: int64(len(req.Content)), SHA256: req.ContentSHA256, Content: req.Content,
		}}
		return nil
	}
	at := slices.IndexFunc(req.Files, func(f sallyport.Component) bool { return f.Path == req.ScriptPath })
	if at < 0 {
		return invalid("scriptPath is not in the revision")
	}
	if req.Files[at].SHA256 != req.ContentSHA256 {
		return &sallyport.Error{Op: "runnerwire.request", Code: sallyport.CodePinMismatch, Message: "the source is not the script of the revision"}
	}
	return nil
}

// limit fills the limits. Nothing is clamped: a server that asks for more than the runner gives is told so.
func (r Run) limit(req *sallyport.ExecRequest, defaults, tops sallyport.Limits) error {
	timeout, fits := seconds(r.TimeoutSeconds)
	if !fits {
		return invalid("timeoutSeconds is missing or out of range")
	}
	l := sallyport.Limits{Timeout: timeout, OutputBytes: r.MaxOutputBytes}
	var cpuTimeMS int64
	if own := r.Limits; own != nil {
		l.MemoryBytes, l.Processes, l.CPUMillis = own.MemoryBytes, own.Processes, own.CPUMillis
		l.ScratchBytes, l.ArtifactBytes, l.ArtifactFiles = own.ScratchBytes, own.ArtifactBytes, own.ArtifactFiles
		cpuTimeMS = own.CPUTimeMS
	}
	if r.GraceSeconds != 0 {
		grace, fits := seconds(r.GraceSeconds)
		if !fits || grace > time.Minute {
			return invalid("graceSeconds is out of range")
		}
		req.Grace = grace
	}
	for _, field := range []struct {
		name         string
		value        *int64
		unset, top   int64
		mustBeStated bool
	}{
		{"maxOutputBytes", &l.OutputBytes, 0, tops.OutputBytes, true},
		{"limits.memoryBytes", &l.MemoryBytes, defaults.MemoryBytes, tops.MemoryBytes, false},
		{"limits.processes", &l.Processes, defaults.Processes, tops.Processes, false},
		{"limits.cpuMillis", &l.CPUMillis, defaults.CPUMillis, tops.CPUMillis, false},
		{"limits.scratchBytes", &l.ScratchBytes, defaults.ScratchBytes, tops.ScratchBytes, false},
		{"limits.artifactBytes", &l.ArtifactBytes, defaults.ArtifactBytes, tops.ArtifactBytes, false},
		{"limits.artifactFiles", &l.ArtifactFiles, defaults.ArtifactFiles, tops.ArtifactFiles, false},
	} {
		// A server of ours sends every limit or none: one that is unset among others is its fault, not a wish for the default.
		if *field.value == 0 && r.Limits == nil && !field.mustBeStated {
			*field.value = min(field.unset, field.top)
		}
		if *field.value <= 0 || *field.value > field.top {
			return invalid("%s is missing or over what this runner gives, %d", field.name, field.top)
		}
	}
	if err := budget(&l, cpuTimeMS, r.Limits != nil, tops); err != nil {
		return err
	}
	if l.Timeout > tops.Timeout {
		return invalid("timeoutSeconds is over what this runner gives, %g", tops.Timeout.Seconds())
	}
	req.Limits = l
	return nil
}

// budget fills the CPU time. Without a top a run may have none; with one it must name a budget within it, unless it names
// no limit at all, as a server of another make does.
func budget(l *sallyport.Limits, ms int64, stated bool, tops sallyport.Limits) error {
	top := tops.CPUTime.Milliseconds()
	if !stated {
		ms = top
	}
	switch {
	case ms < 0 || ms > (24*time.Hour).Milliseconds():
		return invalid("limits.cpuTimeMs is out of range")
	case top > 0 && (ms == 0 || ms > top):
		return invalid("limits.cpuTimeMs is missing or over what this runner gives, %d", top)
	}
	l.CPUTime = time.Duration(ms) * time.Millisecond
	return nil
}

// seconds is a positive number of seconds below a day.
func seconds(n float64) (time.Duration, bool) {
	if math.IsNaN(n) || n <= 0 || n > (24*time.Hour).Seconds() {
		return 0, false
	}
	d := time.Duration(n * float64(time.Second))
	return d, d > 0
}

func invalid(format string, args ...any) error {
	return sallyport.Errorf("runnerwire.request", sallyport.CodeInvalidArgument, format, args...)
}

func hexOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Key names the files of a revision by what is in them: a runner that has them under this name has exactly these. files
// are sorted by path; their SHA256 is taken as it stands, so whoever received the content computes it first.
func Key(files []sallyport.Component) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %d\n", Protocol, len(files))
	for _, f := range files {
		_, _ = fmt.Fprintf(h, "%d:%s %s %d %s\n", len(f.Path), f.Path, f.Kind, f.Size, f.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// FromFiles is the message that carries a revision.
func FromFiles(files []sallyport.Component) Revision {
	r := Revision{Files: make([]File, 0, len(files))}
	for _, f := range files {
		r.Files = append(r.Files, File{Path: f.Path, Kind: string(f.Kind), Content: f.Content})
	}
	return r
}

// Components are the files as they arrived, with the digests of what arrived.
func (r Revision) Components() []sallyport.Component {
	files := make([]sallyport.Component, 0, len(r.Files))
	for _, f := range r.Files {
		files = append(files, sallyport.Component{
			Path: f.Path, Kind: sallyport.Kind(f.Kind), Size: int64(len(f.Content)), SHA256: hexOf(f.Content), Content: f.Content,
		})
	}
	return files
}
