package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mediatype"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// settle writes what the executor reported into the execution and returns the artifacts to store. An executor is not trusted:
// streams are cut again, contradictions resolved, everything bounded.
func settle(e *sallyport.Execution, r sallyport.Result, limits sallyport.Limits, hidden *hider) []sallyport.ArtifactFile {
	r = hidden.result(r)
	settleStart(e, r.StartedAt)
	settleStreams(e, r, limits.OutputBytes)
	settleOutcome(e, r)
	settleOutputData(e, r, limits.OutputBytes)
	if hidden != nil && len(e.OutputData) > 0 {
		// A standard output that is JSON can hold a value in escapes that only a reader of JSON sees.
		if clear := hidden.json("output_data", e.OutputData); len(r.OutputData) == 0 && string(clear) != string(e.OutputData) {
			e.OutputData, e.Stdout = clear, string(clear)+"\n"
		}
	}
	e.MemoryPeakBytes, e.CPUTimeMS, e.OOMKills = r.Usage.MemoryPeakBytes, r.Usage.CPUTimeMS, max(r.Usage.OOMKills, 0)
	e.ProcessLimitHits = max(r.Usage.ProcessLimitHits, 0)
	if r.Isolation.Executor != "" {
		known := e.Isolation.RuntimeDigest
		e.Isolation = r.Isolation
		// What was handed over, not what came back; only a runtime that is elsewhere is known by its executor alone.
		if reported, err := sallyport.ParseDigest(r.Isolation.RuntimeDigest); known == "" && err == nil {
			known = string(reported)
		}
		e.Isolation.RuntimeDigest = known
		if len(r.Isolation.Notes) > 0 {
			e.Isolation.Notes = boundNotes(r.Isolation.Notes)
		}
	}
	if e.Isolation.Layers == nil {
		e.Isolation.Layers = []sallyport.Layer{}
	}
	kept := settleArtifacts(e, r, limits)
	e.EncodingNotes = append(e.EncodingNotes, hidden.notes()...)
	return kept
}

func settleStreams(e *sallyport.Execution, r sallyport.Result, limit int64) {
	for _, stream := range []struct {
		name      string
		raw       []byte
		cut       bool
		written   int64
		text      *string
		truncated *bool
		bytes     *int64
	}{
		{"stdout", r.Stdout, r.StdoutTruncated, r.StdoutBytes, &e.Stdout, &e.StdoutTruncated, &e.StdoutBytes},
		{"stderr", r.Stderr, r.StderrTruncated, r.StderrBytes, &e.Stderr, &e.StderrTruncated, &e.StderrBytes},
	} {
		text, truncated, replaced := bound(stream.raw, stream.cut, limit)
		*stream.text, *stream.truncated = text, truncated
		*stream.bytes = max(stream.written, int64(len(stream.raw)))
		if replaced {
			e.EncodingNotes = append(e.EncodingNotes, stream.name+": bytes that are not UTF-8 were replaced by U+FFFD")
		}
	}
}

// bound makes valid UTF-8 of at most limit bytes out of raw. cut says that raw is already the beginning of something longer, so that a
// character cut in half at its end is dropped and not replaced.
func bound(raw []byte, cut bool, limit int64) (text string, truncated, replaced bool) {
	truncated = cut
	if int64(len(raw)) > limit {
		raw, truncated = raw[:limit], true
	}
	if truncated {
		raw = dropPartial(raw)
	}
	text = string(raw)
	if utf8.ValidString(text) {
		return text, truncated, false
	}
	text = string([]rune(text)) // one U+FFFD for each byte that belongs to no character
	// A replacement is longer than the byte it stands for: cut again.
	if int64(len(text)) > limit {
		text, truncated = string(dropPartial([]byte(text[:limit]))), true
	}
	return text, truncated, true
}

// dropPartial removes an incomplete character at the end.
func dropPartial(b []byte) []byte {
	for back := 1; back <= min(utf8.UTFMax-1, len(b)); back++ {
		tail := b[len(b)-back:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-back]
			}
			return b
		}
	}
	return b
}

// settleOutcome applies the reporting rule, first match wins. Exit codes stay what they are: 137 is not "killed", 124 is
// not "timeout".
func settleOutcome(e *sallyport.Execution, r sallyport.Result) {
	end := func(status sallyport.Status, kind sallyport.Code, limit sallyport.LimitName, message string) {
		e.Status, e.ErrorKind, e.Limit = status, kind, limit
		if kind != "" && message == "" {
			message = sallyport.Lookup(kind).Message
		}
		e.ErrorMessage = message
	}
	signal := syscall.Signal(r.Signal)
	if r.Signal > 0 {
		e.Signal, e.SignalName = r.Signal, signalName(signal)
	}
	switch {
	case r.TimedOut && r.Limit == sallyport.LimitCPU:
		e.Signal, e.SignalName = 0, ""
		end(sallyport.StatusTimeout, sallyport.CodeExecutionTimeout, sallyport.LimitCPU, "the script used up its CPU time and was stopped")
	case r.TimedOut:
		e.Signal, e.SignalName = 0, ""
		end(sallyport.StatusTimeout, sallyport.CodeExecutionTimeout, sallyport.LimitWall, "")
	case r.StartError != "":
		end(sallyport.StatusError, sallyport.CodeScriptExecutionError, "", "the script could not be started: "+sentence(r.StartError))
	case r.Limit == sallyport.LimitOutput:
		end(sallyport.StatusResourceExhausted, sallyport.CodeResourceExhausted, sallyport.LimitOutput, "the script wrote more output than it was allowed and was stopped")
	case r.Limit == sallyport.LimitMemory, signal == syscall.SIGKILL && r.Usage.OOMKills > 0:
		end(sallyport.StatusResourceExhausted, sallyport.CodeResourceExhausted, sallyport.LimitMemory, "the script used more memory than it was allowed and was killed")
	case r.Limit == sallyport.LimitDisk, signal == syscall.SIGXFSZ:
		end(sallyport.StatusResourceExhausted, sallyport.CodeResourceExhausted, sallyport.LimitDisk, "the script wrote a larger file than it was allowed and was killed")
	case signal == syscall.SIGSYS:
		end(sallyport.StatusError, sallyport.CodeScriptExecutionError, "", "the script made a system call that is denied and was killed")
	case r.Signal > 0:
		end(sallyport.StatusError, sallyport.CodeScriptExecutionError, "", "the script was ended by the signal "+e.SignalName)
	case r.ExitCode == nil || *r.ExitCode < 0 || *r.ExitCode > 255:
		end(sallyport.StatusLost, sallyport.CodeExecutionLost, "", "")
	case *r.ExitCode == 0:
		e.ExitCode = r.ExitCode
		end(sallyport.StatusSuccess, "", "", "")
	default:
		e.ExitCode = r.ExitCode
		end(sallyport.StatusError, sallyport.CodeScriptExecutionError, "", fmt.Sprintf("the script ended with exit code %d", *r.ExitCode))
	}
}

