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
