package container_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// The benchmark compares a run in a container with one in bubblewrap and with a plain start of the same interpreter, taken in turns so
// that whatever else the machine does hits all alike. Ratios are of medians and of 95th percentiles to the plain start's;
// absolute times do not travel between machines.
func BenchmarkColdStart(b *testing.B) {
	p := engine(b)
	inContainer := newExecutor(b, p.config())
	inBubblewrap, err := bubblewrap.New(bubblewrap.Config{StateDir: filepath.Join(b.TempDir(), "state"), FirstUID: 61184, UIDCount: 8})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = inBubblewrap.Close() }()
	for _, bb := range []struct{ runtime, program, source string }{
		{"bash", "/usr/bin/bash", "echo done\n"}, {"python", "/usr/bin/python3", "print('done')\n"}, {"node", "/usr/bin/node", "console.log('done')\n"},
	} {
		b.Run(bb.runtime, func(b *testing.B) {
			script := filepath.Join(b.TempDir(), "script")
			if err := os.WriteFile(script, []byte(bb.source), 0o600); err != nil {
				b.Fatal(err)
			}
			times := map[string][]time.Duration{}
			run := func(name string, do func() ([]byte, error)) {
				begin := time.Now()
				out, err := do()
				times[name] = append(times[name], time.Since(begin))
				if err != nil || string(out) != "done\n" {
					b.Fatalf("%s: %q, %v", name, out, err)
				}
			}
			execute := func(e sallyport.Executor) func() ([]byte, error) {
				return func() ([]byte, error) {
					req := request(bb.source)
					req.Interpreter = sallyport.Interpreter{Runtime: bb.runtime, Program: bb.program}
					req.Limits.MemoryBytes = 512 << 20
					r, err := e.Execute(b.Context(), req)
					return r.Stdout, err
				}
			}
			for b.Loop() {
				run("container", execute(inContainer))
				run("bubblewrap", execute(inBubblewrap))
				run("raw", func() ([]byte, error) {
					cmd := exec.CommandContext(b.Context(), bb.program, script)
					cmd.Stdin = bytes.NewReader([]byte("{}"))
					return cmd.Output()
				})
			}
			for _, d := range times {
				slices.Sort(d)
			}
			for name, d := range times {
				b.ReportMetric(milliseconds(percentile(d, 50)), "ms-p50/"+name)
				b.ReportMetric(milliseconds(percentile(d, 95)), "ms-p95/"+name)
				b.ReportMetric(float64(percentile(d, 50))/float64(percentile(times["raw"], 50)), "x-p50/"+name)
				b.ReportMetric(float64(percentile(d, 95))/float64(percentile(times["raw"], 95)), "x-p95/"+name)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// percentile is of a sorted list.
func percentile(d []time.Duration, p int) time.Duration { return d[min(len(d)-1, len(d)*p/100)] }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
