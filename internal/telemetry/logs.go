package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// requestKey is where a context keeps the id of the request that it belongs to.
type requestKey struct{}

// Request returns a context whose log lines and spans belong to a request: its id, and the caller's W3C trace context, which may be
// empty.
func Request(ctx context.Context, id, traceParent string) context.Context {
	if traceParent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceParent})
	}
	return context.WithValue(ctx, requestKey{}, id)
}

// Logs returns a handler that adds the request and the trace of its context to every line that does not name them itself.
func Logs(next slog.Handler) slog.Handler { return logs{next} }

type logs struct{ slog.Handler }

// Handle implements slog.Handler.
func (l logs) Handle(ctx context.Context, record slog.Record) error {
	said := map[string]bool{}
	record.Attrs(func(a slog.Attr) bool {
		said[a.Key] = true
		return true
	})
	if id, ok := ctx.Value(requestKey{}).(string); ok && id != "" && !said[LogRequestID] {
		record.AddAttrs(slog.String(LogRequestID, id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() && !said[LogTraceID] {
		record.AddAttrs(slog.String(LogTraceID, span.TraceID().String()), slog.String(LogSpanID, span.SpanID().String()))
	}
	return l.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler { return logs{l.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (l logs) WithGroup(name string) slog.Handler { return logs{l.Handler.WithGroup(name)} }
