package httpapi

import (
	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// diffData is a comparison, and what it means for the grants.
type diffData struct {
	registry.RevisionDiff

	// GrantsNotCovering are the active grants that do not allow the later revision; absent for callers who may not see grants.
	GrantsNotCovering *[]grantData `json:"grants_not_covering,omitempty"`
}

func diffRevisions(c *call, p sallyport.Principal) (answer, error) {
	from, to := sallyport.RevisionID(c.query.text("from")), sallyport.RevisionID(c.query.text("to"))
	diff, err := c.api.cfg.Skills.Diff(c.ctx(), p, c.skillRef(c.query.text("team_id")), from, to)
	if err != nil {
		return answer{}, err
	}
	data := diffData{RevisionDiff: diff}
	if !p.Has(sallyport.ScopeGrantsWrite) && !p.Has(sallyport.ScopeAuditRead) {
		return ok(data), nil
	}
	grants, err := c.api.cfg.Access.List(c.ctx(), p, sallyport.SkillRef{SkillID: diff.SkillID})
	if err != nil {
		return answer{}, err
	}
	others := []grantData{}
	for _, g := range grants {
		if g.State(c.now()) == sallyport.GrantActive && !g.Pin.Equal(diff.To.Digest) {
			others = append(others, c.stated(g))
		}
	}
	data.GrantsNotCovering = &others
	return ok(data), nil
}
