package cli

import (
	"context"
	"io"

	"github.com/sallyport-dev/sallyport"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Print the completion of bash, zsh or fish."`
}

// Help says where the script goes.
func (*completionCommand) Help() string {
	return "For the shell you are in: source <(sallyport completion bash), the same with zsh, or sallyport completion fish | source. For " +
		"every shell: write it to /etc/bash_completion.d/sallyport, to _sallyport in a folder of zsh's fpath, or to " +
		"~/.config/fish/completions/sallyport.fish. The script knows the commands of the binary that printed it and starts no program."
}

type completionData struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

func (*completionCommand) kind() string { return "completion" }

func (c *completionCommand) run(_ context.Context, a *app) error {
	var grammar commands
	parser, err := a.parser(&grammar)
	if err != nil {
		return err
	}
	data := completionData{Shell: c.Shell, Script: completionScript(c.Shell, completionNodes(parser.Model.Node))}
	if a.args.JSON {
		return a.writeJSON(sallyport.Success(c.kind(), "", data))
	}
	_, err = io.WriteString(a.stdout, data.Script)
	return err
}
