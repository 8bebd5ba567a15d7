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
	found, err := c.findings(p, c.skillRef(c.query.text("team_id")), req)
	return ok(found), err
}

func (c *call) findings(p sallyport.Principal, ref sallyport.SkillRef, req registry.FindingsRequest) (registry.Findings, error) {
	found, err := c.api.cfg.Skills.Findings(c.ctx(), p, ref, req)
	found.Findings, found.Unscanned, found.Exclusions = list(found.Findings), list(found.Unscanned), list(found.Exclusions)
	return found, err
}
