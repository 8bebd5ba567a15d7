package config

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/server"
)

// productionFailures is the failure budget of the profile production.
const productionFailures = 20

// none is the word for no bound, where the default is one.
const none = "none"

// countOrNone reads a count; none is -1, because 0 is unset.
func countOrNone(target *int, value string) error {
	if value == none {
		*target = -1
		return nil
	}
	if count(target, value) != nil {
		return fmt.Errorf("want a whole number of 1 or more, or %s, got %s", none, quote(value))
	}
	return nil
}

// quotas are the settings with the profile's default.
func (s Settings) quotas() server.Quotas {
	q := s.Quotas
	switch {
	case q.Failures < 0:
		q.Failures = 0
	case q.Failures == 0 && s.Profile == ProfileProduction:
		q.Failures = productionFailures
	}
	return q
}
