// Package telemetry turns what happens in the product into spans, metrics and log keys.
//
// It owns every name of them, in this file, and the Prometheus registry. It leaves the choice of a trace exporter to its
// caller. Its one invariant: tenant, skill and script names are span attributes and never metric labels.
package telemetry

// Spans.
const (
	SpanExecute = "sallyport.execute" // one per request to run; children: SpanAcquire, SpanRun
	SpanAcquire = "sallyport.acquire"
	SpanRun     = "sallyport.run"
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
)

// Metrics.
const (
	MetricExecutions    = "sallyport_executions_total"
	MetricRefusals      = "sallyport_refusals_total"
	MetricDuration      = "sallyport_execution_duration_seconds"
	MetricQueueWait     = "sallyport_queue_wait_seconds"
	MetricSlots         = "sallyport_slots_in_use"
	MetricAbandoned     = "sallyport_executor_abandoned"
	MetricAuditFailures = "sallyport_audit_write_failures_total"
	MetricToolCalls     = "sallyport_tool_calls_total"
	MetricCallsDropped  = "sallyport_tool_call_records_dropped_total"
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
)
