//go:build amd64 || arm64

package bubblewrap_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// The benchmarks compare a run with a plain start of the same interpreter, taken in turns so that whatever else the
// machine does hits both alike. x-raw is the ratio of the medians; absolute times do not travel between machines.
func BenchmarkExecute(b *testing.B) {
	e := newExecutor(b, bubblewrap.Config{})
	for _, bb := range []struct{ name, runtime, program, source string }{
		{"bash", "bash", "/usr/bin/bash", "echo done\n"},
		{"python", "python", "/usr/bin/python3", "print('done')\n"},
		{"node", "node", "/usr/bin/node", "console.log('done')\n"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			script := filepath.Join(b.TempDir(), "script")
			writeFile(b, script, bb.source)
			req := request(bb.runtime, bb.program, bb.source)
			req.Limits.MemoryBytes = 512 << 20
			req.Limits.CPUMillis = 2000
			var sandboxed, raw []time.Duration
			for b.Loop() {
				begin := time.Now()
				r, err := e.Execute(b.Context(), req)
				sandboxed = append(sandboxed, time.Since(begin))
				if err != nil || string(r.Stdout) != "done\n" {
					b.Fatalf("%+v, %v", r, err)
				}
				begin = time.Now()
				cmd := exec.CommandContext(b.Context(), bb.program, script)
				cmd.Stdin = bytes.NewReader(req.Stdin)
				out, err := cmd.Output()
				raw = append(raw, time.Since(begin))
				if err != nil || string(out) != "done\n" {
					b.Fatalf("%q, %v", out, err)
				}
			}
			b.ReportMetric(milliseconds(median(sandboxed)), "ms/run")
			b.ReportMetric(milliseconds(median(raw)), "ms/raw")
			b.ReportMetric(float64(median(sandboxed))/float64(median(raw)), "x-raw")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A skill of the largest allowed size is copied for every run.
func BenchmarkLargestSkill(b *testing.B) {
	e := newExecutor(b, bubblewrap.Config{})
	req := request("bash", "/usr/bin/bash", "exit 0\n")
	content := string(bytes.Repeat([]byte("0123456789abcde\n"), sallyport.MaxSkillBytes/sallyport.MaxSkillFiles/16))
	for i := range sallyport.MaxSkillFiles - 1 {
		req.Files = append(req.Files, component("data/"+string([]byte{'a' + byte(i/26%26), 'a' + byte(i%26), 'a' + byte(i/676)}), content))
	}
	for b.Loop() {
		if r, err := e.Execute(b.Context(), req); err != nil || r.ExitCode == nil || *r.ExitCode != 0 {
			b.Fatalf("%+v, %v", r, err)
		}
	}
}
