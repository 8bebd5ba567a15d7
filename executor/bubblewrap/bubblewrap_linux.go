//go:build amd64 || arm64

package bubblewrap

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Executor runs scripts in bubblewrap. It is safe for concurrent use.
type Executor struct {
	cfg Config
	log *slog.Logger

	// What runs share. It is made by prepare, once, and nil or empty until then.
	program string
	static  *static
	state   *state
	groups  *groups
	uids    *uidPool
	spawner *spawner
	counter counter
	cpus    cpuPool

	mu       sync.Mutex // guards preparing, probing and the fields below
	prepared bool
	closed   bool
	probed   *probed
	probedAt time.Time
	closing  chan struct{} // closed to end the goroutines in the background

	running sync.WaitGroup // runs and the goroutines in the background
}

// New returns the executor for this host. It fails only for a Config that cannot be meant. On a host where bubblewrap does
// not work it succeeds: Capabilities says why, and every Execute is refused with SANDBOX_UNAVAILABLE. It removes what
// dead instances with the same StateDir left. Close releases what it holds.
func New(cfg Config) (*Executor, error) {
	if err := cfg.validateWithDefaults(); err != nil {
		return nil, &sallyport.Error{Op: "bubblewrap.new", Code: sallyport.CodeInvalidArgument, Message: "the configuration of the bubblewrap executor is wrong: " + strings.ReplaceAll(err.Error(), "\n", "; "), Err: err}
	}
	cfg = cfg.withDefaults()
	e := &Executor{cfg: cfg, log: cfg.Logger, groups: &groups{}, closing: make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.prepare(); err != nil {
		e.log.Warn("no sandbox", "error", err.Error())
	}
	return e, nil
}

// Kind returns "bubblewrap".
func (e *Executor) Kind() string { return Kind }

// prepare makes what runs share. It is tried again after a failure. e.mu is held.
func (e *Executor) prepare() (err error) {
	if e.prepared {
		return nil
	}
	if e.closed {
		return errSpawnerClosed
	}
	var undo []func() error
	defer func() {
		if err != nil {
			for i := range undo {
				err = errors.Join(err, undo[len(undo)-1-i]())
			}
		}
	}()
	if e.program, err = e.findBubblewrap(); err != nil {
		return err
	}
	if e.static, err = newStatic(helperProgram, runtime.GOARCH, e.cfg.Profile); err != nil {
		return err
	}
	undo = append(undo, e.static.close)
	dir, err := e.cfg.State()
	if err != nil {
		return err
	}
	if e.state, err = openState(dir, e.cfg.CacheBytes); err != nil {
		return err
	}
	undo = append(undo, func() error { return e.state.close(true) })
	e.sweep()
	if os.Geteuid() == 0 {
		if e.uids, err = newUIDPool(e.cfg.FirstUID, e.cfg.UIDCount); err != nil {
			return err
		}
		undo = append(undo, e.uids.close)
	}
	e.groups = openGroups(e.state.instance, e.state.record)
	e.spawner = newSpawner()
	e.prepared = true
	e.running.Go(e.keepSweeping)
	return nil
}

// sweep removes what dead instances left. What cannot be removed stays recorded, and is tried again.
func (e *Executor) sweep() {
	dead, err := e.state.sweep(time.Now().Add(5 * time.Second))
	if len(dead) > 0 {
		e.log.Warn("removed what a dead instance left", "instances", strings.Join(dead, " "))
	}
	if err != nil {
		e.log.Error("cannot remove what a dead instance left", "error", err.Error())
	}
}

// keepSweeping sweeps soon after the start, because an instance that was killed while it forked looks alive until its
// child has executed bubblewrap, and then now and then, for instances that die beside this one.
func (e *Executor) keepSweeping() {
	for pause := 2 * time.Second; ; pause = time.Minute {
		select {
		case <-e.closing:
			return
		case <-time.After(pause):
			e.sweep()
		}
	}
}

// findBubblewrap returns the program, or says why there is none to use.
func (e *Executor) findBubblewrap() (string, error) {
	program := e.cfg.Program
	if program == "" {
		found, ok := findProgram("bwrap")
		if !ok {
			return "", errors.New("bwrap: not found")
		}
		program = found
	}
	info, err := os.Stat(program)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("bwrap: not found")
	}
	if err != nil {
		return "", err
	}
	switch {
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "", errors.New("bwrap: not an executable file")
	case info.Mode()&os.ModeSetuid != 0:
		// It would do as root what must be done as nobody.
		return "", errors.New("bwrap: is installed setuid, which cannot be used here")
	}
	return program, nil
}

