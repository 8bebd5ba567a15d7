package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// grantGate: a grant for the tenant, skill and script exists and one is active.
type grantGate struct {
	now func() time.Time
}

func (grantGate) Name() string { return "grant" }

func (g grantGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	var newest *sallyport.Grant
	for i := range c.Grants {
		grant := &c.Grants[i]
		if !covers(grant, c) {
			continue
		}
		if grant.State(g.now()) == sallyport.GrantActive {
			return nil
		}
		if newest == nil || grant.IssuedAt.After(newest.IssuedAt) {
			newest = grant
		}
	}
	refusal := &sallyport.Refusal{Gate: g.Name()}
	switch {
	case newest == nil:
		refusal.Code = sallyport.CodeGrantMissing
		refusal.Message = fmt.Sprintf("no grant allows %s of %s; a reviewer issues one with: sallyport grant issue %s %s",
			c.Script.Path, c.Skill.Slug, c.Skill.Slug, c.Script.Path)
	case newest.State(g.now()) == sallyport.GrantRevoked:
		refusal.Code = sallyport.CodeGrantRevoked
		refusal.Message = "the newest grant for this script was revoked; a reviewer must issue a new one"
	default:
		refusal.Code = sallyport.CodeGrantExpired
		refusal.Message = "the newest grant for this script has expired; a reviewer must issue a new one"
	}
	return refusal
}

// covers repeats the store's selection: a grant of another tenant or skill must not open this gate even when a store
// hands one over.
func covers(grant *sallyport.Grant, c *sallyport.Candidate) bool {
	return grant.TenantID == c.Principal.TenantID && grant.TenantID != "" &&
		grant.SkillID == c.Skill.ID && grant.Covers(c.Script.Path)
}
