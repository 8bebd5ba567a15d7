package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const (
	// probeRetry is how long an engine that failed is not asked again.
	probeRetry = 5 * time.Second
	// probeTime bounds a probe.
	probeTime = 60 * time.Second
)

// probed is what probe runs in real containers found.
type probed struct {
	capabilities sallyport.Capabilities
	engine       *session
}

func (p *probed) isolation() sallyport.Isolation {
	c := p.capabilities
	return sallyport.Isolation{
		Executor: Kind, Layers: slices.Clone(c.Layers), Missing: slices.Clone(c.Missing), Plan: c.Plan, Profile: c.Profile,
	}
}

// Capabilities says what probe runs found enforced. They are made at the first call, and anew after a run that the engine failed;
// all other calls return at once.
func (e *Executor) Capabilities(ctx context.Context) sallyport.Capabilities {
	c := e.capabilities(ctx).capabilities
	c.Layers, c.Missing, c.Features = slices.Clone(c.Layers), slices.Clone(c.Missing), slices.Clone(c.Features)
	return c
}

func (e *Executor) capabilities(ctx context.Context) *probed {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.probed != nil && (e.probed.capabilities.Available || time.Since(e.probedAt) < probeRetry) {
		return e.probed
	}
	// The answer is for everybody: one caller's impatience must not become the engine's fault.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	e.probed = e.probe(ctx)
	e.probedAt = time.Now()
	if c := e.probed.capabilities; !c.Available {
		e.log.ErrorContext(ctx, "scripts cannot be run", "reason", c.Reason, "remedy", c.Remedy)
	}
	return e.probed
}

// doubt makes the next caller probe.
func (e *Executor) doubt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.probed = nil
}

// probe makes two runs whose script is PID 1's own program, and judges what they saw.
func (e *Executor) probe(ctx context.Context) *probed {
	engine, image, err := e.prepare(ctx)
	if err != nil {
		return e.refused(err.Error(), remedy(err, e.cfg.Socket))
	}
	e.sweptAt = time.Now()
	e.sweep(ctx, engine)
	seen, err := e.probeRun(ctx, engine, image, "facts")
	if err != nil {
		return e.refused("a probe run failed: "+err.Error(), remedy(err, e.cfg.Socket))
	}
	limits, err := e.probeRun(ctx, engine, image, "limits")
	if err != nil {
		return e.refused("a probe run of the limits failed: "+err.Error(), remedy(err, e.cfg.Socket))
	}
	v := e.judge(seen, limits)
	if len(v.faults) > 0 {
		return e.refused("inside a container of "+engine.name+": "+strings.Join(v.faults, "; "), "use an engine that gives containers what they are asked for, or the executor bubblewrap")
	}
	c := sallyport.Capabilities{
		Available: true, Layers: v.layers, Missing: v.missing, Features: v.features, Plan: v.plan, Profile: e.cfg.Profile,
	}
	if len(v.missing) > 0 {
		c.Reason = engine.name + " does not enforce them on its machine: " + joined(v.missing)
		c.Remedy = "start the engine where cgroup v2 is the only hierarchy, with its controllers delegated to it"
	}
	if absent := e.absentImages(ctx, engine); len(absent) > 0 {
		c.Reason = strings.TrimPrefix(c.Reason+"; not on the engine: the image of "+strings.Join(absent, ", "), "; ")
		c.Remedy = strings.TrimPrefix(c.Remedy+"; load or pull the images that container.images names", "; ")
	}
	return &probed{c, engine}
}

// absentImages are the runtimes whose configured image cannot be used now.
func (e *Executor) absentImages(ctx context.Context, engine *session) []string {
	var absent []string
	for runtime := range e.cfg.Images {
		if _, sentence, err := e.imageFor(ctx, engine, sallyport.Interpreter{Runtime: runtime}); err != nil || sentence != "" {
			absent = append(absent, runtime)
		}
	}
	slices.Sort(absent)
	return absent
}

func (e *Executor) refused(reason, fix string) *probed {
	return &probed{sallyport.Capabilities{
		Reason: reason, Remedy: fix, Layers: []sallyport.Layer{}, Missing: knownLayers(), Features: []sallyport.Feature{},
	}, nil}
}

// remedy is what an operator can do about an engine that does not serve.
func remedy(err error, socket string) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "start the engine (systemctl enable --now podman.socket, or docker), or set container.socket to where its socket is; it is not at " + socket
	case errors.Is(err, fs.ErrPermission):
		return "let the server's user open " + socket + ": whoever can is as good as root where the engine is"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start the engine: nobody listens at " + socket
	case errors.Is(err, context.DeadlineExceeded):
		return "look at why the engine is so slow; its own log says"
	}
	return "look into the engine's log; try the same with its own command line"
}

// probeSpec is a run of PID 1's program in one of its probe modes, under small limits.
func probeSpec(image, mode string) spec {
	return spec{
		execution: "probe", image: image, argv: []string{pathInit, mode},
		limits: sallyport.Limits{
			Timeout: 10 * time.Second, MemoryBytes: 32 << 20, Processes: 12, CPUMillis: 200, ScratchBytes: 1 << 20,
			OutputBytes: 64 << 10, ArtifactBytes: 1 << 20, ArtifactFiles: 1,
		},
		grace: 10 * time.Second,
	}
}

// probeRun returns what a probe printed.
func (e *Executor) probeRun(ctx context.Context, engine *session, image, mode string) (facts, error) {
	s := probeSpec(image, mode)
	o, err := e.run(ctx, engine, s)
	if err != nil {
		return nil, err
	}
	r, err := o.result(sallyport.Isolation{}, s.argv[0])
	switch {
	case err != nil:
		return nil, err
	case r.ExitCode == nil || *r.ExitCode != 0:
		return nil, fmt.Errorf("it ended with signal %d, limit %q, %s", r.Signal, r.Limit, r.StartError)
	}
	return parseFacts(string(r.Stdout)), nil
}
