package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runnerwire"
)

// fault is a no of the runner. Its cause is for the log.
type fault struct {
	status        int
	code, message string
	started       bool
	cause         error
}

// bodyTime bounds the arrival of a body, and answerTime the departure of an answer.
const (
	bodyTime   = time.Minute
	answerTime = 30 * time.Second
)

// run is POST /runs: one request, one run.
func (r *Runner) run(w http.ResponseWriter, req *http.Request) {
	arrived := time.Now()
	outcome, no := r.carryOut(w, req, arrived)
	if no != nil {
		if no.cause != nil && req.Context().Err() == nil {
			r.log.ErrorContext(req.Context(), "a run was not carried out", "code", no.code, "started", no.started, "cause", no.cause.Error())
		}
		r.refuse(w, no.status, no.code, no.message, no.started)
		return
	}
	body, err := runnerwire.Encode(outcome)
	if err != nil {
		r.log.ErrorContext(req.Context(), "an outcome cannot be sent", "cause", err.Error())
		r.refuse(w, http.StatusInternalServerError, string(sallyport.CodeInternal), "the outcome cannot be sent", true)
		return
	}
	r.answer(w, http.StatusOK, body)
}

func (r *Runner) carryOut(w http.ResponseWriter, req *http.Request, arrived time.Time) (runnerwire.Outcome, *fault) {
	var none runnerwire.Outcome
	body, no := r.read(w, req)
	if no != nil {
		return none, no
	}
	var message runnerwire.Run
	if err := runnerwire.Decode(body, &message); err != nil {
		return none, refused(http.StatusBadRequest, string(sallyport.CodeInvalidArgument), "the body is not a run in JSON", err)
	}
	interpreter, known := r.cfg.Runtimes[message.Runtime]
	if !known {
		// Told as a script that could not be started, as it would be where the interpreter is missing.
		return runnerwire.FromResult(sallyport.Result{
			StartError: "the runner does not have the runtime that the script needs", Isolation: sallyport.Isolation{Executor: r.cfg.Executor.Kind()},
		}, message.MaxOutputBytes, arrived), nil
	}
	if interpreter.Root == "" && interpreter.Image != "" || interpreter.Fault != "" {
		if !slices.Contains(r.provided(req.Context()).Features, sallyport.FeatureImages) || interpreter.Image == "" {
			return none, refused(http.StatusServiceUnavailable, string(sallyport.CodeSandboxUnavailable),
				"the runtime "+interpreter.Runtime+" of the runner cannot serve", errors.New(interpreter.Fault))
		}
	}
	var files []sallyport.Component
	if message.Revision != "" {
		if files, known = r.cache.find(message.Revision); !known {
			return none, refused(http.StatusConflict, runnerwire.CodeRevisionUnknown, "the runner does not have this revision; upload it", nil)
		}
	}
	run, err := message.Request(interpreter, files, sallyport.DefaultLimits(), r.cfg.Tops)
	if err != nil {
		if sallyport.CodeOf(err) == sallyport.CodePinMismatch {
			return none, refused(http.StatusUnprocessableEntity, runnerwire.CodeDigestMismatch, sallyport.Public(err).Message, nil)
		}
		return none, refused(http.StatusBadRequest, string(sallyport.CodeInvalidArgument), sallyport.Public(err).Message, nil)
	}
	if no := r.enforces(req.Context(), message.RequiredLayers); no != nil {
		return none, no
	}
	release, no := r.acquire(req.Context(), &run)
	if no != nil {
		return none, no
	}
	if run.ExecutionID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			release()
			return none, refused(http.StatusInternalServerError, string(sallyport.CodeInternal), "the runner cannot name the run", err)
		}
		run.ExecutionID = sallyport.ExecutionID(id.String())
	} else if !r.asked.first(string(run.TenantID) + "/" + string(run.ExecutionID)) {
		// Whoever repeated the request, a proxy perhaps: it is not run twice.
		release()
		return none, &fault{http.StatusConflict, runnerwire.CodeAlreadyAsked, "this execution was asked for before", true, nil}
	}
	result, no := r.execute(req.Context(), run, release)
	if no != nil {
		return none, no
	}
	return runnerwire.FromResult(result, run.Limits.OutputBytes, arrived), nil
}

// enforces checks that the executor still provides what the server told its gates.
func (r *Runner) enforces(ctx context.Context, required []sallyport.Layer) *fault {
	found := r.provided(ctx)
	if !found.Available {
		return refused(http.StatusServiceUnavailable, string(sallyport.CodeSandboxUnavailable), "the runner has no working sandbox", errors.New(found.Reason))
	}
	for _, layer := range required {
		if !slices.Contains(found.Layers, layer) {
			return refused(http.StatusServiceUnavailable, string(sallyport.CodeSandboxUnavailable), "the runner does not enforce "+string(layer), nil)
		}
	}
	return nil
}

