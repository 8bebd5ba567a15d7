package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/registry"
)

// skillCommands look after skills.
type skillCommands struct {
	List        skillListCommand        `cmd:"" help:"List or search skills."`
	Show        skillShowCommand        `cmd:"" help:"Show one skill, its scripts and its files."`
	Read        skillReadCommand        `cmd:"" help:"Print one file of a skill, as a grant would cover it."`
	Revisions   skillRevisionsCommand   `cmd:"" help:"List the revisions of a skill, newest first."`
	Diff        skillDiffCommand        `cmd:"" help:"Show what differs between two revisions."`
	Findings    skillFindingsCommand    `cmd:"" help:"Show what the static rules find in a revision."`
	Publish     skillPublishCommand     `cmd:"" help:"Publish the latest revision, or the one that is named: an older one rolls back."`
	DeleteDraft skillDeleteDraftCommand `cmd:"" help:"Remove a draft that nothing names."`
	Clean       skillCleanCommand       `cmd:"" help:"Remove old drafts that nothing names."`
	Archive     skillArchiveCommand     `cmd:"" help:"Take a skill out of lists and runs."`
	Restore     skillRestoreCommand     `cmd:"" help:"Undo archive and delete."`
	Delete      skillDeleteCommand      `cmd:"" help:"Archive a skill until it is purged, or purge it now."`
}

// skillArg names a skill on the command line.
type skillArg struct {
	Slug string `arg:"" help:"The skill's slug." name:"slug"`
	Team string `help:"The team, where two have a skill of this slug." placeholder:"TEAM"`
}

func (s skillArg) ref() sallyport.SkillRef {
	return sallyport.SkillRef{Slug: s.Slug, TeamID: sallyport.TeamID(s.Team)}
}

type skillListCommand struct {
	Query    string `arg:"" help:"Words to search for." optional:""`
	Archived bool   `help:"List archived skills too."`
	Team     string `help:"List this team's skills only." placeholder:"TEAM"`
	Limit    int    `help:"At most this many, up to 200." default:"50"`
	Cursor   string `help:"Go on after an earlier page." placeholder:"CURSOR"`
}

func (*skillListCommand) kind() string { return "skills" }

func (c *skillListCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Skills(ctx, registry.ListRequest{
			Query: c.Query, IncludeArchived: c.Archived, TeamID: sallyport.TeamID(c.Team), Limit: c.Limit, Cursor: c.Cursor,
		})
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list registry.ListResult) {
			rows := make([][]string, 0, len(list.Skills))
			for _, s := range list.Skills {
				rows = append(rows, []string{s.Slug, place(s), skillState(s), cut(s.Description, 72)})
			}
			p.table([]string{"SLUG", "TEAM", "STATE", "DESCRIPTION"}, rows)
			if list.LeftOut > 0 {
				p.line("%s", p.dim(strconv.Itoa(list.LeftOut)+" more: --cursor "+clean(list.NextCursor)))
			}
		})
	})
}

func place(s sallyport.Skill) string {
	if s.TeamID == "" {
		return "personal"
	}
	return string(s.TeamID)
}

func skillState(s sallyport.Skill) string {
	switch {
	case s.Archived():
		return "archived"
	case s.PublishedRevisionID == "":
		return "draft"
	case s.PublishedRevisionID != s.LatestRevisionID:
		return "published, newer draft"
	default:
		return "published"
	}
}

type skillShowCommand struct {
	skillArg
}

func (*skillShowCommand) kind() string { return "skill" }

func (c *skillShowCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Skill(ctx, c.ref())
		if err != nil {
			return err
		}
		return show(a, envelope, printView)
	})
}

func printView(p *page, view registry.SkillView) {
	s := view.Skill
	p.line("%s  %s", p.bold(clean(s.Slug)), clean(s.Name))
	if s.Description != "" {
		p.line("%s", clean(s.Description))
	}
	p.pairs([][2]string{
		{"id", string(s.ID)},
		{"team", clean(place(s))},
		{"state", skillState(s)},
		{"updated", when(s.UpdatedAt)},
	}...)
	if view.Published != nil {
		printRevision(p, "published", *view.Published)
	}
	if view.Latest != nil && (view.Published == nil || view.Latest.ID != view.Published.ID) {
		printRevision(p, "latest", *view.Latest)
	}
}

