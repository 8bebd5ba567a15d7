package sallyport

// Package is one package that a runtime holds, as a script of its language would import it.
type Package struct {
	// Language is python or node.
	Language string `json:"language"`
	// Name is normal: lower case, with dashes, for Python. The interpreter itself is the package python or node.
	Name string `json:"name"`
	// Version is empty when it is not known. That of an interpreter may lack its last part.
	Version string `json:"version,omitempty"`
}

// The languages of packages.
const (
	LanguagePython = "python"
	LanguageNode   = "node"
)

// Need is one package that a script says it needs, held against a runtime.
type Need struct {
	Language string `json:"language"`
	Name     string `json:"name"`
	// Wanted is the version specifier as the script has it; empty takes any.
	Wanted string    `json:"wanted,omitempty"`
	State  NeedState `json:"state"`
	// Version is what the runtime has.
	Version string `json:"version,omitempty"`
}

// NeedState says whether a need is met.
type NeedState string

// The states of a need. Unknown cannot be told: the need has a condition, a version is not known, or the runtime is on another machine.
const (
	NeedPresent      NeedState = "present"
	NeedMissing      NeedState = "missing"
	NeedOtherVersion NeedState = "other_version"
	NeedUnknown      NeedState = "unknown"
)

// Unmet says what is not met in a runtime, empty when nothing is or nobody knows.
func (n Need) Unmet(runtime string) string {
	wanted := n.Name
	if n.Wanted != "" {
		wanted += " " + n.Wanted
	}
	switch n.State {
	case NeedMissing:
		return "it needs " + wanted + ", which the runtime " + runtime + " does not have"
	case NeedOtherVersion:
		return "it needs " + wanted + ", and the runtime " + runtime + " has " + n.Version
	case NeedPresent, NeedUnknown:
	}
	return ""
}
