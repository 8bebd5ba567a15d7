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