// Execute runs one approved script.
func (e *Executor) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	if !e.begin() {
		return sallyport.Result{}, sallyport.NotStarted(unavailable(errSpawnerClosed.Error()))
	}
	defer e.running.Done()
	p := e.capabilities(ctx)
	if !p.capabilities.Available {
		return sallyport.Result{}, sallyport.NotStarted(unavailable(p.capabilities.Reason))
	}
	s, err := newSpec(req)
	if err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	if s.limits.CPUTime > 0 && !slices.Contains(p.capabilities.Features, sallyport.FeatureCPUTime) {
		return sallyport.Result{}, sallyport.NotStarted(unavailable("no control group counts the CPU time of a run here"))
	}
	for _, layer := range req.RequiredLayers {
		if !slices.Contains(p.capabilities.Layers, layer) { // no longer: the host was looked at again since the gate asked
			return sallyport.Result{}, sallyport.NotStarted(unavailable("the layer " + string(layer) + " is not enforced here"))
		}
	}
	s.plan = p.plan
	o, err := e.run(ctx, s)
	if errors.Is(err, errConfigTooLarge) {
		// The request's fault and not the host's: what the kernel says to a little less of it, in the same words.
		return sallyport.Result{StartError: errConfigTooLarge.Error(), Isolation: p.isolation()}, nil
	}
	if err != nil {
		return sallyport.Result{}, e.failure(ctx, o, err)
	}
	isolation := p.isolation()
	isolation.RuntimeDigest = req.Interpreter.Digest
	result, err := o.result(isolation, req.Interpreter.Program)
	if err != nil {
		return sallyport.Result{}, e.failure(ctx, o, err)
	}
	return result, nil
}

// begin counts a run in, unless the executor is closed.
func (e *Executor) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.running.Add(1)
	return true
}

// failure turns what went wrong into the error for the caller. Unless the caller gave up, the host is looked at again
// before the next run.
func (e *Executor) failure(ctx context.Context, o *outcome, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	if sallyport.CodeOf(err) != sallyport.CodeInternal {
		return err // our own word already
	}
	if errors.Is(err, errContent) {
		return sallyport.NotStarted(&sallyport.Error{Op: "bubblewrap.execute", Code: sallyport.CodeInternal, Err: err})
	}
	e.mu.Lock()
	e.probed = nil
	e.mu.Unlock()
	wrapped := error(&sallyport.Error{Op: "bubblewrap.execute", Code: sallyport.CodeInternal, Err: withMonitorOutput(o, err)})
	if sallyport.IsNotStarted(err) {
		wrapped = sallyport.NotStarted(&sallyport.Error{Op: "bubblewrap.execute", Code: sallyport.CodeSandboxUnavailable, Message: hostFault(err), Err: withMonitorOutput(o, err)})
	}
	return wrapped
}

// unavailable refuses a run in the host's own words.
func unavailable(reason string) error {
	return &sallyport.Error{Op: "bubblewrap.execute", Code: sallyport.CodeSandboxUnavailable, Err: errors.New(reason)}
}

// park keeps the resources of a run whose processes will not die, such as one that hangs in the kernel, and tries again
// until they do. Its uid and groups serve nobody else meanwhile.
func (e *Executor) park(a *active) {
	e.log.Error("a run cannot be ended; its uid and groups stay reserved", "uid", a.uid)
	e.running.Go(func() {
		for {
			select {
			case <-e.closing:
				return
			case <-time.After(time.Second):
			}
			a.kill()
			if a.waitDead(time.Now().Add(time.Second)) {
				a.release(time.Now().Add(time.Second))
				e.log.Info("a parked run has ended", "uid", a.uid)
				return
			}
		}
	})
}

// Close waits for the running scripts to end, then releases everything this instance holds on the host. Later calls of
// Execute are refused.
func (e *Executor) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	close(e.closing)
	e.mu.Unlock()
	e.running.Wait()

	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.prepared {
		return nil
	}
	e.prepared = false
	e.spawner.close()
	err := errors.Join(e.groups.close(), e.static.close())
	if e.uids != nil {
		err = errors.Join(err, e.uids.close())
	}
	return errors.Join(err, e.state.close(err == nil))
}
