//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
)

func TestResult(t *testing.T) {
	t.Parallel()
	exited := func(status uint32, onCommand uint64) *frame {
		return &frame{kind: frameExited, value: status, size: onCommand}
	}
	failed := func(stage uint32, errno syscall.Errno) *frame {
		return &frame{kind: frameStartFailed, value: stage, size: uint64(errno)}
	}
	oom := sallyport.Usage{OOMKills: 1}
	spent, spare := sallyport.Usage{CPUTimeMS: new(int64(1000))}, sallyport.Usage{CPUTimeMS: new(int64(999))}
	for _, tt := range []struct {
		name    string
		outcome outcome
		want    sallyport.Result
	}{
		{"exit 0", outcome{exited: exited(0, 0)}, sallyport.Result{ExitCode: new(0)}},
		{"exit 0 after a kill for memory", outcome{exited: exited(0, 0), usage: oom}, sallyport.Result{ExitCode: new(0), Usage: oom}},
		{"exit 137 is not a kill", outcome{exited: exited(137<<8, 0)}, sallyport.Result{ExitCode: new(137)}},
		{"exit 137 beside a kill for memory", outcome{exited: exited(137<<8, 0), usage: oom}, sallyport.Result{ExitCode: new(137), Usage: oom}},
		{"killed by somebody", outcome{exited: exited(9, 0)}, sallyport.Result{Signal: 9}},
		{"killed for memory", outcome{exited: exited(9, 0), usage: oom}, sallyport.Result{Signal: 9, Limit: sallyport.LimitMemory, Usage: oom}},
		{"ended by SIGSYS", outcome{exited: exited(31|0x80, 0)}, sallyport.Result{Signal: 31}},
		{"file size", outcome{exited: exited(25, 0)}, sallyport.Result{Signal: 25, Limit: sallyport.LimitDisk}},
		{"the host refused the CPUs", outcome{exited: exited(0, 0), misplaced: true}, sallyport.Result{ExitCode: new(0), Isolation: sallyport.Isolation{Notes: []string{noteAffinity}}}},
		{"deadline", outcome{timedOut: true, exited: exited(9, 1)}, sallyport.Result{TimedOut: true, Limit: sallyport.LimitWall}},
		{"deadline beside a kill for memory", outcome{timedOut: true, exited: exited(9, 1), usage: oom}, sallyport.Result{TimedOut: true, Limit: sallyport.LimitWall, Usage: oom}},
		{"CPU budget", outcome{timedOut: true, cpuSpent: true, exited: exited(9, 1)}, sallyport.Result{TimedOut: true, Limit: sallyport.LimitCPU}},
		{"ended before the budget's command arrived", outcome{timedOut: true, cpuSpent: true, exited: exited(0, 0)}, sallyport.Result{ExitCode: new(0)}},
		{"ended over the CPU budget", outcome{exited: exited(0, 0), budget: time.Second, usage: spent}, sallyport.Result{ExitCode: new(0), Usage: spent}},
		{"CPU limit of one process", outcome{exited: exited(9, 0), budget: time.Second, usage: spent}, sallyport.Result{TimedOut: true, Limit: sallyport.LimitCPU, Usage: spent}},
		{"killed within the CPU budget", outcome{exited: exited(9, 0), budget: time.Second, usage: spare}, sallyport.Result{Signal: 9, Usage: spare}},
		{"killed without a CPU budget", outcome{exited: exited(9, 0), usage: spent}, sallyport.Result{Signal: 9, Usage: spent}},
		{"ended before the command arrived", outcome{timedOut: true, exited: exited(3<<8, 0)}, sallyport.Result{ExitCode: new(3)}},
		{"deadline, PID 1 silent", outcome{timedOut: true, lost: true}, sallyport.Result{TimedOut: true, Limit: sallyport.LimitWall, ArtifactsLost: true}},
		{"PID 1 killed for memory", outcome{ready: true, lost: true, usage: oom}, sallyport.Result{Signal: 9, Limit: sallyport.LimitMemory, Usage: oom, ArtifactsLost: true}},
		{"no interpreter", outcome{startFailed: failed(stageExec, unix.ENOENT)}, sallyport.Result{StartError: "the interpreter python3 is not installed where a sandbox can see it"}},
		{"not executable", outcome{startFailed: failed(stageExec, unix.EACCES)}, sallyport.Result{StartError: "the interpreter python3 may not be executed"}},
		{"too long", outcome{startFailed: failed(stageExec, unix.E2BIG)}, sallyport.Result{StartError: "the arguments and variables are larger than a process can take"}},
		{"does not fit", outcome{startFailed: failed(stageStaging, unix.ENOSPC)}, sallyport.Result{StartError: "the skill does not fit into the space of the run", Limit: sallyport.LimitDisk}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.outcome.report = &report{}
			got, err := tt.outcome.result(sallyport.Isolation{}, "/usr/bin/python3")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	for name, o := range map[string]outcome{
		"no report":      {ready: true, lost: true},
		"stopped status": {exited: exited(0x137f, 0)},
	} {
		o.report = &report{}
		if _, err := o.result(sallyport.Isolation{}, ""); err == nil || sallyport.IsNotStarted(err) {
			t.Errorf("%s: got %v, want an error that does not say that nothing began", name, err)
		}
	}
	for _, stage := range []uint32{stageConfig, stageStaging, stageFork, stageSession, stageLimits, stagePrivileges, stageDirectory, stageFilter, stageLandlock, stageIdentity} {
		o := outcome{startFailed: failed(stage, unix.EPERM), report: &report{}}
		_, err := o.result(sallyport.Isolation{}, "")
		if !sallyport.IsNotStarted(err) || !errors.Is(err, unix.EPERM) {
			t.Errorf("stage %d: got %v, want an error that says that nothing began", stage, err)
		}
	}
}

func TestCutRune(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "abc": "abc", "ab€": "ab€", "ab\xe2\x82": "ab", "ab\xe2": "ab", "\xf0\x9f\x98": "", "a\xf0\x9f": "a", "😀": "😀",
		// Bytes that are no beginning of a character are the script's own.
		"a\xff": "a\xff", "a\x80": "a\x80", "\x80\x80\x80\x80": "\x80\x80\x80\x80", "é\xc3": "é",
	} {
		if got := string(cutRune([]byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// wire writes what PID 1 would.
type wire struct{ bytes.Buffer }

func (w *wire) frame(kind, value uint32, size uint64, path, content string) {
	for _, v := range []uint32{kind, value, uint32(len(path)), 0} {
		_ = binary.Write(w, binary.NativeEndian, v)
	}
	_ = binary.Write(w, binary.NativeEndian, size)
	w.WriteString(path + content)
}

// PID 1 is ours, but a report that breaks its bounds is not believed: it is cut off, and nothing large is read.
func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	limits := sallyport.Limits{ArtifactBytes: 10, ArtifactFiles: 2}
	for _, tt := range []struct {
		name      string
		write     func(w *wire)
		artifacts int
		complete  bool
	}{
		{"whole", func(w *wire) {
			w.frame(frameArtifact, 0, 3, "b", "xyz")
			w.frame(frameArtifact, 0, 7, "a", "1234567")
			w.frame(frameEnd, 0, 5, "", "")
		}, 2, true},
		{"name that leaves", func(w *wire) {
			w.frame(frameArtifact, 0, 1, "../a", "x")
			w.frame(frameEnd, 0, 0, "", "")
		}, 0, true},
		{"too many bytes", func(w *wire) {
			w.frame(frameArtifact, 0, 7, "a", "1234567")
			w.frame(frameArtifact, 0, 4, "b", "1234")
			w.frame(frameEnd, 0, 0, "", "")
		}, 1, false},
		{"too many files", func(w *wire) {
			for _, name := range []string{"a", "b", "c"} {
				w.frame(frameArtifact, 0, 1, name, "x")
			}
			w.frame(frameEnd, 0, 0, "", "")
		}, 2, false},
		{"enormous size", func(w *wire) { w.frame(frameArtifact, 0, 1<<63, "a", "x") }, 0, false},
		{"enormous output", func(w *wire) { w.frame(frameOutput, 0, 1<<40, "", "x") }, 0, false},
		{"long path", func(w *wire) { w.frame(frameSkipped, 1, 0, strings.Repeat("p", artifactPathMax+1), "") }, 0, false},
		{"unknown frame", func(w *wire) { w.frame(99, 0, 0, "", ""); w.frame(frameEnd, 0, 0, "", "") }, 0, false},
		{"cut short", func(w *wire) { w.frame(frameArtifact, 0, 5, "a", "12") }, 0, false},
		{"nothing", func(*wire) {}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var w wire
			tt.write(&w)
			if _, err := write.Write(w.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := write.Close(); err != nil {
				t.Fatal(err)
			}
			if err := read.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			r := newReport(read, limits)
			for ev := range r.events {
				t.Errorf("unexpected event %+v", ev)
			}
			if len(r.artifacts) != tt.artifacts || r.complete != tt.complete {
				t.Errorf("%d artifacts, complete %v, want %d, %v", len(r.artifacts), r.complete, tt.artifacts, tt.complete)
			}
			if err := read.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
