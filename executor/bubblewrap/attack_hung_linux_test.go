//go:build amd64 || arm64

package bubblewrap_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// hungDir is a folder of the system that sandboxes show; the play mounts over it in a mount namespace of its own.
const hungDir = "/usr/local/share"

// hungReport is what the play saw.
type hungReport struct {
	Fault    string
	TimedOut bool
	Code     *int
	Took     time.Duration
	Bound    time.Duration
	Stuck    int    // processes that hung in the kernel after the answer
	Next     string // what another run printed meanwhile
	Ended    bool   // the parked run ended once the file system let go
}

// Attack 32: a file system that takes a read and never answers. A process that waits for it takes no signal, SIGKILL included. The
// caller has its answer in time, other runs go on, and what was parked is given back when the file system is gone.
func TestAttackHungFileSystem(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	h := &host{cfg: bubblewrap.Config{StateDir: filepath.Join(t.TempDir(), "state"), FirstUID: 61210, UIDCount: 4}, descriptors: 1 << 30}
	cmd := play(t, "hung", -1, h.cfg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var r hungReport
	if err := errors.Join(err, json.Unmarshal(out, &r)); err != nil || r.Fault != "" {
		t.Fatalf("%v: %s", err, out)
	}
	if !r.TimedOut || r.Code != nil || r.Took > r.Bound {
		t.Errorf("timed out %v, exit code %v, answered after %s of %s", r.TimedOut, r.Code, r.Took, r.Bound)
	}
	if r.Stuck == 0 {
		t.Error("nothing hung in the kernel, so nothing was tried")
	}
	if r.Next != "fine\n" || !r.Ended {
		t.Errorf("the next run printed %q; the parked run was given back: %v", r.Next, r.Ended)
	}
	eventually(t, func() []string { return h.leftovers(t) })
}

func playHung() int {
	report := hungReport{}
	if err := report.play(); err != nil {
		report.Fault = err.Error()
	}
	if json.NewEncoder(os.Stdout).Encode(report) != nil {
		return 1
	}
	return 0
}

// lineWatcher closes seen when a line with words was logged.
type lineWatcher struct {
	words string
	seen  chan struct{}
}

func (w lineWatcher) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(w.words)) {
		close(w.seen)
	}
	return len(line), nil
}

func (r *hungReport) play() error {
	var cfg bubblewrap.Config
	if err := json.NewDecoder(os.Stdin).Decode(&cfg); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device)
	if err := unix.Mount("hung", hungDir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	go serveHung(device)
	ended := lineWatcher{"a parked run has ended", make(chan struct{})}
	cfg.Logger = slog.New(slog.NewTextHandler(ended, nil))
	e, err := bubblewrap.New(cfg)
	if err != nil {
		return err
	}
	req := request("bash", "/bin/bash", "cat "+hungDir+"/file &\ncat "+hungDir+"/file\n")
	req.Limits.Timeout, req.Grace = time.Second, 4*time.Second
	begin := time.Now()
	result, err := e.Execute(context.Background(), req)
	r.Took, r.Bound = time.Since(begin), req.Limits.Timeout+req.Grace
	if err != nil {
		return err
	}
	r.TimedOut, r.Code, r.Stuck = result.TimedOut, result.ExitCode, uninterruptible(cfg.FirstUID, cfg.UIDCount)
	next, err := e.Execute(context.Background(), request("bash", "/bin/bash", "echo fine\n"))
	if err != nil {
		return err
	}
	r.Next = string(next.Stdout)
	if err := abortFuse(); err != nil {
		return err
	}
	select {
	case <-ended.seen:
		r.Ended = true
	case <-time.After(time.Minute):
	}
	return e.Close()
}

// uninterruptible counts processes of these uids that wait in the kernel whatever is sent to them.
func uninterruptible(first, count int) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	stuck := 0
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		status, _ := os.ReadFile("/proc/" + entry.Name() + "/status")
		if ok && int(owner.Uid) >= first && int(owner.Uid) < first+count && strings.Contains(string(status), "State:\tD") {
			stuck++
		}
	}
	return stuck
}

// abortFuse ends the connection, as an administrator would: whoever waits for it gets an error.
func abortFuse() error {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, hungDir, unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &st); err != nil {
		return err
	}
	if err := os.MkdirAll("/sys/fs/fuse/connections", 0o755); err != nil {
		return err
	}
	control := "/sys/fs/fuse/connections"
	if err := unix.Mount("control", control, "fusectl", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return err
	}
	return os.WriteFile(filepath.Join(control, strconv.Itoa(int(st.Dev_minor)), "abort"), []byte("1"), 0o600)
}

// serveHung answers what is needed to open the only file, and nothing of what reads it.
func serveHung(device int) {
	const (
		lookup, getattr, open, read, statfs, release, initialize, opendir, releasedir, access = 1, 3, 14, 15, 17, 18, 26, 27, 29, 34
		file                                                                                  = 2
		header                                                                                = 40
	)
	buffer := make([]byte, 256<<10)
	le := binary.NativeEndian
	attributes := func(node uint64) []byte {
		mode, size := uint32(unix.S_IFDIR|0o755), uint64(0)
		if node == file {
			mode, size = unix.S_IFREG|0o644, 4096
		}
		b := le.AppendUint64(nil, node)
		b = le.AppendUint64(le.AppendUint64(b, size), 8)
		b = append(b, make([]byte, 36)...) // times
		b = le.AppendUint32(le.AppendUint32(b, mode), 1)
		return append(b, make([]byte, 20)...) // owner, device, block size, flags
	}
	for {
		n, err := unix.Read(device, buffer)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil || n < header {
			return // aborted
		}
		opcode, unique, node := le.Uint32(buffer[4:]), le.Uint64(buffer[8:]), le.Uint64(buffer[16:])
		var body []byte
		errno := int32(0)
		switch opcode {
		case initialize:
			body = le.AppendUint32(le.AppendUint32(nil, 7), 31)
			body = append(body, make([]byte, 56)...)
			le.PutUint32(body[20:], 64<<10) // the largest write
		case lookup:
			if string(bytes.TrimRight(buffer[header:n], "\x00")) != "file" {
				errno = -int32(unix.ENOENT)
				break
			}
			body = append(le.AppendUint64(nil, file), make([]byte, 32)...)
			body = append(body, attributes(file)...)
		case getattr:
			body = append(make([]byte, 16), attributes(node)...)
		case open, opendir:
			body = make([]byte, 16)
		case statfs:
			body = make([]byte, 80)
		case release, releasedir, access:
		case read:
			continue // for ever
		case 2, 36, 42: // forget, interrupt: no answer is expected
			continue
		default:
			errno = -int32(unix.ENOSYS)
		}
		answer := le.AppendUint32(nil, uint32(16+len(body)))
		answer = le.AppendUint64(le.AppendUint32(answer, uint32(errno)), unique)
		_, _ = unix.Write(device, append(answer, body...))
	}
}