func printRevision(p *page, title string, r sallyport.Revision) {
	p.line("%s revision %d  %s  %s", p.bold(title), r.Number, p.dim(string(r.ID)), p.dim(string(r.Digest)))
	printComponents(p, r.Components, "")
}

// printComponents lists the manifest, scripts first; with a script, that one is marked.
func printComponents(p *page, components []sallyport.Component, script string) {
	for _, scripts := range []bool{true, false} {
		for _, c := range components {
			if (c.Kind == sallyport.KindScript) != scripts {
				continue
			}
			text := fmt.Sprintf("  %s %s %s", pad(string(c.Kind), 9), pad(bytesText(c.Size), 9), clean(c.Path))
			switch {
			case c.Path == script:
				text = p.bold(text)
			case !scripts:
				text = p.dim(text)
			}
			p.line("%s%s", text, p.dim(scriptText(c.Script)))
		}
	}
}

func scriptText(s *sallyport.ScriptSettings) string {
	if s == nil {
		return ""
	}
	text := "  " + clean(s.Runtime) + ", " + string(s.Input)
	if len(s.InputSchema) > 0 {
		text += " with a schema"
	}
	return text
}

type skillRevisionsCommand struct {
	skillArg
}

func (*skillRevisionsCommand) kind() string { return "revisions" }

func (c *skillRevisionsCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Revisions(ctx, c.ref())
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.RevisionList) {
			rows := make([][]string, 0, len(list.Revisions))
			for _, r := range list.Revisions {
				rows = append(rows, []string{
					strconv.Itoa(r.Number), string(r.ID), string(r.State), short(r.Digest), when(r.CreatedAt), string(r.Author), cut(r.Message, 60),
				})
			}
			p.table([]string{"NO", "REVISION", "STATE", "DIGEST", "CREATED", "AUTHOR", "MESSAGE"}, rows)
		})
	})
}

type skillPublishCommand struct {
	skillArg
	Revision string `help:"The revision, by id or number (default: the latest)." placeholder:"ID"`
	Override string `help:"Publish although the findings are not clean, for this reason, which is audited." placeholder:"REASON"`
}

func (*skillPublishCommand) kind() string { return "skill" }

func (c *skillPublishCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		id, err := revisionNamed(ctx, api, c.ref(), c.Revision)
		if err != nil {
			return err
		}
		publish := api.Publish
		if c.Override != "" {
			publish = func(ctx context.Context, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Envelope[client.Publication], error) {
				return api.PublishOverride(ctx, ref, id, c.Override)
			}
		}
		envelope, err := publish(ctx, c.ref(), id)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, view client.Publication) {
			if r := view.Published; r != nil {
				p.line("%s %s revision %d  %s", p.green("published"), p.bold(clean(view.Skill.Slug)), r.Number, p.dim(string(r.Digest)))
			}
			for _, path := range view.UncoveredScripts {
				p.line("  %s %s", p.yellow("no grant covers"), clean(path))
			}
			if len(view.UncoveredScripts) > 0 {
				p.line("  %s", p.dim("a reviewer reads it with: sallyport grant review "+clean(view.Skill.Slug)))
			}
		})
	})
}

type skillArchiveCommand struct {
	skillArg
}

func (*skillArchiveCommand) kind() string { return "skill" }

func (c *skillArchiveCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Archive(ctx, c.ref())
		if err != nil {
			return err
		}
		return show(a, envelope, printSkillState)
	})
}

type skillRestoreCommand struct {
	skillArg
}

func (*skillRestoreCommand) kind() string { return "skill" }

func (c *skillRestoreCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Restore(ctx, c.ref())
		if err != nil {
			return err
		}
		return show(a, envelope, printSkillState)
	})
}

func printSkillState(p *page, view registry.SkillView) {
	p.line("%s is %s", p.bold(clean(view.Skill.Slug)), skillState(view.Skill))
}
