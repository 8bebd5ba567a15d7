package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/client"
)

// roleCommands look after the roles of the tenant.
type roleCommands struct {
	List   roleListCommand   `cmd:"" help:"List the built-in roles and the tenant's own."`
	Show   roleShowCommand   `cmd:"" help:"Show a role."`
	Set    roleSetCommand    `cmd:"" help:"Make or replace a role of the tenant's own."`
	Remove roleRemoveCommand `cmd:"" help:"Remove a role that nobody has."`
}

type roleListCommand struct{}

func (*roleListCommand) kind() string { return "roles" }

func (*roleListCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Roles(ctx)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.RoleList) { printRoles(p, list.Roles...) })
	})
}

func printRoles(p *page, roles ...sallyport.Role) {
	rows := make([][]string, 0, len(roles))
	for _, r := range roles {
		origin := "own"
		if r.BuiltIn {
			origin = "built in"
		}
		rows = append(rows, []string{string(r.Name), joinWords(r.Scopes), origin, r.Description})
	}
	p.table([]string{"ROLE", "SCOPES", "ORIGIN", "DESCRIPTION"}, rows)
}

type roleArg struct {
	Name string `arg:"" help:"The role's name." name:"role"`
}

type roleShowCommand struct{ roleArg }

func (*roleShowCommand) kind() string { return "role" }

func (c *roleShowCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Role(ctx, sallyport.RoleName(c.Name))
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, r sallyport.Role) { printRoles(p, r) })
	})
}

type roleSetCommand struct {
	roleArg
	Scope       []string `help:"A scope of the role; may be repeated. None gives nothing." placeholder:"SCOPE"`
	Description string   `help:"What the role is for." placeholder:"TEXT"`
}

func (*roleSetCommand) kind() string { return "role" }

func (c *roleSetCommand) run(ctx context.Context, a *app) error {
	role := sallyport.Role{Name: sallyport.RoleName(c.Name), Description: c.Description}
	for _, name := range c.Scope {
		role.Scopes = append(role.Scopes, sallyport.Scope(name))
	}
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.SetRole(ctx, role)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, r sallyport.Role) { printRoles(p, r) })
	})
}

type roleRemoveCommand struct{ roleArg }

func (*roleRemoveCommand) kind() string { return "removal" }

func (c *roleRemoveCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.RemoveRole(ctx, sallyport.RoleName(c.Name))
		if err != nil {
			return err
		}
		return show(a, envelope, printRemoval)
	})
}

// principalCommands look after the principals of the tenant.
type principalCommands struct {
	List    principalListCommand    `cmd:"" help:"List the principals that were seen or registered."`
	Show    principalShowCommand    `cmd:"" help:"Show a principal."`
	Set     principalSetCommand     `cmd:"" help:"Register a principal, or replace the roles of one."`
	Disable principalDisableCommand `cmd:"" help:"Refuse a principal from its next call on, whatever it shows."`
	Enable  principalEnableCommand  `cmd:"" help:"Let a disabled principal in again."`
}

type principalListCommand struct{}

func (*principalListCommand) kind() string { return "principals" }

func (*principalListCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Principals(ctx)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.AccountList) { printAccounts(p, list.Principals...) })
	})
}

func printAccounts(p *page, accounts ...sallyport.Account) {
	rows := make([][]string, 0, len(accounts))
	for _, one := range accounts {
		state := "open"
		if one.DisabledAt != nil {
			state = "disabled"
		}
		rows = append(rows, []string{string(one.ID), joinWords(one.Roles), whenOrNever(one.LastSeenAt), state})
	}
	p.table([]string{"PRINCIPAL", "ROLES", "LAST SEEN", "STATE"}, rows)
}

type principalArg struct {
	ID string `arg:"" help:"The principal's id, such as key:ID or oidc:NAME:SUBJECT." name:"principal"`
}

func (principalArg) kind() string { return "principal" }

// set changes the principal and shows it.
func (c principalArg) set(ctx context.Context, a *app, req access.AccountRequest) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.SetPrincipal(ctx, sallyport.PrincipalID(c.ID), req)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, account sallyport.Account) { printAccounts(p, account) })
	})
}

type principalShowCommand struct{ principalArg }

func (c *principalShowCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Principal(ctx, sallyport.PrincipalID(c.ID))
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, account sallyport.Account) { printAccounts(p, account) })
	})
}

type principalSetCommand struct {
	principalArg
	Role []string `help:"A role, which replaces those that it has; may be repeated. None takes all away." placeholder:"ROLE"`
}

func (c *principalSetCommand) run(ctx context.Context, a *app) error {
	roles := []sallyport.RoleName{}
	for _, name := range c.Role {
		roles = append(roles, sallyport.RoleName(name))
	}
	return c.set(ctx, a, access.AccountRequest{Roles: &roles})
}

type principalDisableCommand struct{ principalArg }

func (c *principalDisableCommand) run(ctx context.Context, a *app) error {
	return c.set(ctx, a, access.AccountRequest{Disabled: new(true)})
}

type principalEnableCommand struct{ principalArg }

func (c *principalEnableCommand) run(ctx context.Context, a *app) error {
	return c.set(ctx, a, access.AccountRequest{Disabled: new(false)})
}
