package telemetry_test

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/telemetry"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	const path = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(path, []byte(telemetry.Reference()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != telemetry.Reference() {
		t.Errorf("docs/metrics.md is stale, run go test ./internal/telemetry -update (%v)", err)
	}
}

// everything tells a Telemetry one of everything.
func everything(t *telemetry.Telemetry) {
	ctx := context.Background()
	started := time.Now()
	t.SandboxStarted(ctx, started, started.Add(time.Millisecond), sallyport.Isolation{Executor: "bubblewrap", Warm: true})
	t.SandboxStarted(ctx, started, started.Add(time.Second), sallyport.Isolation{Executor: "bubblewrap"})
	t.Finished(ctx, sallyport.Execution{Status: sallyport.StatusSuccess, Runtime: "python", Isolation: sallyport.Isolation{Executor: "bubblewrap"}})
	t.Refused(ctx, "grant", sallyport.CodeGrantMissing)
	t.Refused(ctx, "", sallyport.CodeAuditUnavailable)
	t.DenyUnrecorded(ctx)
	t.FinishUnrecorded(ctx)
	t.AuditFailed(sallyport.ActionGrantIssue)
	t.Slots(3)
	t.Abandoned(1)
	t.ToolCalled("recall_cloud_skill", "")
	t.CallsDropped(2)
}

// What is served is what the table says, and nothing in it names a tenant, a skill or a script.
func TestServedIsTheTable(t *testing.T) {
	t.Parallel()
	tel := telemetry.New(telemetry.Config{Version: "1.2.3", Pool: func() map[string]int { return map[string]int{"python": 4} }})
	everything(tel)
	rec := httptest.NewRecorder()
	tel.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	served := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (sallyport_\S+) (\S+)$`).FindAllStringSubmatch(rec.Body.String(), -1) {
		served[match[1]] = match[2]
	}
	for _, m := range telemetry.Metrics() {
		if served[m.Name] != m.Kind {
			t.Errorf("%s is served as %q, the table says %s", m.Name, served[m.Name], m.Kind)
		}
		delete(served, m.Name)
		for _, label := range m.Labels {
			if strings.Contains(label, "tenant") || strings.Contains(label, "skill") || strings.Contains(label, "script") || strings.Contains(label, "principal") {
				t.Errorf("%s has the label %s", m.Name, label)
			}
		}
	}
	if len(served) > 0 {
		t.Errorf("served and not in the table: %v", served)
	}
	for _, line := range []string{
		`sallyport_warm_sandboxes{runtime="python"} 4`, `sallyport_sandbox_start_seconds_count{executor="bubblewrap",start="warm"} 1`,
		`sallyport_sandbox_start_seconds_count{executor="bubblewrap",start="cold"} 1`, `sallyport_slots_in_use 3`, `sallyport_build_info{version="1.2.3"} 1`,
		`sallyport_audit_write_failures_total{action="script.run",outcome="refused"} 1`, `sallyport_audit_write_failures_total{action="grant.issue",outcome="refused"} 1`,
		`sallyport_tool_call_records_dropped_total 2`,
	} {
		if !slices.Contains(strings.Split(rec.Body.String(), "\n"), line) {
			t.Errorf("not served: %s", line)
		}
	}
}
