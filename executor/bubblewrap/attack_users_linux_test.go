//go:build amd64 || arm64

package bubblewrap_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// The legs as an ordinary user. Root starts them, because only root can become somebody without an account.

// Without control groups of its own, a user gets every layer that needs none, and these hold.
func TestAttacksAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	home := openDir(t, ordinaryUID)
	cmd := play(t, "", ordinaryUID, bubblewrap.Config{}, "-test.v", "-test.timeout=120s", "-test.run=^TestAttacks$/^all$/^(leaks|files|streams|faults)$")
	cmd.Dir, cmd.Env = home, append(cmd.Env, "TMPDIR="+home)
	out, err := cmd.CombinedOutput()
	if passed := strings.Count(string(out), "--- PASS: TestAttacks/all/"); err != nil || passed < 25 {
		t.Errorf("%d passed, %v:\n%s", passed, err, out)
	}
}

// With a sub-tree of control groups that was given to it, a user gets the limits too, and these hold.
func TestAttacksAsOrdinaryUserWithGroups(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	home := openDir(t, ordinaryUID)
	groups := delegatedGroups(t, ordinaryUID)
	out := runDelegated(t, home, groups, "capabilities", nil)
	var c sallyport.Capabilities
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The one thing that only root can give.
	if diff := cmp.Diff([]sallyport.Layer{sallyport.LayerRunUID}, c.Missing); diff != "" || !c.Available {
		t.Errorf("missing layers (-want +got):\n%s%s", diff, c.Reason)
	}
	out = runDelegated(t, home, groups, "", []string{
		"-test.v", "-test.timeout=120s",
		"-test.run=^TestAttacks$/^all$/^(processes|resources|reports)$|^TestSuite$/^(takes_memory|child_killed|fork_bomb|slow_fork|as_many|thread_bomb|zombies|orphans|processor_time|kills)",
	})
	if passed := strings.Count(string(out), "--- PASS: TestAttacks/all/") + strings.Count(string(out), "--- PASS: TestSuite/"); passed < 35 || strings.Contains(string(out), "--- FAIL") {
		t.Errorf("%d passed:\n%s", passed, out)
	}
}

// runDelegated runs the test binary as the ordinary user inside groups. root joins them first and becomes the user then.
func runDelegated(t *testing.T, home string, groups []string, role string, args []string) []byte {
	t.Helper()
	inner := play(t, role, -1, bubblewrap.Config{})
	script := "for g in " + strings.Join(groups, " ") + "; do echo $$ > $g/cgroup.procs || exit 1; done\n" +
		"exec setpriv --reuid=" + strconv.Itoa(ordinaryUID) + " --regid=" + strconv.Itoa(ordinaryUID) + " --clear-groups \"$0\" \"$@\"\n"
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", script, inner.Path}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = home, append(inner.Env, "TMPDIR="+home), 10*time.Second
	config, err := json.Marshal(struct{ StateDir string }{filepath.Join(home, "state")})
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader(string(config) + "\n")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			out = append(out, exit.Stderr...)
		}
		t.Errorf("%v", err)
	}
	return out
}

// delegatedGroups makes a group for uid in every tree that has one of our controllers, and gives it away, as systemd does for
// a unit with Delegate=yes.
func delegatedGroups(t *testing.T, uid int) []string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		options := strings.Split(fields[3], ",")
		wanted := fields[2] == "cgroup2"
		for _, option := range options {
			wanted = wanted || fields[2] == "cgroup" && (option == "memory" || option == "pids" || option == "cpu" || option == "cpuacct")
		}
		if !wanted {
			continue
		}
		dir := filepath.Join(fields[1], "sallyport-test-"+strconv.Itoa(os.Getpid()))
		if fields[2] == "cgroup2" {
			for _, c := range []string{"+memory", "+pids", "+cpu"} {
				_ = os.WriteFile(filepath.Join(fields[1], "cgroup.subtree_control"), []byte(c), 0) // a hybrid host has none there
			}
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeGroups(t, dir) })
		for _, name := range []string{".", "cgroup.procs", "tasks", "cgroup.threads", "cgroup.subtree_control"} {
			if err := os.Chown(filepath.Join(dir, name), uid, uid); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		groups = append(groups, dir)
	}
	if len(groups) == 0 {
		t.Fatal("this host has no control groups to give away")
	}
	return groups
}

// removeGroups removes what is left of a delegated tree; groups go inside out.
func removeGroups(t *testing.T, dir string) {
	t.Helper()
	eventually(t, func() []string {
		_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() && path != dir {
				_ = os.Remove(path)
			}
			return nil
		})
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return []string{err.Error()}
		}
		return nil
	})
}
