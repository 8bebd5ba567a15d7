//go:build amd64 || arm64

package bubblewrap_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

var soakRuns = flag.Int("soak", 200, "how many runs TestSoak makes")

// Reports 48 to 51, 55 and 56: after any number of runs, of every kind of end, the host and this process have what they had.
// Not parallel: it counts.
func TestSoak(t *testing.T) {
	s := newSiege(t, nil)
	// What is made once, and kept, is made before counting: caches, the spawner, the runtime's own goroutines.
	s.soak(t, 24)
	before := s.count(t)
	begin := time.Now()
	s.soak(t, *soakRuns)
	took := time.Since(begin)
	s.holds(t)
	var after holdings
	eventually(t, func() []string {
		after = s.count(t)
		return after.over(before)
	})
	t.Logf("%d runs in %s", *soakRuns, took.Round(time.Second))
	t.Logf("before: %s", before)
	t.Logf("after:  %s", after)
}

// soak makes runs, four at a time, each of the kind that its number says.
func (s *siege) soak(t *testing.T, runs int) {
	t.Helper()
	kinds := soakKinds()
	var next atomic.Int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= runs {
					return
				}
				kind := kinds[n%len(kinds)]
				if fault := kind.run(t.Context(), s); fault != "" {
					t.Errorf("run %d, %s: %s", n, kind.name, fault)
				}
			}
		})
	}
	wait.Wait()
}

type soakKind struct {
	name string
	run  func(ctx context.Context, s *siege) string
}

// soakKinds are the ways in which a run can end, most of them the good one.
func soakKinds() []soakKind {
	script := func(name, source string, change func(*sallyport.ExecRequest), good func(sallyport.Result) bool) soakKind {
		return soakKind{name, func(ctx context.Context, s *siege) string {
			req := s.script("bash", source)
			if change != nil {
				change(&req)
			}
			r, err := s.e.Execute(ctx, req)
			if err != nil || !good(r) {
				return fmt.Sprintf("%v, %s", err, told(r))
			}
			return ""
		}}
	}
	code := func(want int) func(sallyport.Result) bool {
		return func(r sallyport.Result) bool { return r.ExitCode != nil && *r.ExitCode == want }
	}
	good := script("good", "cat\necho x > \"$SKILL_ARTIFACTS/x\"\n", nil, func(r sallyport.Result) bool {
		return code(0)(r) && string(r.Stdout) == "{}" && len(r.Artifacts) == 1
	})
	kinds := []soakKind{
		good, good, script("fails", "exit 7\n", nil, code(7)),
		good, script("killed", "kill -9 $$\n", nil, func(r sallyport.Result) bool { return r.Signal == 9 }),
		good, script("daemon", "(setsid sleep 300 >/dev/null 2>&1 &)\nsleep 300 &\nexit 0\n", nil, code(0)),
		good, script("start fails", "", func(req *sallyport.ExecRequest) { req.Interpreter.Program = "/usr/bin/no-such-program" },
			func(r sallyport.Result) bool { return r.StartError != "" }),
		good, script("input file and own revision", "cat \"$SKILL_INPUT/in\"\n", func(req *sallyport.ExecRequest) {
			req.Inputs = []sallyport.InputFile{{Name: "in", Content: []byte("in")}}
			req.Files = append(req.Files, component("unique", string(req.ExecutionID)))
			sortFiles(req.Files)
		}, code(0)),
		good,
		{"canceled", func(ctx context.Context, s *siege) string {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
			defer cancel()
			if r, err := s.e.Execute(ctx, s.script("bash", "sleep 300\n")); !errors.Is(err, context.DeadlineExceeded) || r.TimedOut {
				return fmt.Sprintf("%v, %s", err, told(r))
			}
			return ""
		}},
		good, script("flood", "yes | head -c 3000000\n", nil, func(r sallyport.Result) bool { return r.StdoutTruncated }),
		good,
		{"refused", func(ctx context.Context, s *siege) string {
			req := s.script("bash", "")
			req.Limits.MemoryBytes = -1
			if _, err := s.e.Execute(ctx, req); !sallyport.IsNotStarted(err) {
				return fmt.Sprint(err)
			}
			return ""
		}},
		good, script("out of memory", "x=x; while :; do x=$x$x; done\n", func(req *sallyport.ExecRequest) { req.Limits.MemoryBytes = 24 << 20 },
			func(r sallyport.Result) bool {
				return r.Limit == sallyport.LimitMemory || r.ExitCode != nil && *r.ExitCode != 0
			}),
		good, script("fork bomb", ":() { : | : & }; :\nsleep 0.1\n", func(req *sallyport.ExecRequest) { req.Limits.Timeout = time.Second },
			// Its leader may wait for a process until the end.
			func(r sallyport.Result) bool { return r.TimedOut || r.ExitCode != nil }),
	}
	return append(kinds, script("timeout", "sleep 300\n", func(req *sallyport.ExecRequest) { req.Limits.Timeout = time.Second },
		func(r sallyport.Result) bool { return r.TimedOut }))
}

