package run

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Observer is told what happens in the pipeline; package internal/telemetry turns it into spans and metrics. Its methods are
// called concurrently and must not block. Tenant, skill and script names reach spans and never metric labels.
type Observer interface {
	// Span opens a span; end closes it with the private cause of a failure, or nil.
	Span(ctx context.Context, name string, traceParent string) (spanned context.Context, end func(error))
	// TraceParent is the W3C trace context of the span in ctx, the caller's when no spans are made; empty when there is none.
	TraceParent(ctx context.Context) string
	// Resolved names what the run is about, on the span in ctx.
	Resolved(ctx context.Context, candidate *sallyport.Candidate)
	// Refused counts a refusal; gate is empty for refusals outside a gate.
	Refused(ctx context.Context, gate string, code sallyport.Code)
	// DenyUnrecorded counts a script.denied entry that could not be written.
	DenyUnrecorded(ctx context.Context)
	// FinishUnrecorded counts a script.finished entry that could not be written at once.
	FinishUnrecorded(ctx context.Context)
	// SandboxStarted tells when the script's process began, within the span in ctx; called is when the executor was.
	SandboxStarted(ctx context.Context, called, started time.Time, isolation sallyport.Isolation)
	// Finished counts a closed execution.
	Finished(ctx context.Context, execution sallyport.Execution)
	// Slots reports how many slots are in use.
	Slots(used int)
	// Abandoned counts executors that did not return in time: +1 when given up, -1 when one returns after all.
	Abandoned(delta int)
}

type noObserver struct{}

func (noObserver) Span(ctx context.Context, _, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}
func (noObserver) TraceParent(context.Context) string { return "" }
func (noObserver) SandboxStarted(context.Context, time.Time, time.Time, sallyport.Isolation) {
}
func (noObserver) Resolved(context.Context, *sallyport.Candidate)  {}
func (noObserver) Refused(context.Context, string, sallyport.Code) {}
func (noObserver) FinishUnrecorded(context.Context)                {}
func (noObserver) DenyUnrecorded(context.Context)                  {}
func (noObserver) Finished(context.Context, sallyport.Execution)   {}
func (noObserver) Slots(int)                                       {}
func (noObserver) Abandoned(int)                                   {}
