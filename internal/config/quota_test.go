package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/server"
)

func TestQuotas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		yaml string
		want server.Quotas
	}{
		"dev has none":          {"", server.Quotas{}},
		"production":            {"profile: production\n", server.Quotas{Failures: 20}},
		"production, lifted":    {"profile: production\nquotas: {failures: none}\n", server.Quotas{}},
		"production, tightened": {"profile: production\nquotas: {failures: 3}\n", server.Quotas{Failures: 3}},
		"all": {
			`
quotas:
  tenant: {requests_per_second: 1, runs_per_minute: 2, runs_per_day: 3, cpu_seconds_per_day: 4}
  principal: {requests_per_second: 5, runs_per_minute: 6, runs_per_day: 7, cpu_seconds_per_day: 8, concurrent_runs: 9}
  failures: 10
  failure_window: 1m
`, server.Quotas{
				Tenant:    server.Quota{RequestsPerSecond: 1, RunsPerMinute: 2, RunsPerDay: 3, CPUSecondsPerDay: 4},
				Principal: server.Quota{RequestsPerSecond: 5, RunsPerMinute: 6, RunsPerDay: 7, CPUSecondsPerDay: 8, ConcurrentRuns: 9},
				Failures:  10, FailureWindow: time.Minute,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, test.yaml, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, s.Server(config.Parts{}).Quotas); diff != "" {
				t.Errorf("quotas (-want +got):\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"quotas: {failures: 0}\n", "quotas: {failures: off}\n", "quotas: {tenant: {runs_per_day: 0}}\n", "quotas: {tenant: 3}\n"} {
		if _, err := load(t, bad, nil); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