// holdings are what runs could leave.
type holdings struct {
	resources
	children, groups, folders, mounts int
	heap, resident                    int64
}

func (h holdings) String() string {
	return fmt.Sprintf("%d child processes, %d control groups, %d folders and files of state, %d mounts, %d descriptors, %d goroutines, %d threads, heap %d KiB, resident %d KiB",
		h.children, h.groups, h.folders, h.mounts, h.descriptors, h.goroutines, h.tasks, h.heap>>10, h.resident>>10)
}

// heapSlack is how much of the heap may be waiting to be collected or kept as a buffer.
const heapSlack = 4 << 20

func (h holdings) over(before holdings) []string {
	more := h.resources.over(before.resources)
	for name, n := range map[string][2]int{
		"child processes": {h.children, before.children}, "control groups": {h.groups, before.groups}, "mounts": {h.mounts, before.mounts},
	} {
		if n[0] > n[1] {
			more = append(more, fmt.Sprintf("%d %s, %d before", n[0], name, n[1]))
		}
	}
	// Unpacked revisions are kept on purpose, up to the bound of the cache; folders in the making are not.
	if h.heap > before.heap+heapSlack {
		more = append(more, fmt.Sprintf("%d bytes of heap, %d before", h.heap, before.heap))
	}
	return more
}

func (s *siege) count(t *testing.T) holdings {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	h := holdings{resources: ownResources(t), heap: int64(memory.HeapAlloc)}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		h.children += len(strings.Fields(string(children)))
	}
	for _, group := range instanceGroups(t, s.h.cfg.StateDir) {
		_ = filepath.WalkDir(group, func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				h.groups++
			}
			return nil
		})
	}
	_ = filepath.WalkDir(s.h.cfg.StateDir, func(string, fs.DirEntry, error) error { h.folders++; return nil })
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	h.mounts = strings.Count(string(mounts), "sallyport-sandbox") + strings.Count(string(mounts), s.h.cfg.StateDir) + strings.Count(string(mounts), "/newroot")
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &h.resident); err == nil {
			h.resident <<= 10
		}
	}
	return h
}

// The revisions of a soak are evicted: the cache is bounded, whatever callers send.
func TestAttackEndlessRevisions(t *testing.T) {
	t.Parallel()
	s := &siege{}
	cfg := bubblewrap.Config{StateDir: filepath.Join(t.TempDir(), "state"), CacheBytes: 1 << 20}
	s.e = newExecutor(t, cfg)
	for i := range 20 {
		req := s.script("bash", "echo complete\n")
		req.Files = append(req.Files, component("unique", strings.Repeat(fmt.Sprintf("%08d", i), 16<<10)))
		sortFiles(req.Files)
		s.printed(t, s.do(t, req), "complete\n")
	}
	total := int64(0)
	err := filepath.WalkDir(cfg.StateDir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	if err != nil || total > 2<<20 {
		t.Errorf("the state folder holds %d bytes, %v", total, err)
	}
}
