package httpapi

import (
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func showFindings(c *call, p sallyport.Principal) (answer, error) {
	req := registry.FindingsRequest{RevisionID: sallyport.RevisionID(c.query.text("revision_id"))}
	if patterns := c.query.text("exclude"); patterns != "" {
		req.Exclude = strings.Split(patterns, ",")
	}
	found, err := c.api.cfg.Skills.Findings(c.ctx(), p, c.skillRef(c.query.text("team_id")), req)
	if err != nil {
		return answer{}, err
	}
	found.Findings, found.Unscanned, found.Exclusions = list(found.Findings), list(found.Unscanned), list(found.Exclusions)
	return ok(found), nil
}
