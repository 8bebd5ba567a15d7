//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// attackFaults: the host fails, or the request is nothing that can be meant.
func attackFaults() []attack {
	return []attack{
		{name: "attack 111: a full disk below the state folder", run: fullDisk},
		{name: "attack 118: names that are paths", run: func(t *testing.T, s *siege) {
			outside := filepath.Join(filepath.Dir(s.h.cfg.StateDir), "escaped")
			for _, id := range []string{"../../../escaped", outside, "a/b", "..", strings.Repeat("x", 10<<10), "line\nbreak"} {
				req := s.script("bash", "printf %s \"$SKILL_EXECUTION_ID\"\n")
				req.ExecutionID, req.TenantID, req.Slug = sallyport.ExecutionID(id), sallyport.TenantID(id), id
				s.printed(t, s.do(t, req), id)
			}
			req := s.script("bash", "echo never\n")
			req.ExecutionID = "nul\x00nul"
			if r, err := s.e.Execute(t.Context(), req); err == nil && strings.Contains(string(r.Stdout), "nul\n") || err != nil && !sallyport.IsNotStarted(err) {
				t.Errorf("NUL in a name: %v, %s", err, told(r))
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("an execution's id became a path")
			}
		}},
		{name: "bad input: limits that cannot be meant", run: func(t *testing.T, s *siege) {
			for name, change := range map[string]func(*sallyport.Limits){
				"no timeout":         func(l *sallyport.Limits) { l.Timeout = 0 },
				"negative timeout":   func(l *sallyport.Limits) { l.Timeout = -time.Second },
				"negative memory":    func(l *sallyport.Limits) { l.MemoryBytes = -1 },
				"no processes":       func(l *sallyport.Limits) { l.Processes = 0 },
				"negative processes": func(l *sallyport.Limits) { l.Processes = -5 },
				"no processor":       func(l *sallyport.Limits) { l.CPUMillis = 0 },
				"negative scratch":   func(l *sallyport.Limits) { l.ScratchBytes = -1 },
				"negative output":    func(l *sallyport.Limits) { l.OutputBytes = -1 },
				"negative artifacts": func(l *sallyport.Limits) { l.ArtifactBytes, l.ArtifactFiles = -1, -1 },
			} {
				req := s.script("bash", "echo never\n")
				change(&req.Limits)
				if _, err := s.e.Execute(t.Context(), req); !sallyport.IsNotStarted(err) {
					t.Errorf("%s: got %v", name, err)
				}
			}
			// As large as a number can be: nothing may overflow into less, or into none.
			req := s.script("bash", "echo ran\n")
			req.Limits = sallyport.Limits{
				Timeout: 20 * time.Second, MemoryBytes: math.MaxInt64, Processes: math.MaxInt64, CPUMillis: math.MaxInt64,
				ScratchBytes: math.MaxInt64, OutputBytes: math.MaxInt64, ArtifactBytes: math.MaxInt64, ArtifactFiles: math.MaxInt64,
			}
			if r, err := s.e.Execute(t.Context(), req); err == nil && string(r.Stdout) != "ran\n" || err != nil && !sallyport.IsNotStarted(err) {
				t.Errorf("the largest numbers: %v, %s", err, told(r))
			}
		}},
		{name: "bad input: paths that leave the revision", run: func(t *testing.T, s *siege) {
			for _, path := range []string{"../x", "/etc/x", "a/../../x", "a//b", ".", "", "x\x00y", strings.Repeat("a", 5000), "scripts/script/x"} {
				req := s.script("bash", "echo never\n")
				req.Files = append(req.Files, component(path, "x"))
				sortFiles(req.Files)
				_ = s.refused(t, req)
			}
		}},
		{name: "attack 33: the caller gives up at any moment", run: func(t *testing.T, s *siege) {
			for i := range 10 {
				ctx, cancel := contextFor(t, time.Duration(i*15)*time.Millisecond)
				r, err := s.e.Execute(ctx, s.script("bash", "sleep 0.05\n"))
				cancel()
				if r.TimedOut || err == nil && (r.ExitCode == nil || *r.ExitCode != 0) {
					t.Errorf("canceled after %d ms: %v, %s", i*15, err, told(r))
				}
			}
		}},
	}
}

// fullDisk gives the executor a state folder on a small file system of its own, and fills it.
func fullDisk(t *testing.T, s *siege) {
	if os.Geteuid() != 0 {
		t.Log("only root can mount a small file system; the leg as root tries it")
		return
	}
	disk := openDir(t, -1)
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=256k,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	e := newExecutor(t, bubblewrap.Config{StateDir: filepath.Join(disk, "state")})
	t.Cleanup(func() { _ = e.Close() }) // before the disk goes
	fill := filepath.Join(disk, "fill")
	if err := os.WriteFile(fill, make([]byte, 128<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	req := s.script("bash", "echo complete\n")
	req.Files = append(req.Files, component("large", strings.Repeat("x", 200<<10)))
	sortFiles(req.Files)
	for range 2 {
		if r, err := e.Execute(t.Context(), req); !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable {
			t.Errorf("on a full disk: %v, %s", err, told(r))
		}
	}
	if c := e.Capabilities(t.Context()); c.Available {
		// A run that needs no room on the disk may still work.
		t.Logf("available with the disk full: %s", c.Reason)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() []string {
		r, err := e.Execute(t.Context(), req)
		if err != nil || string(r.Stdout) != "complete\n" {
			return []string{fmt.Sprintf("with room again: %v, %s", err, told(r))}
		}
		return nil
	})
}
