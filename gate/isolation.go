package gate

import (
	"context"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// isolationGate: what the executor can enforce now covers what the policy demands and what the run needs.
type isolationGate struct {
	executor sallyport.Executor
	required []sallyport.Layer
}

func (isolationGate) Name() string { return "isolation" }

func (g isolationGate) Check(ctx context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	refusal := &sallyport.Refusal{Code: sallyport.CodeSandboxUnavailable, Gate: g.Name()}
	if g.executor == nil {
		refusal.Message = "no executor is configured"
		return refusal
	}
	capabilities := g.executor.Capabilities(ctx)
	if !capabilities.Available {
		refusal.Message = sentence("the sandbox is not available", capabilities)
		return refusal
	}
	places := capabilities.Places
	if places == nil {
		places = []sallyport.Capabilities{capabilities}
	}
	// A run goes to one place, so one place must have all of it. Of several that do, any may be chosen: what they share holds.
	var nearest *sallyport.Refusal
	var shared []sallyport.Layer
	fits, fewest := false, 0
	for _, place := range places {
		missing, no := g.judge(c, place)
		switch {
		case no == nil && !fits:
			fits, shared = true, slices.Clone(place.Layers)
		case no == nil:
			shared = slices.DeleteFunc(shared, func(l sallyport.Layer) bool { return !slices.Contains(place.Layers, l) })
		case nearest == nil || missing < fewest:
			nearest, fewest = no, missing
		}
	}
	if !fits {
		return nearest
	}
	c.RequiredLayers = slices.Concat(g.required, c.Policy.RequiredLayers)
	if g.required == nil {
		c.RequiredLayers = shared
	}
	return nil
}

// judge says what one place lacks, and how much that is.
func (g isolationGate) judge(c *sallyport.Candidate, place sallyport.Capabilities) (int, *sallyport.Refusal) {
	refusal := &sallyport.Refusal{Code: sallyport.CodeSandboxUnavailable, Gate: g.Name()}
	required := g.required
	if required == nil {
		required = slices.Concat(place.Layers, place.Missing)
	}
	var missing []string
	for _, layer := range slices.Concat(required, c.Policy.RequiredLayers) {
		if !slices.Contains(place.Layers, layer) && !slices.Contains(missing, string(layer)) {
			missing = append(missing, string(layer))
		}
	}
	if len(missing) > 0 && !slices.ContainsFunc(required, func(l sallyport.Layer) bool { return !slices.Contains(place.Layers, l) }) {
		refusal.Message = sentence("the tenant's policy demands "+strings.Join(missing, ", ")+", which this host cannot enforce", place) +
			"; or an administrator changes required_layers with: sallyport policy set"
		refusal.Details = map[string]any{"missing": missing, "policy": "required_layers"}
		return len(missing), refusal
	}
	if len(missing) > 0 {
		refusal.Message = sentence("this host cannot enforce "+strings.Join(missing, ", "), place) +
			"; or accept to run without, with the setting isolation: degrade"
		refusal.Details = map[string]any{"missing": missing}
		return len(missing), refusal
	}
	for _, feature := range needs(c) {
		if !slices.Contains(place.Features, feature) {
			refusal.Message = "the executor cannot provide " + string(feature) + ", which this run needs"
			refusal.Details = map[string]any{"missing": []string{string(feature)}}
			return 0, refusal
		}
	}
	if refusal.Message = runtimeFault(c.Interpreter, place.Features); refusal.Message != "" {
		return 0, refusal
	}
	return 0, nil
}

// runtimeFault says why the executor cannot run scripts in a runtime that is not the host's own; empty when it can.
func runtimeFault(in *sallyport.Interpreter, provided []sallyport.Feature) string {
	switch {
	case in == nil || in.Root == "" && in.Image == "":
		return ""
	case in.Image != "" && slices.Contains(provided, sallyport.FeatureImages):
		return ""
	case !slices.Contains(provided, sallyport.FeatureRoots):
		return "the executor can use the host's own programs only, and the runtime " + in.Runtime + " is a folder or an image; " +
			"use the executor bubblewrap or one that starts containers"
	case in.Fault != "":
		return "the runtime " + in.Runtime + " cannot serve: " + in.Fault
	case in.Root == "":
		return "the runtime " + in.Runtime + " is not unpacked; an operator runs: sallyport runtime pull " + in.Runtime
	}
	return ""
}

func sentence(fault string, capabilities sallyport.Capabilities) string {
	if capabilities.Reason != "" {
		fault += ": " + capabilities.Reason
	}
	if capabilities.Remedy != "" {
		fault += "; remedy: " + capabilities.Remedy
	}
	return fault
}

// needs lists what the run cannot do without.
func needs(c *sallyport.Candidate) []sallyport.Feature {
	var features []sallyport.Feature
	flags := c.Script.Script != nil && c.Script.Script.Input == sallyport.InputFlags
	if len(c.Argv) > 0 || flags && !emptyObject(c.Args) {
		features = append(features, sallyport.FeatureArgv)
	}
	if sallyport.NeedsRevision(c.Revision.Components, c.Script.Path) {
		features = append(features, sallyport.FeatureRevision)
	}
	if len(c.Files) > 0 {
		features = append(features, sallyport.FeatureFiles)
	}
	if c.Limits.CPUTime > 0 {
		features = append(features, sallyport.FeatureCPUTime)
	}
	if c.Script.Script != nil && len(c.Script.Script.Secrets) > 0 {
		features = append(features, sallyport.FeatureSecrets)
	}
	return features
}
