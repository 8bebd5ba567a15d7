package sallyport

import (
	"context"
	"errors"
	"time"
)

// An Executor carries out one script that every gate has approved.
//
// Before the call: the audit entry is durable, the opening record is written and a slot is held.
//
// The Executor owns where the script runs, under which identity, with which files, network, processor and
// memory. It must isolate, must stop the script at req.Limits.Timeout and, when that is set, at
// req.Limits.CPUTime, must keep at most req.Limits.OutputBytes of each stream, and must leave nothing behind. It uses req.TenantID, never
// anything ambient in ctx.
//
// Return: a Result for whatever the script did, a timeout, a kill and a limit included; an error only if it
// could not do its work. When it knows that nothing of the script began, the error wraps [NotStarted];
// otherwise the run is recorded as lost. A cancelled ctx must stop the script and return ctx.Err() (or a
// Result); it is never reported as a timeout. The error's message is not shown to callers.
//
// It is called by many goroutines, exactly once per approval, and never again for the same one. The caller
// stops waiting at timeout + grace; a result that comes later is discarded.
type Executor interface {
	// Kind is the stable name: "bubblewrap", "container", "remote", ...
	Kind() string
	// Capabilities says what can be enforced now. It is cheap: it may be called for every run.
	Capabilities(ctx context.Context) Capabilities
	Execute(ctx context.Context, req ExecRequest) (Result, error)
}

// Layer is one layer of isolation.
type Layer string

// The layers that a policy can demand and an executor can provide.
const (
	LayerUserNamespace    Layer = "user_namespace"
	LayerMountNamespace   Layer = "mount_namespace"
	LayerPIDNamespace     Layer = "pid_namespace"
	LayerIPCNamespace     Layer = "ipc_namespace"
	LayerUTSNamespace     Layer = "uts_namespace"
	LayerCgroupNamespace  Layer = "cgroup_namespace"
	LayerNetworkIsolation Layer = "network_isolation" // no network at all
	LayerReadOnlySystem   Layer = "read_only_system"
	LayerRunUID           Layer = "run_uid"       // a real non-zero uid of its own per run
	LayerNoNewPrivileges  Layer = "no_new_privs"  // with empty capability sets
	LayerSeccomp          Layer = "seccomp"       //
	LayerLandlock         Layer = "landlock"      //
	LayerMemoryLimit      Layer = "memory_limit"  // enforced by the kernel for the whole run
	LayerProcessLimit     Layer = "process_limit" //
	LayerCPULimit         Layer = "cpu_limit"     //
	LayerGroupKill        Layer = "group_kill"    // one process tree killed as a unit
	LayerScratchLimit     Layer = "scratch_limit" // sized writable file systems
)

// Layers lists every layer.
func Layers() []Layer {
	return []Layer{
		LayerUserNamespace, LayerMountNamespace, LayerPIDNamespace, LayerIPCNamespace, LayerUTSNamespace, LayerCgroupNamespace,
		LayerNetworkIsolation, LayerReadOnlySystem, LayerRunUID, LayerNoNewPrivileges, LayerSeccomp, LayerLandlock,
		LayerMemoryLimit, LayerProcessLimit, LayerCPULimit, LayerGroupKill, LayerScratchLimit,
	}
}

// Feature is something a run can need of an executor besides isolation.
type Feature string

// The features.
const (
	FeatureArgv      Feature = "argv"
	FeatureRevision  Feature = "revision" // the whole revision is staged, not the script alone
	FeatureFiles     Feature = "files"    // input files
	FeatureArtifacts Feature = "artifacts"
	FeatureCPUTime   Feature = "cpu_time" // the CPU budget of a run, over all of its processes
	FeatureRoots     Feature = "roots"    // a runtime that is a folder, or an image unpacked into one: Interpreter.Root
	FeatureImages    Feature = "images"   // a runtime that is an image, started as a container: Interpreter.Image
	FeatureSecrets   Feature = "secrets"  // environment variables that nobody else can read
)

// Features lists every feature.
func Features() []Feature {
	return []Feature{FeatureArgv, FeatureRevision, FeatureFiles, FeatureArtifacts, FeatureCPUTime, FeatureRoots, FeatureImages, FeatureSecrets}
}

// Capabilities is what an executor can enforce now. The zero value provides nothing, so it refuses.
type Capabilities struct {
	Available bool `json:"available"`
	// Reason says, when not available or degraded, what is missing in the host's own words.
	Reason string `json:"reason,omitempty"`
	// Remedy is what an operator can do about it.
	Remedy   string    `json:"remedy,omitempty"`
	Layers   []Layer   `json:"layers"`
	Missing  []Layer   `json:"missing,omitempty"` // layers it would provide on a better host
	Features []Feature `json:"features"`
	// Plan and Profile are those of [Isolation], as the next run will have them.
	Plan    string `json:"plan,omitempty"`
	Profile string `json:"profile,omitempty"`
	// Places is what each of several places enforces, for an executor that chooses one for every run; a run may have what one
	// of them has, and Layers and Features are what all of them have. Nil means one place, which is described by the rest.
	Places []Capabilities `json:"-"`
}