// provided is what the executor can enforce now; nothing when that is less than the runner's own policy demands.
func (r *Runner) provided(ctx context.Context) sallyport.Capabilities {
	found := r.cfg.Executor.Capabilities(ctx)
	required := r.cfg.RequiredLayers
	if required == nil {
		required = slices.Concat(found.Layers, found.Missing)
	}
	for _, layer := range required {
		if found.Available && !slices.Contains(found.Layers, layer) {
			found.Available = false
			found.Reason = "the runner's policy demands " + string(layer) + ", which it cannot enforce: " + found.Reason
		}
	}
	return found
}

// acquire takes a slot, waiting for one a moment at most; what it waited is taken from the run's grace.
func (r *Runner) acquire(ctx context.Context, run *sallyport.ExecRequest) (release func(), no *fault) {
	release = func() { <-r.slots }
	if r.draining.Load() {
		return nil, refused(http.StatusServiceUnavailable, runnerwire.CodeDraining, "the runner is stopping", nil)
	}
	select {
	case r.slots <- struct{}{}:
		return release, nil
	default:
	}
	began := time.Now()
	timer := time.NewTimer(min(time.Second, run.Grace/4))
	defer timer.Stop()
	select {
	case r.slots <- struct{}{}:
		run.Grace -= time.Since(began)
		return release, nil
	case <-timer.C:
		return nil, refused(http.StatusServiceUnavailable, string(sallyport.CodeSlotsExhausted), "every slot of the runner is taken", nil)
	case <-ctx.Done():
		return nil, refused(http.StatusServiceUnavailable, string(sallyport.CodeCanceled), "the caller went away", nil)
	}
}

// execute calls the executor once. A slot stays taken until the executor returns, which is longer than anybody waits when
// it is deaf.
func (r *Runner) execute(ctx context.Context, run sallyport.ExecRequest, release func()) (sallyport.Result, *fault) {
	type executed struct {
		result sallyport.Result
		err    error
	}
	done := make(chan executed, 1)
	go func() {
		defer release()
		var got executed
		defer func() {
			if cause := recover(); cause != nil {
				got = executed{err: fmt.Errorf("the executor panicked: %v", cause)}
			}
			done <- got
		}()
		got.result, got.err = r.cfg.Executor.Execute(ctx, run)
	}()
	timer := time.NewTimer(run.Limits.Timeout + run.Grace)
	defer timer.Stop()
	var got executed
	select {
	case got = <-done:
	case <-timer.C:
		got.err = errors.New("the executor did not return in time")
	}
	switch {
	case got.err == nil:
		return got.result, nil
	case sallyport.IsNotStarted(got.err) && sallyport.CodeOf(got.err) == sallyport.CodeSandboxUnavailable:
		return got.result, refused(http.StatusServiceUnavailable, string(sallyport.CodeSandboxUnavailable), "the runner has no working sandbox", got.err)
	case sallyport.IsNotStarted(got.err):
		return got.result, refused(http.StatusInternalServerError, string(sallyport.CodeInternal), "the run was not begun", got.err)
	default:
		return got.result, &fault{http.StatusInternalServerError, string(sallyport.CodeInternal), "the run broke", true, got.err}
	}
}

// refused is a fault before anything of a script began.
func refused(status int, code, message string, cause error) *fault {
	return &fault{status: status, code: code, message: message, cause: cause}
}

// read reads a whole body within its bounds.
func (r *Runner) read(w http.ResponseWriter, req *http.Request) ([]byte, *fault) {
	control := http.NewResponseController(w)
	// Not every writer of a test has deadlines; the server's has.
	_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, r.cfg.MaxBodyBytes))
	// While the script runs, the connection is read only to see it end.
	_ = control.SetReadDeadline(time.Time{})
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, refused(http.StatusRequestEntityTooLarge, string(sallyport.CodeRequestTooLarge), "the body is over the limit", nil)
	}
	if err != nil {
		return nil, refused(http.StatusBadRequest, string(sallyport.CodeInvalidArgument), "the body did not arrive", err)
	}
	return body, nil
}

func (r *Runner) refuse(w http.ResponseWriter, status int, code, message string, started bool) {
	body, err := runnerwire.Encode(runnerwire.Fault{Code: code, Message: message, Started: &started})
	if err != nil {
		status, body = http.StatusInternalServerError, nil
	}
	r.answer(w, status, body)
}

func (r *Runner) answer(w http.ResponseWriter, status int, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON of our own making, and it says so
}

// capabilities is GET /capabilities.
func (r *Runner) capabilities(w http.ResponseWriter, req *http.Request) {
	found := r.provided(req.Context())
	body, err := runnerwire.Encode(runnerwire.Capabilities{
		Protocol: runnerwire.Protocol, Executor: r.cfg.Executor.Kind(), Available: found.Available, Reason: found.Reason, Remedy: found.Remedy,
		Layers: found.Layers, Missing: found.Missing, Features: found.Features, Runtimes: slices.Sorted(maps.Keys(r.cfg.Runtimes)),
		Slots: cap(r.slots), Used: len(r.slots), Draining: r.draining.Load(),
	})
	if err != nil {
		r.refuse(w, http.StatusInternalServerError, string(sallyport.CodeInternal), "the capabilities cannot be sent", false)
		return
	}
	r.answer(w, http.StatusOK, body)
}
