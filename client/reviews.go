package client

import (
	"context"
	"net/http"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/registry"
)

// Publication is a skill that was published, with what its new content is not covered by.
type Publication struct {
	registry.SkillView

	// UncoveredScripts are the paths of the scripts that no active grant pins in this content.
	UncoveredScripts []string `json:"uncovered_scripts,omitzero"`
	// UncoveredGrants are the active grants of the skill that pin other content.
	UncoveredGrants []Grant `json:"uncovered_grants,omitzero"`
}

// Review is all that a reviewer reads before granting the digest.
type Review struct {
	Skill    sallyport.Skill    `json:"skill"`
	Revision sallyport.Revision `json:"revision"`
	Digest   sallyport.Digest   `json:"digest"`
	Findings registry.Findings  `json:"findings"`
	// LastGrant is what was granted before, nil for nothing; Diff leads from its content to this one, nil when that is gone.
	LastGrant *Grant        `json:"last_grant"`
	Diff      *RevisionDiff `json:"diff"`
}

// Review returns what there is to read before a revision is granted; an empty id means the published one.
func (c *Client) Review(ctx context.Context, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Envelope[Review], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[Review]{}, err
	}
	set(query, "revision_id", id)
	return call[Review](ctx, c, get(path+"/review", query))
}

// GrantHistory is a grant with everything that is on record about it.
type GrantHistory struct {
	Grant   Grant             `json:"grant"`
	Entries []sallyport.Entry `json:"entries"`
	Runs    access.GrantRuns  `json:"runs"`
}

// GrantHistory returns the history of a grant.
func (c *Client) GrantHistory(ctx context.Context, id sallyport.GrantID) (sallyport.Envelope[GrantHistory], error) {
	return one[GrantHistory](ctx, c, http.MethodGet, "/v1/grants", id, "/history")
}
