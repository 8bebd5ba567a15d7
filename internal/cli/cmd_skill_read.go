package cli

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

type skillReadCommand struct {
	skillArg
	Path     string `arg:"" help:"The file's path inside the skill." name:"path"`
	Revision string `help:"The revision, by id or number (default: the published one, else the latest)." placeholder:"ID"`
}

// Help says what a reviewer gets.
func (*skillReadCommand) Help() string {
	return "What is printed was checked against its digest, and is exactly what a grant of this revision covers. On a terminal, " +
		"characters that would move the cursor or reorder text are shown as �."
}

func (*skillReadCommand) kind() string { return "component" }

func (c *skillReadCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		id, err := revisionNamed(ctx, api, c.ref(), c.Revision)
		if err != nil {
			return err
		}
		envelope, err := api.Component(ctx, c.ref(), id, c.Path)
		if err != nil {
			return err
		}
		content, err := envelope.Data.Bytes()
		if err != nil {
			return err
		}
		if a.args.JSON {
			return show(a, envelope, func(*page, client.ComponentContent) {})
		}
		if a.outTerminal {
			content = []byte(strings.TrimSuffix(cleanLines(string(content)), "\n") + "\n")
		}
		if _, err := a.stdout.Write(content); err != nil {
			return &sallyport.Error{Op: "cli.read", Code: sallyport.CodeInternal, Err: err}
		}
		return nil
	})
}
