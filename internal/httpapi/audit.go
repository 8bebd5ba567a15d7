package httpapi

import (
	"math"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

// The page sizes of the trail.
const (
	entriesByDefault = 100
	mostEntries      = 1000
)

// auditData is a page of the trail. NextAfter is the sequence to send as after for the next page; absent on the last.
type auditData struct {
	Entries   []sallyport.Entry `json:"entries"`
	NextAfter int64             `json:"next_after,omitempty"`
	// Pruned is the signed statement about what retention removed; absent when it removed nothing.
	Pruned *audit.Checkpoint `json:"pruned,omitempty"`
}

func listEntries(c *call, p sallyport.Principal) (answer, error) {
	filter := audit.Filter{
		Actor:       sallyport.PrincipalID(c.query.text("actor")),
		Action:      sallyport.Action(c.query.text("action")),
		Entity:      c.query.text("entity"),
		ExecutionID: sallyport.ExecutionID(c.query.text("execution_id")),
		Since:       c.query.instant("since"),
		Until:       c.query.instant("until"),
		After:       c.query.integer("after", 0, math.MaxInt64),
		Limit:       int(c.query.integer("limit", 1, mostEntries)),
		NewestFirst: c.query.boolean("newest_first"),
	}
	if err := c.query.err; err != nil {
		return answer{}, err
	}
	if filter.Limit == 0 {
		filter.Limit = entriesByDefault
	}
	entries, err := c.api.cfg.Audit.List(c.ctx(), p, filter)
	if err != nil {
		return answer{}, err
	}
	data := auditData{Entries: list(entries)}
	if data.Pruned, err = c.api.cfg.Audit.Pruned(c.ctx(), p); err != nil {
		return answer{}, err
	}
	if n := len(entries); n >= filter.Limit {
		if last := entries[n-1].Sequence; !filter.NewestFirst || last > 1 {
			data.NextAfter = last
		}
	}
	return ok(data), nil
}

func verifyTrail(c *call, p sallyport.Principal) (answer, error) {
	verdict, err := c.api.cfg.Audit.Verify(c.ctx(), p, nil)
	return ok(verdict), err
}

// verifyTrailAgainst takes checkpoints from outside: only they can prove that no tail was cut off.
func verifyTrailAgainst(c *call, p sallyport.Principal) (answer, error) {
	var body struct {
		Checkpoints []audit.Checkpoint `json:"checkpoints"`
	}
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	verdict, err := c.api.cfg.Audit.Verify(c.ctx(), p, body.Checkpoints)
	return ok(verdict), err
}
