//go:build amd64 || arm64

package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
)

// probeRetry is how long a host that failed is not asked again.
const probeRetry = 5 * time.Second

// probed is what a probe run inside a real sandbox found.
type probed struct {
	capabilities sallyport.Capabilities
	facts        facts
	plan         string
}

func (p *probed) isolation() sallyport.Isolation {
	c := p.capabilities
	return sallyport.Isolation{Executor: Kind, Layers: c.Layers, Missing: c.Missing, Plan: c.Plan, Profile: c.Profile}
}

// Capabilities says what a probe run found enforced. The probe is made at the first call and after a failed run; all
// other calls return at once.
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
	// The answer is for everybody: one caller's impatience must not become the host's fault.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	e.probed = e.probe(ctx)
	e.probedAt = time.Now()
	if c := e.probed.capabilities; !c.Available {
		e.log.ErrorContext(ctx, "scripts cannot be run", "reason", c.Reason, "remedy", c.Remedy)
	}
	return e.probed
}

// probe finds the plan that works here: as root, where user namespaces are refused, the one without.
func (e *Executor) probe(ctx context.Context) *probed {
	if err := e.prepare(); err != nil {
		return e.refused(err.Error(), nil)
	}
	if err := e.state.check(); err != nil {
		if fault := hostFault(err); fault != "" {
			return e.refused(fault, nil)
		}
		return e.refused(err.Error(), nil)
	}
	if e.cfg.Plan != "" {
		return e.try(ctx, e.cfg.Plan)
	}
	first := e.try(ctx, PlanUserNamespace)
	if first.capabilities.Available || e.uids == nil {
		return first
	}
	second := e.try(ctx, PlanRoot)
	if second.capabilities.Available {
		e.log.WarnContext(ctx, "runs have no user namespace of their own", "reason", first.capabilities.Reason)
		return second
	}
	return first
}

var errNeedsRoot = errors.New("the plan root needs to be started as root")

// try makes one run whose script is the helper itself and judges what it saw.
func (e *Executor) try(ctx context.Context, plan string) *probed {
	s := probeSpec("facts", plan)
	o, err := e.run(ctx, s)
	if err == nil {
		var r sallyport.Result
		if r, err = o.result(sallyport.Isolation{}, pathInit); err == nil && (r.ExitCode == nil || *r.ExitCode != 0) {
			err = fmt.Errorf("the probe ended with exit code %v, signal %d, %s", r.ExitCode, r.Signal, r.StartError)
		}
	}
	if err != nil {
		if fault := hostFault(err); fault != "" && sallyport.IsNotStarted(err) {
			return e.refused(fault, nil)
		}
		return e.refused(withMonitorOutput(o, err).Error(), nil)
	}
	f := parseFacts(string(o.stdout))
	layers, missing, faults := e.layers(f, s)
	if len(faults) > 0 {
		return e.refused("inside the sandbox: "+strings.Join(faults, "; "), f)
	}
	c := sallyport.Capabilities{
		Available: true, Layers: layers, Missing: missing, Plan: plan, Profile: e.cfg.Profile,
		Features: []sallyport.Feature{
			sallyport.FeatureArgv, sallyport.FeatureRevision, sallyport.FeatureFiles, sallyport.FeatureArtifacts,
			sallyport.FeatureRoots,
			sallyport.FeatureSecrets,
		},
	}
	if o.counted {
		c.Features = append(c.Features, sallyport.FeatureCPUTime)
	}
	if len(missing) > 0 {
		c.Reason, c.Remedy = e.missingReason(missing)
	}
	return &probed{c, f, plan}
}

func (e *Executor) refused(reason string, f facts) *probed {
	remedy := e.hostView().remedy(reason)
	e.log.Error("no sandbox", "reason", reason) // an operator may know where
	reason = withoutPaths(reason)
	return &probed{sallyport.Capabilities{
		Reason: reason, Remedy: remedy, Layers: []sallyport.Layer{}, Missing: knownLayers(), Features: []sallyport.Feature{},
	}, f, ""}
}

// withMonitorOutput adds what bubblewrap said to an error that came before the script did.
func withMonitorOutput(o *outcome, err error) error {
	if o == nil || o.ready || len(o.stderr) == 0 {
		return err
	}
	said := strings.TrimSpace(strings.ToValidUTF8(string(o.stderr[:min(len(o.stderr), 500)]), "?"))
	if errors.Is(err, errNoReport) {
		return errors.New(said)
	}
	return fmt.Errorf("%w: %s", err, said)
}

