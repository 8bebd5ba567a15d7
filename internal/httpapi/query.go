package httpapi

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// query is the parsed query of one request. Its methods return the zero value for a parameter that is absent or empty; the
// first fault sticks in err, which a handler checks once, after it read all it needs.
type query struct {
	values url.Values
	err    error
}

// parseQuery refuses malformed queries, parameters that are not among allowed, and doubled ones.
func parseQuery(raw string, allowed []string) (query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query{}, invalid("the query is malformed")
	}
	for name, list := range values {
		switch {
		case !slices.Contains(allowed, name):
			if len(allowed) == 0 {
				return query{}, invalid("unknown query parameter %q: this route takes none", bound(name))
			}
			return query{}, invalid("unknown query parameter %q: this route takes %s", bound(name), strings.Join(allowed, ", "))
		case len(list) > 1:
			return query{}, invalid("the query parameter %s is sent more than once", name)
		case !utf8.ValidString(list[0]):
			return query{}, invalid("the query parameter %s is not valid UTF-8", name)
		}
	}
	return query{values: values}, nil
}

// bound keeps what a caller sent short enough to be repeated in a message.
func bound(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

func (q *query) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

func (q *query) text(name string) string { return q.values.Get(name) }

func (q *query) boolean(name string) bool {
	switch q.values.Get(name) {
	case "", "false", "0":
		return false
	case "true", "1":
		return true
	}
	q.fail(invalid("the query parameter %s must be true or false", name))
	return false
}

// integer returns 0 when the parameter is absent; sent, it must lie within the bounds.
func (q *query) integer(name string, least, most int64) int64 {
	text := q.values.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.fail(invalid("the query parameter %s must be a whole number from %d to %d", name, least, most))
		return 0
	}
	return n
}

func (q *query) instant(name string) time.Time {
	text := q.values.Get(name)
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.fail(invalid("the query parameter %s must be an RFC 3339 time such as 2026-01-31T12:00:00Z", name))
		return time.Time{}
	}
	return at.UTC()
}
