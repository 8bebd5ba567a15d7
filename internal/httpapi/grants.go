package httpapi

import (
	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

// grantData is a grant with its state as of the answer.
type grantData struct {
	sallyport.Grant

	State sallyport.GrantState `json:"state"`
	// ExpiresSoon marks an active grant that ends within the installation's notice.
	ExpiresSoon bool `json:"expires_soon,omitempty"`
}

type grantsData struct {
	Grants []grantData `json:"grants"`
}

func (c *call) stated(g sallyport.Grant) grantData {
	now := c.now()
	data := grantData{Grant: g, State: g.State(now)}
	data.ExpiresSoon = data.State == sallyport.GrantActive && g.ExpiresAt != nil && !g.ExpiresAt.After(now.Add(c.api.cfg.GrantNotice))
	return data
}

func listGrants(c *call, p sallyport.Principal) (answer, error) {
	grants, err := c.api.cfg.Access.List(c.ctx(), p, c.queryRef())
	if err != nil {
		return answer{}, err
	}
	data := grantsData{Grants: []grantData{}}
	for _, g := range grants {
		data.Grants = append(data.Grants, c.stated(g))
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
	return created(c.stated(grant), ""), nil
}

func revokeGrant(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	grant, err := c.api.cfg.Access.Revoke(c.ctx(), p, sallyport.GrantID(c.r.PathValue("id")))
	return ok(c.stated(grant)), err
}
