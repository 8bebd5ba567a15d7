package registry

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/requires"
)

// ScriptNeeds are the packages that one script says it needs, held against the runtime that would serve it.
type ScriptNeeds struct {
	Path string `json:"path"`
	// Runtime is empty when no runtime would serve the script.
	Runtime  string           `json:"runtime,omitempty"`
	Packages []sallyport.Need `json:"packages"`
}

// Runtimes says which runtime would serve a script and what is in it; known is false when nobody knows.
type Runtimes func(ctx context.Context, script sallyport.Component) (runtime string, packages []sallyport.Package, known bool)

// unreadableNeeds are the problems of what scripts say they need.
func unreadableNeeds(components []sallyport.Component) []Problem {
	var found []Problem
	told := map[requires.Fault]bool{}
	for _, c := range components {
		if c.Kind != sallyport.KindScript {
			continue
		}
		for _, fault := range requires.Of(c, components).Faults {
			if !told[fault] { // two scripts may share a package.json
				told[fault] = true
				found = append(found, problem(ProblemScriptNeeds, fault.File, fault.Line, "%s", fault.Message))
			}
		}
	}
	return found
}

// needs holds the scripts of a skill against their runtimes.
func needs(ctx context.Context, components []sallyport.Component, runtimes Runtimes) []ScriptNeeds {
	var list []ScriptNeeds
	for _, c := range components {
		if c.Kind != sallyport.KindScript {
			continue
		}
		wanted := requires.Of(c, components)
		if len(wanted.Requirements) == 0 {
			continue
		}
		runtime, packages, known := runtimes(ctx, c)
		list = append(list, ScriptNeeds{Path: c.Path, Runtime: runtime, Packages: wanted.Against(packages, known)})
	}
	return list
}
