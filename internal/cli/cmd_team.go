package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

// teamCommands look after the teams of the tenant.
type teamCommands struct {
	List         teamListCommand   `cmd:"" help:"List the teams."`
	Create       teamCreateCommand `cmd:"" help:"Make a team."`
	Show         teamShowCommand   `cmd:"" help:"Show a team and its members."`
	Remove       teamRemoveCommand `cmd:"" help:"Remove a team without skills, and its memberships."`
	AddMember    memberAddCommand  `cmd:"" help:"Put a principal into a team." name:"add-member"`
	RemoveMember memberDropCommand `cmd:"" help:"Take a principal out of a team." name:"remove-member"`
}

type teamListCommand struct{}

func (*teamListCommand) kind() string { return "teams" }

func (*teamListCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Teams(ctx)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.TeamList) {
			rows := make([][]string, 0, len(list.Teams))
			for _, t := range list.Teams {
				rows = append(rows, []string{string(t.ID), t.Name, when(t.CreatedAt)})
			}
			p.table([]string{"TEAM", "NAME", "CREATED"}, rows)
		})
	})
}

type teamArg struct {
	ID string `arg:"" help:"The team's id." name:"team"`
}

func (c teamArg) team() sallyport.TeamID { return sallyport.TeamID(c.ID) }

type teamCreateCommand struct {
	teamArg
	Name string `help:"A name for people (default: the id)." placeholder:"NAME"`
}

func (*teamCreateCommand) kind() string { return "team" }

func (c *teamCreateCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.CreateTeam(ctx, c.team(), c.Name)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, t sallyport.Team) { p.line("%s %s", p.green("created"), p.bold(string(t.ID))) })
	})
}

type teamShowCommand struct{ teamArg }

func (*teamShowCommand) kind() string { return "members" }

func (c *teamShowCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		team, err := api.Team(ctx, c.team())
		if err != nil {
			return err
		}
		envelope, err := api.Members(ctx, c.team())
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.MemberList) {
			p.line("%s  %s", p.bold(string(team.Data.ID)), clean(team.Data.Name))
			rows := make([][]string, 0, len(list.Members))
			for _, m := range list.Members {
				rows = append(rows, []string{string(m.PrincipalID), string(m.AddedBy), when(m.AddedAt)})
			}
			p.table([]string{"MEMBER", "ADDED BY", "ADDED"}, rows)
		})
	})
}

type teamRemoveCommand struct{ teamArg }

func (*teamRemoveCommand) kind() string { return "removal" }

func (c *teamRemoveCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.RemoveTeam(ctx, c.team())
		if err != nil {
			return err
		}
		return show(a, envelope, printRemoval)
	})
}

func printRemoval(p *page, gone client.Removal) { p.line("%s %s", p.yellow("removed"), clean(gone.ID)) }

type memberArg struct {
	teamArg
	Principal string `arg:"" help:"The principal's id, such as key:ID or oidc:NAME:SUBJECT."`
}

type memberAddCommand struct{ memberArg }

func (*memberAddCommand) kind() string { return "member" }

func (c *memberAddCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.AddMember(ctx, c.team(), sallyport.PrincipalID(c.Principal))
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, m sallyport.Member) {
			p.line("%s %s is in %s", p.green("added"), p.bold(clean(string(m.PrincipalID))), clean(string(m.TeamID)))
		})
	})
}

type memberDropCommand struct{ memberArg }

func (*memberDropCommand) kind() string { return "removal" }

func (c *memberDropCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.RemoveMember(ctx, c.team(), sallyport.PrincipalID(c.Principal))
		if err != nil {
			return err
		}
		return show(a, envelope, printRemoval)
	})
}
