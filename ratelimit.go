package sallyport

import (
	"maps"
	"time"
)

// DetailRetryAfterMS is the key under which an error's details say after how many milliseconds the same call may succeed.
const DetailRetryAfterMS = "retry_after_ms"

// RateLimited is RATE_LIMITED with a sentence and the time after which the same call may succeed, at least a millisecond. details
// may be nil.
func RateLimited(op, sentence string, after time.Duration, details map[string]any) *Error {
	all := map[string]any{}
	maps.Copy(all, details)
	ms := max(1, (after + time.Millisecond - 1).Milliseconds())
	all[DetailRetryAfterMS] = ms
	shown := max(100*time.Millisecond, (time.Duration(ms) * time.Millisecond).Round(100*time.Millisecond))
	if shown >= time.Second {
		shown = (after + time.Second - 1).Truncate(time.Second)
	}
	return &Error{Op: op, Code: CodeRateLimited, Message: sentence + "; try again in " + shown.String(), Details: all}
}

// RetryAfter is what an error says about when to try again; false when it says nothing.
func RetryAfter(err error) (time.Duration, bool) {
	public := Public(err)
	if public == nil {
		return 0, false
	}
	ms, ok := public.Details[DetailRetryAfterMS].(int64)
	return time.Duration(ms) * time.Millisecond, ok
}
