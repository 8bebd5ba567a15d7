package access

import (
	"context"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

const opPolicy = "access.policy"

// PolicyView is a tenant's policy beside what it comes to.
type PolicyView struct {
	// Version counts the changes; a change names the one that it is based on.
	Version int64            `json:"version"`
	Policy  sallyport.Policy `json:"policy"`
	// Effective is what holds: the installation's own rules, narrowed by the policy.
	Effective Effective `json:"effective"`
}

// Effective is what holds for the runs and grants of a tenant.
type Effective struct {
	ScriptsEnabled bool `json:"scripts_enabled"`
	// RequiredLayers are nil when every layer that the executor knows is demanded.
	RequiredLayers    []sallyport.Layer `json:"required_layers"`
	Interpreters      []string          `json:"interpreters"`
	Runtimes          map[string]string `json:"runtimes,omitzero"`
	Limits            sallyport.Limits  `json:"limits"`
	TenantQuota       sallyport.Quota   `json:"tenant_quota"`
	PrincipalQuota    sallyport.Quota   `json:"principal_quota"`
	Confirm           bool              `json:"confirm"`
	SeparateDuties    bool              `json:"separate_duties"`
	MaskOutputs       bool              `json:"mask_outputs"`
	GrantsByPublisher bool              `json:"grants_by_publisher"`
}

// Installation is what server.yaml allows, before any policy.
type Installation struct {
	ScriptsEnabled bool
	// RequiredLayers is nil when every layer that the executor knows is demanded.
	RequiredLayers []sallyport.Layer
	Interpreters   []string
	Limits         sallyport.Limits
	TenantQuota    sallyport.Quota
	PrincipalQuota sallyport.Quota
	// Confirm demands a person's yes for every run, and MaskOutputs hides the values of declared secrets in every tenant's outputs.
	Confirm     bool
	MaskOutputs bool
	// GrantsByPublisher lets a principal who holds both scopes grant what it publishes.
	GrantsByPublisher bool
}

// under narrows i by policy.
func (i Installation) under(policy sallyport.Policy) Effective {
	e := Effective{
		ScriptsEnabled: i.ScriptsEnabled && !policy.ScriptsDisabled,
		Interpreters:   []string{}, Runtimes: policy.Runtimes,
		Limits:      i.Limits.Narrow(policy.Limits),
		TenantQuota: i.TenantQuota.Narrow(policy.TenantQuota), PrincipalQuota: i.PrincipalQuota.Narrow(policy.PrincipalQuota),
		Confirm: i.Confirm || policy.Confirm, SeparateDuties: policy.SeparateDuties, MaskOutputs: i.MaskOutputs || policy.MaskOutputs,
		GrantsByPublisher: i.GrantsByPublisher && !policy.SeparateDuties,
	}
	for _, extension := range i.Interpreters {
		if policy.Allows(extension) {
			e.Interpreters = append(e.Interpreters, extension)
		}
	}
	if i.RequiredLayers != nil {
		e.RequiredLayers = slices.Concat(i.RequiredLayers, policy.RequiredLayers)
		slices.Sort(e.RequiredLayers)
		e.RequiredLayers = slices.Compact(e.RequiredLayers)
	}
	return e
}

// ShowPolicy returns the policy of p's tenant and what it comes to. Needs admin.
func (s *Service) ShowPolicy(ctx context.Context, p sallyport.Principal) (PolicyView, error) {
	if err := p.Require(opPolicy, sallyport.ScopeAdmin); err != nil {
		return PolicyView{}, err
	}
	policy, version, err := s.cfg.Store.TenantPolicy(ctx, p.TenantID)
	if err != nil {
		return PolicyView{}, err
	}
	return PolicyView{version, policy, s.cfg.Installation.under(policy)}, nil
}

// SetPolicy replaces the policy of p's tenant when its version is still expected, else POLICY_CONFLICT. It is audited before it is
// stored. Needs admin. A policy can only narrow: what would widen is stored as it is said and changes nothing.
func (s *Service) SetPolicy(ctx context.Context, p sallyport.Principal, expected int64, policy sallyport.Policy) (PolicyView, error) {
	before, err := s.ShowPolicy(ctx, p)
	if err != nil {
		return PolicyView{}, err
	}
	if err := checkPolicy(policy); err != nil {
		return PolicyView{}, err
	}
	conflict := sallyport.Errorf(opPolicy, sallyport.CodePolicyConflict,
		"the policy is at version %d now; read it again and send the version that you changed", before.Version)
	if before.Version != expected {
		return PolicyView{}, conflict
	}
	if err := s.record(ctx, p, s.now(), sallyport.ActionPolicySet, string(p.TenantID), change{before.Policy, policy}); err != nil {
		return PolicyView{}, err
	}
	version, err := s.cfg.Store.SetPolicy(ctx, p.TenantID, expected, policy)
	if err != nil {
		s.unstored(ctx, sallyport.ActionPolicySet, string(p.TenantID), err)
		return PolicyView{}, err
	}
	return PolicyView{version, policy, s.cfg.Installation.under(policy)}, nil
}

const (
	maxExtensions = 64
	maxExtension  = 32
)

// checkPolicy refuses what can only be a mistake.
func checkPolicy(policy sallyport.Policy) error {
	invalid := func(format string, args ...any) error {
		return sallyport.Errorf(opPolicy, sallyport.CodeInvalidArgument, format, args...)
	}
	for _, layer := range policy.RequiredLayers {
		if !slices.Contains(sallyport.Layers(), layer) {
			return invalid("required_layers: there is no layer %.40q", layer)
		}
	}
	if len(policy.Interpreters) > maxExtensions || len(policy.Runtimes) > maxExtensions || len(policy.RequiredLayers) > maxExtensions {
		return invalid("a list of a policy has at most %d entries", maxExtensions)
	}
	extensions := slices.Clone(policy.Interpreters)
	for extension, name := range policy.Runtimes {
		if name == "" || len(name) > maxKeyName {
			return invalid("runtimes: a runtime's name has 1 to %d bytes", maxKeyName)
		}
		extensions = append(extensions, extension)
	}
	for _, extension := range extensions {
		if extension == "" || len(extension) > maxExtension || strings.Trim(extension, "abcdefghijklmnopqrstuvwxyz0123456789_+-") != "" {
			return invalid("%.40q is no extension: lower case and without its dot, such as py", extension)
		}
	}
	l := policy.Limits
	for name, value := range map[string]int64{
		"limits.timeout_ms": int64(l.Timeout), "limits.memory_bytes": l.MemoryBytes, "limits.processes": l.Processes,
		"limits.cpu_millis": l.CPUMillis, "limits.scratch_bytes": l.ScratchBytes, "limits.output_bytes": l.OutputBytes,
		"limits.artifact_bytes": l.ArtifactBytes, "limits.artifact_files": l.ArtifactFiles,
		"limits.cpu_time_ms": int64(l.CPUTime),
	} {
		if value < 0 {
			return invalid("%s is negative; leave it out for no bound of the tenant's own", name)
		}
	}
	if l.Timeout != 0 && l.Timeout < sallyport.MinTimeout || l.MemoryBytes != 0 && l.MemoryBytes < sallyport.MinMemoryBytes {
		return invalid("no script can begin under limits.timeout_ms %d or limits.memory_bytes %d",
			sallyport.MinTimeout.Milliseconds(), sallyport.MinMemoryBytes)
	}
	if l.CPUTime != 0 && l.CPUTime < sallyport.MinCPUTime {
		return invalid("no script can begin under limits.cpu_time_ms %d", sallyport.MinCPUTime.Milliseconds())
	}
	for name, q := range map[string]sallyport.Quota{"tenant_quota": policy.TenantQuota, "principal_quota": policy.PrincipalQuota} {
		if min(q.RequestsPerSecond, q.RunsPerMinute, q.RunsPerDay, q.CPUSecondsPerDay, q.ConcurrentRuns) < 0 {
			return invalid("%s has a negative number; leave it out for no bound of the tenant's own", name)
		}
	}
	return nil
}
