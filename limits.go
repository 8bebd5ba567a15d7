package sallyport

import (
	"encoding/json"
	"time"
)

// Limits is what one execution may use. A zero field means unset; the set that reaches an executor has
// every field set but CPUTime. Limits only narrow: see [Limits.Narrow]. In JSON Timeout is timeout_ms and CPUTime
// cpu_time_ms.
type Limits struct {
	Timeout       time.Duration // wall clock
	MemoryBytes   int64
	Processes     int64 // processes and threads
	CPUMillis     int64 // thousandths of one CPU
	ScratchBytes  int64 // each writable tmpfs
	OutputBytes   int64 // each of stdout and stderr
	ArtifactBytes int64
	ArtifactFiles int64
	// CPUTime is the processor time of all processes of the run together. Unlike the others it has no default: zero means
	// no budget besides the wall clock and the share, also for an executor. Whole milliseconds, at least [MinCPUTime].
	CPUTime time.Duration
}

// The defaults of design.md 4, and the top an installation allows a caller to ask for.
const (
	DefaultTimeout       = 30 * time.Second
	MinTimeout           = time.Second
	MinMemoryBytes       = 16 << 20               // what an interpreter needs to begin
	MinCPUTime           = 100 * time.Millisecond // what building the sandbox and an interpreter need to begin
	MaxTimeout           = 60 * time.Second
	DefaultGrace         = 5 * time.Second
	MinGrace             = 100 * time.Millisecond // in less a run cannot be ended and what it used be read
	DefaultOutputBytes   = 256 << 10
	DefaultArgumentBytes = 16 << 10
	DefaultScriptBytes   = 1 << 20
	DefaultMemoryBytes   = 512 << 20
	DefaultProcesses     = 128
	DefaultCPUMillis     = 1000
	DefaultScratchBytes  = 64 << 20
	DefaultArtifactBytes = 16 << 20
	DefaultArtifactFiles = 32
	DefaultInputBytes    = 8 << 20
	DefaultInputFiles    = 32
	DefaultBodyBytes     = 16 << 20
	DefaultQueueLength   = 64
	DefaultQueueWait     = 30 * time.Second
	MaxSkillFiles        = 512
	MaxSkillBytes        = 16 << 20
)

// DefaultLimits are the installation's limits when nothing else is configured.
func DefaultLimits() Limits {
	return Limits{
		Timeout: DefaultTimeout, MemoryBytes: DefaultMemoryBytes, Processes: DefaultProcesses,
		CPUMillis: DefaultCPUMillis, ScratchBytes: DefaultScratchBytes, OutputBytes: DefaultOutputBytes,
		ArtifactBytes: DefaultArtifactBytes, ArtifactFiles: DefaultArtifactFiles,
	}
}

// Narrow returns, field by field, the smaller of l and other; an unset (zero) field yields to the other.
func (l Limits) Narrow(other Limits) Limits {
	return Limits{
		Timeout:       narrow(l.Timeout, other.Timeout),
		MemoryBytes:   narrow(l.MemoryBytes, other.MemoryBytes),
		Processes:     narrow(l.Processes, other.Processes),
		CPUMillis:     narrow(l.CPUMillis, other.CPUMillis),
		ScratchBytes:  narrow(l.ScratchBytes, other.ScratchBytes),
		OutputBytes:   narrow(l.OutputBytes, other.OutputBytes),
		ArtifactBytes: narrow(l.ArtifactBytes, other.ArtifactBytes),
		ArtifactFiles: narrow(l.ArtifactFiles, other.ArtifactFiles),
		CPUTime:       narrow(l.CPUTime, other.CPUTime),
	}
}

func narrow[T time.Duration | int64 | int](a, b T) T {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	default:
		return min(a, b)
	}
}

type limitsJSON struct {
	TimeoutMS     int64 `json:"timeout_ms,omitempty"`
	MemoryBytes   int64 `json:"memory_bytes,omitempty"`
	Processes     int64 `json:"processes,omitempty"`
	CPUMillis     int64 `json:"cpu_millis,omitempty"`
	ScratchBytes  int64 `json:"scratch_bytes,omitempty"`
	OutputBytes   int64 `json:"output_bytes,omitempty"`
	ArtifactBytes int64 `json:"artifact_bytes,omitempty"`
	ArtifactFiles int64 `json:"artifact_files,omitempty"`
	CPUTimeMS     int64 `json:"cpu_time_ms,omitempty"`
}

// MarshalJSON writes the set fields only, times in milliseconds.
func (l Limits) MarshalJSON() ([]byte, error) {
	return json.Marshal(limitsJSON{
		l.Timeout.Milliseconds(), l.MemoryBytes, l.Processes, l.CPUMillis,
		l.ScratchBytes, l.OutputBytes, l.ArtifactBytes, l.ArtifactFiles, l.CPUTime.Milliseconds(),
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var j limitsJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*l = Limits{
		time.Duration(j.TimeoutMS) * time.Millisecond, j.MemoryBytes, j.Processes, j.CPUMillis,
		j.ScratchBytes, j.OutputBytes, j.ArtifactBytes, j.ArtifactFiles, time.Duration(j.CPUTimeMS) * time.Millisecond,
	}
	return nil
}

// IsZero reports whether no field is set.
func (l Limits) IsZero() bool { return l == Limits{} }

// Usage is what one execution used. A nil field was not measurable on this host.
type Usage struct {
	MemoryPeakBytes *int64 `json:"memory_peak_bytes,omitempty"`
	CPUTimeMS       *int64 `json:"cpu_time_ms,omitempty"`
	// OOMKills counts processes of the run that the kernel killed for memory; reported on success too.
	OOMKills int64 `json:"oom_kills"`
	// ProcessLimitHits counts the processes and threads that the process limit refused to the run; on success too.
	ProcessLimitHits int64 `json:"process_limit_hits,omitempty"`
}
