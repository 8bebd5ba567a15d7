package httpapi

import (
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

// grantData is a grant with its state as of the answer.
type grantData struct {
	sallyport.Grant

	State sallyport.GrantState `json:"state"`
}

type grantsData struct {
	Grants []grantData `json:"grants"`
}

func stated(g sallyport.Grant, now time.Time) grantData { return grantData{g, g.State(now)} }

func listGrants(c *call, p sallyport.Principal) (answer, error) {
	grants, err := c.api.cfg.Access.List(c.ctx(), p, c.queryRef())
	if err != nil {
		return answer{}, err
	}
	data := grantsData{Grants: []grantData{}}
	for _, g := range grants {
		data.Grants = append(data.Grants, stated(g, c.now()))
	}
	return ok(data), nil
}

type grantBody struct {
	Slug           string  `json:"slug"`
	SkillID        string  `json:"skill_id"`
	TeamID         string  `json:"team_id"`
	ScriptPath     string  `json:"script_path"`
	RevisionID     string  `json:"revision_id"`
	ExpectedDigest string  `json:"expected_digest"`
	ExpiresAt      *string `json:"expires_at"`
}

func issueGrant(c *call, p sallyport.Principal) (answer, error) {
	var body grantBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	if body.ExpectedDigest == "" {
		return answer{}, invalid("expected_digest is required: send the digest of the revision that was reviewed")
	}
	digest, err := sallyport.ParseDigest(body.ExpectedDigest)
	if err != nil {
		return answer{}, invalid("expected_digest must be sha256: and 64 hex digits")
	}
	expires, err := instant("expires_at", body.ExpiresAt)
	if err != nil {
		return answer{}, err
	}
	grant, err := c.api.cfg.Access.Issue(c.ctx(), p, access.IssueRequest{
		Ref: sallyport.SkillRef{
			SkillID: sallyport.SkillID(body.SkillID), Slug: body.Slug, TeamID: sallyport.TeamID(body.TeamID),
		},
		ScriptPath: body.ScriptPath, RevisionID: sallyport.RevisionID(body.RevisionID),
		ExpectedDigest: digest, ExpiresAt: expires,
	})
	if err != nil {
		return answer{}, err
	}
	return created(stated(grant, c.now()), ""), nil
}

func revokeGrant(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	grant, err := c.api.cfg.Access.Revoke(c.ctx(), p, sallyport.GrantID(c.r.PathValue("id")))
	return ok(stated(grant, c.now())), err
}
