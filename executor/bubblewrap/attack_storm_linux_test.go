//go:build amd64 || arm64

package bubblewrap_test

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

var stormTime = flag.Duration("storm", 30*time.Second, "how long TestStorm attacks")

// stormers is how many hostile runs are under way at any time of the storm.
const stormers = 12

// Attack 125: attacks 1, 39, 70, 5 and 46, many at once, beside a tenant who means no harm. Not parallel: that tenant's times
// are reported.
func TestStorm(t *testing.T) {
	before := ownResources(t)
	s := newSiege(t, nil)
	hostile := map[string]string{
		"1 fork bomb":        ":() { : | : & }; :\nwait\nsleep 60\n",
		"39 balloon":         "x=x; while :; do x=$x$x; done\n",
		"70 flood":           "yes & yes >&2\n",
		"5 daemon":           "(setsid sleep 3600 >/dev/null 2>&1 </dev/null &)\nexit 0\n",
		"46 files of a byte": "i=0; while :; do printf x > /tmp/$((i++)) || exec sleep 60; done 2>/dev/null\n",
	}
	calm := s.benignTimes(t, 5*time.Second)
	t.Logf("before the storm: %s", calm)

	deadline := time.Now().Add(*stormTime)
	var wait sync.WaitGroup
	counts := map[string]*atomic.Int64{}
	var names []string
	for name := range hostile {
		names, counts[name] = append(names, name), new(atomic.Int64)
	}
	slices.Sort(names)
	for worker := range stormers {
		wait.Go(func() {
			for i := worker; time.Now().Before(deadline); i++ {
				name := names[i%len(names)]
				req := s.script("bash", hostile[name])
				req.TenantID = sallyport.TenantID(fmt.Sprintf("hostile-%d", worker))
				req.Limits.Timeout, req.Limits.MemoryBytes, req.Limits.Processes, req.Limits.CPUMillis = time.Second, 32<<20, 32, 250
				r, err := s.e.Execute(t.Context(), req)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				if !stormEnd(name, r) {
					t.Errorf("%s: %s", name, told(r))
				}
				counts[name].Add(1)
			}
		})
	}
	during := s.benignTimes(t, *stormTime)
	wait.Wait()
	for _, name := range names {
		if counts[name].Load() == 0 {
			t.Errorf("%s was never tried", name)
		}
		t.Logf("%s: %d runs", name, counts[name].Load())
	}
	t.Logf("in the storm: %s", during)
	s.holds(t)
	if err := s.e.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, func() []string { return ownResources(t).over(before) })
}

// stormEnd says whether a hostile run ended as it must.
func stormEnd(name string, r sallyport.Result) bool {
	switch name {
	case "5 daemon":
		// On a machine at its limit even the exit of the leader may come too late.
		return r.ExitCode != nil && *r.ExitCode == 0 || r.TimedOut
	case "39 balloon":
		return r.Limit == sallyport.LimitMemory || r.TimedOut || r.ExitCode != nil && *r.ExitCode != 0
	}
	return r.TimedOut || r.Limit == sallyport.LimitMemory || r.ExitCode != nil || r.Signal != 0
}

// times are how long a tenant waited for its runs.
type times []time.Duration

func (d times) String() string {
	if len(d) == 0 {
		return "no runs"
	}
	slices.Sort(d)
	at := func(q int) time.Duration { return d[min(len(d)*q/100, len(d)-1)].Round(time.Millisecond) }
	return fmt.Sprintf("%d runs of the benign tenant, p50 %s, p99 %s, longest %s", len(d), at(50), at(99), at(100))
}

// benignTimes runs a harmless script again and again; each run must do what it always does.
func (s *siege) benignTimes(t *testing.T, length time.Duration) times {
	t.Helper()
	var d times
	for end := time.Now().Add(length); time.Now().Before(end); {
		req := s.script("bash", "read -r x\necho \"$x\" > \"$SKILL_ARTIFACTS/x\"\necho \"$x\"\n")
		req.TenantID, req.Stdin = "benign", []byte("{\"n\": 1}\n")
		begin := time.Now()
		r := s.do(t, req)
		d = append(d, time.Since(begin))
		s.printed(t, r, "{\"n\": 1}\n")
		if len(r.Artifacts) != 1 || string(r.Artifacts[0].Content) != "{\"n\": 1}\n" {
			t.Errorf("artifacts %v", r.Artifacts)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return d
}
