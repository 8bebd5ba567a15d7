package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/registry"
)

// grantCommands say what may run.
type grantCommands struct {
	Issue   grantIssueCommand   `cmd:"" help:"Grant a skill's scripts, or one of them, of exactly the content that is shown."`
	Review  grantReviewCommand  `cmd:"" help:"Show all that is needed to grant a revision: content, findings, and what changed since the last grant."`
	History grantHistoryCommand `cmd:"" help:"Show what is on record about a grant, and what ran under it."`
	List    grantListCommand    `cmd:"" help:"List grants, revoked and expired ones too."`
	Revoke  grantRevokeCommand  `cmd:"" help:"End a grant for every run that begins after it."`
}

type grantIssueCommand struct {
	skillArg
	Script   string `arg:"" help:"The path of one script; without it every script of the skill is granted." optional:""`
	Revision string `help:"The revision to grant, by id or number (default: the published one)." placeholder:"ID"`
	Digest   string `help:"The digest that was reviewed; another one is refused (default: the one that is shown)." placeholder:"DIGEST"`
	Expires  string `help:"Let the grant end after this long, such as 90m or 720h." placeholder:"DURATION"`
	Yes      bool   `help:"Do not ask." short:"y"`
}

func (*grantIssueCommand) kind() string { return "grant" }

func (c *grantIssueCommand) run(ctx context.Context, a *app) error {
	expires, err := expiry(c.Expires)
	if err != nil {
		return err
	}
	if !c.Yes {
		if err := a.canAsk(); err != nil {
			return err
		}
	}
	return a.withClient(ctx, func(api *client.Client) error {
		skill, revision, err := c.review(ctx, api)
		if err != nil {
			return err
		}
		if !c.Yes {
			c.print(a.page, skill, revision)
			findings, err := api.Findings(ctx, sallyport.SkillRef{SkillID: skill.ID}, registry.FindingsRequest{RevisionID: revision.ID})
			if err != nil {
				return err
			}
			printFindings(a.page, *findings.Data, false, findingsBeforeGrant)
			if err := a.confirm(ctx, "Grant this?"); err != nil {
				return err
			}
		}
		expected := revision.Digest
		if c.Digest != "" {
			expected = sallyport.Digest(c.Digest)
		}
		// The digest that was shown is what is granted: content that changed since is refused.
		envelope, err := api.IssueGrant(ctx, access.IssueRequest{
			Ref: sallyport.SkillRef{SkillID: skill.ID}, ScriptPath: c.Script, RevisionID: revision.ID,
			ExpectedDigest: expected, ExpiresAt: expires,
		})
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, g client.Grant) {
			p.line("%s %s  %s  %s", p.green("granted"), p.bold(clean(grantSubject(g.Grant))), p.dim(string(g.Pin)), p.dim(string(g.ID)))
		})
	})
}

// findingsBeforeGrant bounds the findings that are listed before the question.
const findingsBeforeGrant = 20

// review fetches what is about to be granted.
func (c *grantIssueCommand) review(ctx context.Context, api *client.Client) (sallyport.Skill, sallyport.Revision, error) {
	view, err := api.Skill(ctx, c.ref())
	if err != nil {
		return sallyport.Skill{}, sallyport.Revision{}, err
	}
	skill := view.Data.Skill
	revision := view.Data.Published
	switch {
	case c.Revision != "":
		id, err := revisionNamed(ctx, api, c.ref(), c.Revision)
		if err != nil {
			return skill, sallyport.Revision{}, err
		}
		named, err := api.Revision(ctx, c.ref(), id)
		if err != nil {
			return skill, sallyport.Revision{}, err
		}
		revision = named.Data
	case revision == nil:
		return skill, sallyport.Revision{}, invalid("no revision of %[1]s is published and none is named; publish one with: sallyport skill publish %[1]s", skill.Slug)
	}
	return skill, *revision, nil
}

func (c *grantIssueCommand) print(p *page, skill sallyport.Skill, revision sallyport.Revision) {
	scripts, total := 0, int64(0)
	for _, component := range revision.Components {
		total += component.Size
		if component.Kind == sallyport.KindScript {
			scripts++
		}
	}
	what := plural(scripts, "script", "scripts")
	if c.Script != "" {
		what = "the script " + clean(c.Script)
	}
	p.line("%s  %s", p.bold(clean(skill.Slug)), clean(cut(skill.Description, 160)))
	p.pairs([][2]string{
		{"grants", what},
		{"of", fmt.Sprintf("revision %d (%s) by %s, %s", revision.Number, revision.State, clean(string(revision.Author)), when(revision.CreatedAt))},
		{"digest", string(revision.Digest)},
		{"content", plural(len(revision.Components), "file", "files") + ", " + bytesText(total) + "; read one with: sallyport skill read " + clean(skill.Slug) + " PATH"},
	}...)
	printComponents(p, revision.Components, c.Script)
}

// expiry turns a duration from now into an instant; nothing stays nothing.
func expiry(text string) (*time.Time, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no expiry is not an error
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return nil, invalid("--expires wants a duration such as 90m or 720h, got %q", text)
	}
	at := time.Now().Add(d).UTC().Truncate(time.Microsecond)
	return &at, nil
}

func grantSubject(g sallyport.Grant) string {
	if g.ScriptPath == "" {
		return g.Slug + " (every script)"
	}
	return g.Slug + " " + g.ScriptPath
}

type grantListCommand struct {
	Slug string `arg:"" help:"Only the grants of this skill." optional:""`
	Team string `help:"The team, where two have a skill of this slug." placeholder:"TEAM"`
}

func (*grantListCommand) kind() string { return "grants" }

func (c *grantListCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Grants(ctx, sallyport.SkillRef{Slug: c.Slug, TeamID: sallyport.TeamID(c.Team)})
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.GrantList) {
			rows := make([][]string, 0, len(list.Grants))
			for _, g := range list.Grants {
				ends := whenOrNever(g.ExpiresAt)
				if g.ExpiresSoon {
					ends += " (soon)"
				}
				rows = append(rows, []string{
					string(g.ID), grantSubject(g.Grant), short(g.Pin), string(g.State), string(g.IssuedBy), when(g.IssuedAt), ends,
				})
			}
			p.table([]string{"GRANT", "OF", "PIN", "STATE", "ISSUED BY", "ISSUED", "EXPIRES"}, rows)
		})
	})
}

type grantRevokeCommand struct {
	ID string `arg:"" help:"The grant's id." name:"id"`
}

func (*grantRevokeCommand) kind() string { return "grant" }

func (c *grantRevokeCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.RevokeGrant(ctx, sallyport.GrantID(c.ID))
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, g client.Grant) {
			p.line("%s %s", p.yellow("revoked"), p.bold(clean(grantSubject(g.Grant))))
		})
	})
}
