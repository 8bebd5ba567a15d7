package audit

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"
)

// The bounds of a Recorder: calls that wait, calls in one transaction, the time between two, the bytes of arguments that are kept.
const (
	callsWaiting     = 2048
	callsAtOnce      = 256
	callInterval     = 500 * time.Millisecond
	maxCallArguments = 16 << 10
	callTimeout      = 10 * time.Second
)

// RecorderConfig is what a Recorder needs. Store is required.
type RecorderConfig struct {
	Store CallStore
	// Redact takes what must not be kept out of a call's arguments; nil keeps no arguments.
	Redact func(arguments json.RawMessage) json.RawMessage
	// Dropped is told of calls that were not recorded.
	Dropped func(count int)
	Logger  *slog.Logger // nil discards
}

// Recorder takes tool calls off the path of their answers and stores them in batches. It is safe for concurrent use.
type Recorder struct {
	cfg     RecorderConfig
	waiting chan ToolCall
	ended   chan struct{}

	mu     sync.RWMutex // guards closed against a send on a closed channel
	closed bool
}

// NewRecorder returns a Recorder that runs until Close.
func NewRecorder(cfg RecorderConfig) *Recorder {
	if cfg.Redact == nil {
		cfg.Redact = func(json.RawMessage) json.RawMessage { return json.RawMessage(`{}`) }
	}
	if cfg.Dropped == nil {
		cfg.Dropped = func(int) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{cfg: cfg, waiting: make(chan ToolCall, callsWaiting), ended: make(chan struct{})}
	go r.run()
	return r
}

// Record queues a call and never waits: when the queue is full the call is dropped and counted. Arguments over 16 KiB are replaced
// by their size.
func (r *Recorder) Record(call ToolCall) {
	if len(call.Arguments) > maxCallArguments {
		size, err := json.Marshal(map[string]int{"omitted_bytes": len(call.Arguments)})
		if err != nil {
			size = []byte(`{}`)
		}
		call.Arguments = size
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.closed {
		select {
		case r.waiting <- call:
			return
		default:
		}
	}
	r.cfg.Dropped(1)
}

// Close stores what is queued and ends the Recorder. It may be called twice.
func (r *Recorder) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.waiting)
	}
	r.mu.Unlock()
	<-r.ended
}

func (r *Recorder) run() {
	defer close(r.ended)
	ticker := time.NewTicker(callInterval)
	defer ticker.Stop()
	var batch []ToolCall
	for {
		select {
		case call, open := <-r.waiting:
			if !open {
				r.store(batch)
				return
			}
			call.Arguments = r.cfg.Redact(call.Arguments)
			if batch = append(batch, call); len(batch) >= callsAtOnce {
				r.store(batch)
				batch = nil
			}
		case <-ticker.C:
			r.store(batch)
			batch = nil
		}
	}
}

func (r *Recorder) store(batch []ToolCall) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout) //nolint:forbidigo // the callers have their answers
	defer cancel()
	if err := r.cfg.Store.AddToolCalls(ctx, batch); err != nil {
		r.cfg.Dropped(len(batch))
		r.cfg.Logger.ErrorContext(ctx, "tool calls were not recorded", "count", len(batch), "error", err)
	}
}
