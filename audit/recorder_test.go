package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

// callStore keeps calls in memory, and can be slow or broken.
type callStore struct {
	mu    sync.Mutex
	calls []audit.ToolCall
	sizes []int
	hold  chan struct{} // waited for when it is set
	err   error
}

func (s *callStore) AddToolCalls(_ context.Context, calls []audit.ToolCall) error {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.calls, s.sizes = append(s.calls, calls...), append(s.sizes, len(calls))
	return nil
}

func (s *callStore) ToolCalls(context.Context, sallyport.TenantID, audit.CallFilter) ([]audit.ToolCall, error) {
	return nil, nil
}

func called(arguments string) audit.ToolCall {
	return audit.ToolCall{TenantID: "acme", Tool: "recall", Arguments: json.RawMessage(arguments)}
}

// Calls are stored together, a moment later, redacted by the time they are, and none is left behind at the end.
func TestRecorder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &callStore{}
		r := audit.NewRecorder(audit.RecorderConfig{Store: store, Redact: func(json.RawMessage) json.RawMessage { return json.RawMessage(`"redacted"`) }})
		for range 3 {
			r.Record(called(`{"secret":1}`))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(store.calls) != 3 || len(store.sizes) != 1 || string(store.calls[0].Arguments) != `"redacted"` {
			t.Errorf("stored %+v in batches of %v", store.calls, store.sizes)
		}
		r.Record(called(`{}`))
		r.Close()
		r.Close()
		if len(store.calls) != 4 {
			t.Errorf("%d calls after the end", len(store.calls))
		}
	})
}

// A store that does not answer makes nobody wait: what does not fit is dropped and counted, and so is what comes too late.
func TestRecorderNeverWaits(t *testing.T) {
	t.Parallel()
	var dropped atomic.Int64
	store := &callStore{hold: make(chan struct{})}
	r := audit.NewRecorder(audit.RecorderConfig{Store: store, Dropped: func(n int) { dropped.Add(int64(n)) }})
	const many = 10000
	for range many {
		r.Record(called(`{}`)) // would never return if it waited
	}
	close(store.hold)
	r.Close()
	r.Record(called(`{}`))
	stored := int64(len(store.calls))
	if dropped.Load() == 0 || stored == 0 || stored+dropped.Load() != many+1 {
		t.Errorf("%d stored and %d dropped of %d", stored, dropped.Load(), many+1)
	}
}

func TestRecorderCountsFailures(t *testing.T) {
	t.Parallel()
	var dropped atomic.Int64
	r := audit.NewRecorder(audit.RecorderConfig{Store: &callStore{err: errors.New("disk full")}, Dropped: func(n int) { dropped.Add(int64(n)) }})
	r.Record(called(`{}`))
	r.Record(called(`{}`))
	r.Close()
	if dropped.Load() != 2 {
		t.Errorf("%d were counted", dropped.Load())
	}
}

// Arguments that are too large are replaced before they wait in memory.
func TestRecorderBoundsArguments(t *testing.T) {
	t.Parallel()
	store := &callStore{}
	r := audit.NewRecorder(audit.RecorderConfig{Store: store, Redact: func(raw json.RawMessage) json.RawMessage { return raw }})
	r.Record(called(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`))
	r.Close()
	if got := string(store.calls[0].Arguments); got != `{"omitted_bytes":1048584}` {
		t.Errorf("kept %.100s", got)
	}
}
