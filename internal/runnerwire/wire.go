// Package runnerwire is what a server and a runner say to each other over HTTP.
//
// It owns the messages and their translation from and to the words of the executor contract. It leaves transport,
// authentication and choice to executor/remote and runner. Its one invariant: the seven fields of a run and the five of its
// outcome that every runner knows mean the same with and without everything else, which is optional on both sides.
//
// The names are camelCase, because the contract that the first seven and five come from is.
package runnerwire

import (
	"github.com/go-json-experiment/json"

	"github.com/sallyport-dev/sallyport"
)

// Protocol names the extended contract in the capabilities of a runner.
const Protocol = "sallyport.runner.v1"

// The routes. A minimal runner has the first only.
const (
	PathRuns         = "/runs"
	PathCapabilities = "/capabilities"
	PathRevisions    = "/revisions/" // followed by a revision's key
	PathHealth       = "/healthz"
)

// Run is the body of POST /runs: one approved run. The first seven fields are the contract of every runner.
type Run struct {
	Tenant string `json:"tenant"`
	// Runtime is a name or a path out of the allow-list of the server; the runner has the last word on what it means.
	Runtime      string `json:"runtime"`
	Source       string `json:"source"`
	SourceSHA256 string `json:"sourceSha256"` // hex of either case
	// StandardInput may be null.
	StandardInput  string  `json:"standardInput"`
	TimeoutSeconds float64 `json:"timeoutSeconds"`
	MaxOutputBytes int64   `json:"maxOutputBytes"`

	ExecutionID string `json:"executionId,omitzero"`
	Slug        string `json:"slug,omitzero"`
	Digest      string `json:"digest,omitzero"`
	ScriptPath  string `json:"scriptPath,omitzero"`
	// Revision is the key of the files to stage; see [Key]. Empty stages the source alone.
	Revision string   `json:"revision,omitzero"`
	Argv     []string `json:"argv,omitempty"`
	Inputs   []File   `json:"inputs,omitempty"`
	Limits   *Limits  `json:"limits,omitzero"`
	// GraceSeconds is how long after the timeout the runner may take to answer.
	GraceSeconds float64           `json:"graceSeconds,omitzero"`
	Secrets      map[string]string `json:"secrets,omitempty"`
	TraceParent  string            `json:"traceparent,omitzero"`
	// RequiredLayers are those that the runner must enforce now, or refuse.
	RequiredLayers []sallyport.Layer `json:"requiredLayers,omitempty"`
	// SourceBytes and StandardInputBytes replace the text of what is not valid UTF-8.
	SourceBytes        []byte `json:"sourceBase64,omitempty"`
	StandardInputBytes []byte `json:"standardInputBase64,omitempty"`
}

// Limits are the limits of a run besides its timeout and its output.
type Limits struct {
	MemoryBytes   int64 `json:"memoryBytes,omitzero"`
	Processes     int64 `json:"processes,omitzero"`
	CPUMillis     int64 `json:"cpuMillis,omitzero"`
	ScratchBytes  int64 `json:"scratchBytes,omitzero"`
	ArtifactBytes int64 `json:"artifactBytes,omitzero"`
	ArtifactFiles int64 `json:"artifactFiles,omitzero"`
	// CPUTimeMS is a budget; absent means none. A runner that keeps it declares the feature cpu_time.
	CPUTimeMS int64 `json:"cpuTimeMs,omitzero"`
}

// File is one file on its way: of a revision, of a caller, or an artifact.
type File struct {
	Path    string `json:"path"`
	Kind    string `json:"kind,omitzero"`
	Content []byte `json:"content"` // base64
}

// Revision is the body of PUT /revisions/KEY.
type Revision struct {
	Files []File `json:"files"`
}

