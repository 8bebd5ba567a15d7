package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Executor runs scripts in containers. It is safe for concurrent use.
type Executor struct {
	cfg    Config
	log    *slog.Logger
	engine *engine
	uids   *uidPool
	cpus   atomic.Uint32 // turns of the CPUs that runs are placed on

	mu       sync.Mutex // held by whoever probes
	probed   *probed
	probedAt time.Time
	sweptAt  time.Time

	closing chan struct{}
	closed  sync.Once
	parked  sync.WaitGroup
}

// New returns the executor, or INVALID_ARGUMENT for a Config that cannot be meant. It does not ask the engine: one that cannot
// serve is told by the capabilities.
func New(cfg Config) (*Executor, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Executor{
		cfg: cfg, log: cfg.Logger, engine: newEngine(cfg.Socket, cfg.callTimeout),
		uids: newUIDPool(cfg.FirstUID, cfg.UIDCount), closing: make(chan struct{}),
	}, nil
}

// Kind returns "container".
func (*Executor) Kind() string { return Kind }

// Close ends what still removes containers. Runs must have ended.
func (e *Executor) Close() error {
	e.closed.Do(func() { close(e.closing) })
	e.parked.Wait()
	e.engine.close()
	return nil
}

// Execute runs one approved script in a container of its own.
func (e *Executor) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	if err := ctx.Err(); err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	s, err := newSpec(req)
	if err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	found := e.capabilities(ctx)
	if !found.capabilities.Available {
		return sallyport.Result{}, sallyport.NotStarted(unavailable(errors.New(found.capabilities.Reason)))
	}
	isolation := found.isolation()
	img, sentence, err := e.imageFor(ctx, found.engine, req.Interpreter)
	switch {
	case err != nil:
		return sallyport.Result{}, sallyport.NotStarted(unavailable(err))
	case sentence != "":
		return sallyport.Result{StartError: sentence, Isolation: isolation}, nil
	}
	s.image = img.ID
	isolation.RuntimeDigest = img.digest()
	e.sweepSometimes(ctx, found.engine)
	o, err := e.run(ctx, found.engine, s)
	if err != nil {
		if ctx.Err() == nil && !o.begun {
			e.doubt() // the next one asks first what the engine can do
		}
		return sallyport.Result{}, e.failure(err)
	}
	r, err := o.result(isolation, s.argv[0])
	return r, e.failure(err)
}

// failure gives an error of the engine its code; a caller's cancellation and our own codes stay what they are.
func (e *Executor) failure(err error) error {
	if _, ours := errors.AsType[*sallyport.Error](err); err == nil || ours || errors.Is(err, context.Canceled) {
		return err
	}
	if sallyport.IsNotStarted(err) {
		return sallyport.NotStarted(unavailable(err))
	}
	return err
}

func unavailable(err error) error {
	return &sallyport.Error{Op: "container.execute", Code: sallyport.CodeSandboxUnavailable, Err: err}
}

// imageFor finds the image of an interpreter on the engine, or the sentence that says why there is none.
func (e *Executor) imageFor(ctx context.Context, engine *session, in sallyport.Interpreter) (img image, sentence string, err error) {
	ref := in.Image
	if ref == "" {
		ref = e.cfg.Images[in.Runtime]
	}
	if ref == "" {
		return img, "no image is configured for the runtime " + in.Runtime + "; an operator sets container.images", nil
	}
	if fault := imageFault(ref, e.cfg.RequireDigest); fault != "" {
		return img, "the image of the runtime " + in.Runtime + " " + fault, nil
	}
	img, err = engine.inspectImage(ctx, ref)
	switch {
	case refusedWith(err, http.StatusNotFound):
		return img, "the image of the runtime " + in.Runtime + " is not on the engine; an operator pulls or loads it", nil
	case err != nil:
		return img, "", err
	}
	return img, e.imageMisfit(engine, in.Runtime, img), nil
}

// imageMisfit says why an image cannot be used.
func (e *Executor) imageMisfit(engine *session, runtime string, img image) string {
	switch {
	case len(img.Config.Volumes) > 0:
		return "the image of the runtime " + runtime + " declares volumes, whose size nothing limits; use one without"
	case img.Architecture != "" && img.Architecture != engine.arch:
		return fmt.Sprintf("the image of the runtime %s is for %.20s, and the engine's machine is %.20s", runtime, img.Architecture, engine.arch)
	}
	return ""
}

// park goes on removing the container of a run whose result was already given. Its uid stays leased until then.
func (e *Executor) park(ctx context.Context, a *active) {
	e.log.WarnContext(ctx, "the container of a finished run is still there", "container", a.name)
	e.parked.Go(func() {
		for {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.callTimeout)
			gone := a.remove(ctx)
			cancel()
			if gone {
				e.uids.release(a.uid)
				return
			}
			select {
			case <-e.closing:
				return // the container ends by itself, and the next start removes what is left of it
			case <-time.After(time.Second):
			}
		}
	})
}
