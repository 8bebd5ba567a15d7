package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

// tenantCommands look after tenants; they work on a data folder only.
type tenantCommands struct {
	List    tenantListCommand    `cmd:"" help:"List all tenants."`
	Create  tenantCreateCommand  `cmd:"" help:"Make a tenant."`
	Show    tenantShowCommand    `cmd:"" help:"Show a tenant."`
	Disable tenantDisableCommand `cmd:"" help:"Refuse the keys, tokens and runs of a tenant from now on."`
	Enable  tenantEnableCommand  `cmd:"" help:"Open a disabled tenant again."`
}

type tenantListCommand struct{}

func (*tenantListCommand) kind() string { return "tenants" }

func (*tenantListCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Tenants(ctx)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.TenantList) {
			rows := make([][]string, 0, len(list.Tenants))
			for _, t := range list.Tenants {
				rows = append(rows, []string{string(t.ID), t.Name, when(t.CreatedAt), tenantState(t)})
			}
			p.table([]string{"TENANT", "NAME", "CREATED", "STATE"}, rows)
		})
	})
}

func tenantState(t sallyport.Tenant) string {
	if t.Disabled() {
		return "disabled since " + when(*t.DisabledAt)
	}
	return "open"
}

type tenantArg struct {
	ID string `arg:"" help:"The tenant's id." name:"id"`
}

func (tenantArg) kind() string { return "tenant" }

type tenantCreateCommand struct {
	tenantArg
	Name string `help:"A name for people (default: the id)." placeholder:"NAME"`
}

func (c *tenantCreateCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.CreateTenant(ctx, sallyport.TenantID(c.ID), c.Name)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, t sallyport.Tenant) {
			p.line("%s %s", p.green("created"), p.bold(string(t.ID)))
			a.notes.line("%s", a.notes.dim("make its first administrator with: sallyport key create --tenant "+string(t.ID)+" --name NAME --role admin"))
		})
	})
}

type tenantShowCommand struct{ tenantArg }

func (c *tenantShowCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Tenant(ctx, sallyport.TenantID(c.ID))
		if err != nil {
			return err
		}
		return show(a, envelope, printTenant)
	})
}

func printTenant(p *page, t sallyport.Tenant) {
	p.line("%s", p.bold(string(t.ID)))
	p.pairs([][2]string{
		{"name", clean(t.Name)}, {"created", when(t.CreatedAt)}, {"by", clean(string(t.CreatedBy))}, {"state", tenantState(t)},
	}...)
}

type tenantDisableCommand struct {
	tenantArg
	Yes bool `help:"Do not ask." short:"y"`
}

func (c *tenantDisableCommand) run(ctx context.Context, a *app) error {
	if !c.Yes {
		if err := a.canAsk(); err != nil {
			return err
		}
	}
	return a.withClient(ctx, func(api *client.Client) error {
		if !c.Yes {
			if err := a.confirm(ctx, "Refuse every key, token and run of "+clean(c.ID)+"?"); err != nil {
				return err
			}
		}
		envelope, err := api.DisableTenant(ctx, sallyport.TenantID(c.ID), true)
		if err != nil {
			return err
		}
		return show(a, envelope, printTenant)
	})
}

type tenantEnableCommand struct{ tenantArg }

func (c *tenantEnableCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.DisableTenant(ctx, sallyport.TenantID(c.ID), false)
		if err != nil {
			return err
		}
		return show(a, envelope, printTenant)
	})
}
