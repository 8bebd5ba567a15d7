package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const (
	// awaitFirst and awaitMost are the pauses between two looks at an execution that somebody else carries out.
	awaitFirst, awaitMost = 20 * time.Millisecond, time.Second
	// maxWait bounds how long Wait waits.
	maxWait = 60 * time.Second
	// closeReserve is the part of the time to close in which runs that were told to stop are stopped and recorded.
	closeReserve = 15 * time.Second
)

// errStopping is why a service that closes ends a run that nobody waits for.
var errStopping = errors.New("the service stops")

// stopped is why ctx is over.
func stopped(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStopping) {
		return cause
	}
	return ctx.Err()
}

// Start is Run for a caller who does not wait: it returns when every gate has passed and the audit entry is durable, with the
// execution queued, or with what refused it. The run goes on whatever becomes of the caller, within the same slots, quotas and limits;
// Wait and Get tell how it stands and Cancel stops it. Needs memory:write.
func (s *Service) Start(ctx context.Context, p sallyport.Principal, req Request) (sallyport.Execution, error) {
	if req.IdempotencyKey != "" {
		return s.once(ctx, p, req, s.detach, s.cfg.Ledger.Execution)
	}
	return s.detach(ctx, p, req, nil)
}

// detach lets the pipeline go on by itself as soon as its record is open. Until then the caller can still call it off.
func (s *Service) detach(ctx context.Context, p sallyport.Principal, req Request, once *Once) (sallyport.Execution, error) {
	select {
	case <-s.closing:
		return sallyport.Execution{}, sallyport.Errorf("run.start", sallyport.CodeStoreUnavailable, "the server is stopping")
	default:
	}
	type answer struct {
		execution sallyport.Execution
		err       error
	}
	answered := make(chan answer, 2) // the open record, and the end; only the first is read
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, cancel)
	watch := req.Watch
	req.Watch = func(e sallyport.Execution) {
		if e.Status == sallyport.StatusQueued {
			unhook()
			s.mark(e.ID, func(run *activeRun) { run.detached = true })
			answered <- answer{execution: e}
		}
		if watch != nil {
			watch(e)
		}
	}
	s.background.Go(func() {
		defer cancel()
		defer func() {
			// No caller's handler is above this goroutine.
			if cause := recover(); cause != nil {
				answered <- answer{err: &sallyport.Error{Op: "run.start", Code: sallyport.CodeInternal, Err: fmt.Errorf("panic: %v", cause)}}
				s.cfg.Logger.ErrorContext(own, "a run panicked", "cause", fmt.Sprint(cause))
			}
		}()
		execution, err := s.run(own, p, req, once)
		answered <- answer{execution, err}
	})
	got := <-answered
	return got.execution, got.err
}

// mark changes what is known of a run under way.
func (s *Service) mark(id sallyport.ExecutionID, change func(*activeRun)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run, ok := s.active[id]; ok {
		change(run)
	}
}

// Wait returns the execution when it is over, or as it stands when patience is. Needs memory:read; an execution that p cannot see is
// as absent. INVALID_ARGUMENT for a patience that is negative or over a minute.
func (s *Service) Wait(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error) {
	if patience < 0 || patience > maxWait {
		return sallyport.Execution{}, sallyport.Errorf("run.wait", sallyport.CodeInvalidArgument,
			"a wait is at most %d seconds", int(maxWait.Seconds()))
	}
	execution, err := s.Get(ctx, p, id)
	if err != nil || execution.Status.Terminal() || patience == 0 {
		return execution, err
	}
	return s.watchRecord(ctx, p.TenantID, id, patience)
}

// watchRecord returns the execution when it is over, or as it stands after patience. A run of this process tells when it ends; that of
// another is looked at from time to time.
func (s *Service) watchRecord(ctx context.Context, tenant sallyport.TenantID, id sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	var ended <-chan struct{} // nil for a run that is not ours
	s.mark(id, func(run *activeRun) { ended = run.done })
	for pause := awaitFirst; ; pause = min(2*pause, awaitMost) {
		execution, err := s.cfg.Ledger.Execution(ctx, tenant, id)
		if err != nil || execution.Status.Terminal() {
			return execution, err
		}
		var look <-chan time.Time
		if ended == nil {
			look = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return sallyport.Execution{}, ctx.Err()
		case <-limit.C:
			return s.cfg.Ledger.Execution(ctx, tenant, id)
		case <-ended:
			ended = nil // from here on the record is looked at: it may be written late
		case <-look:
		}
	}
}

// drain ends the runs that nobody waits for, for a service that closes, and returns what stops it from doing so.
func (s *Service) drain(ctx context.Context) (stop func()) {
	cancel := func(queuedOnly bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, run := range s.active {
			if run.detached && !(queuedOnly && run.running) {
				run.cancel(errStopping)
			}
		}
	}
	cancel(true)
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return func() {}
	}
	timer := time.AfterFunc(max(0, time.Until(deadline)-closeReserve), func() { cancel(false) })
	return func() { timer.Stop() }
}
