package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/run"
)

// executionCommands look at what ran.
type executionCommands struct {
	List     executionListCommand     `cmd:"" help:"List executions, newest first."`
	Show     executionShowCommand     `cmd:"" help:"Show one execution with what it printed."`
	Wait     executionWaitCommand     `cmd:"" help:"Wait until an execution is over, and show it."`
	Cancel   executionCancelCommand   `cmd:"" help:"Stop a running execution."`
	Artifact executionArtifactCommand `cmd:"" help:"Fetch a file that an execution left."`
	Purge    executionPurgeCommand    `cmd:"" help:"Remove old executions with their artifacts."`
}

type executionListCommand struct {
	Slug   string `arg:"" help:"Only executions of this skill." optional:""`
	Team   string `help:"The team, where two have a skill of this slug." placeholder:"TEAM"`
	Status string `help:"Only executions with this status." placeholder:"STATUS"`
	Limit  int    `help:"At most this many, up to 200." default:"50"`
	Cursor string `help:"Go on after an earlier page." placeholder:"CURSOR"`
}

func (*executionListCommand) kind() string { return "executions" }

func (c *executionListCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Executions(ctx, run.ListRequest{
			Ref:    sallyport.SkillRef{Slug: c.Slug, TeamID: sallyport.TeamID(c.Team)},
			Status: sallyport.Status(c.Status), Limit: c.Limit, Cursor: c.Cursor,
		})
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list run.ListResult) {
			rows := make([][]string, 0, len(list.Executions))
			for _, e := range list.Executions {
				rows = append(rows, []string{
					when(e.CreatedAt), string(e.ID), e.Slug, e.ScriptPath, string(e.Status), millis(e.DurationMS), string(e.PrincipalID),
				})
			}
			p.table([]string{"CREATED", "EXECUTION", "SKILL", "SCRIPT", "STATUS", "TOOK", "BY"}, rows)
			if list.NextCursor != "" {
				p.line("%s", p.dim("more: --cursor "+clean(list.NextCursor)))
			}
		})
	})
}

type executionShowCommand struct {
	ID string `arg:"" help:"The execution's id." name:"id"`
}

func (*executionShowCommand) kind() string { return "execution" }

func (c *executionShowCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Execution(ctx, sallyport.ExecutionID(c.ID))
		if err != nil {
			return err
		}
		return a.showExecution(envelope)
	})
}

type executionWaitCommand struct {
	ID      string        `arg:"" help:"The execution's id." name:"id"`
	Timeout time.Duration `help:"Give up after this long, such as 90s (default: wait until it is over)." placeholder:"DURATION"`
}

func (*executionWaitCommand) kind() string { return "execution" }

func (c *executionWaitCommand) run(ctx context.Context, a *app) error {
	if c.Timeout < 0 {
		return invalid("--timeout wants a duration such as 90s, got %s", c.Timeout)
	}
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Wait(ctx, sallyport.ExecutionID(c.ID), c.Timeout)
		if err != nil {
			return err
		}
		if !envelope.Data.Status.Terminal() {
			return sallyport.Errorf("cli.wait", sallyport.CodeDeadlineExceeded, "the execution is not over after %s; it is %s", c.Timeout, envelope.Data.Status)
		}
		return a.showExecution(envelope)
	})
}

type executionCancelCommand struct {
	ID string `arg:"" help:"The execution's id." name:"id"`
}

func (*executionCancelCommand) kind() string { return "cancellation" }

func (c *executionCancelCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Cancel(ctx, sallyport.ExecutionID(c.ID))
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, done client.Cancellation) {
			p.line("asked %s to stop", done.ExecutionID)
		})
	})
}

type executionArtifactCommand struct {
	ID     string `arg:"" help:"The execution's id." name:"id"`
	Path   string `arg:"" help:"The artifact's path." name:"path"`
	Output string `help:"Write to this file (default: the artifact's name); - is standard output." placeholder:"FILE" short:"o"`
}

// fetched is what artifact says about the file that it wrote.
type fetched struct {
	ExecutionID sallyport.ExecutionID `json:"execution_id"`
	Path        string                `json:"path"`
	Size        int                   `json:"size"`
	Digest      sallyport.Digest      `json:"digest"`
	Output      string                `json:"output"`
}

func (*executionArtifactCommand) kind() string { return "artifact" }

func (c *executionArtifactCommand) run(ctx context.Context, a *app) error {
	output := c.Output
	if output == "" {
		output = path.Base(c.Path)
	}
	if output == "-" && a.args.JSON {
		return badUsage("--output - and --json both want standard output; give one")
	}
	return a.withClient(ctx, func(api *client.Client) error {
		content, err := api.Artifact(ctx, sallyport.ExecutionID(c.ID), c.Path)
		if err != nil {
			return err
		}
		if output == "-" {
			if _, err := io.Copy(a.stdout, bytes.NewReader(content)); err != nil {
				return &sallyport.Error{Op: "cli.artifact", Code: sallyport.CodeInternal, Err: err}
			}
			return nil
		}
		if err := writeNew(output, content); err != nil {
			return err
		}
		done := fetched{sallyport.ExecutionID(c.ID), c.Path, len(content), sallyport.DigestOf(content), output}
		return showOwn(a, sallyport.Success("artifact", "", done), func(p *page, f fetched) {
			p.line("%s  %s  %s", clean(f.Output), bytesText(int64(f.Size)), p.dim(string(f.Digest)))
		})
	})
}

// writeNew writes a file that must not exist: what a script left must not replace what is there.
func writeNew(name string, content []byte) error {
	folder, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return invalid("the file cannot be made: %v", err)
	}
	defer func() { _ = folder.Close() }()
	file, err := folder.OpenFile(filepath.Base(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return invalid("the file cannot be made: %v", err)
	}
	_, err = file.Write(content)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return invalid("%s: cannot be written: %v", name, err)
	}
	return nil
}
