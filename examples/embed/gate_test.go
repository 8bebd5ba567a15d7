package main

import (
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

func TestWeekdaysOnly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		at   time.Time
		want sallyport.Code
	}{
		{"last moment of Friday", time.Date(2024, 5, 3, 23, 59, 59, 0, time.UTC), ""},
		{"first moment of Saturday", time.Date(2024, 5, 4, 0, 0, 0, 0, time.UTC), sallyport.CodeFeatureDisabled},
		{"Sunday elsewhere, Monday in UTC", time.Date(2024, 5, 5, 23, 0, 0, 0, time.FixedZone("west", -4*3600)), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			gate := weekdaysOnly{func() time.Time { return test.at }}
			var got sallyport.Code
			if refusal := gate.Check(t.Context(), &sallyport.Candidate{}); refusal != nil {
				got = refusal.Code
				if refusal.Gate != gate.Name() {
					t.Errorf("the refusal names the gate %q, it is %q", refusal.Gate, gate.Name())
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
