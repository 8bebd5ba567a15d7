//go:build amd64 || arm64

package bubblewrap_test

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// attack is one case of the table in docs/threat-model.md, tried for real. Its name begins with the case's number. What the
// suite of package executortest tries already is not tried again here: the table names it.
type attack struct {
	name string
	run  func(t *testing.T, s *siege)
}

// attackThemes are all attacks, by what they are aimed at.
func attackThemes() map[string][]attack {
	return map[string][]attack{
		"processes": attackProcesses(),
		"resources": attackResources(),
		"files":     attackFiles(),
		"streams":   attackStreams(),
		"leaks":     attackLeaks(),
		"faults":    attackFaults(),
		"reports":   attackReports(),
		"strangers": attackStrangers(),
	}
}

// Themes are tried side by side, each with an executor of its own, the attacks of a theme one after the other. Not parallel
// with other tests: in the end this process must have what it had.
func TestAttacks(t *testing.T) {
	program := buildAttacks(t)
	before := ownResources(t)
	t.Run("all", func(t *testing.T) {
		for theme, attacks := range attackThemes() {
			t.Run(theme, func(t *testing.T) {
				t.Parallel()
				s := newSiege(t, program)
				for _, a := range attacks {
					t.Run(a.name, func(t *testing.T) {
						a.run(t, s)
						s.holds(t)
					})
				}
			})
		}
	})
	eventually(t, func() []string { return ownResources(t).over(before) })
}

// siege is an executor under attack, and the host as it was before.
type siege struct {
	e       *bubblewrap.Executor
	h       *host
	before  hostState
	program []byte // testdata/attacks.c
}

func newSiege(tb testing.TB, program []byte) *siege {
	tb.Helper()
	cfg := bubblewrap.Config{StateDir: filepath.Join(tb.TempDir(), "state")}
	// Other themes open and close descriptors of the same process; they are counted when all are done.
	return &siege{e: newExecutor(tb, cfg), h: &host{cfg: cfg, descriptors: 1 << 30}, before: lookAtHost(tb), program: program}
}

// holds fails the test unless the host is as it was, nothing of the run is left and the next tenant is served.
func (s *siege) holds(t *testing.T) {
	t.Helper()
	eventually(t, func() []string { return s.h.leftovers(t) })
	for _, change := range lookAtHost(t).since(s.before) {
		t.Errorf("the host changed: %s", change)
	}
	req := s.script("bash", "echo fine\n")
	req.TenantID = "another"
	s.printed(t, s.do(t, req), "fine\n")
}

var attackExecutions atomic.Int64 // numbers the executions of this test binary

// script is a run of source under small limits.
func (s *siege) script(language, source string) sallyport.ExecRequest {
	program := map[string]string{"bash": "/bin/bash", "python": "/usr/bin/python3", "node": "/usr/bin/node"}[language]
	req := request(language, program, source)
	req.ExecutionID = sallyport.ExecutionID(fmt.Sprintf("attack-%d", attackExecutions.Add(1)))
	req.Limits = sallyport.Limits{
		Timeout: 20 * time.Second, MemoryBytes: 128 << 20, Processes: 48, CPUMillis: 2000, ScratchBytes: 8 << 20,
		OutputBytes: 64 << 10, ArtifactBytes: 4 << 20, ArtifactFiles: 8,
	}
	return req
}

// compiled is a run of testdata/attacks.c, which does what its first argument says.
func (s *siege) compiled(mode string) sallyport.ExecRequest {
	req := s.script("static", "")
	req.Interpreter.Program = "/skill/attacks"
	req.Files = append(req.Files, component("attacks", string(s.program)))
	sortFiles(req.Files)
	req.Stdin = []byte(mode)
	return req
}

func sortFiles(files []sallyport.Component) {
	slices.SortFunc(files, func(a, b sallyport.Component) int { return strings.Compare(a.Path, b.Path) })
}

// do runs req; it fails the test on an error and when the answer is late.
func (s *siege) do(t *testing.T, req sallyport.ExecRequest) sallyport.Result {
	t.Helper()
	begin := time.Now()
	r, err := s.e.Execute(t.Context(), req)
	if err != nil {
		t.Fatalf("execute: %v", err)
	}
	if took, bound := time.Since(begin), req.Limits.Timeout+req.Grace; took > bound {
		t.Errorf("the answer took %s, more than timeout and grace, %s", took, bound)
	}
	if r.ExitCode != nil && (r.Signal != 0 || r.TimedOut || r.StartError != "") || r.TimedOut && r.Signal != 0 {
		t.Errorf("more than one end: %s", told(r))
	}
	return r
}

func (s *siege) exited(t *testing.T, r sallyport.Result, code int) {
	t.Helper()
	if r.ExitCode == nil || *r.ExitCode != code || r.Limit != "" {
		t.Fatalf("want exit code %d, got %s", code, told(r))
	}
}

func (s *siege) printed(t *testing.T, r sallyport.Result, want string) {
	t.Helper()
	s.exited(t, r, 0)
	if got := string(r.Stdout); got != want {
		t.Fatalf("stdout %q, want %q; stderr %q", got, want, r.Stderr)
	}
}

func (s *siege) timedOut(t *testing.T, r sallyport.Result) {
	t.Helper()
	if !r.TimedOut || r.Limit != sallyport.LimitWall {
		t.Fatalf("want a timeout, got %s", told(r))
	}
}

// refused fails the test unless req is refused before anything of it begins.
func (s *siege) refused(t *testing.T, req sallyport.ExecRequest) error {
	t.Helper()
	r, err := s.e.Execute(t.Context(), req)
	if !sallyport.IsNotStarted(err) {
		t.Fatalf("want a refusal, got %v, %s", err, told(r))
	}
	return err
}

func told(r sallyport.Result) string {
	code := "none"
	if r.ExitCode != nil {
		code = fmt.Sprint(*r.ExitCode)
	}
	return fmt.Sprintf("exit code %s, signal %d, limit %q, timed out %v, start error %q, oom kills %d, stdout %.500q, stderr %.1500q",
		code, r.Signal, r.Limit, r.TimedOut, r.StartError, r.Usage.OOMKills, r.Stdout, r.Stderr)
}

//go:embed testdata/attacks.c
var attacksSource string

// buildAttacks compiles testdata/attacks.c: what no interpreter can do.
func buildAttacks(tb testing.TB) []byte {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "attacks")
	writeFile(tb, path+".c", attacksSource)
	out, err := exec.CommandContext(tb.Context(), "gcc", "-static", "-O1", "-s", "-Wall", "-Werror", "-o", path, path+".c").CombinedOutput()
	if err != nil {
		tb.Fatalf("gcc and a static libc are needed to build the attacks: %v\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return program
}

// resources are what this process holds.
type resources struct{ descriptors, goroutines, tasks int }

func ownResources(tb testing.TB) resources {
	tb.Helper()
	count := func(dir string) int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			tb.Fatal(err)
		}
		return len(entries)
	}
	return resources{descriptors: count("/proc/self/fd"), goroutines: runtime.NumGoroutine(), tasks: count("/proc/self/task")}
}

// over says what r holds more of. Threads are the runtime's own affair and only reported by the soak.
func (r resources) over(before resources) []string {
	var more []string
	if r.descriptors > before.descriptors {
		more = append(more, fmt.Sprintf("%d descriptors, %d before", r.descriptors, before.descriptors))
	}
	if r.goroutines > before.goroutines {
		more = append(more, fmt.Sprintf("%d goroutines, %d before", r.goroutines, before.goroutines))
	}
	return more
}
