//go:build !unix

package unsafelocal

import (
	"context"
	"errors"

	"github.com/sallyport-dev/sallyport"
)

// Executor refuses every run: processes cannot be ended as a group on this system.
type Executor struct{}

const otherReason = "unsafelocal needs a Unix system"

// New returns an executor that refuses, or INVALID_ARGUMENT.
func New(cfg Config) (*Executor, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Executor{}, nil
}

// Kind returns "unsafelocal".
func (*Executor) Kind() string { return Kind }

// Capabilities provides nothing.
func (*Executor) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{
		Reason: otherReason, Remedy: "use the executor remote", Layers: []sallyport.Layer{}, Missing: missing(), Features: []sallyport.Feature{},
	}
}

// Execute refuses with SANDBOX_UNAVAILABLE.
func (*Executor) Execute(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
	return sallyport.Result{}, sallyport.NotStarted(&sallyport.Error{
		Op: "unsafelocal.execute", Code: sallyport.CodeSandboxUnavailable, Err: errors.New(otherReason),
	})
}
