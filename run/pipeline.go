package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sallyport-dev/sallyport"
)

// Run carries out one request, in this order and no other: design.md 4. It returns an error when the run was refused or broke
// before a script's outcome was known; whatever the script did is an Execution and a nil error. Needs memory:write.
func (s *Service) Run(ctx context.Context, p sallyport.Principal, req Request) (sallyport.Execution, error) {
	if req.IdempotencyKey != "" {
		return s.once(ctx, p, req, s.run, s.await)
	}
	return s.run(ctx, p, req, nil)
}

// run is Run; with once it opens a record only if nobody did under that key. Start calls it too, on a context that outlives the caller
// once the entry is open.
func (s *Service) run(ctx context.Context, p sallyport.Principal, req Request, once *Once) (execution sallyport.Execution, err error) {
	ctx, end := s.cfg.Observer.Span(ctx, "sallyport.execute", req.TraceParent)
	defer func() { end(err) }()
	// The record and the executor name the trace that this run is part of, the caller's own or a new one.
	req.TraceParent = cmp.Or(s.cfg.Observer.TraceParent(ctx), req.TraceParent)

	candidate, err := s.traceResolve(ctx, p, req)
	if err != nil {
		return sallyport.Execution{}, s.refuse(ctx, candidate, "", err)
	}
	s.cfg.Observer.Resolved(ctx, candidate)
	if refusal := s.traceAdmit(ctx, candidate); refusal != nil {
		refusal = s.question(ctx, candidate, req, refusal)
		return sallyport.Execution{}, s.refuse(ctx, candidate, refusal.Gate, refusal.Err())
	}
	secrets, err := s.secrets(ctx, candidate)
	if err != nil {
		return sallyport.Execution{}, s.refuse(ctx, candidate, "secrets", err)
	}
	spent, err := s.quotas.admit(candidate)
	if err != nil {
		return sallyport.Execution{}, s.refuse(ctx, candidate, "", err)
	}
	defer func() { spent(execution) }()
	execution, err = s.begin(ctx, candidate, req, once)
	if errors.Is(err, errTaken) {
		return sallyport.Execution{}, err
	}
	if err != nil {
		return sallyport.Execution{}, s.refuse(ctx, candidate, "", err)
	}
	// From here on an entry is open: every way out goes through finish.
	caller, cancel := s.track(ctx, execution)
	defer cancel()
	req.watch(execution)
	release, err := s.acquire(caller, &execution)
	if err != nil {
		return s.finish(ctx, execution, nil, err)
	}
	s.start(ctx, &execution)
	req.watch(execution)
	result, err := s.execute(caller, candidate, &execution, s.request(candidate, &execution, req, secrets), release)
	if err != nil {
		return s.finish(ctx, execution, nil, err)
	}
	artifacts := s.traceSettle(ctx, &execution, result, candidate.Limits, s.hides(candidate, secrets))
	return s.finish(ctx, execution, artifacts, nil)
}

// admit asks every gate in order; the first refusal stops. A gate that panics refuses.
func (s *Service) admit(ctx context.Context, candidate *sallyport.Candidate) *sallyport.Refusal {
	for _, gate := range s.cfg.Gates {
		if refusal := s.ask(ctx, gate, candidate); refusal != nil {
			return refusal
		}
	}
	if candidate.Grant == nil || candidate.Interpreter == nil {
		// Only possible when the standard gates are not installed: then nothing may run.
		return &sallyport.Refusal{Code: sallyport.CodeGrantMissing, Gate: "pipeline"}
	}
	return nil
}

func (s *Service) ask(ctx context.Context, gate sallyport.Gate, candidate *sallyport.Candidate) (refusal *sallyport.Refusal) {
	name := "unnamed"
	defer func() {
		if cause := recover(); cause != nil {
			s.cfg.Logger.ErrorContext(ctx, "a gate panicked", "gate", name, "cause", fmt.Sprint(cause))
			refusal = &sallyport.Refusal{Code: sallyport.CodeInternal, Gate: name}
		}
	}()
	name = gate.Name()
	refusal = gate.Check(ctx, candidate)
	if refusal != nil && refusal.Gate == "" {
		refusal.Gate = name
	}
	return refusal
}

// begin makes the audit entry durable; if it cannot be written, nothing runs.
func (s *Service) begin(ctx context.Context, candidate *sallyport.Candidate, req Request, once *Once) (_ sallyport.Execution, err error) {
	ctx, end := s.cfg.Observer.Span(ctx, "sallyport.record", "")
	defer func() {
		if errors.Is(err, errTaken) {
			end(nil)
			return
		}
		end(err)
	}()
	id, err := uuid.NewV7()
	if err != nil {
		return sallyport.Execution{}, &sallyport.Error{Op: "run.begin", Code: sallyport.CodeInternal, Err: err}
	}
	if err := s.use(ctx, candidate); err != nil {
		return sallyport.Execution{}, err
	}
	execution := s.opening(sallyport.ExecutionID(id.String()), candidate, req)
	entry := s.runEntry(execution, candidate)
	taken := false
	if once == nil {
		err = s.cfg.Ledger.Open(ctx, execution.TenantID, execution, entry)
	} else {
		taken, err = s.cfg.Ledger.OpenOnce(ctx, execution.TenantID, execution, entry, *once)
	}
	if taken {
		return sallyport.Execution{}, errTaken
	}
	if err != nil {
		switch sallyport.CodeOf(err) {
		case sallyport.CodeCanceled, sallyport.CodeRevisionNotFound: // the latter: it was removed a moment ago
			return sallyport.Execution{}, err
		}
		return sallyport.Execution{}, &sallyport.Error{Op: "run.begin", Code: sallyport.CodeAuditUnavailable, Err: err}
	}
	return execution, nil
}

