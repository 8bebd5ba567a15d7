//go:build amd64 || arm64

package bubblewrap_test

import (
	"os"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// As root on a host with control groups everything is enforced. Elsewhere a layer may be missing, but nothing fails.
func TestProbe(t *testing.T) {
	t.Parallel()
	probeAll(t, bubblewrap.Config{})
}

// The same holds for every plan and profile.
func TestProbeOfEveryPlan(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	probeAll(t, bubblewrap.Config{Plan: bubblewrap.PlanUserNamespace, Profile: bubblewrap.ProfileStrict})
	probeAll(t, bubblewrap.Config{Plan: bubblewrap.PlanRoot, Profile: bubblewrap.ProfileStrict})
}

func probeAll(t *testing.T, cfg bubblewrap.Config) {
	t.Helper()
	e := newExecutor(t, cfg)
	seen := map[string]bool{}
	for _, check := range e.Probe(t.Context()) {
		if seen[check.Name] {
			t.Errorf("%s: two checks of one name", check.Name)
		}
		seen[check.Name] = true
		// How the machine that tests is set up besides is not up to us.
		advice := check.Result == bubblewrap.CheckAdvice && slices.Contains([]string{"swap", "protected_links", "wsl"}, check.Name)
		if check.Result == bubblewrap.CheckFail || (os.Geteuid() == 0 && check.Result != bubblewrap.CheckPass && !advice) {
			t.Errorf("%s: %s: %s (%s)", check.Name, check.Result, check.Detail, check.Remedy)
		}
		if check.Result != bubblewrap.CheckPass && check.Name != "forced_memory" && check.Name != "forced_processes" && check.Remedy == "" {
			t.Errorf("%s has no remedy", check.Name)
		}
	}
	for _, name := range []string{"sandbox", "control_groups", "core_pattern", "seccomp", "capabilities", "connect", "forced_timeout", "forced_memory", "forced_processes", "forced_output", "leftovers"} {
		if !seen[name] {
			t.Errorf("no check %s", name)
		}
	}
}
