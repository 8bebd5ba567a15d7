package gate_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/gate"
	"github.com/sallyport-dev/sallyport/sallyporttest"
)

// A budget of CPU time that the executor cannot keep refuses the run, and names what is missing; without one nothing is missed.
func TestBudgetNeedsItsFeature(t *testing.T) {
	t.Parallel()
	kept := sallyporttest.AllLayers()
	ignored := sallyporttest.AllLayers()
	ignored.Features = slices.DeleteFunc(ignored.Features, func(f sallyport.Feature) bool { return f == sallyport.FeatureCPUTime })
	for name, test := range map[string]struct {
		capabilities sallyport.Capabilities
		budget       time.Duration
		refused      bool
	}{
		"kept":               {kept, time.Second, false},
		"ignored":            {ignored, time.Second, true},
		"ignored and absent": {ignored, 0, false},
	} {
		executor := &sallyporttest.Executor{TB: t, CapabilitiesFunc: func(context.Context) sallyport.Capabilities { return test.capabilities }}
		isolation := named(t, "isolation", gate.Deps{Executor: executor})
		limits := sallyport.DefaultLimits()
		limits.CPUTime = test.budget
		refusal := isolation.Check(t.Context(), &sallyport.Candidate{Script: sallyport.Component{Path: "scripts/a.py"}, Limits: limits})
		if (refusal != nil) != test.refused || refusal != nil && (refusal.Code != sallyport.CodeSandboxUnavailable || !strings.Contains(refusal.Message, "cpu_time")) {
			t.Errorf("%s: got %+v", name, refusal)
		}
	}
}

// A fleet of which only some runners have a second lock runs under the usual policy; one that lacks a layer in its own words
// gets no run that the policy forbids it; and what the chosen place must enforce goes with the run.
func TestIsolationOfPlaces(t *testing.T) {
	t.Parallel()
	base := []sallyport.Layer{sallyport.LayerSeccomp, sallyport.LayerMemoryLimit}
	plain := sallyport.Capabilities{Available: true, Layers: base, Features: sallyport.Features()}
	locked := sallyport.Capabilities{Available: true, Layers: append(slices.Clone(base), sallyport.LayerLandlock), Features: sallyport.Features()}
	weak := sallyport.Capabilities{Available: true, Layers: base[:1], Missing: base[1:], Features: sallyport.Features(), Reason: "no control groups"}
	alone := sallyport.Capabilities{Available: true, Layers: locked.Layers, Features: []sallyport.Feature{sallyport.FeatureFiles}}
	landlock := []sallyport.Layer{sallyport.LayerLandlock}
	for name, test := range map[string]struct {
		places   []sallyport.Capabilities
		required []sallyport.Layer
		tenant   []sallyport.Layer
		argv     []string
		want     []sallyport.Layer // nil for a refusal
		says     string
	}{
		"some have Landlock":                    {places: []sallyport.Capabilities{plain, locked}, want: base},
		"one place":                             {places: []sallyport.Capabilities{locked}, want: locked.Layers},
		"one lacks a layer":                     {places: []sallyport.Capabilities{weak, locked}, want: locked.Layers},
		"all lack a layer":                      {places: []sallyport.Capabilities{weak, weak}, says: "memory_limit"},
		"Landlock is demanded":                  {places: []sallyport.Capabilities{plain, locked}, required: landlock, want: landlock},
		"Landlock is demanded by the tenant":    {places: []sallyport.Capabilities{plain, locked}, required: []sallyport.Layer{}, tenant: landlock, want: landlock},
		"Landlock is nowhere":                   {places: []sallyport.Capabilities{plain, weak}, required: landlock, says: "landlock"},
		"the tenant demands what is nowhere":    {places: []sallyport.Capabilities{plain}, tenant: landlock, says: "landlock"},
		"the feature is where the layer is not": {places: []sallyport.Capabilities{plain, alone}, required: landlock, argv: []string{"x"}, says: "argv"},
		"the feature is in one place":           {places: []sallyport.Capabilities{alone, plain}, argv: []string{"x"}, want: base},
		"degrade":                               {places: []sallyport.Capabilities{weak}, required: []sallyport.Layer{}, want: []sallyport.Layer{}},
	} {
		whole := sallyport.Capabilities{Available: true, Places: test.places}
		executor := &sallyporttest.Executor{TB: t, CapabilitiesFunc: func(context.Context) sallyport.Capabilities { return whole }}
		candidate := &sallyport.Candidate{Script: sallyport.Component{Path: "scripts/a.py"}, Argv: test.argv, Policy: sallyport.Policy{RequiredLayers: test.tenant}}
		refusal := named(t, "isolation", gate.Deps{Executor: executor, RequiredLayers: test.required}).Check(t.Context(), candidate)
		if (refusal == nil) != (test.want != nil) || refusal != nil && !strings.Contains(refusal.Message, test.says) {
			t.Errorf("%s: got %+v", name, refusal)
		}
		if refusal == nil && !slices.Equal(candidate.RequiredLayers, test.want) {
			t.Errorf("%s: the run must have %v, want %v", name, candidate.RequiredLayers, test.want)
		}
	}
}
