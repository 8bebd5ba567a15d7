// Package requires reads what a script says it needs of a runtime, and holds that against what a runtime has.
//
// It owns two forms: the script block of PEP 723 in a Python script, and the dependencies of the package.json beside a script for Node. It
// leaves finding out what a runtime has to its caller and refuses nothing: a need that is not met is a warning for people. Its one invariant: a
// script is read within bounds and never run, and what cannot be read is told with its line.
package requires

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	pep440 "github.com/aquasecurity/go-pep440-version"

	"github.com/sallyport-dev/sallyport"
)

// Bounds of one script.
const (
	maxNeeds    = 256
	maxText     = 512
	maxManifest = 1 << 20
)

// Requirement is one package that a script needs.
type Requirement struct {
	Language string
	// Name is normal, as in [sallyport.Package].
	Name string
	// Wanted is the version specifier as it is written; empty takes any.
	Wanted string
	// Conditional says that the requirement has a marker, such as for another system, which is not evaluated.
	Conditional bool
}

// Fault is what cannot be read, with its line; 0 where the whole file is meant.
type Fault struct {
	File    string
	Line    int
	Message string
}

// Needs are the requirements of one script.
type Needs struct {
	Requirements []Requirement
	Faults       []Fault
}

// Of reads what script needs. files are its revision, with their content.
func Of(script sallyport.Component, files []sallyport.Component) Needs {
	var n Needs
	switch language(script) {
	case sallyport.LanguagePython:
		n.python(script)
	case sallyport.LanguageNode:
		n.node(script, files)
	}
	if len(n.Requirements) > maxNeeds {
		n.fault(script.Path, 0, "it needs more than %d packages; the rest is not looked at", maxNeeds)
		n.Requirements = n.Requirements[:maxNeeds]
	}
	return n
}

// language is that of a script by its extension, else by the block that it has.
func language(script sallyport.Component) string {
	switch strings.ToLower(path.Ext(script.Path)) {
	case ".py":
		return sallyport.LanguagePython
	case ".js", ".mjs", ".cjs":
		return sallyport.LanguageNode
	}
	if script.Script != nil && (script.Script.Runtime == "python" || script.Script.Runtime == "node") {
		return script.Script.Runtime
	}
	return ""
}

func (n *Needs) fault(file string, line int, format string, args ...any) {
	n.Faults = append(n.Faults, Fault{file, line, fmt.Sprintf(format, args...)})
}

// node reads the nearest package.json at or above the script. Packages that the revision brings along are no need.
func (n *Needs) node(script sallyport.Component, files []sallyport.Component) {
	content := map[string][]byte{}
	for _, f := range files {
		content[f.Path] = f.Content
	}
	for dir := path.Dir(script.Path); ; dir = path.Dir(dir) {
		name := path.Join(dir, "package.json")
		if data, found := content[name]; found {
			n.manifest(name, data, func(dependency string) bool {
				for at := path.Dir(script.Path); ; at = path.Dir(at) {
					if _, brought := content[path.Join(at, "node_modules", dependency, "package.json")]; brought {
						return true
					}
					if at == "." {
						return false
					}
				}
			})
			return
		}
		if dir == "." {
			return
		}
	}
}

func (n *Needs) manifest(name string, data []byte, brought func(string) bool) {
	var described struct {
		Dependencies map[string]string
	}
	if len(data) > maxManifest {
		n.fault(name, 0, "it is too large to be a package.json")
		return
	}
	if err := json.Unmarshal(data, &described); err != nil {
		n.fault(name, 0, "its dependencies cannot be read; want a JSON object with dependencies: {name: range}")
		return
	}
	for _, dependency := range slices.Sorted(maps.Keys(described.Dependencies)) {
		wanted := described.Dependencies[dependency]
		if len(dependency) > maxText || len(wanted) > maxText || dependency == "" || path.Clean(dependency) != dependency || strings.HasPrefix(dependency, "/") || strings.HasPrefix(dependency, "..") {
			n.fault(name, 0, "a dependency has no name that could be one")
			continue
		}
		if !brought(dependency) {
			n.Requirements = append(n.Requirements, Requirement{Language: sallyport.LanguageNode, Name: dependency, Wanted: wanted})
		}
	}
}

// Against holds the needs against the packages of a runtime; known is false when nobody knows them.
func (n *Needs) Against(packages []sallyport.Package, known bool) []sallyport.Need {
	findings := make([]sallyport.Need, 0, len(n.Requirements))
	for _, need := range n.Requirements {
		f := sallyport.Need{Language: need.Language, Name: need.Name, Wanted: need.Wanted, State: sallyport.NeedUnknown}
		if known {
			f.State, f.Version = compare(need, packages)
		}
		findings = append(findings, f)
	}
	return findings
}

func compare(need Requirement, packages []sallyport.Package) (state sallyport.NeedState, version string) {
	state = sallyport.NeedMissing
	for _, p := range packages {
		if p.Language != need.Language || p.Name != need.Name {
			continue
		}
		switch fits, told := satisfies(need, p.Version); {
		case !told:
			return sallyport.NeedUnknown, p.Version
		case fits:
			return sallyport.NeedPresent, p.Version
		}
		state, version = sallyport.NeedOtherVersion, p.Version
	}
	if need.Conditional && state != sallyport.NeedPresent {
		return sallyport.NeedUnknown, version
	}
	return state, version
}

// satisfies compares a version with a specifier, by PEP 440 or by the ranges of npm. told is false when either is none.
func satisfies(need Requirement, version string) (fits, told bool) {
	if need.Wanted == "" || need.Wanted == "*" || need.Wanted == "latest" {
		return true, true
	}
	if version == "" {
		return false, false
	}
	if need.Language == sallyport.LanguageNode {
		wanted, err := semver.NewConstraint(need.Wanted)
		if err != nil {
			return false, false
		}
		has, err := semver.NewVersion(version)
		return err == nil && wanted.Check(has), err == nil
	}
	wanted, err := pep440.NewSpecifiers(need.Wanted, pep440.WithPreRelease(true))
	if err != nil {
		return false, false
	}
	// Of an interpreter the last part is not known: any release of the line may be it.
	versions := []string{version}
	if need.Name == "python" && strings.Count(version, ".") == 1 {
		versions = []string{version + ".0", version + ".99"}
	}
	for _, text := range versions {
		has, err := pep440.Parse(text)
		if err != nil {
			return false, false
		}
		if wanted.Check(has) {
			return true, true
		}
	}
	return false, true
}
