//go:build amd64 || arm64

package bubblewrap_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// firstReport is what the play saw as PID 1.
type firstReport struct {
	Fault string
	PID   int
	Ran   int
	Left  []string // processes besides the play itself
}

// Report 44: a server that is PID 1 of its container has no init to reap for it. Nothing of a run may be left to it, neither of
// those that end nor of those that are killed.
func TestAttackAsInitOfContainer(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	h := &host{cfg: bubblewrap.Config{StateDir: filepath.Join(t.TempDir(), "state"), FirstUID: 61220, UIDCount: 4}, descriptors: 1 << 30}
	cmd := play(t, "init", -1, h.cfg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var r firstReport
	if err := errors.Join(err, json.Unmarshal(out, &r)); err != nil || r.Fault != "" {
		t.Fatalf("%v: %s", err, out)
	}
	if r.PID != 1 || r.Ran != 24 || len(r.Left) > 0 {
		t.Errorf("as process %d, %d runs left %q", r.PID, r.Ran, r.Left)
	}
	eventually(t, func() []string { return h.leftovers(t) })
}

func playInit() int {
	report := firstReport{PID: os.Getpid()}
	if err := report.play(); err != nil {
		report.Fault = err.Error()
	}
	if json.NewEncoder(os.Stdout).Encode(report) != nil {
		return 1
	}
	return 0
}

func (r *firstReport) play() error {
	var cfg bubblewrap.Config
	if err := json.NewDecoder(os.Stdin).Decode(&cfg); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	e, err := bubblewrap.New(cfg)
	if err != nil {
		return err
	}
	for n := range 24 {
		source := []string{
			"for i in $(seq 10); do (setsid sleep 60 &) ; done\n", "(true &)\nexit 3\n", "setsid sleep 60 &\nsleep 60\n", "kill -9 $$\n",
		}[n%4]
		req := request("bash", "/bin/bash", source)
		req.Limits.Timeout = 300 * time.Millisecond
		ctx, cancel := context.WithCancel(context.Background())
		if n%8 == 2 {
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		if _, err := e.Execute(ctx, req); err != nil && !errors.Is(err, context.Canceled) {
			cancel()
			return err
		}
		cancel()
		r.Ran++
	}
	if err := e.Close(); err != nil {
		return err
	}
	for range 100 {
		if r.Left, err = others(); err != nil || len(r.Left) == 0 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// others are all processes but this one, zombies included.
func others() ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var list []string
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if status, err := os.ReadFile("/proc/" + entry.Name() + "/status"); err == nil {
			state, _, _ := strings.Cut(string(status), "Tgid")
			list = append(list, fmt.Sprintf("%d %q", pid, state))
		}
	}
	return list, nil
}
