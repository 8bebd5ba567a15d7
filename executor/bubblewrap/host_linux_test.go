//go:build amd64 || arm64

package bubblewrap_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// ordinaryUID has no account. The tests that need other users need root to become them.
const ordinaryUID = 61148

func requireRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Fatal("this test must be started as root: it tries several users")
	}
}

// An ordinary user gets a sandbox too, and is told which layers it lacks.
func TestOrdinaryUserCapabilities(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	cmd := play(t, "capabilities", ordinaryUID, bubblewrap.Config{StateDir: filepath.Join(openDir(t, ordinaryUID), "state")})
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var got sallyport.Capabilities
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if !got.Available {
		t.Fatalf("not available: %s", got.Reason)
	}
	want := []sallyport.Layer{
		sallyport.LayerRunUID, sallyport.LayerMemoryLimit, sallyport.LayerProcessLimit, sallyport.LayerCPULimit, sallyport.LayerGroupKill,
	}
	if diff := cmp.Diff(want, got.Missing); diff != "" {
		t.Errorf("missing layers (-want +got):\n%s", diff)
	}
	if got.Reason == "" || got.Remedy == "" {
		t.Errorf("reason %q, remedy %q", got.Reason, got.Remedy)
	}
}

// The suite holds for an ordinary user, as far as the layers go.
func TestOrdinaryUserSuite(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	home := openDir(t, ordinaryUID)
	core := "TestSuite/(exit|ends_itself|missing|stdin|argv|environment|imports|every_byte|writes|nothing|input|output|artifact|" +
		"read_a_file|reach|write_outside|follow|inherit|privileges|setuid|denied|raise|processes|sleeps|ignores|background|child_in|double|kills|canceled|eight|node|usage)"
	cmd := play(t, "", ordinaryUID, bubblewrap.Config{}, "-test.v", "-test.timeout=120s", "-test.run="+core)
	cmd.Dir = home
	cmd.Env = append(cmd.Env, "TMPDIR="+home)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: TestSuite/") < 40 {
		t.Errorf("%v:\n%s", err, out)
	}
}

// A supervisor that is killed takes its runs along, and the next one with the same state folder removes the rest.
func TestKilledSupervisor(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	for _, delay := range []int{0, 10, 20, 40, 80, 400} {
		h := &host{cfg: bubblewrap.Config{StateDir: filepath.Join(openDir(t, -1), "state"), FirstUID: 61166, UIDCount: 4}}
		cmd := play(t, "supervisor", -1, h.cfg)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(delay) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		groups := instanceGroups(t, h.cfg.StateDir)

		e := newExecutor(t, h.cfg)
		eventually(t, func() []string { return h.processes(t, groups) })
		eventually(t, func() []string {
			return slices.DeleteFunc(slices.Clone(groups), func(group string) bool {
				_, err := os.Stat(group)
				return err != nil
			})
		})
		if r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 3\n")); err != nil || r.ExitCode == nil || *r.ExitCode != 3 {
			t.Errorf("killed after %dms: the next run: %+v, %v", delay, r, err)
		}
		eventually(t, func() []string { return h.leftovers(t) })
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func eventually(t *testing.T, left func() []string) {
	t.Helper()
	var last []string
	for range 300 {
		if last = left(); len(last) == 0 {
			return
		}
		time.Sleep(30 * time.Millisecond)
	}
	t.Errorf("left: %q", last)
}

// The kernel ends a sandbox with the thread that started it. Callers' threads end all the time.
func TestThreadsThatEnd(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, bubblewrap.Config{})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			// Never unlocked: the thread ends with the goroutine, while the run goes on elsewhere.
			done := make(chan struct{})
			go func() {
				runtime.LockOSThread()
				r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "sleep 0.3\nexit 3\n"))
				if err != nil || r.ExitCode == nil || *r.ExitCode != 3 {
					t.Errorf("got %+v, %v", r, err)
				}
				close(done)
			}()
			for range 20 {
				go runtime.LockOSThread()
				time.Sleep(20 * time.Millisecond)
			}
			<-done
		})
	}
	wait.Wait()
}

