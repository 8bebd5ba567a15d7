package cli

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/client"
)

// keyCommands look after API keys.
type keyCommands struct {
	Create keyCreateCommand `cmd:"" help:"Create a key; its secret is shown once."`
	List   keyListCommand   `cmd:"" help:"List keys, without their secrets."`
	Revoke keyRevokeCommand `cmd:"" help:"End a key."`
}

type keyCreateCommand struct {
	Name    string   `help:"A name to recognise the key by." required:"" placeholder:"NAME"`
	Scope   []string `help:"What the key may do; may be repeated: memory:read, memory:write, grants:write, audit:read, admin." placeholder:"SCOPE"`
	Role    []string `help:"A role of the key, built in or of the tenant's own; may be repeated: reader, author, reviewer, auditor, admin." placeholder:"ROLE"`
	Team    []string `help:"The teams of its principal (default: the team default)." placeholder:"TEAM"`
	Expires string   `help:"Let the key end after this long, such as 720h." placeholder:"DURATION"`
}

func (*keyCreateCommand) kind() string { return "key" }

func (c *keyCreateCommand) run(ctx context.Context, a *app) error {
	req := access.KeyRequest{Name: c.Name}
	for _, name := range c.Scope {
		scope := sallyport.Scope(name)
		if !scope.Valid() {
			return invalid("--scope: there is no scope %q; the scopes are %s", name, joinWords(sallyport.Scopes()))
		}
		req.Scopes = append(req.Scopes, scope)
	}
	for _, role := range c.Role {
		req.Roles = append(req.Roles, sallyport.RoleName(role))
	}
	if len(req.Scopes) == 0 && len(req.Roles) == 0 {
		return badUsage("say what the key may do with --role or --scope")
	}
	for _, team := range c.Team {
		req.Teams = append(req.Teams, sallyport.TeamID(team))
	}
	var err error
	if req.ExpiresAt, err = expiry(c.Expires); err != nil {
		return err
	}
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.CreateKey(ctx, req)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, made access.NewKey) {
			p.line("%s", p.bold(clean(made.Secret)))
			a.notes.line("%s", a.notes.dim("key "+string(made.Key.ID)+" of "+clean(made.Key.Name)+" may "+mayText(made.Key)+
				"; the secret is shown this once"))
		})
	})
}

// mayText says what a key may do.
func mayText(k sallyport.Key) string {
	parts := []string{}
	if len(k.Roles) > 0 {
		parts = append(parts, "as "+joinWords(k.Roles))
	}
	if len(k.Scopes) > 0 {
		parts = append(parts, joinWords(k.Scopes))
	}
	return clean(strings.Join(parts, " and "))
}

type keyListCommand struct{}

func (*keyListCommand) kind() string { return "keys" }

func (*keyListCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Keys(ctx)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.KeyList) {
			rows := make([][]string, 0, len(list.Keys))
			for _, k := range list.Keys {
				state := whenOrNever(k.ExpiresAt)
				if k.RevokedAt != nil {
					state = "revoked"
				}
				rows = append(rows, []string{string(k.ID), k.Name, k.Prefix + "…", mayText(k), whenOrNever(k.LastUsedAt), state})
			}
			p.table([]string{"KEY", "NAME", "BEGINS", "SCOPES", "LAST USED", "EXPIRES"}, rows)
		})
	})
}

type keyRevokeCommand struct {
	ID string `arg:"" help:"The key's id." name:"id"`
}

func (*keyRevokeCommand) kind() string { return "key_revocation" }

func (c *keyRevokeCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.RevokeKey(ctx, sallyport.KeyID(c.ID))
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, done client.KeyRevocation) {
			p.line("%s %s", p.yellow("revoked"), done.KeyID)
		})
	})
}
