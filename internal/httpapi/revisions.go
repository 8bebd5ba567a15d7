package httpapi

import "github.com/sallyport-dev/sallyport"

type revisionsData struct {
	Revisions []sallyport.Revision `json:"revisions"`
}

func listRevisions(c *call, p sallyport.Principal) (answer, error) {
	revisions, err := c.api.cfg.Skills.Revisions(c.ctx(), p, c.skillRef(c.query.text("team_id")))
	return ok(revisionsData{list(revisions)}), err
}

// removalData says which revision is gone.
type removalData struct {
	RevisionID sallyport.RevisionID `json:"revision_id"`
	Number     int                  `json:"number"`
	Digest     sallyport.Digest     `json:"digest"`
}

func deleteRevision(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	id := sallyport.RevisionID(c.r.PathValue("revision"))
	revision, err := c.api.cfg.Skills.DeleteRevision(c.ctx(), p, c.skillRef(c.query.text("team_id")), id)
	return ok(removalData{revision.ID, revision.Number, revision.Digest}), err
}

func showRevision(c *call, p sallyport.Principal) (answer, error) {
	id := sallyport.RevisionID(c.r.PathValue("revision"))
	revision, err := c.api.cfg.Skills.Revision(c.ctx(), p, c.skillRef(c.query.text("team_id")), id)
	return ok(revision), err
}
