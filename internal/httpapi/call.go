package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// call is one request on its way through a handler.
type call struct {
	api   *api
	w     http.ResponseWriter // for bounding the body only; a handler returns its answer
	r     *http.Request
	id    string // request id
	query query
}

func (c *call) ctx() context.Context { return c.r.Context() }

func (c *call) now() time.Time { return c.api.cfg.Now() }

// answer is what a handler says when it was not refused.
type answer struct {
	// status is the HTTP status; zero means 200.
	status int
	data   any
	// outcome is the error of a run that finished badly; it goes beside data.
	outcome error
	// location is the URL path of what was created.
	location string
	// raw replaces the envelope by bytes.
	raw *raw
	// stream replaces the envelope by bytes that are made while they are sent.
	stream *stream
	// document replaces the envelope by a JSON document of our own.
	document []byte
}

func ok(data any) answer { return answer{data: data} }

func created(data any, location string) answer {
	return answer{status: http.StatusCreated, data: data, location: location}
}

func invalid(format string, args ...any) error {
	return sallyport.Errorf("httpapi", sallyport.CodeInvalidArgument, format, args...)
}

func words(s string) []string { return strings.Fields(s) }

// skillRef is the skill that the URL names, by id or by slug. Ids are UUIDs; a slug of that form is read as an id.
func (c *call) skillRef(team string) sallyport.SkillRef {
	name := c.r.PathValue("skill")
	if isUUID(name) {
		return sallyport.SkillRef{SkillID: sallyport.SkillID(strings.ToLower(name)), TeamID: sallyport.TeamID(team)}
	}
	return sallyport.SkillRef{Slug: name, TeamID: sallyport.TeamID(team)}
}

// queryRef is the skill that slug, skill_id and team_id in the query name; zero when none is sent.
func (c *call) queryRef() sallyport.SkillRef {
	return sallyport.SkillRef{
		SkillID: sallyport.SkillID(c.query.text("skill_id")),
		Slug:    c.query.text("slug"),
		TeamID:  sallyport.TeamID(c.query.text("team_id")),
	}
}

// isUUID reports whether s is in the 8-4-4-4-12 form.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}