// acquire takes the slot, within the queue's bounds.
func (s *Service) acquire(ctx context.Context, execution *sallyport.Execution) (release func(), err error) {
	ctx, end := s.cfg.Observer.Span(ctx, "sallyport.acquire", "")
	defer func() { end(err) }()
	began := time.Now()
	release, err = s.slots.acquire(ctx, execution.TenantID)
	execution.QueueMS = time.Since(began).Milliseconds()
	s.cfg.Observer.Slots(s.slots.inUse())
	if err != nil && ctx.Err() != nil {
		err = stopped(ctx)
	}
	return release, err
}

// start marks the execution running. It is for readers of the record only, so the caller does not wait for the disk: a crash
// before it closes the execution as lost just the same.
func (s *Service) start(ctx context.Context, execution *sallyport.Execution) {
	at := s.cfg.Now().UTC()
	execution.StartedAt, execution.Status = &at, sallyport.StatusRunning
	tenant, id := execution.TenantID, execution.ID
	s.mark(id, func(run *activeRun) { run.running = true })
	s.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		defer cancel()
		if err := s.cfg.Ledger.Start(ctx, tenant, id, at); err != nil {
			s.cfg.Logger.WarnContext(ctx, "the start of an execution was not recorded", "execution_id", id, "error", err)
		}
	})
}

// errDeaf is the outcome of an executor that did not return by timeout + grace.
var errDeaf = errors.New("the executor did not return in time")

// execute calls the executor once and stops waiting at timeout + grace, or when the caller goes away. The slot stays held until
// the executor returns or timeout + grace passes, whatever the caller does.
func (s *Service) execute(
	ctx context.Context, candidate *sallyport.Candidate, execution *sallyport.Execution, approved sallyport.ExecRequest, release func(),
) (result sallyport.Result, err error) {
	ctx, end := s.cfg.Observer.Span(ctx, "sallyport.run", "")
	defer func() { end(err) }()
	// The executor's context outlives the caller only as long as it takes to stop the script.
	execCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	limit := time.NewTimer(candidate.Limits.Timeout + s.cfg.Grace)
	began := time.Now()
	done := make(chan executed, 1)
	approved.TraceParent = cmp.Or(s.cfg.Observer.TraceParent(ctx), approved.TraceParent)
	s.background.Go(func() {
		got := executed{err: errors.New("the executor ended its goroutine")}
		defer func() { done <- got }()
		got = s.call(execCtx, approved)
	})

	// letGo frees the slot when the executor returns or its time is over, for a caller that no longer waits.
	letGo := func() {
		s.background.Go(func() {
			defer stop()
			defer limit.Stop()
			select {
			case <-done:
				release()
			case <-limit.C:
				release()
				s.abandon(done)
			}
			s.cfg.Observer.Slots(s.slots.inUse())
		})
	}
	select {
	case got := <-done:
		execution.DurationMS = time.Since(began).Milliseconds()
		s.traceStart(ctx, began, got.result)
		stop()
		limit.Stop()
		release()
		s.cfg.Observer.Slots(s.slots.inUse())
		if ctx.Err() != nil && (got.err != nil || got.result.ExitCode == nil) {
			// The caller went away and the script was stopped for it: never a timeout, never an error of the script.
			return sallyport.Result{}, stopped(ctx)
		}
		if got.err != nil {
			return sallyport.Result{}, &executorError{got.err}
		}
		return got.result, nil
	case <-ctx.Done():
		execution.DurationMS = time.Since(began).Milliseconds()
		stop()
		letGo()
		return sallyport.Result{}, stopped(ctx)
	case <-limit.C:
		execution.DurationMS = time.Since(began).Milliseconds()
		stop()
		release()
		s.abandon(done)
		return sallyport.Result{}, errDeaf
	}
}

// executorError is an executor's failure while the caller waited. A cancellation or a deadline inside of it is the executor's own,
// such as that of a connection, and never the caller's.
type executorError struct{ err error }

func (e *executorError) Error() string { return e.err.Error() }
func (e *executorError) Unwrap() error { return e.err }

type executed struct {
	result sallyport.Result
	err    error
}

// call is the one place where an executor is called. A panic is an error of this run only.
func (s *Service) call(ctx context.Context, req sallyport.ExecRequest) (got executed) {
	defer func() {
		if cause := recover(); cause != nil {
			got = executed{err: fmt.Errorf("the executor panicked: %v", cause)}
		}
	}()
	if s.cfg.Executor == nil {
		return executed{err: sallyport.NotStarted(errors.New("no executor is configured"))}
	}
	got.result, got.err = s.cfg.Executor.Execute(ctx, req)
	got.result = reported(got.result, s.kind())
	return got
}

// abandon counts an executor that ignores its context for as long as it does. This is the one goroutine that nobody waits
// for: a deaf executor must not keep a server from stopping.
func (s *Service) abandon(done <-chan executed) {
	s.cfg.Observer.Abandoned(+1)
	go func() {
		<-done
		s.cfg.Observer.Abandoned(-1)
	}()
}
