package httpapi

import (
	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

type importURLBody struct {
	URL      string `json:"url"`
	TeamID   string `json:"team_id"`
	Personal bool   `json:"personal"`
	Publish  bool   `json:"publish"`
	DryRun   bool   `json:"dry_run"`
	Message  string `json:"message"`
}

// importURLData is the report of an import, and what was fetched for it.
type importURLData struct {
	registry.ImportReport

	Source registry.Source `json:"source"`
}

func importURL(c *call, p sallyport.Principal) (answer, error) {
	var body importURLBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	if body.URL == "" {
		return answer{}, invalid("url is required: send the https URL of a zip, a tar, a tar.gz, a SKILL.md or a git repository")
	}
	report, source, err := c.api.cfg.Skills.ImportURL(c.ctx(), p, body.URL, registry.ImportOptions{
		TeamID: sallyport.TeamID(body.TeamID), Personal: body.Personal, Publish: body.Publish, DryRun: body.DryRun, Message: body.Message,
		Progress: c.progress(),
	})
	if err != nil {
		return answer{}, err
	}
	return ok(importURLData{shownReport(report), source}), nil
}
