// Package sallyporttest has fakes and builders for the tests of applications that embed Sallyport or bring an own gate or
// executor.
//
// It owns no rules: what an executor must do is checked by package executor/executortest. Its one invariant: a fake does
// nothing that its test did not ask for, and says so by failing the test.
package sallyporttest

import (
	"context"
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// errUnset is what a fake returns where its test set no function.
var errUnset = errors.New("the fake has no function for this call")

// Executor is a [sallyport.Executor] made of functions. A call whose function is nil fails the test by name and refuses:
// no capabilities, and a run of which nothing began. TB is required. It is safe for concurrent use when its functions are.
type Executor struct {
	TB               testing.TB
	KindFunc         func() string
	CapabilitiesFunc func(ctx context.Context) sallyport.Capabilities
	ExecuteFunc      func(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error)
}

var _ sallyport.Executor = (*Executor)(nil)

// Kind calls KindFunc; without one it is "fake", which is not a failure: everything that reports a run asks for it.
func (e *Executor) Kind() string {
	if e.KindFunc == nil {
		return "fake"
	}
	return e.KindFunc()
}

// Capabilities calls CapabilitiesFunc.
func (e *Executor) Capabilities(ctx context.Context) sallyport.Capabilities {
	e.TB.Helper()
	if e.CapabilitiesFunc == nil {
		unset(e.TB, "Executor.Capabilities", "CapabilitiesFunc")
		return sallyport.Capabilities{}
	}
	return e.CapabilitiesFunc(ctx)
}

// Execute calls ExecuteFunc.
func (e *Executor) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	e.TB.Helper()
	if e.ExecuteFunc == nil {
		unset(e.TB, "Executor.Execute", "ExecuteFunc")
		return sallyport.Result{}, sallyport.NotStarted(errUnset)
	}
	return e.ExecuteFunc(ctx, req)
}

// Gate is a [sallyport.Gate] made of functions. A call whose function is nil fails the test by name and refuses. TB is
// required. It is safe for concurrent use when its functions are.
type Gate struct {
	TB        testing.TB
	NameFunc  func() string
	CheckFunc func(ctx context.Context, candidate *sallyport.Candidate) *sallyport.Refusal
}

var _ sallyport.Gate = (*Gate)(nil)

// Name calls NameFunc; without one it is "fake", which is not a failure: everything that reports a refusal asks for it.
func (g *Gate) Name() string {
	if g.NameFunc == nil {
		return "fake"
	}
	return g.NameFunc()
}

// Check calls CheckFunc.
func (g *Gate) Check(ctx context.Context, candidate *sallyport.Candidate) *sallyport.Refusal {
	g.TB.Helper()
	if g.CheckFunc == nil {
		unset(g.TB, "Gate.Check", "CheckFunc")
		return &sallyport.Refusal{Code: sallyport.CodeInternal, Gate: g.Name(), Message: errUnset.Error()}
	}
	return g.CheckFunc(ctx, candidate)
}

// unset fails the test without ending it: a fake may be called on any goroutine.
func unset(tb testing.TB, call, field string) {
	tb.Helper()
	tb.Errorf("sallyporttest: %s was called, and the test set no %s", call, field)
}

// AllLayers returns capabilities that provide every layer of isolation and every feature there is: those of an executor
// that no policy refuses. Nothing is enforced by saying so.
func AllLayers() sallyport.Capabilities {
	return sallyport.Capabilities{
		Available: true,
		Layers: []sallyport.Layer{
			sallyport.LayerUserNamespace, sallyport.LayerMountNamespace, sallyport.LayerPIDNamespace,
			sallyport.LayerIPCNamespace, sallyport.LayerUTSNamespace, sallyport.LayerCgroupNamespace,
			sallyport.LayerNetworkIsolation, sallyport.LayerReadOnlySystem, sallyport.LayerRunUID,
			sallyport.LayerNoNewPrivileges, sallyport.LayerSeccomp, sallyport.LayerLandlock, sallyport.LayerMemoryLimit,
			sallyport.LayerProcessLimit, sallyport.LayerCPULimit, sallyport.LayerGroupKill, sallyport.LayerScratchLimit,
		},
		Features: sallyport.Features(),
	}
}

// Exited is the Result of a script that ended by itself with code and wrote stdout.
func Exited(code int, stdout string) sallyport.Result {
	return sallyport.Result{ExitCode: &code, Stdout: []byte(stdout), StdoutBytes: int64(len(stdout))}
}
