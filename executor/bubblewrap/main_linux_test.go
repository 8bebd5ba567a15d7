//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// newExecutor returns an executor with a state folder of its own, closed when the test ends.
func newExecutor(tb testing.TB, cfg bubblewrap.Config) *bubblewrap.Executor {
	tb.Helper()
	if cfg.StateDir == "" {
		cfg.StateDir = filepath.Join(tb.TempDir(), "state")
	}
	e, err := bubblewrap.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return e
}

// host looks for what the runs of one executor left.
type host struct {
	cfg         bubblewrap.Config
	descriptors int
}

func (h *host) leftovers(tb testing.TB) []string {
	tb.Helper()
	var left []string
	add := func(format string, args ...any) { left = append(left, fmt.Sprintf(format, args...)) }

	groups := instanceGroups(tb, h.cfg.StateDir)
	left = append(left, h.processes(tb, groups)...)
	for _, group := range groups {
		entries, err := os.ReadDir(group)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				add("control group %s/%s", group, e.Name())
			}
		}
	}
	building, err := os.ReadDir(filepath.Join(h.cfg.StateDir, "building"))
	if err == nil && len(building) > 0 {
		add("%d folders in the making", len(building))
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		tb.Fatal(err)
	}
	if strings.Contains(string(mounts), h.cfg.StateDir) {
		add("a mount of the state folder")
	}
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Fatal(err)
	}
	open := 0
	for _, d := range descriptors {
		// The locks of uids that came into use are kept on purpose.
		if target, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil && !strings.HasPrefix(target, "/run/sallyport/") {
			open++
		}
	}
	if h.descriptors == 0 {
		h.descriptors = open
	}
	if open > h.descriptors {
		add("%d descriptors, %d at the start", open, h.descriptors)
	}
	return left
}

// processes are those that are, or were, in a control group of our instances. Without groups there are none to see.
func (h *host) processes(tb testing.TB, groups []string) []string {
	tb.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		tb.Fatal(err)
	}
	var found []string
	for _, p := range entries {
		membership, err := os.ReadFile("/proc/" + p.Name() + "/cgroup")
		if err != nil {
			continue
		}
		for _, group := range groups {
			if strings.Contains(string(membership), filepath.Base(group)+"/run-") {
				found = append(found, "process "+p.Name()+" in "+filepath.Base(group))
				break
			}
		}
	}
	return found
}

// instanceGroups are the control groups that the instances of a state folder have recorded.
func instanceGroups(tb testing.TB, stateDir string) []string {
	tb.Helper()
	var groups []string
	for _, pattern := range []string{"/run/sallyport/instances/*", filepath.Join(stateDir, "instances", "*")} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			tb.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				continue // it ended meanwhile
			}
			lines := strings.Split(strings.TrimSpace(string(data)), "\n")
			if lines[0] == "state "+stateDir {
				groups = append(groups, lines[1:]...)
			}
		}
	}
	return groups
}
