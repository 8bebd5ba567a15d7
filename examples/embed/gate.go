package main

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// weekdaysOnly refuses every run on Saturday and Sunday, UTC. The code comes from the catalogue; name and sentence are ours.
type weekdaysOnly struct{ now func() time.Time }

// Name is what refusals, metrics and explanations call the gate.
func (weekdaysOnly) Name() string { return "weekdays_only" }

// Check lets a candidate pass from Monday to Friday.
func (g weekdaysOnly) Check(context.Context, *sallyport.Candidate) *sallyport.Refusal {
	if day := g.now().UTC().Weekday(); day != time.Saturday && day != time.Sunday {
		return nil
	}
	return &sallyport.Refusal{
		Code: sallyport.CodeFeatureDisabled, Gate: "weekdays_only",
		Message: "scripts do not run at the weekend; call again on Monday",
	}
}
