//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Both kinds of trees count, in their own units; without a counter nothing is known, and so nothing is left of a budget.
func TestCPUTimeOfAGroup(t *testing.T) {
	t.Parallel()
	two, one, bare := t.TempDir(), t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(two, "cpu.stat"):      "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n",
		filepath.Join(one, "cpuacct.usage"): "2500000000\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		group group
		want  time.Duration
		known bool
	}{
		"v2":                    {group{life: two}, 1500 * time.Millisecond, true},
		"v2 with a controller":  {group{life: two, limits: map[controller]string{controlCPU: two}, v2: map[controller]bool{controlCPU: true}}, 1500 * time.Millisecond, true},
		"v1":                    {group{limits: map[controller]string{controlCPUAcct: one}}, 2500 * time.Millisecond, true},
		"v1 beside an empty v2": {group{life: bare, limits: map[controller]string{controlCPUAcct: one}}, 2500 * time.Millisecond, true},
		"v1 without cpuacct":    {group{life: two, limits: map[controller]string{controlCPU: bare}}, 1500 * time.Millisecond, true},
		"none":                  {group{life: bare}, 0, false},
		"no groups":             {group{}, 0, false},
	} {
		got, known := tt.group.cpuTime()
		if got != tt.want || known != tt.known {
			t.Errorf("%s: got %s, %v", name, got, known)
		}
		a := active{group: &tt.group, spec: spec{limits: sallyport.Limits{CPUTime: 2 * time.Second}}}
		if left, ok := a.cpuLeft(); ok != tt.known || ok && left != 2*time.Second-tt.want {
			t.Errorf("%s: %s left, %v", name, left, ok)
		}
	}
}

// The next look comes no later than the budget can be spent, and not so often that looking is what the machine does.
func TestCPUPause(t *testing.T) {
	t.Parallel()
	quota := &groups{limits: map[controller]*parentGroup{controlCPU: {}}}
	for name, tt := range map[string]struct {
		groups *groups
		millis int64
		left   time.Duration
		most   time.Duration
	}{
		"half a CPU":       {quota, 500, 100 * time.Millisecond, 200 * time.Millisecond},
		"one CPU":          {quota, 1000, 300 * time.Millisecond, 300 * time.Millisecond},
		"almost nothing":   {quota, 1000, time.Microsecond, cpuPauseMin},
		"much":             {quota, 10, time.Hour, cpuPauseMax},
		"no quota is kept": {&groups{}, 10, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		a := active{e: &Executor{groups: tt.groups}, spec: spec{limits: sallyport.Limits{CPUMillis: tt.millis}}}
		if got := a.cpuPause(tt.left); got > tt.most || got < cpuPauseMin {
			t.Errorf("%s: %s", name, got)
		}
	}
}
