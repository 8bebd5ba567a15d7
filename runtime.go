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