// Outcome is the body of a 200: what the script did. The first five fields are the contract of every runner.
type Outcome struct {
	ExitCode       *int   `json:"exitCode"` // null when the script did not exit by itself
	StandardOutput string `json:"standardOutput"`
	StandardError  string `json:"standardError"`
	Truncated      bool   `json:"truncated"`
	TimedOut       bool   `json:"timedOut"`

	// StandardOutputBytes and StandardErrorBytes are the exact bytes of a stream that is not valid UTF-8.
	StandardOutputBytes     []byte `json:"standardOutputBase64,omitempty"`
	StandardErrorBytes      []byte `json:"standardErrorBase64,omitempty"`
	StandardOutputTruncated *bool  `json:"standardOutputTruncated,omitzero"`
	StandardErrorTruncated  *bool  `json:"standardErrorTruncated,omitzero"`
	StandardOutputWritten   *int64 `json:"standardOutputWritten,omitzero"` // all the script wrote, in bytes
	StandardErrorWritten    *int64 `json:"standardErrorWritten,omitzero"`
	Signal                  int    `json:"signal,omitzero"`
	Limit                   string `json:"limit,omitzero"`
	// StartError is why the script could not be started at all. For a server that does not know it, it is also standard error.
	StartError          string     `json:"startError,omitzero"`
	OutputData          []byte     `json:"outputDataBase64,omitempty"`
	OutputDataTruncated bool       `json:"outputDataTruncated,omitzero"`
	Artifacts           []File     `json:"artifacts,omitempty"`
	ArtifactsLost       bool       `json:"artifactsLost,omitzero"`
	ArtifactNotes       []string   `json:"artifactNotes,omitempty"`
	Usage               *Usage     `json:"usage,omitzero"`
	Isolation           *Isolation `json:"isolation,omitzero"`
	// StartedAfterMS counts from the arrival of the request: the clocks of two machines never meet in here.
	StartedAfterMS *int64 `json:"startedAfterMs,omitzero"`
}

// Usage is what a run used.
type Usage struct {
	MemoryPeakBytes *int64 `json:"memoryPeakBytes,omitzero"`
	CPUTimeMS       *int64 `json:"cpuTimeMs,omitzero"`
	OOMKills        int64  `json:"oomKills"`
	// ProcessLimitHits counts the processes and threads that were refused.
	ProcessLimitHits int64 `json:"processLimitHits,omitzero"`
}

// Isolation is what was active around a run.
type Isolation struct {
	Executor string            `json:"executor"`
	Layers   []sallyport.Layer `json:"layers"`
	Missing  []sallyport.Layer `json:"missing,omitempty"`
	Warm     bool              `json:"warm,omitzero"`
	Plan     string            `json:"plan,omitzero"`
	Profile  string            `json:"profile,omitzero"`
	Notes    []string          `json:"notes,omitempty"`
	// RuntimeDigest names the image that the interpreter came from.
	RuntimeDigest string `json:"runtimeDigest,omitzero"`
}

// Capabilities is the answer to GET /capabilities. A runner without that route answers 404.
type Capabilities struct {
	Protocol  string              `json:"protocol"`
	Executor  string              `json:"executor"`
	Available bool                `json:"available"`
	Reason    string              `json:"reason,omitzero"`
	Remedy    string              `json:"remedy,omitzero"`
	Layers    []sallyport.Layer   `json:"layers"`
	Missing   []sallyport.Layer   `json:"missing,omitempty"`
	Features  []sallyport.Feature `json:"features"`
	Runtimes  []string            `json:"runtimes,omitempty"`
	// Slots is how many runs fit, and Used how many there are.
	Slots int `json:"slots"`
	Used  int `json:"used"`
	// Draining says that the runner is about to stop and takes no more runs.
	Draining bool `json:"draining,omitzero"`
}

// The codes of a [Fault] that are not codes of the product.
const (
	CodeRevisionUnknown = "REVISION_UNKNOWN" // upload it, then ask again
	CodeDigestMismatch  = "DIGEST_MISMATCH"
	CodeAlreadyAsked    = "ALREADY_ASKED" // this execution was started here before
	CodeDraining        = "DRAINING"
)

// Fault is the body of everything that is not 200.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Started is false when nothing of the script began, true when it may have, absent when the sender does not know the
	// question.
	Started *bool `json:"started,omitzero"`
}

// Decode reads one message. Unknown fields are ignored; a key twice, another letter case or invalid UTF-8 is an error.
func Decode(data []byte, v any) error { return json.Unmarshal(data, v) }

// Encode writes one message.
func Encode(v any) ([]byte, error) { return json.Marshal(v) }