// A uid serves one run at a time on the whole host, whoever leases it.
func TestTwoSupervisorsShareUIDs(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	cfg := bubblewrap.Config{FirstUID: 61171, UIDCount: 1}
	first, second := newExecutor(t, cfg), newExecutor(t, cfg)
	if c := first.Capabilities(t.Context()); !c.Available {
		t.Fatal(c.Reason)
	}
	_, err := second.Execute(t.Context(), request("bash", "/bin/bash", "exit 0\n"))
	if !sallyport.IsNotStarted(err) {
		t.Fatalf("the second got %v while the first holds the only uid", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() []string {
		if c := second.Capabilities(t.Context()); !c.Available {
			return []string{c.Reason}
		}
		return nil
	})
	if _, err := second.Execute(t.Context(), request("bash", "/bin/bash", "exit 0\n")); err != nil {
		t.Errorf("the second after the first ended: %v", err)
	}
}

// Without a working bubblewrap nothing runs, the reason is the host's own, and New succeeds all the same.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	dir := openDir(t, -1)
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notDir := write("file", "", 0o644)
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		cfg    bubblewrap.Config
		reason string
		remedy string
	}{
		{"missing", bubblewrap.Config{Program: dir + "/none"}, "bwrap: not found", "install bubblewrap"},
		{"not executable", bubblewrap.Config{Program: write("plain", "x", 0o644)}, "not an executable file", ""},
		{"setuid", bubblewrap.Config{Program: write("setuid", "#!/bin/sh\n", 0o755|os.ModeSetuid)}, "setuid", "chmod u-s"},
		{"not a program", bubblewrap.Config{Program: write("text", "\x7fELFx", 0o755)}, "exec format error", ""},
		{"refused", bubblewrap.Config{Program: write("refused", "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n", 0o755)}, "bwrap: setting up uid map: Permission denied", "user namespaces"},
		{"too old", bubblewrap.Config{Program: write("old", "#!/bin/sh\necho 'bwrap: Unknown option --disable-userns' >&2\nexit 1\n", 0o755)}, "Unknown option --disable-userns", "0.8.0 or newer"},
		{"silent", bubblewrap.Config{Program: write("silent", "#!/bin/sh\nexit 0\n", 0o755)}, "ended before", ""},
		{"no sandbox at all", bubblewrap.Config{Program: write("pretend", "#!/bin/sh\nexec /bin/true\n", 0o755)}, "ended before", ""},
		{"state folder is a file", bubblewrap.Config{StateDir: notDir}, "not a folder", ""},
		{"state folder below a file", bubblewrap.Config{StateDir: notDir + "/state"}, "not a directory", ""},
		{"state folder open to all", bubblewrap.Config{StateDir: open}, "only this user", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newExecutor(t, tt.cfg)
			c := e.Capabilities(t.Context())
			if strings.Contains(c.Reason+c.Remedy, filepath.Dir(dir)) {
				t.Errorf("callers would read where the host keeps things: %q, %q", c.Reason, c.Remedy)
			}
			if c.Available || len(c.Layers) != 0 || !strings.Contains(c.Reason, tt.reason) || !strings.Contains(c.Remedy, tt.remedy) || c.Remedy == "" {
				t.Errorf("got %+v, want the reason %q and the remedy %q", c, tt.reason, tt.remedy)
			}
			_, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 0\n"))
			if !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable {
				t.Errorf("execute: got %v", err)
			}
			checks := e.Probe(t.Context())
			if len(checks) != 1 || checks[0].Result != bubblewrap.CheckFail || !strings.Contains(checks[0].Detail, tt.reason) {
				t.Errorf("probe: got %+v", checks)
			}
		})
	}
}

// bubblewrap may disappear and come back while we run.
func TestBubblewrapComesAndGoes(t *testing.T) {
	t.Parallel()
	program := filepath.Join(openDir(t, -1), "bwrap")
	real := bubblewrapProgram(t)
	if err := os.Symlink(real, program); err != nil {
		t.Fatal(err)
	}
	e := newExecutor(t, bubblewrap.Config{Program: program})
	run := func() error {
		_, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 0\n"))
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := run(); !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable {
			t.Errorf("without the program: got %v", err)
		}
	}
	if err := os.Symlink(real, program); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(15 * time.Second)
	for run() != nil {
		if time.Now().After(deadline) {
			t.Fatal("still unavailable after the program came back")
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func bubblewrapProgram(tb testing.TB) string {
	tb.Helper()
	for _, path := range []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	tb.Fatal("bubblewrap is not installed")
	return ""
}

func TestClose(t *testing.T) {
	t.Parallel()
	cfg := bubblewrap.Config{StateDir: filepath.Join(t.TempDir(), "state")}
	e := newExecutor(t, cfg)
	groups := instanceGroups(t, cfg.StateDir)
	if os.Geteuid() == 0 && len(groups) == 0 {
		t.Error("no control group was made")
	}
	begun := make(chan struct{})
	result := make(chan error, 1)
	go func() {
		close(begun)
		r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "sleep 0.5\nexit 3\n"))
		if err == nil && (r.ExitCode == nil || *r.ExitCode != 3) {
			t.Errorf("the run under way: %+v", r)
		}
		result <- err
	}()
	<-begun
	time.Sleep(200 * time.Millisecond)
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-result; err != nil {
		t.Errorf("Close did not wait for the run: %v", err)
	}
	if _, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 0\n")); !sallyport.IsNotStarted(err) {
		t.Errorf("after Close: got %v", err)
	}
	for _, group := range groups {
		if _, err := os.Stat(group); err == nil {
			t.Errorf("the group %s is still there", group)
		}
	}
	if left := instanceGroups(t, cfg.StateDir); len(left) != 0 {
		t.Errorf("still registered: %q", left)
	}
}

