package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"time"

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

// Config is what a Telemetry needs; every field may be left out.
type Config struct {
	// Tracer makes spans; nil makes none.
	Tracer trace.TracerProvider
	// Pool says how many sandboxes wait for a run of each runtime; nil for an executor that keeps none.
	Pool func() map[string]int
	// Version of the product.
	Version string
}

// Telemetry observes the pipeline (it is a run.Observer) and the tools. It is safe for concurrent use.
type Telemetry struct {
	tracer        trace.Tracer
	registry      *prometheus.Registry
	executions    *prometheus.CounterVec
	refusals      *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	queueWait     prometheus.Observer
	sandboxStart  *prometheus.HistogramVec
	slots         prometheus.Gauge
	abandoned     prometheus.Gauge
	expiring      prometheus.Gauge
	auditFailures *prometheus.CounterVec
	toolCalls     *prometheus.CounterVec
	callsDropped  prometheus.Counter
}

// New returns a Telemetry with a metric registry of its own.
func New(cfg Config) *Telemetry {
	if cfg.Tracer == nil {
		cfg.Tracer = noop.NewTracerProvider()
	}
	made := makeMetrics()
	t := &Telemetry{
		tracer:        cfg.Tracer.Tracer("github.com/sallyport-dev/sallyport"),
		registry:      prometheus.NewRegistry(),
		executions:    made.counters[MetricExecutions],
		refusals:      made.counters[MetricRefusals],
		duration:      made.histograms[MetricDuration],
		queueWait:     made.histograms[MetricQueueWait].WithLabelValues(),
		sandboxStart:  made.histograms[MetricSandboxStart],
		slots:         made.gauges[MetricSlots].WithLabelValues(),
		expiring:      made.gauges[MetricGrantsExpiring].WithLabelValues(),
		abandoned:     made.gauges[MetricAbandoned].WithLabelValues(),
		auditFailures: made.counters[MetricAuditFailures],
		toolCalls:     made.counters[MetricToolCalls],
		callsDropped:  made.counters[MetricCallsDropped].WithLabelValues(),
	}
	made.gauges[MetricBuild].WithLabelValues(cfg.Version).Set(1)
	for _, vec := range made.counters {
		t.registry.MustRegister(vec)
	}
	for _, vec := range made.histograms {
		t.registry.MustRegister(vec)
	}
	for name, vec := range made.gauges {
		if name != MetricPool {
			t.registry.MustRegister(vec)
		}
	}
	if cfg.Pool != nil {
		t.registry.MustRegister(pool{made.gauges[MetricPool], cfg.Pool})
	}
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// metrics are the rows of the table, made.
type metrics struct {
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec
	histograms map[string]*prometheus.HistogramVec
}

func makeMetrics() metrics {
	made := metrics{map[string]*prometheus.CounterVec{}, map[string]*prometheus.GaugeVec{}, map[string]*prometheus.HistogramVec{}}
	buckets := prometheus.ExponentialBuckets(0.002, 2, 16)
	for _, m := range Metrics() {
		switch m.Kind {
		case kindCounter:
			made.counters[m.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
		case kindGauge:
			made.gauges[m.Name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
		case kindHistogram:
			made.histograms[m.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: buckets}, m.Labels)
		}
	}
	return made
}

// pool asks the executor whenever somebody looks.
type pool struct {
	*prometheus.GaugeVec

	depth func() map[string]int
}

// Collect implements prometheus.Collector.
func (p pool) Collect(to chan<- prometheus.Metric) {
	for runtime, depth := range p.depth() {
		p.WithLabelValues(runtime).Set(float64(depth))
	}
	p.GaugeVec.Collect(to)
}

// Handler serves the metrics in the Prometheus text format.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Gatherer gives the metrics to an exporter.
func (t *Telemetry) Gatherer() *prometheus.Registry { return t.registry }

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

// TraceParent implements run.Observer.
func (t *Telemetry) TraceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
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
		t.AuditFailed(sallyport.ActionScriptRun)
	}
}

// AuditFailed counts an entry that could not be written and whose subject was refused for it.
func (t *Telemetry) AuditFailed(action sallyport.Action) {
	t.auditFailures.WithLabelValues(string(action), "refused").Inc()
}

// DenyUnrecorded implements run.Observer.
func (t *Telemetry) DenyUnrecorded(context.Context) {
	t.auditFailures.WithLabelValues(string(sallyport.ActionScriptDenied), "swallowed").Inc()
}

// FinishUnrecorded implements run.Observer.
func (t *Telemetry) FinishUnrecorded(context.Context) {
	t.auditFailures.WithLabelValues(string(sallyport.ActionScriptFinished), "delayed").Inc()
}

// SandboxStarted implements run.Observer.
func (t *Telemetry) SandboxStarted(ctx context.Context, called, started time.Time, isolation sallyport.Isolation) {
	start := "cold"
	if isolation.Warm {
		start = "warm"
	}
	t.sandboxStart.WithLabelValues(isolation.Executor, start).Observe(started.Sub(called).Seconds())
	_, span := t.tracer.Start(ctx, SpanSandboxStart, trace.WithTimestamp(called),
		trace.WithAttributes(attribute.String(AttrExecutor, isolation.Executor), attribute.Bool(AttrWarm, isolation.Warm)))
	span.End(trace.WithTimestamp(started))
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

// GrantsExpiring sets how many active grants end soon.
func (t *Telemetry) GrantsExpiring(count int) { t.expiring.Set(float64(count)) }

// CallsDropped counts tool calls that were not recorded.
func (t *Telemetry) CallsDropped(count int) { t.callsDropped.Add(float64(count)) }

// ToolCalled counts one MCP tool call.
func (t *Telemetry) ToolCalled(tool string, code sallyport.Code) {
	t.toolCalls.WithLabelValues(tool, string(code)).Inc()
}
