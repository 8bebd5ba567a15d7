package sallyport

import (
	"context"
	"encoding/json"
	"maps"
)

// Candidate is what the gates look at: a request resolved to exact content, not yet approved. Revision and
// every component in it carry Content; Digest was computed from exactly those bytes, and exactly those
// bytes are handed to the executor.
type Candidate struct {
	Principal Principal
	Skill     Skill
	Revision  Revision
	Digest    Digest
	Script    Component
	// Interpreter is resolved by the interpreter gate's allow-list; nil when no row matches.
	Interpreter *Interpreter
	// Args is input_args exactly as received, "{}" when absent.
	Args json.RawMessage
	// ArgsGiven says whether the caller sent input_args at all.
	ArgsGiven bool
	// Argv is nil when the caller sent none.
	Argv  []string
	Files []InputFile
	// Policy is the tenant's, as it was when the request was resolved.
	Policy Policy
	// Limits are already combined: request, script, tenant, installation.
	Limits Limits
	// RequiredLayers are set by the isolation gate: what must be enforced around the run, wherever it is.
	RequiredLayers []Layer
	// Grants are all grants of the tenant that cover the script, newest first. Filled by resolve.
	Grants []Grant
	// Confirmation is a person's yes to exactly this request, nil when there is none. Filled by resolve, where one is wanted.
	Confirmation *Confirmation
	// Grant is set by the pin gate: the active grant whose pin matched, narrow before wide.
	Grant *Grant
}

// InputFile is a file the caller sends with a run. Name is plain ([CheckPath]).
type InputFile struct {
	Name    string
	Content []byte
}

// Interpreter is one row of the allow-list.
type Interpreter struct {
	// Extension without its dot, lower case; it also matches the program name of a shebang.
	Extension string `json:"extension"`
	// Runtime is the name that the execution reports: python, bash, node or a runtime's name.
	Runtime string `json:"runtime"`
	// Program is an absolute path for a local executor, or a runtime name that the executor understands. With Root or Image it
	// is a path in there.
	Program string `json:"program"`
	// Root is the folder that stands in for the system's own files, an absolute path on the executor's host, read-only and
	// verified; empty means the host's own.
	Root string `json:"root,omitempty"`
	// Image is the OCI image of the runtime, by digest, for an executor that starts containers; empty when it has none. What
	// begins with a slash is a tarball or an OCI layout on the executor's host.
	Image string `json:"image,omitempty"`
	// Digest is that of Image, which Root holds unpacked; the record of a run names it. Empty for the host's own files and for a
	// folder that an operator keeps.
	Digest string `json:"digest,omitempty"`
	// Fault says why Root cannot serve, and the remedy, without a path of the host; empty when it can. A run that needs Root is
	// refused with it.
	Fault string `json:"fault,omitempty"`
}

// Gate is one yes/no check before a run. Check returns nil to let the candidate pass. It may set the
// candidate's resolved fields as their comments say and must not change anything else. It must be safe for
// concurrent use and must not block on anything but ctx. A panic or a nil Gate refuses.
type Gate interface {
	// Name is snake_case and stable: it is a metric label and part of a refusal.
	Name() string
	Check(ctx context.Context, candidate *Candidate) *Refusal
}

// Refusal is a gate's no.
type Refusal struct {
	Code    Code
	Gate    string
	Message string // public: the fault and what opens the gate; empty uses the catalogue's sentence
	Details map[string]any
}

// Err turns the refusal into an error for callers.
func (r *Refusal) Err() error {
	if r == nil {
		return nil
	}
	details := map[string]any{"gate": r.Gate}
	maps.Copy(details, r.Details)
	return &Error{Op: "gate." + r.Gate, Code: r.Code, Message: r.Message, Details: details}
}
