package telemetry

import (
	"fmt"
	"strings"
)

// Reference writes docs/metrics.md: every metric with its kind, labels and meaning, and every span.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Metrics and spans

Generated from the table in ` + "`internal/telemetry`" + `; a test keeps it current. Metrics are served at ` + "`/metrics`" + ` to callers with a key, and
exported by OTLP where that is set ([telemetry.md](telemetry.md)). Tenant, skill and script names are attributes of spans and never labels.

| metric | kind | labels | meaning |
|---|---|---|---|
`)
	for _, m := range Metrics() {
		labels := "none"
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, labels, m.Help)
	}
	b.WriteString(`
A histogram has the series ` + "`_bucket`, `_sum` and `_count`" + `. The metrics of the Go runtime and of the process (` + "`go_`, `process_`" + `) come beside
these.

| span | what it covers |
|---|---|
`)
	for _, s := range []struct{ name, covers string }{
		{SpanExecute, "One request to run a script, whatever became of it. Attributes: tenant, skill, script, revision digest, and gate and code of a refusal or status of a run."},
		{SpanResolve, "Finding the skill, the revision and the script, and reading every byte of the revision."},
		{SpanGates, "Asking the gates, in their order."},
		{SpanRecord, "Making the execution and its `script.run` entry durable."},
		{SpanAcquire, "Waiting for a slot."},
		{SpanRun, "The executor's call."},
		{SpanSandboxStart, "Within it, from the call to the start of the script's process."},
		{SpanSettle, "Bounding and normalising what the executor returned."},
		{SpanFinish, "Closing the record with its `script.finished` entry."},
	} {
		fmt.Fprintf(&b, "| `%s` | %s |\n", s.name, s.covers)
	}
	return b.String()
}
