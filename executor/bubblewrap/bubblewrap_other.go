//go:build !linux || !(amd64 || arm64)

package bubblewrap

import (
	"context"
	"errors"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// Executor refuses every run: there is no sandbox of this kind on this system.
type Executor struct{}

const otherReason = "bubblewrap needs Linux on amd64 or arm64"

// New returns an executor that refuses. It fails only for a Config that cannot be meant.
func New(cfg Config) (*Executor, error) {
	if err := cfg.validateWithDefaults(); err != nil {
		return nil, &sallyport.Error{Op: "bubblewrap.new", Code: sallyport.CodeInvalidArgument, Message: "the configuration of the bubblewrap executor is wrong: " + strings.ReplaceAll(err.Error(), "\n", "; "), Err: err}
	}
	return &Executor{}, nil
}

// Kind returns "bubblewrap".
func (*Executor) Kind() string { return Kind }

// Capabilities provides nothing.
func (*Executor) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{
		Reason: otherReason, Remedy: "use the container or remote executor",
		Layers: []sallyport.Layer{}, Features: []sallyport.Feature{},
	}
}

// Execute refuses with SANDBOX_UNAVAILABLE.
func (*Executor) Execute(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
	return sallyport.Result{}, sallyport.NotStarted(&sallyport.Error{
		Op: "bubblewrap.execute", Code: sallyport.CodeSandboxUnavailable, Err: errors.New(otherReason),
	})
}

// Probe has one line, which fails.
func (*Executor) Probe(context.Context) []Check {
	return []Check{{Name: "sandbox", Result: CheckFail, Detail: otherReason, Remedy: "use the container or remote executor"}}
}

// Close does nothing.
func (*Executor) Close() error { return nil }
