package sallyport

import "slices"

// Policy is what the administrators of a tenant decided for it. It can only narrow what the installation allows, field by
// field: the zero value changes nothing, and no value opens what server.yaml keeps shut. It is read once for each run.
type Policy struct {
	// ScriptsDisabled switches scripts off for the tenant.
	ScriptsDisabled bool `json:"scripts_disabled,omitempty"`
	// RequiredLayers are demanded besides those of the installation.
	RequiredLayers []Layer `json:"required_layers,omitempty"`
	// Interpreters are the extensions of the installation's allow-list that stay allowed. Nil leaves all of them, an empty
	// list none.
	Interpreters []string `json:"interpreters,omitzero"`
	// Runtimes names, by extension, the runtime of the installation that serves the tenant's scripts in place of the
	// installation's own choice.
	Runtimes map[string]string `json:"runtimes,omitzero"`
	// Limits narrow those of the installation.
	Limits Limits `json:"limits,omitzero"`
	// TenantQuota bounds what the whole tenant uses over time, PrincipalQuota what each of its principals does, both besides the
	// installation's.
	TenantQuota    Quota `json:"tenant_quota,omitzero"`
	PrincipalQuota Quota `json:"principal_quota,omitzero"`
	// Confirm demands a person's yes for each run.
	Confirm bool `json:"confirm,omitempty"`
	// SeparateDuties forbids a principal to grant a revision that it saved or published itself.
	SeparateDuties bool `json:"separate_duties,omitempty"`
	// MaskOutputs hides the values of declared secrets where a script prints them.
	MaskOutputs bool `json:"mask_outputs,omitempty"`
}

// Allows reports whether p leaves the extension (lower case, without its dot) in the allow-list.
func (p Policy) Allows(extension string) bool {
	return p.Interpreters == nil || slices.Contains(p.Interpreters, extension)
}

// Quota bounds use over time. Zero fields bound nothing.
type Quota struct {
	// RequestsPerSecond counts every authenticated request over the network.
	RequestsPerSecond int `json:"requests_per_second,omitempty"`
	// RunsPerMinute and RunsPerDay count runs that passed every gate.
	RunsPerMinute int `json:"runs_per_minute,omitempty"`
	RunsPerDay    int `json:"runs_per_day,omitempty"`
	// CPUSecondsPerDay is counted when a run ends; a run begins while anything is left.
	CPUSecondsPerDay int `json:"cpu_seconds_per_day,omitempty"`
	// ConcurrentRuns are runs under way, waiting ones too.
	ConcurrentRuns int `json:"concurrent_runs,omitempty"`
}

// Narrow returns, field by field, the smaller of q and other; an unset (zero) field yields to the other.
func (q Quota) Narrow(other Quota) Quota {
	return Quota{
		RequestsPerSecond: narrow(q.RequestsPerSecond, other.RequestsPerSecond),
		RunsPerMinute:     narrow(q.RunsPerMinute, other.RunsPerMinute),
		RunsPerDay:        narrow(q.RunsPerDay, other.RunsPerDay),
		CPUSecondsPerDay:  narrow(q.CPUSecondsPerDay, other.CPUSecondsPerDay),
		ConcurrentRuns:    narrow(q.ConcurrentRuns, other.ConcurrentRuns),
	}
}

// IsZero reports whether no field is set.
func (q Quota) IsZero() bool { return q == Quota{} }
