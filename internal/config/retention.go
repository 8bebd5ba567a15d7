package config

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport/records"
)

// RetentionSettings say how long records are kept, in days; nil is the default and 0 keeps.
type RetentionSettings struct {
	Executions, Artifacts, ToolCalls, Drafts, Deleted *int
	KeepDrafts                                        *int
}

// maxDays bounds a period: a hundred years.
const maxDays = 36500

func days(target **int, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > maxDays {
		return fmt.Errorf("want a number of days up to %d, or 0 to keep, got %s", maxDays, quote(value))
	}
	*target = &n
	return nil
}

// retention is the policy of the settings.
func (s Settings) retention() *records.Policy {
	policy, from := records.DefaultPolicy(), s.Retention
	for _, row := range []struct {
		set    *int
		period *time.Duration
	}{
		{from.Executions, &policy.Executions},
		{from.Artifacts, &policy.Artifacts},
		{from.ToolCalls, &policy.ToolCalls},
		{from.Drafts, &policy.Drafts},
		{from.Deleted, &policy.Deleted},
	} {
		if row.set != nil {
			*row.period = time.Duration(*row.set) * 24 * time.Hour
		}
	}
	if from.KeepDrafts != nil {
		policy.KeepDrafts = *from.KeepDrafts
	}
	return &policy
}
