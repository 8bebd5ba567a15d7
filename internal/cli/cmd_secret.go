package cli

import (
	"bytes"
	"context"
	"io"

	"golang.org/x/term"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/secret"
)

// secretCommands look after the values that scripts get by name.
type secretCommands struct {
	Set    secretSetCommand    `cmd:"" help:"Set a secret; its value comes from standard input or a file and is never shown again."`
	List   secretListCommand   `cmd:"" help:"List secrets, without their values."`
	Remove secretRemoveCommand `cmd:"" help:"Remove a secret, for every run that begins after it."`
	Rotate secretRotateCommand `cmd:"" help:"Encrypt every secret of the installation under a new key." name:"rotate-key"`
}

type secretSetCommand struct {
	Name string `arg:"" help:"The name, such as API_TOKEN. Scripts that declare it get the value in the variable of that name."`
	File string `help:"Read the value from this file instead of standard input." placeholder:"FILE"`
}

// Help says what becomes of the value.
func (*secretSetCommand) Help() string {
	return "A value is 1 byte to 64 KiB without NUL. One line end at its end is left out. It is encrypted before it is stored, and " +
		"no command shows it."
}

func (*secretSetCommand) kind() string { return "secret" }

func (c *secretSetCommand) run(ctx context.Context, a *app) error {
	value, err := c.value(a)
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.SetSecret(ctx, c.Name, value)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, info sallyport.SecretInfo) {
			p.line("%s %s", p.green("set"), p.bold(clean(info.Name)))
		})
	})
}

// value reads the value. On a terminal it is asked for and not echoed.
func (c *secretSetCommand) value(a *app) (sallyport.Secret, error) {
	const most = sallyport.MaxSecretBytes + 2
	var data []byte
	var err error
	switch {
	case c.File != "":
		data, err = readFile(c.File, most)
		if err != nil {
			return "", err
		}
	case isTerminal(a.stdin):
		a.notes.line("the value of %s (it is not shown):", clean(c.Name))
		data, err = term.ReadPassword(int(a.stdin.Fd()))
	default:
		data, err = io.ReadAll(io.LimitReader(a.stdin, most))
	}
	if err != nil {
		return "", invalid("standard input cannot be read: %v", err)
	}
	data = bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
	return sallyport.Secret(data), sallyport.CheckSecretValue(sallyport.Secret(data))
}

type secretListCommand struct{}

func (*secretListCommand) kind() string { return "secrets" }

func (*secretListCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Secrets(ctx)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.SecretList) {
			rows := make([][]string, 0, len(list.Secrets))
			for _, s := range list.Secrets {
				rows = append(rows, []string{s.Name, when(s.UpdatedAt), string(s.UpdatedBy), when(s.CreatedAt)})
			}
			p.table([]string{"SECRET", "SET", "BY", "FIRST SET"}, rows)
		})
	})
}

type secretRemoveCommand struct {
	Name string `arg:"" help:"The secret's name."`
}

func (*secretRemoveCommand) kind() string { return "secret_removal" }

func (c *secretRemoveCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.RemoveSecret(ctx, c.Name)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, done client.SecretRemoval) {
			p.line("%s %s", p.yellow("removed"), p.bold(clean(done.Name)))
		})
	})
}

type secretRotateCommand struct{}

func (*secretRotateCommand) kind() string { return "secret_rotation" }

func (*secretRotateCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.RotateSecretKey(ctx)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, done secret.Rotation) {
			p.line("%s %s under a new key", p.green("encrypted"), plural(done.Rewrapped, "secret", "secrets"))
		})
	})
}