// Something on the host removes groups that look unused. The next run makes them again.
func TestGroupsAreMadeAgain(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	cfg := bubblewrap.Config{StateDir: filepath.Join(t.TempDir(), "state")}
	e := newExecutor(t, cfg)
	groups := instanceGroups(t, cfg.StateDir)
	if len(groups) == 0 {
		t.Fatal("no control group was made")
	}
	for _, group := range groups {
		if err := os.Remove(group); err != nil {
			t.Fatal(err)
		}
	}
	req := request("bash", "/bin/bash", "exit 3\n")
	if r, err := e.Execute(t.Context(), req); err != nil || r.ExitCode == nil || *r.ExitCode != 3 || r.Usage.MemoryPeakBytes == nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestForeignProgram(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, bubblewrap.Config{})
	other := map[string]string{"amd64": "helper/helper_arm64", "arm64": "helper/helper_amd64"}[runtime.GOARCH]
	program, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ content, want string }{
		"another architecture": {string(program), "not a program for this machine"},
		"neither":              {"\x00\x01\x02", "not a program for this machine"},
		"missing loader":       {"#!/no/such/interpreter\n", "not installed"},
	} {
		req := request("odd", "/skill/program", "")
		req.Files = append(req.Files, component("program", tt.content))
		slices.SortFunc(req.Files, func(a, b sallyport.Component) int { return strings.Compare(a.Path, b.Path) })
		r, err := e.Execute(t.Context(), req)
		if err != nil || !strings.Contains(r.StartError, tt.want) || r.ExitCode != nil {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

// What a crash handler of the host would be given is nothing, and a script cannot change that.
func TestCoreLimitStays(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, bubblewrap.Config{})
	r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "ulimit -c 0 || echo refused\ngrep 'core file' /proc/self/limits | tr -s ' '\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.Stdout); got != "Max core file size 1 1 bytes \n" {
		t.Errorf("got %q", got)
	}
}

func TestFindInterpreters(t *testing.T) {
	t.Parallel()
	runtimes := map[string]string{}
	for _, i := range bubblewrap.FindInterpreters() {
		runtimes[i.Extension] = i.Runtime
		if !strings.HasPrefix(i.Program, "/usr/") && !strings.HasPrefix(i.Program, "/bin/") {
			t.Errorf("%s is run by %s, which no sandbox can see", i.Extension, i.Program)
		}
	}
	want := map[string]string{"py": "python", "sh": "bash", "bash": "bash", "js": "node", "mjs": "node", "cjs": "node"}
	if diff := cmp.Diff(want, runtimes); diff != "" {
		t.Errorf("install python3, bash and node to test (-want +got):\n%s", diff)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]bubblewrap.Config{
		"relative program": {Program: "bwrap"},
		"relative state":   {StateDir: "state"},
		"root":             {FirstUID: 0, UIDCount: 10},
		"system users":     {FirstUID: 100, UIDCount: 10},
		"nobody":           {FirstUID: 65500, UIDCount: 100},
		"negative":         {FirstUID: -5, UIDCount: 10},
		"empty range":      {FirstUID: 70000},
		"past the end":     {FirstUID: 1<<31 - 10, UIDCount: 100},
		"negative cache":   {CacheBytes: -1},
	} {
		if e, err := bubblewrap.New(cfg); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || e != nil {
			t.Errorf("%s: got %v, %v", name, e, err)
		}
	}
}
