//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// However a program counts processors, it finds its quota, rounded up, and cannot take more.
func TestProcessorsAreTheQuota(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Fatal("this test needs two CPUs")
	}
	e := newExecutor(t, bubblewrap.Config{})
	for millis, want := range map[int64]int{100: 1, 1000: 1, 1001: 2, 1000 * int64(runtime.NumCPU()): runtime.NumCPU(), 1_000_000: runtime.NumCPU()} {
		for program, req := range map[string][3]string{
			"nproc": {"bash", "/bin/bash", "nproc\n"},
			"python": {"python", "/usr/bin/python3", "import os\nprint(os.cpu_count())\n" +
				"try:\n    os.sched_setaffinity(0, range(1024)); print('widened')\nexcept PermissionError:\n    pass\n" +
				"assert len(os.sched_getaffinity(0)) == os.cpu_count()\n"},
			"node": {"node", "/usr/bin/node", "console.log(require('os').availableParallelism())\n"},
		} {
			r := request(req[0], req[1], req[2])
			r.Limits.CPUMillis = millis
			got, err := e.Execute(t.Context(), r)
			if err != nil || string(got.Stdout) != fmt.Sprintln(want) || len(got.Isolation.Notes) != 0 {
				t.Errorf("%s with %d thousandths: got %q %q %v %v, want %d", program, millis, got.Stdout, got.Stderr, got.Isolation.Notes, err, want)
			}
		}
	}
}

// Runs beside each other do not crowd on one CPU.
func TestRunsAreSpread(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, bubblewrap.Config{})
	answers := make(chan string, runtime.NumCPU())
	for range runtime.NumCPU() {
		go func() {
			r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "cat /sys/devices/system/cpu/online; sleep 1\n"))
			if err != nil {
				t.Error(err)
			}
			answers <- strings.TrimSpace(string(r.Stdout))
		}()
	}
	seen := map[string]bool{}
	for range runtime.NumCPU() {
		seen[<-answers] = true
	}
	if len(seen) != runtime.NumCPU() {
		t.Errorf("%d runs at once were on the CPUs %v", runtime.NumCPU(), seen)
	}
}

// A refused process is no failure, and it is counted.
func TestProcessLimitIsCounted(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	e := newExecutor(t, bubblewrap.Config{})
	req := request("python", "/usr/bin/python3", "import os, time\nn = 0\ntry:\n    while os.fork():\n        n += 1\n    time.sleep(60)\nexcept BlockingIOError:\n    print(n)\n")
	req.Limits.Processes = 8
	r, err := e.Execute(t.Context(), req)
	if err != nil || r.ExitCode == nil || *r.ExitCode != 0 || string(r.Stdout) != "7\n" || r.Usage.ProcessLimitHits != 1 {
		t.Errorf("got %q %q, %+v, %v", r.Stdout, r.Stderr, r.Usage, err)
	}
	r, err = e.Execute(t.Context(), request("bash", "/bin/bash", "true | true | true\n"))
	if err != nil || r.Usage.ProcessLimitHits != 0 {
		t.Errorf("without need: got %+v, %v", r.Usage, err)
	}
}
