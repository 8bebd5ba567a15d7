// Package telemetry turns what happens in the product into spans, metrics and log keys, and exports them by OTLP.
//
// It owns every name of them, in this file, and the Prometheus registry. It leaves the choice to export to the OTEL_ variables that
// it is given. Its one invariant: tenant, skill and script names are span attributes and never metric labels.
package telemetry

// Spans. SpanExecute is one per request to run; the others are its children, SpanSandboxStart that of SpanRun.
const (
	SpanExecute      = "sallyport.execute"
	SpanResolve      = "sallyport.resolve"
	SpanGates        = "sallyport.gates"
	SpanRecord       = "sallyport.record"
	SpanAcquire      = "sallyport.acquire"
	SpanRun          = "sallyport.run"
	SpanSandboxStart = "sallyport.sandbox_start"
	SpanSettle       = "sallyport.settle"
	SpanFinish       = "sallyport.finish"
)

// Attributes of spans.
const (
	AttrTenant      = "sallyport.tenant"
	AttrSkill       = "sallyport.skill"
	AttrRevision    = "sallyport.revision_digest"
	AttrScript      = "sallyport.script"
	AttrGate        = "sallyport.gate"
	AttrCode        = "sallyport.code"
	AttrExecutionID = "sallyport.execution_id"
	AttrStatus      = "sallyport.status"
	AttrExitCode    = "sallyport.exit_code"
	AttrDurationMS  = "sallyport.duration_ms"
	AttrQueueMS     = "sallyport.queue_ms"
	AttrExecutor    = "sallyport.executor"
	AttrWarm        = "sallyport.warm"
)

// Keys of log lines that every line within a call carries.
const (
	LogRequestID = "request_id"
	LogTraceID   = "trace_id"
	LogSpanID    = "span_id"
)

// Metrics.
const (
	MetricExecutions     = "sallyport_executions_total"
	MetricRefusals       = "sallyport_refusals_total"
	MetricDuration       = "sallyport_execution_duration_seconds"
	MetricQueueWait      = "sallyport_queue_wait_seconds"
	MetricSandboxStart   = "sallyport_sandbox_start_seconds"
	MetricGrantsExpiring = "sallyport_grants_expiring"
	MetricSlots          = "sallyport_slots_in_use"
	MetricAbandoned      = "sallyport_executor_abandoned"
	MetricPool           = "sallyport_warm_sandboxes"
	MetricAuditFailures  = "sallyport_audit_write_failures_total"
	MetricToolCalls      = "sallyport_tool_calls_total"
	MetricCallsDropped   = "sallyport_tool_call_records_dropped_total"
	MetricBuild          = "sallyport_build_info"
)

// Labels of metrics.
const (
	LabelStatus   = "status"
	LabelRuntime  = "runtime"
	LabelExecutor = "executor"
	LabelGate     = "gate"
	LabelCode     = "code"
	LabelAction   = "action"
	LabelOutcome  = "outcome"
	LabelTool     = "tool"
	LabelStart    = "start"
	LabelVersion  = "version"
)

// Kinds of metrics.
const (
	kindCounter   = "counter"
	kindGauge     = "gauge"
	kindHistogram = "histogram"
)

// A Metric is one row of the reference.
type Metric struct {
	Name, Kind, Help string
	Labels           []string
}

// Metrics lists every metric of the product; the runtime's own (go_, process_, promhttp_) come beside them.
func Metrics() []Metric {
	return []Metric{
		{MetricExecutions, kindCounter, "Closed executions.", []string{LabelStatus, LabelRuntime, LabelExecutor}},
		{MetricRefusals, kindCounter, "Refused runs; gate is empty outside a gate.", []string{LabelGate, LabelCode}},
		{MetricDuration, kindHistogram, "Time from the executor's call to its return.", []string{LabelRuntime, LabelExecutor}},
		{MetricQueueWait, kindHistogram, "Time spent waiting for a slot.", nil},
		{MetricSandboxStart, kindHistogram, "Time from the executor's call to the start of the script's process; start is warm or cold.", []string{LabelExecutor, LabelStart}},
		{MetricSlots, kindGauge, "Execution slots in use.", nil},
		{MetricGrantsExpiring, kindGauge, "Active grants of all tenants that end within grant_notice.", nil},
		{MetricAbandoned, kindGauge, "Executors that did not return by timeout plus grace.", nil},
		{MetricPool, kindGauge, "Sandboxes that wait for a run, where the executor keeps some.", []string{LabelRuntime}},
		{MetricAuditFailures, kindCounter, "Audit entries that could not be written. The outcome is refused when what they were about was refused for it, swallowed when it was refused anyway, delayed when it had happened.", []string{LabelAction, LabelOutcome}},
		{MetricToolCalls, kindCounter, "MCP tool calls; code is empty for success.", []string{LabelTool, LabelCode}},
		{MetricCallsDropped, kindCounter, "Tool calls that were not recorded, because the queue was full or the store could not.", nil},
		{MetricBuild, kindGauge, "Always 1; the version is its label.", []string{LabelVersion}},
	}
}
