//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

// host looks for what runs of one executor left. Its range of uids must serve nobody else.
type host struct {
	cfg         bubblewrap.Config
	descriptors int
}

func (h *host) leftovers(tb testing.TB) []string {
	tb.Helper()
	var left []string
	add := func(format string, args ...any) { left = append(left, fmt.Sprintf(format, args...)) }

	left = append(left, h.processes(tb)...)
	for _, group := range instanceGroups(tb, h.cfg.StateDir) {
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

// processes are those that have one of the uids for runs.
func (h *host) processes(tb testing.TB) []string {
	tb.Helper()
	if os.Geteuid() != 0 {
		return nil // runs have our own uid
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		tb.Fatal(err)
	}
	var found []string
	for _, p := range entries {
		info, err := p.Info()
		if _, notPID := strconv.Atoi(p.Name()); err != nil || notPID != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) >= h.cfg.FirstUID && int(stat.Uid) < h.cfg.FirstUID+h.cfg.UIDCount {
			found = append(found, fmt.Sprintf("process %s of uid %d", p.Name(), stat.Uid))
		}
	}
	return found
}

// instanceGroups are the control groups that living instances of a state folder have recorded.
func instanceGroups(tb testing.TB, stateDir string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(stateDir, "instances", "*"))
	if err != nil {
		tb.Fatal(err)
	}
	var groups []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		groups = append(groups, strings.Fields(string(data))...)
	}
	return groups
}
