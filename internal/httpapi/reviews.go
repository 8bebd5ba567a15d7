package httpapi

import (
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// reviewData is all that a reviewer reads before granting the digest.
type reviewData struct {
	Skill    sallyport.Skill    `json:"skill"`
	Revision sallyport.Revision `json:"revision"`
	Digest   sallyport.Digest   `json:"digest"`
	Findings registry.Findings  `json:"findings"`
	// LastGrant is what was granted before; Diff leads from its content to this one, where that still exists.
	LastGrant *grantData             `json:"last_grant"`
	Diff      *registry.RevisionDiff `json:"diff"`
}

func reviewRevision(c *call, p sallyport.Principal) (answer, error) {
	basis, err := c.api.cfg.Reviews.ReviewBasis(c.ctx(), p, c.skillRef(c.query.text("team_id")), sallyport.RevisionID(c.query.text("revision_id")))
	if err != nil {
		return answer{}, err
	}
	ref := sallyport.SkillRef{SkillID: basis.Skill.ID}
	data := reviewData{Skill: basis.Skill}
	if data.Revision, err = c.api.cfg.Skills.Revision(c.ctx(), p, ref, basis.Revision.ID); err != nil {
		return answer{}, err
	}
	data.Digest = data.Revision.Digest
	if data.Findings, err = c.findings(p, ref, registry.FindingsRequest{RevisionID: basis.Revision.ID}); err != nil {
		return answer{}, err
	}
	if basis.Last != nil {
		last := c.stated(*basis.Last)
		data.LastGrant = &last
		diff, err := c.api.cfg.Skills.Diff(c.ctx(), p, ref, basis.Last.RevisionID, basis.Revision.ID)
		switch {
		case err == nil:
			data.Diff = &diff
		case sallyport.CodeOf(err) != sallyport.CodeRevisionNotFound:
			return answer{}, err
		}
	}
	return ok(data), nil
}

// publishData is a skill that was published, with what its new content is not covered by.
type publishData struct {
	registry.SkillView

	UncoveredScripts []string    `json:"uncovered_scripts,omitzero"`
	UncoveredGrants  []grantData `json:"uncovered_grants,omitzero"`
}

// covered adds to the answer of publishing which scripts nobody has granted in this content. What was published stays so when that
// cannot be told.
func (c *call) covered(p sallyport.Principal, view registry.SkillView, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	data := publishData{SkillView: view}
	if c.api.cfg.Reviews == nil || view.Published == nil {
		return ok(data), nil
	}
	coverage, err := c.api.cfg.Reviews.Coverage(c.ctx(), p, view.Skill, *view.Published)
	if err != nil {
		c.api.cfg.Logger.WarnContext(c.ctx(), "what a publication is covered by cannot be told", "error", err)
		return ok(data), nil
	}
	data.UncoveredScripts, data.UncoveredGrants = list(coverage.UncoveredScripts), []grantData{}
	for _, g := range coverage.UncoveredGrants {
		data.UncoveredGrants = append(data.UncoveredGrants, c.stated(g))
	}
	return ok(data), nil
}

type grantRunsData struct {
	Count   int        `json:"count"`
	FirstAt *time.Time `json:"first_at,omitempty"`
	LastAt  *time.Time `json:"last_at,omitempty"`
}

type grantHistoryData struct {
	Grant   grantData         `json:"grant"`
	Entries []sallyport.Entry `json:"entries"`
	Runs    grantRunsData     `json:"runs"`
}

func showGrantHistory(c *call, p sallyport.Principal) (answer, error) {
	history, err := c.api.cfg.Reviews.History(c.ctx(), p, sallyport.GrantID(c.r.PathValue("id")))
	if err != nil {
		return answer{}, err
	}
	return ok(grantHistoryData{c.stated(history.Grant), list(history.Entries), grantRunsData(history.Runs)}), nil
}
