//go:build amd64 || arm64

package bubblewrap_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// A limit that cannot be meant is refused before the start, with its name and what to do; the smallest and the largest
// that can be meant run.
func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	h := &host{cfg: bubblewrap.Config{StateDir: filepath.Join(t.TempDir(), "state")}}
	e := newExecutor(t, h.cfg)
	for _, tt := range []struct {
		name, remedy string
		change       func(*sallyport.Limits)
	}{
		{"timeout_ms", "raise it", func(l *sallyport.Limits) { l.Timeout = time.Microsecond }},
		{"timeout_ms", "lower it", func(l *sallyport.Limits) { l.Timeout = 25 * time.Hour }},
		{"memory_bytes", "raise it", func(l *sallyport.Limits) { l.MemoryBytes = 1 << 20 }},
		{"memory_bytes", "lower it", func(l *sallyport.Limits) { l.MemoryBytes = 1 << 60 }},
		{"processes", "raise it", func(l *sallyport.Limits) { l.Processes = 0 }},
		{"processes", "lower it", func(l *sallyport.Limits) { l.Processes = 1 << 40 }},
		{"cpu_millis", "raise it", func(l *sallyport.Limits) { l.CPUMillis = 9 }},
		{"cpu_millis", "lower it", func(l *sallyport.Limits) { l.CPUMillis = 1 << 40 }},
		{"scratch_bytes", "raise it", func(l *sallyport.Limits) { l.ScratchBytes = 1 }},
		{"scratch_bytes", "lower it", func(l *sallyport.Limits) { l.ScratchBytes = 1 << 62 }},
		{"output_bytes", "raise it", func(l *sallyport.Limits) { l.OutputBytes = -1 }},
		{"output_bytes", "lower it", func(l *sallyport.Limits) { l.OutputBytes = 1 << 40 }},
		{"artifact_bytes", "lower it", func(l *sallyport.Limits) { l.ArtifactBytes = 1 << 50 }},
		{"artifact_files", "lower it", func(l *sallyport.Limits) { l.ArtifactFiles = 1 << 20 }},
	} {
		req := request("bash", "/bin/bash", "exit 0\n")
		tt.change(&req.Limits)
		_, err := e.Execute(t.Context(), req)
		message := sallyport.Public(err).Message
		if !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(message, tt.name) || !strings.Contains(message, tt.remedy) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
	for name, limits := range map[string]sallyport.Limits{
		"smallest": {Timeout: 30 * time.Second, MemoryBytes: sallyport.MinMemoryBytes, Processes: 1, CPUMillis: 10, ScratchBytes: 4096, OutputBytes: 1, ArtifactBytes: 1, ArtifactFiles: 1},
		"largest":  {Timeout: 24 * time.Hour, MemoryBytes: 1 << 46, Processes: 4_000_000, CPUMillis: 1_000_000, ScratchBytes: 1 << 40, OutputBytes: 1 << 30, ArtifactBytes: 1 << 32, ArtifactFiles: 10_000},
	} {
		req := request("bash", "/bin/bash", "exit 3\n")
		req.Limits, req.Grace = limits, 20*time.Second
		if r, err := e.Execute(t.Context(), req); err != nil || r.ExitCode == nil || *r.ExitCode != 3 {
			t.Errorf("the %s limits: got %+v, %v", name, r, err)
		}
	}
	eventually(t, func() []string { return h.leftovers(t) })
}

// A state folder on a disk that is full, or that became read-only, is found before a run, named with its remedy, and
// forgotten when it is mended.
func TestStateFolderThatTakesNothing(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	disk := openDir(t, -1)
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=256k,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	h := &host{cfg: bubblewrap.Config{StateDir: filepath.Join(disk, "state")}}
	e := newExecutor(t, h.cfg)
	run := func(source string) error {
		_, err := e.Execute(t.Context(), request("bash", "/bin/bash", source))
		return err
	}
	if err := run("exit 0\n"); err != nil {
		t.Fatal(err)
	}
	fill := filepath.Join(disk, "fill")
	for _, tt := range []struct {
		name, want  string
		break_, fix func() error
	}{
		{
			"full", "is full: free space", func() error { _ = os.WriteFile(fill, make([]byte, 1<<20), 0o600); return nil },
			func() error { return os.Remove(fill) },
		},
		{
			"read-only", "is read-only: make it writable",
			func() error { return unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, "") },
			func() error { return unix.Mount("", disk, "", unix.MS_REMOUNT, "") },
		},
	} {
		if err := tt.break_(); err != nil {
			t.Fatal(err)
		}
		err := run("exit 0 # " + tt.name + "\n")
		if !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable || !strings.Contains(sallyport.Public(err).Message, tt.want) {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if c := e.Capabilities(t.Context()); c.Available || !strings.Contains(c.Reason, tt.want) || c.Remedy == "" {
			t.Errorf("%s: capabilities %+v", tt.name, c)
		}
		if err := tt.fix(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() []string {
			if err := run("exit 0 # " + tt.name + "\n"); err != nil {
				return []string{err.Error()}
			}
			return nil
		})
	}
	eventually(t, func() []string {
		return slices.DeleteFunc(h.leftovers(t), func(s string) bool { return s == "a mount of the state folder" })
	})
}

// With its only uid in use, another run is refused until that one ends.
func TestNoFreeUID(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	e := newExecutor(t, bubblewrap.Config{FirstUID: 61210, UIDCount: 1})
	if c := e.Capabilities(t.Context()); !c.Available {
		t.Fatal(c.Reason)
	}
	first := make(chan error, 1)
	go func() {
		err := sallyport.NotStarted(errors.New("not tried"))
		for sallyport.IsNotStarted(err) {
			_, err = e.Execute(t.Context(), request("bash", "/bin/bash", "sleep 2\n"))
		}
		first <- err
	}()
	eventually(t, func() []string {
		_, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 0\n"))
		if sallyport.CodeOf(err) == sallyport.CodeSlotsExhausted && sallyport.IsNotStarted(err) && strings.Contains(sallyport.Public(err).Message, "UIDCount") {
			return nil
		}
		return []string{"not refused yet"}
	})
	if err := <-first; err != nil {
		t.Error(err)
	}
	if _, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 0\n")); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// A host that allows no further control group is told from a full disk, before the start, and forgotten when it does again.
func TestNoFurtherControlGroup(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	h := &host{cfg: bubblewrap.Config{StateDir: filepath.Join(t.TempDir(), "state")}}
	e := newExecutor(t, h.cfg)
	bound := ""
	for _, group := range instanceGroups(t, h.cfg.StateDir) {
		file := filepath.Join(group, "cgroup.max.descendants")
		if _, err := os.Stat(file); err == nil {
			bound = file
		}
	}
	if bound == "" {
		t.Fatal("this test needs a v2 tree")
	}
	set := func(value string) {
		if err := os.WriteFile(bound, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func() error {
		_, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 0\n"))
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	set("0")
	const want = "raise cgroup.max.descendants"
	if err := run(); !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable || !strings.Contains(sallyport.Public(err).Message, want) {
		t.Errorf("got %v", err)
	}
	if c := e.Capabilities(t.Context()); c.Available || !strings.Contains(c.Reason, want) || c.Remedy == "" {
		t.Errorf("capabilities: %+v", c)
	}
	set("max")
	eventually(t, func() []string {
		if err := run(); err != nil {
			return []string{err.Error()}
		}
		return nil
	})
	eventually(t, func() []string { return h.leftovers(t) })
}
