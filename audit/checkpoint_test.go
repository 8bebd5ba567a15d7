package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

// log is a checkpoint log that can fail.
type log struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	syncs int
	fault error
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault != nil {
		return 0, l.fault
	}
	return l.buf.Write(p)
}

func (l *log) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncs++
	return nil
}

func (l *log) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = err
}

func (l *log) counts(tb testing.TB) []int64 {
	tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	checkpoints, err := audit.ReadCheckpoints(bytes.NewReader(l.buf.Bytes()))
	if err != nil {
		tb.Fatal(err)
	}
	var counts []int64
	for _, checkpoint := range checkpoints {
		counts = append(counts, checkpoint.Count)
	}
	return counts
}

func TestRunWritesACheckpointWhenTheHeadMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := &log{}
		key := newKey(1)
		var lines bytes.Buffer
		m, service := filled(t, 2, audit.Config{
			Key: key, CheckpointLog: file, Interval: time.Minute, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- service.Run(ctx) }()
		wait := func(want ...int64) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, file.counts(t)); diff != "" {
				t.Fatalf("counts in the log (-want +got):\n%s", diff)
			}
		}

		time.Sleep(59 * time.Second)
		wait()
		time.Sleep(time.Second)
		wait(2)
		time.Sleep(10 * time.Minute) // the head does not move
		wait(2)
		appendEntries(t, service, 3)
		time.Sleep(time.Minute)
		wait(2, 5)

		file.fail(errDisk)
		appendEntries(t, service, 1)
		time.Sleep(time.Minute)
		wait(2, 5)
		if n := len(m.checkpoints[tenant]); n != 2 {
			t.Fatalf("a checkpoint that is not in the log was stored: got %d, want 2", n)
		}
		file.fail(nil)
		time.Sleep(time.Minute) // what failed is tried again
		wait(2, 5, 6)

		appendEntries(t, service, 1)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wait(2, 5, 6, 7)
		if file.syncs != 4 {
			t.Errorf("syncs: got %d, want 4", file.syncs)
		}
		if n := strings.Count(lines.String(), "audit checkpoint"); n != 4 {
			t.Errorf("lines in the server's log: got %d, want 4", n)
		}

		outside, err := audit.ReadCheckpoints(&file.buf)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.checkpoints[tenant], outside); diff != "" {
			t.Errorf("stored and logged differ (-stored +logged):\n%s", diff)
		}
		verdict, err := service.Verify(t.Context(), auditor(), outside)
		if err != nil || verdict.Result != audit.ResultValid || verdict.Tail != audit.TailProven {
			t.Errorf("got %+v, %v", verdict, err)
		}
	})
}

// A trail that lost entries gets no new signature over what is left.
func TestRunDoesNotBlessALoss(t *testing.T) {
	t.Parallel()
	for name, tamper := range map[string]func(*memory){
		"cut": func(m *memory) { m.entries[tenant] = m.entries[tenant][:2] },
		"rewritten": func(m *memory) {
			m.entries[tenant][0].Actor = "somebody else"
			chained(m.entries[tenant], 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				file := &log{}
				key := newKey(1)
				m, service := filled(t, 4, audit.Config{Key: key, CheckpointLog: file, Interval: time.Minute})
				m.checkpoints[tenant] = []audit.Checkpoint{signed(t, m, key, 4)}
				tamper(m)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- service.Run(ctx) }()
				time.Sleep(3 * time.Minute)
				cancel()
				if err := <-done; err == nil {
					t.Error("the contradiction was not reported")
				}
				if file.buf.Len() != 0 || len(m.checkpoints[tenant]) != 1 {
					t.Errorf("a checkpoint was written: %s", file.buf.String())
				}
			})
		})
	}
}

// Nothing is written again after a restart when nothing happened.
func TestRunKnowsTheStoredCheckpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := &log{}
		key := newKey(1)
		m, service := filled(t, 4, audit.Config{Key: key, CheckpointLog: file})
		m.checkpoints[tenant] = []audit.Checkpoint{signed(t, m, key, 4), signed(t, m, key, 3)}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		if err := service.Run(ctx); err != nil || file.buf.Len() != 0 {
			t.Errorf("got %v and %q", err, file.buf.String())
		}
	})
}

func TestRunOneTenantDoesNotStopAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key := newKey(1)
		m, service := filled(t, 4, audit.Config{Key: key, Interval: time.Second})
		m.checkpoints[tenant] = []audit.Checkpoint{signed(t, m, key, 4)}
		m.entries[tenant] = m.entries[tenant][:1]
		err := service.Append(t.Context(), sallyport.Entry{TenantID: "zeta", Action: sallyport.ActionScriptRun, Entity: "x"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if err := service.Run(ctx); err == nil {
			t.Error("the loss of one tenant was not reported")
		}
		if n := len(m.checkpoints["zeta"]); n != 1 {
			t.Errorf("the other tenant has %d checkpoints, want 1", n)
		}
	})
}

func TestRunWithoutAKeyOnlyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, service := filled(t, 1, audit.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := service.Run(ctx); err != nil || len(m.checkpoints) != 0 {
			t.Errorf("got %v and %d checkpoints", err, len(m.checkpoints))
		}
	})
}

func TestReadCheckpoints(t *testing.T) {
	t.Parallel()
	key := newKey(1)
	m, _ := filled(t, 2, audit.Config{})
	line, err := json.Marshal(signed(t, m, key, 2))
	if err != nil {
		t.Fatal(err)
	}
	good := string(line) + "\n"
	for name, test := range map[string]struct {
		in   string
		want int
		code sallyport.Code
	}{
		"none":          {"", 0, ""},
		"two":           {good + good, 2, ""},
		"last line cut": {good + good[:len(good)-10], 1, ""},
		"not JSON":      {good + "x\n" + good, 0, sallyport.CodeInvalidArgument},
		"an entry":      {`{"sequence":1}` + "\n", 0, sallyport.CodeInvalidArgument},
		"endless line":  {strings.Repeat("x", 20<<10) + "\n", 0, sallyport.CodeInvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := audit.ReadCheckpoints(strings.NewReader(test.in))
			if code := sallyport.CodeOf(err); len(got) != test.want || code != test.code {
				t.Errorf("got %d and code %q, want %d and %q", len(got), code, test.want, test.code)
			}
		})
	}
	if _, err := audit.ReadCheckpoints(iotestErr{}); err == nil {
		t.Error("a log that cannot be read gave no error")
	}
}

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, errors.New("gone") }