// ExecRequest is one approved run. Every gate already passed. The executor must not modify or retain it.
type ExecRequest struct {
	ExecutionID ExecutionID
	TenantID    TenantID
	Slug        string
	// Digest names the revision; Files were verified against it.
	Digest      Digest
	ScriptPath  string
	Interpreter Interpreter
	// Content is the script itself and ContentSHA256 its 64 hex digits, for executors that ship the script
	// alone; it is also one of Files.
	Content       []byte
	ContentSHA256 string
	// Files is the whole revision, sorted by path.
	Files []Component
	// Stdin is what the script reads, then end of file.
	Stdin []byte
	// Argv follows the script's path on the command line.
	Argv   []string
	Inputs []InputFile
	// Secrets are environment variables to inject by name; they must appear in no argv, log or error.
	Secrets map[string]Secret
	Limits  Limits
	// RequiredLayers are those that the isolation gate found enforced and the run must have. An executor that chooses among
	// places chooses one that enforces them all, or refuses.
	RequiredLayers []Layer
	// Grace is how long after Limits.Timeout the caller still waits.
	Grace time.Duration
	// TraceParent is the W3C trace context of the call, empty when there is none.
	TraceParent string
}

// NeedsRevision reports whether a run of script needs more of its revision than the script itself. SKILL.md and
// sallyport.yaml describe the skill and do not count: a skill with nothing else runs where only its script can be sent.
func NeedsRevision(files []Component, script string) bool {
	for _, f := range files {
		if f.Path != script && f.Path != "SKILL.md" && f.Path != "sallyport.yaml" {
			return true
		}
	}
	return false
}

// Secret is a value that prints as dots.
type Secret string

// String hides the value.
func (Secret) String() string { return "•••" }

// GoString hides the value.
func (Secret) GoString() string { return "•••" }

// MarshalJSON hides the value.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"•••"`), nil }

// LimitName names the limit that ended a run.
type LimitName string

// The limits that can fire.
const (
	LimitWall   LimitName = "wall"
	LimitCPU    LimitName = "cpu"
	LimitMemory LimitName = "memory"
	LimitOutput LimitName = "output"
	LimitDisk   LimitName = "disk"
)

// Result is what the script did, as the executor saw it. The caller trusts none of it: it bounds the
// streams again and normalises contradictions.
type Result struct {
	// ExitCode is nil when the script did not exit by itself.
	ExitCode *int
	// Signal is the signal that ended the script's leader, 0 for none.
	Signal int
	// TimedOut says that the executor stopped the script at its wall or CPU limit.
	TimedOut bool
	// Limit names what fired; empty when none did.
	Limit           LimitName
	Stdout, Stderr  []byte
	StdoutTruncated bool
	StderrTruncated bool
	StdoutBytes     int64 // all the script wrote, kept or not
	StderrBytes     int64
	// OutputData is what the script wrote to SKILL_OUTPUT, unparsed and bounded; nil when absent.
	OutputData []byte
	// OutputDataTruncated says that SKILL_OUTPUT was over the bound and dropped.
	OutputDataTruncated bool
	Artifacts           []ArtifactFile
	// ArtifactsLost says that artifacts or output data could not be collected in time.
	ArtifactsLost bool
	// ArtifactNotes says per skipped file why, in the script's own terms (never a host path).
	ArtifactNotes []string
	// StartError is set when the interpreter or script could not be started at all (missing interpreter, bad
	// shebang, wrong architecture, argument list too long): a sentence without host paths. ExitCode is nil then.
	StartError string
	Usage      Usage
	Isolation  Isolation
	StartedAt  time.Time // when the script's process began; zero when unknown
}

// ArtifactFile is one file that the script left in SKILL_ARTIFACTS.
type ArtifactFile struct {
	Path    string
	Content []byte
}

// Isolation is what was active around one run.
type Isolation struct {
	Executor string  `json:"executor"`
	Layers   []Layer `json:"layers"`
	Missing  []Layer `json:"missing,omitempty"`
	Warm     bool    `json:"warm"`
	// Plan is the way in which the sandbox was built, for an executor that knows more than one.
	Plan string `json:"plan,omitempty"`
	// Profile names the list of system calls that were denied, for an executor that has more than one.
	Profile string `json:"profile,omitempty"`
	// RuntimeDigest names the bytes that the interpreter and its packages came from: the digest of the runtime's image. Empty
	// when the runtime is none.
	RuntimeDigest string `json:"runtime_digest,omitempty"`
	// Notes say what could not be held in this run although its layer was active.
	Notes []string `json:"notes,omitempty"`
}

// notStartedError marks an executor's error as "nothing of the script began".
type notStartedError struct{ err error }

func (e *notStartedError) Error() string { return "not started: " + e.err.Error() }
func (e *notStartedError) Unwrap() error { return e.err }

// NotStarted wraps err to say that nothing of the script began, so the run closes as not_started and not
// as lost.
func NotStarted(err error) error { return &notStartedError{err} }

// IsNotStarted reports whether err says that nothing began.
func IsNotStarted(err error) bool {
	_, ok := errors.AsType[*notStartedError](err)
	return ok
}
