//go:build linux

package unsafelocal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/executor/executortest"
	"github.com/sallyport-dev/sallyport/executor/unsafelocal"
)

func newExecutor(tb testing.TB) *unsafelocal.Executor {
	tb.Helper()
	e, err := unsafelocal.New(unsafelocal.Config{AcceptNoIsolation: true})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// Everything that needs no isolation is true here too. Not parallel: the suite sets variables.
func TestSuite(t *testing.T) {
	executortest.Run(t, executortest.Factory{
		New:          func(tb testing.TB) sallyport.Executor { tb.Helper(); return newExecutor(tb) },
		Provides:     []sallyport.Layer{},
		Interpreters: bubblewrap.FindInterpreters(),
		Leftovers: func(tb testing.TB) []string {
			tb.Helper()
			left, err := filepath.Glob(filepath.Join(os.TempDir(), "sallyport-unsafe-*"))
			if err != nil {
				tb.Fatal(err)
			}
			return left
		},
	})
}

// A configuration that does not say it gets nothing.
func TestRefusesUnlessNamed(t *testing.T) {
	t.Parallel()
	if e, err := unsafelocal.New(unsafelocal.Config{}); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || e != nil {
		t.Errorf("got %v, %v", e, err)
	}
}

// What left the group of the script with its variables ends with it; what merely has the same execution's name does not.
func TestKillsItsOwn(t *testing.T) {
	t.Parallel()
	const id = "kills-its-own"
	stranger := exec.Command("/bin/sleep", "60")
	stranger.Env = []string{"SKILL_EXECUTION_ID=" + id}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	r, err := newExecutor(t).Execute(t.Context(), request(id, "setsid sleep 60 > /dev/null 2>&1 < /dev/null & echo $!\n"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(r.Stdout)))
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), "(sleep) S") {
		t.Errorf("the child lives: %s", stat)
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stranger.Process.Pid)); err != nil || strings.Contains(string(stat), "(sleep) Z") {
		t.Errorf("the stranger is dead: %s %v", stat, err)
	}
	_ = stranger.Process.Kill()
	_ = stranger.Wait()
}

func request(id, text string) sallyport.ExecRequest {
	source := []byte(text)
	sha := sallyport.DigestOf(source).Hex()
	return sallyport.ExecRequest{
		ExecutionID: sallyport.ExecutionID(id), TenantID: "t", Slug: "s", ScriptPath: "x.sh", Content: source, ContentSHA256: sha,
		Files:       []sallyport.Component{{Path: "x.sh", Content: source, SHA256: sha, Size: int64(len(source))}},
		Interpreter: sallyport.Interpreter{Extension: "sh", Runtime: "bash", Program: "/bin/bash"},
		Limits:      sallyport.DefaultLimits(), Grace: sallyport.DefaultGrace,
	}
}

// It claims nothing, before and after: every result lists every layer as missing.
func TestSaysSo(t *testing.T) {
	t.Parallel()
	e := newExecutor(t)
	caps := e.Capabilities(t.Context())
	if len(caps.Layers) != 0 || len(caps.Missing) != len(sallyport.Layers()) || caps.Reason == "" {
		t.Errorf("capabilities %+v", caps)
	}
	r, err := e.Execute(t.Context(), request("says-so", "echo fine\n"))
	if err != nil || string(r.Stdout) != "fine\n" {
		t.Fatalf("got %q, %v", r.Stdout, err)
	}
	want := sallyport.Isolation{Executor: "unsafelocal", Layers: []sallyport.Layer{}, Missing: sallyport.Layers()}
	if diff := cmp.Diff(want, r.Isolation); diff != "" {
		t.Errorf("isolation (-want +got):\n%s", diff)
	}
}