// knownLayers is everything this executor provides on a host that allows it.
func knownLayers() []sallyport.Layer {
	return []sallyport.Layer{
		sallyport.LayerUserNamespace, sallyport.LayerMountNamespace, sallyport.LayerPIDNamespace,
		sallyport.LayerIPCNamespace, sallyport.LayerUTSNamespace, sallyport.LayerCgroupNamespace,
		sallyport.LayerNetworkIsolation, sallyport.LayerReadOnlySystem, sallyport.LayerRunUID,
		sallyport.LayerNoNewPrivileges, sallyport.LayerSeccomp, sallyport.LayerMemoryLimit,
		sallyport.LayerProcessLimit, sallyport.LayerCPULimit, sallyport.LayerGroupKill, sallyport.LayerScratchLimit,
	}
}

// layers compares the facts with what each layer promises. Layers that depend on the host's set-up may be missing; a
// fault in any other means that this is not a sandbox.
func (e *Executor) layers(f facts, s spec) (have, missing []sallyport.Layer, faults []string) {
	optional := map[sallyport.Layer]bool{
		sallyport.LayerRunUID:       e.uids != nil,
		sallyport.LayerMemoryLimit:  e.groups.has(controlMemory),
		sallyport.LayerProcessLimit: e.groups.has(controlPIDs),
		sallyport.LayerCPULimit:     e.groups.has(controlCPU),
		sallyport.LayerGroupKill:    e.groups.life != nil,
	}
	tests := map[sallyport.Layer]bool{
		sallyport.LayerUserNamespace:    f.ownNamespace("user"),
		sallyport.LayerMountNamespace:   f.ownNamespace("mnt"),
		sallyport.LayerPIDNamespace:     f.ownNamespace("pid"),
		sallyport.LayerIPCNamespace:     f.ownNamespace("ipc"),
		sallyport.LayerUTSNamespace:     f.ownNamespace("uts"),
		sallyport.LayerCgroupNamespace:  f.ownNamespace("cgroup"),
		sallyport.LayerNetworkIsolation: f.ownNamespace("net") && f.refusedWith("connect", unix.ENETUNREACH),
		sallyport.LayerReadOnlySystem: f.refusedWith("write_root", unix.EROFS) && f.refusedWith("write_usr", unix.EROFS, unix.EACCES) &&
			f.refusedWith("write_dev", unix.EROFS) && f.refusedWith("write_sysctl", unix.EACCES, unix.EROFS, unix.EPERM),
		sallyport.LayerNoNewPrivileges: f.withoutPrivileges(),
		sallyport.LayerSeccomp:         f.filtered(),
		sallyport.LayerScratchLimit:    f.sized(s),
	}
	for _, layer := range knownLayers() {
		if layer == sallyport.LayerUserNamespace && s.plan == PlanRoot {
			continue // the real uid of the run stands in for it
		}
		present, isOptional := optional[layer]
		switch {
		case isOptional && present, tests[layer]:
			have = append(have, layer)
		case isOptional:
			missing = append(missing, layer)
		default:
			faults = append(faults, "no "+string(layer))
		}
	}
	// Landlock is a second lock on what other layers close already. Where the kernel has it, it must hold; where it has not,
	// it is not called missing, because the usual policy demands every layer that is missing, and few hosts would be left.
	// A policy that names it is refused there.
	switch {
	case f.confined():
		have = append(have, sallyport.LayerLandlock)
	case f.landlock() > 0:
		faults = append(faults, "no "+string(sallyport.LayerLandlock)+", although the kernel has it")
	}
	if e.cfg.Profile == ProfileStrict && !f.strict() {
		faults = append(faults, "the profile is not the strict one")
	}
	if fault := f.identityFault(s.plan, e.uids); fault != "" {
		faults = append(faults, fault)
	}
	if got := strings.Join(f["descriptor"], " "); got != "0 1 2" {
		faults = append(faults, "open descriptors: "+got)
	}
	return have, missing, faults
}

// missingReason says why optional layers are missing, and what brings them.
func (e *Executor) missingReason(missing []sallyport.Layer) (reason, fix string) {
	var reasons []string
	if os.Geteuid() != 0 {
		reasons = append(reasons, "not started as root, so runs share this user's uid")
	}
	if e.groups.reason != "" {
		reasons = append(reasons, e.groups.reason)
	}
	if len(reasons) == 0 {
		reasons = append(reasons, fmt.Sprintf("the host does not offer %v", missing))
	}
	return strings.Join(reasons, "; "), e.hostView().missing()
}
