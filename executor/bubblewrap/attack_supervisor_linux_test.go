//go:build amd64 || arm64

package bubblewrap_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// contextFor is canceled after a delay.
func contextFor(t *testing.T, delay time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(delay, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}

// fifty is how many runs are active when attack 107 kills their supervisor.
const fifty = 50

// playFifty starts fifty runs that would go on for minutes, and waits to be killed.
func playFifty() int {
	e, err := playConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := range fifty {
		go func() {
			req := request("bash", "/bin/bash", "setsid sleep 300 &\nsleep 300\n")
			req.ExecutionID = sallyport.ExecutionID(fmt.Sprintf("fifty-%d", i))
			req.Limits.Timeout = 2 * time.Minute
			_, err := e.Execute(context.Background(), req)
			fmt.Fprintln(os.Stderr, "a run ended:", err)
		}()
	}
	time.Sleep(2 * time.Minute)
	return 1
}

// playPaused makes one run that outlives its timeout, and prints each answer.
func playPaused() int {
	e, err := playConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	e.Capabilities(context.Background())
	fmt.Println("ready")
	req := request("bash", "/bin/bash", "sleep 60\n")
	req.Limits.Timeout = 2 * time.Second
	r, err := e.Execute(context.Background(), req)
	fmt.Printf("answer: timed out %v, exit code %v, signal %d, error %v\n", r.TimedOut, r.ExitCode != nil, r.Signal, err)
	if err := e.Close(); err != nil {
		fmt.Println("close:", err)
	}
	return 0
}

// playFewDescriptors runs with ever fewer free descriptors, and then with enough again.
func playFewDescriptors() int {
	e, err := playConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	run := func() (sallyport.Result, error) {
		return e.Execute(context.Background(), request("bash", "/bin/bash", "echo complete\n"))
	}
	first, err := run()
	if err != nil {
		fmt.Println("at first:", err)
	}
	open := func() int {
		entries, _ := os.ReadDir("/proc/self/fd")
		return len(entries)
	}
	var enough unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &enough)
	before := open()
	refused := 0
	for free := range 30 {
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(before + free), Max: enough.Max})
		r, err := run()
		switch {
		case err != nil && sallyport.IsNotStarted(err):
			refused++
		case err != nil || string(r.Stdout) != "complete\n":
			fmt.Printf("with %d free: %v, %s\n", free, err, told(r))
		}
	}
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &enough)
	if refused == 0 {
		fmt.Println("nothing was refused")
	}
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if r, err := run(); err == nil && string(r.Stdout) == string(first.Stdout) {
			break
		} else if time.Since(begin) > 15*time.Second {
			fmt.Println("with enough again:", err)
			break
		}
	}
	if now := open(); now > before {
		fmt.Printf("%d descriptors, %d before\n", now, before)
	}
	if err := e.Close(); err != nil {
		fmt.Println("close:", err)
	}
	return 0
}

// Attack 107: a supervisor is killed with fifty runs active; the next one finds and removes everything they had.
func TestAttackKilledWithFiftyRuns(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	h := &host{cfg: bubblewrap.Config{StateDir: filepath.Join(openDir(t, -1), "state")}, descriptors: 1 << 30}
	cmd := play(t, "fifty", -1, h.cfg)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	active := func() []string {
		processes := h.processes(t, instanceGroups(t, h.cfg.StateDir))
		if len(processes) < 4*fifty { // bubblewrap, PID 1, bash and a sleep of each
			return []string{fmt.Sprintf("%d processes", len(processes))}
		}
		return nil
	}
	for begin := time.Now(); active() != nil && time.Since(begin) < 60*time.Second; {
		time.Sleep(50 * time.Millisecond)
	}
	if few := active(); few != nil {
		t.Errorf("not all runs became active: %s", few)
	}
	groups := instanceGroups(t, h.cfg.StateDir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	e := newExecutor(t, h.cfg)
	eventually(t, func() []string { return h.processes(t, groups) })
	eventually(t, func() []string {
		return slices.DeleteFunc(slices.Clone(groups), func(group string) bool {
			_, err := os.Stat(group)
			return err != nil
		})
	})
	if r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 3\n")); err != nil || r.ExitCode == nil || *r.ExitCode != 3 {
		t.Errorf("the next run: %v, %s", err, told(r))
	}
	eventually(t, func() []string { return h.leftovers(t) })
}

// Attack 38: a supervisor that stands still beyond a deadline applies it once when it goes on.
func TestAttackPausedSupervisor(t *testing.T) {
	t.Parallel()
	cfg := bubblewrap.Config{StateDir: filepath.Join(openDir(t, -1), "state")}
	cmd := play(t, "paused", -1, cfg)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	time.Sleep(500 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if want := "answer: timed out true, exit code false, signal 0, error <nil>\n"; string(rest) != want {
		t.Errorf("got %q, want %q", rest, want)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Reports 49 and 55: no descriptors are left for a run. It is refused before it begins, and nothing is lost by that.
func TestAttackFewDescriptors(t *testing.T) {
	t.Parallel()
	out, err := play(t, "few_descriptors", -1, bubblewrap.Config{StateDir: filepath.Join(openDir(t, -1), "state")}).Output()
	if err != nil || len(out) != 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// Report 65: every result names the layers that were active around it, the same that the capabilities promise.
func TestAttackLayersAreNamed(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, bubblewrap.Config{})
	c := e.Capabilities(t.Context())
	r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(r.Isolation)
	want, _ := json.Marshal(sallyport.Isolation{Executor: bubblewrap.Kind, Layers: c.Layers, Missing: c.Missing, Plan: c.Plan, Profile: c.Profile})
	if string(got) != string(want) || len(r.Isolation.Layers) == 0 {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Reports 59, 61, 68 and 94: hosts that refuse a step of bubblewrap. Nothing runs, its own words are the reason, and the
// remedy is for that step.
func TestAttackHostsThatRefuse(t *testing.T) {
	t.Parallel()
	for said, remedy := range map[string]string{
		"bwrap: Failed to make / slave: Permission denied":                   "mounts",
		"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted":       "user namespaces",
		"bwrap: Can't mount proc on /newroot/proc: Operation not permitted":  "/proc",
		"bwrap: No permissions to create new namespace":                      "user namespaces",
		"bwrap: Creating new namespace failed: No space left on device":      "user",
		"bwrap: setting up uid map: Permission denied":                       "user namespaces",
		"bwrap: Can't mkdir /newroot/dev: Read-only file system":             "",
		"bwrap: Unable to set up system call filtering as requested: Failed": "",
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(openDir(t, -1), "bwrap")
			if err := os.WriteFile(path, []byte("#!/bin/sh\necho \""+said+"\" >&2\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
			e := newExecutor(t, bubblewrap.Config{Program: path})
			c := e.Capabilities(t.Context())
			if c.Available || len(c.Layers) != 0 || !strings.Contains(c.Reason, said) || !strings.Contains(c.Remedy, remedy) || c.Remedy == "" {
				t.Errorf("got %+v, want the remedy %q", c, remedy)
			}
			r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "echo never\n"))
			if !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable || len(r.Stdout) != 0 {
				t.Errorf("execute: %v, %s", err, told(r))
			}
		})
	}
}
