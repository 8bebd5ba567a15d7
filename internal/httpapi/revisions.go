package httpapi

import "github.com/sallyport-dev/sallyport"

type revisionsData struct {
	Revisions []sallyport.Revision `json:"revisions"`
}

func listRevisions(c *call, p sallyport.Principal) (answer, error) {
	revisions, err := c.api.cfg.Skills.Revisions(c.ctx(), p, c.skillRef(c.query.text("team_id")))
	return ok(revisionsData{list(revisions)}), err
}

func showRevision(c *call, p sallyport.Principal) (answer, error) {
	id := sallyport.RevisionID(c.r.PathValue("revision"))
	revision, err := c.api.cfg.Skills.Revision(c.ctx(), p, c.skillRef(c.query.text("team_id")), id)
	return ok(revision), err
}
