package cli

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/client"
)

// policyCommands show and change what the tenant narrows for itself.
type policyCommands struct {
	Show policyShowCommand `cmd:"" help:"Show the policy, and what it comes to."`
	Set  policySetCommand  `cmd:"" help:"Replace the policy by a JSON document."`
}

type policyShowCommand struct{}

func (*policyShowCommand) kind() string { return "policy" }

func (*policyShowCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Policy(ctx)
		if err != nil {
			return err
		}
		return show(a, envelope, printPolicy)
	})
}

// printPolicy shows both documents: they are what a person edits and compares.
func printPolicy(p *page, view access.PolicyView) {
	for _, part := range []struct {
		title    string
		document any
	}{{"policy", view.Policy}, {"effective", view.Effective}} {
		text, err := json.MarshalIndent(part.document, "", "  ")
		if err != nil {
			continue // the types are our own
		}
		p.line("%s", p.bold(part.title))
		p.line("%s", cleanLines(string(text)))
	}
	p.pairs([2]string{"version", plural(int(view.Version), "change", "changes")})
}

type policySetCommand struct {
	File     string `arg:"" help:"The JSON document; - is standard input."`
	Expected *int64 `help:"The version that the change is based on (default: the one there is now)." placeholder:"VERSION"`
}

func (*policySetCommand) kind() string { return "policy" }

// maxPolicyFile bounds the document, in bytes.
const maxPolicyFile = 1 << 20

func (c *policySetCommand) run(ctx context.Context, a *app) error {
	document, err := a.readPolicy(c.File)
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(api *client.Client) error {
		expected := c.Expected
		if expected == nil {
			now, err := api.Policy(ctx)
			if err != nil {
				return err
			}
			expected = &now.Data.Version
		}
		envelope, err := api.SetPolicy(ctx, *expected, document)
		if err != nil {
			return err
		}
		return show(a, envelope, printPolicy)
	})
}

// readPolicy returns the document as it is: the server judges it.
func (a *app) readPolicy(name string) (json.RawMessage, error) {
	file := a.stdin
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return nil, &sallyport.Error{Op: "cli.policy", Code: sallyport.CodeInvalidArgument, Message: "the file of the policy cannot be read", Err: err}
		}
		defer func() { _ = opened.Close() }()
		file = opened
	}
	document, err := io.ReadAll(io.LimitReader(file, maxPolicyFile+1))
	switch {
	case err != nil:
		return nil, &sallyport.Error{Op: "cli.policy", Code: sallyport.CodeInvalidArgument, Message: "the policy cannot be read", Err: err}
	case len(document) > maxPolicyFile:
		return nil, invalid("a policy has at most %d bytes", maxPolicyFile)
	case !json.Valid(document):
		return nil, invalid("the policy is no JSON document")
	}
	return document, nil
}
