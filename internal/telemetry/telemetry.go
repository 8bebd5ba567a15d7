package telemetry

import (
	"context"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/sallyport-dev/sallyport"
)

// Telemetry observes the pipeline (it is a run.Observer) and the tools. It is safe for concurrent use.
type Telemetry struct {
	tracer        trace.Tracer
	registry      *prometheus.Registry
	executions    *prometheus.CounterVec
	refusals      *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	queueWait     prometheus.Histogram
	slots         prometheus.Gauge
	abandoned     prometheus.Gauge
	auditFailures *prometheus.CounterVec
	toolCalls     *prometheus.CounterVec
	callsDropped  prometheus.Counter
}

// New returns a Telemetry with a metric registry of its own. A nil provider makes no spans.
func New(provider trace.TracerProvider) *Telemetry {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	buckets := prometheus.ExponentialBuckets(0.002, 2, 16)
	t := &Telemetry{
		tracer:     provider.Tracer("github.com/sallyport-dev/sallyport"),
		registry:   prometheus.NewRegistry(),
		executions: counter(MetricExecutions, "Closed executions.", LabelStatus, LabelRuntime, LabelExecutor),
		refusals:   counter(MetricRefusals, "Refused runs; gate is empty outside a gate.", LabelGate, LabelCode),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: MetricDuration, Help: "Time from the executor's call to its return.", Buckets: buckets,
		}, []string{LabelRuntime, LabelExecutor}),
		queueWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: MetricQueueWait, Help: "Time spent waiting for a slot.", Buckets: buckets,
		}),
		slots:         gauge(MetricSlots, "Execution slots in use."),
		abandoned:     gauge(MetricAbandoned, "Executors that did not return by timeout plus grace."),
		auditFailures: counter(MetricAuditFailures, "Audit entries that could not be written.", LabelAction, LabelOutcome),
		toolCalls:     counter(MetricToolCalls, "MCP tool calls; code is empty for success.", LabelTool, LabelCode),
	}
	t.callsDropped = prometheus.NewCounter(prometheus.CounterOpts{Name: MetricCallsDropped, Help: "Tool calls that were not recorded, because the queue was full or the store could not."})
	t.registry.MustRegister(t.callsDropped, t.executions, t.refusals, t.duration, t.queueWait, t.slots, t.abandoned, t.auditFailures,
		t.toolCalls, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// Handler serves the metrics in the Prometheus text format.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Span implements run.Observer. A traceParent continues the caller's trace.
func (t *Telemetry) Span(ctx context.Context, name, traceParent string) (context.Context, func(error)) {
	if traceParent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceParent})
	}
	ctx, span := t.tracer.Start(ctx, name) //nolint:spancheck // the caller ends it by the function below
	return ctx, func(err error) {          //nolint:spancheck // as above
		if err != nil {
			// The private cause belongs on the span and nowhere a caller looks.
			span.RecordError(err)
			span.SetStatus(codes.Error, string(sallyport.CodeOf(err)))
			span.SetAttributes(attribute.String(AttrCode, string(sallyport.CodeOf(err))))
		}
		span.End()
	}
}

// Resolved implements run.Observer.
func (t *Telemetry) Resolved(ctx context.Context, c *sallyport.Candidate) {
	trace.SpanFromContext(ctx).SetAttributes(
		attribute.String(AttrTenant, string(c.Principal.TenantID)),
		attribute.String(AttrSkill, c.Skill.Slug),
		attribute.String(AttrRevision, string(c.Digest)),
		attribute.String(AttrScript, c.Script.Path),
	)
}

// Refused implements run.Observer.
func (t *Telemetry) Refused(ctx context.Context, gate string, code sallyport.Code) {
	t.refusals.WithLabelValues(gate, string(code)).Inc()
	trace.SpanFromContext(ctx).SetAttributes(attribute.String(AttrGate, gate), attribute.String(AttrCode, string(code)))
	if code == sallyport.CodeAuditUnavailable {
		t.auditFailures.WithLabelValues(string(sallyport.ActionScriptRun), "refused").Inc()
	}
}

// DenyUnrecorded implements run.Observer.
func (t *Telemetry) DenyUnrecorded(context.Context) {
	t.auditFailures.WithLabelValues(string(sallyport.ActionScriptDenied), "swallowed").Inc()
}

// FinishUnrecorded implements run.Observer.
func (t *Telemetry) FinishUnrecorded(context.Context) {
	t.auditFailures.WithLabelValues(string(sallyport.ActionScriptFinished), "delayed").Inc()
}

// Finished implements run.Observer.
func (t *Telemetry) Finished(ctx context.Context, e sallyport.Execution) {
	t.executions.WithLabelValues(string(e.Status), e.Runtime, e.Isolation.Executor).Inc()
	t.queueWait.Observe(float64(e.QueueMS) / 1000)
	if e.Status != sallyport.StatusNotStarted && e.Status != sallyport.StatusLost {
		t.duration.WithLabelValues(e.Runtime, e.Isolation.Executor).Observe(float64(e.DurationMS) / 1000)
	}
	attributes := []attribute.KeyValue{
		attribute.String(AttrExecutionID, string(e.ID)), attribute.String(AttrStatus, string(e.Status)),
		attribute.Int64(AttrDurationMS, e.DurationMS), attribute.Int64(AttrQueueMS, e.QueueMS),
	}
	if e.ExitCode != nil {
		attributes = append(attributes, attribute.String(AttrExitCode, strconv.Itoa(*e.ExitCode)))
	}
	trace.SpanFromContext(ctx).SetAttributes(attributes...)
}

// Slots implements run.Observer.
func (t *Telemetry) Slots(used int) { t.slots.Set(float64(used)) }

// Abandoned implements run.Observer.
func (t *Telemetry) Abandoned(delta int) { t.abandoned.Add(float64(delta)) }

// CallsDropped counts tool calls that were not recorded.
func (t *Telemetry) CallsDropped(count int) { t.callsDropped.Add(float64(count)) }

// ToolCalled counts one MCP tool call.
func (t *Telemetry) ToolCalled(tool string, code sallyport.Code) {
	t.toolCalls.WithLabelValues(tool, string(code)).Inc()
}