// settleOutputData takes what the script wrote to SKILL_OUTPUT, else a stdout that is one JSON object or array.
func settleOutputData(e *sallyport.Execution, r sallyport.Result, limit int64) {
	switch {
	case r.OutputDataTruncated || int64(len(r.OutputData)) > limit:
		e.OutputDataNote = fmt.Sprintf("SKILL_OUTPUT is over the limit of %d bytes and was dropped", limit)
	case len(bytes.TrimSpace(r.OutputData)) > 0:
		if err := strictjson.Check(r.OutputData); err != nil {
			e.OutputDataNote = "SKILL_OUTPUT is not one JSON value: " + sallyport.Public(err).Message
			return
		}
		e.OutputData = json.RawMessage(bytes.TrimSpace(r.OutputData))
	case !e.StdoutTruncated && len(e.EncodingNotes) == 0:
		text := strings.TrimSpace(e.Stdout)
		if text != "" && (text[0] == '{' || text[0] == '[') && strictjson.Check([]byte(text)) == nil {
			e.OutputData = json.RawMessage(text)
		}
	}
}

func settleArtifacts(e *sallyport.Execution, r sallyport.Result, limits sallyport.Limits) []sallyport.ArtifactFile {
	e.ArtifactsLost = r.ArtifactsLost
	notes := slices.Clone(r.ArtifactNotes)
	e.Artifacts = []sallyport.Artifact{}
	var kept []sallyport.ArtifactFile
	var total int64
	seen := map[string]bool{}
	skip := func(path, why string) {
		notes = append(notes, strconv.Quote(path[:min(len(path), maxSentence)])+": "+why)
	}
	for _, file := range r.Artifacts {
		size := int64(len(file.Content))
		switch {
		case sallyport.CheckPath(file.Path) != nil:
			skip(file.Path, "the name is not plain")
		case seen[file.Path]:
			skip(file.Path, "reported twice")
		case int64(len(kept)) >= limits.ArtifactFiles:
			skip(file.Path, "over the limit of "+strconv.FormatInt(limits.ArtifactFiles, 10)+" files")
		case total+size > limits.ArtifactBytes:
			skip(file.Path, "over the limit of "+strconv.FormatInt(limits.ArtifactBytes, 10)+" bytes")
		default:
			seen[file.Path] = true
			total += size
			kept = append(kept, file)
			e.Artifacts = append(e.Artifacts, sallyport.Artifact{
				Path: file.Path, Size: size, SHA256: sallyport.DigestOf(file.Content).Hex(),
				MediaType: mediatype.Of(file.Path, file.Content), URI: artifactURI(e.ID, file.Path),
			})
		}
	}
	e.ArtifactNotes = boundNotes(notes)
	return kept
}

const maxNotes = 64

func boundNotes(notes []string) []string {
	if len(notes) > maxNotes {
		notes = append(notes[:maxNotes:maxNotes], fmt.Sprintf("and %d more", len(notes)-maxNotes))
	}
	bounded := make([]string, 0, len(notes))
	for _, note := range notes {
		text, _, _ := bound([]byte(note), false, maxSentence)
		bounded = append(bounded, text)
	}
	return bounded
}

func artifactURI(id sallyport.ExecutionID, path string) string {
	var escaped strings.Builder
	for i := range len(path) {
		c := path[i]
		if c == '/' || c == '-' || c == '.' || c == '_' || c == '~' ||
			c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			escaped.WriteByte(c)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", c)
		}
	}
	return "/v1/executions/" + string(id) + "/artifacts/" + escaped.String()
}

// signalName gives the usual name of a signal, e.g. SIGSEGV.
func signalName(signal syscall.Signal) string {
	if name, ok := signalNames[signal]; ok {
		return name
	}
	return "signal " + strconv.Itoa(int(signal))
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGILL: "SIGILL",
	syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGKILL: "SIGKILL", syscall.SIGUSR1: "SIGUSR1", syscall.SIGSEGV: "SIGSEGV", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGALRM: "SIGALRM", syscall.SIGTERM: "SIGTERM", syscall.SIGXCPU: "SIGXCPU",
	syscall.SIGXFSZ: "SIGXFSZ", syscall.SIGSYS: "SIGSYS",
}
