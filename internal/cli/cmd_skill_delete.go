package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/registry"
)

type skillDeleteCommand struct {
	skillArg
	Purge  bool `help:"Remove a skill that was deleted or archived before, for good."`
	DryRun bool `help:"With --purge: remove nothing and say what would go and what would stay."`
	Yes    bool `help:"Purge without asking." short:"y"`
}

// Help says what stays.
func (*skillDeleteCommand) Help() string {
	return "A deleted skill is archived, can be restored, and is purged after retention.deleted_days. A purge removes every revision that " +
		"neither a grant nor an execution names, revoked and expired grants too, and the skill itself when nothing of it is named; the " +
		"answer lists what stays and why. It needs the scope admin and is audited."
}

func (c *skillDeleteCommand) kind() string {
	if c.Purge {
		return "skill_purge"
	}
	return "skill"
}

func (c *skillDeleteCommand) run(ctx context.Context, a *app) error {
	if !c.Purge {
		if c.DryRun {
			return badUsage("--dry-run goes with --purge; delete without it can be undone")
		}
		return a.withClient(ctx, func(api *client.Client) error {
			envelope, err := api.DeleteSkill(ctx, c.ref())
			if err != nil {
				return err
			}
			return show(a, envelope, func(p *page, view registry.SkillView) {
				p.line("%s is deleted; sallyport skill restore %s brings it back until it is purged", p.bold(clean(view.Skill.Slug)), clean(view.Skill.Slug))
			})
		})
	}
	ask := !c.Yes && !c.DryRun
	if ask {
		if err := a.canAsk(); err != nil {
			return err
		}
	}
	return a.withClient(ctx, func(api *client.Client) error {
		if ask {
			plan, err := api.PurgeSkill(ctx, c.ref(), true)
			if err != nil {
				return err
			}
			printPurge(a.notes, *plan.Data)
			if err := a.confirm(ctx, "Remove it for good?"); err != nil {
				return err
			}
		}
		envelope, err := api.PurgeSkill(ctx, c.ref(), c.DryRun)
		if err != nil {
			return err
		}
		return show(a, envelope, printPurge)
	})
}

func printPurge(p *page, r registry.PurgeReport) {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	p.line("%s %s of %s, %s", p.yellow(verb), plural(len(r.Removed), "revision", "revisions"), p.bold(clean(r.Skill.Slug)), bytesText(r.Bytes))
	for _, kept := range r.Kept {
		p.line("  revision %d stays: %s", kept.Number, clean(kept.Reason))
	}
	if r.SkillRemoved {
		p.line("  %s", p.dim("nothing of it is left; the slug is free"))
	}
}
