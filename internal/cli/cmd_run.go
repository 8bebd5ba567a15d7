package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

type runCommand struct {
	scriptCall

	Detach bool `help:"Do not wait: print the execution's id as soon as the run is approved and recorded." short:"d"`
}

// Help says where output goes.
func (*runCommand) Help() string {
	return "What the script prints goes to standard output and standard error as it is, a summary follows on standard error; with " +
		"--json the whole envelope goes to standard output. The exit code is 0 for success, 20 when the script failed, 21 when it " +
		"ran out of time, 22 out of memory or another limit; docs/errors.md lists the rest. With --detach the run goes on in the " +
		"server; where no server holds the data folder, the command itself carries it out, and ends when the run does."
}

func (*runCommand) kind() string { return "execution" }

func (c *runCommand) run(ctx context.Context, a *app) error {
	req, err := c.request(a)
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(api *client.Client) error {
		if req.RevisionID, err = revisionNamed(ctx, api, req.Ref, c.Revision); err != nil {
			return err
		}
		if c.Detach {
			return c.start(ctx, a, api, req)
		}
		envelope, err := api.Run(ctx, req)
		if err != nil {
			return err
		}
		return a.showExecution(envelope)
	})
}

// start begins the run and prints its id, which is all that a script wants to know.
func (*runCommand) start(ctx context.Context, a *app, api *client.Client, req client.RunRequest) error {
	envelope, err := api.Start(ctx, req)
	if err != nil {
		return err
	}
	return show(a, envelope, func(p *page, e sallyport.Execution) {
		p.line("%s", e.ID)
		a.notes.line("%s %s", a.notes.status(e.Status), a.notes.dim("wait for it with: sallyport execution wait "+string(e.ID)))
	})
}

// showExecution prints an execution; its status is the exit code.
func (a *app) showExecution(envelope sallyport.Envelope[sallyport.Execution]) error {
	if envelope.Data == nil {
		return &sallyport.Error{Op: "cli.run", Code: sallyport.CodeInternal, Message: "the server sent an execution without data"}
	}
	execution := *envelope.Data
	if err := show(a, envelope, func(*page, sallyport.Execution) { a.printExecution(execution) }); err != nil {
		return err
	}
	if exit := reply.ExitExecution(execution); exit != reply.ExitOK && execution.Status.Terminal() {
		return reportedError{exit}
	}
	return nil
}

// printExecution writes the streams as they came, made harmless for a terminal, then a summary on standard error.
func (a *app) printExecution(e sallyport.Execution) {
	stdout, stderr := e.Stdout, e.Stderr
	if a.outTerminal {
		stdout = cleanLines(stdout)
	}
	if a.errTerminal {
		stderr = cleanLines(stderr)
	}
	_, _ = a.stdout.WriteString(stdout)
	if stdout != "" && !strings.HasSuffix(stdout, "\n") && a.outTerminal {
		_, _ = a.stdout.WriteString("\n")
	}
	_, _ = a.stderr.WriteString(stderr)
	if stderr != "" && !strings.HasSuffix(stderr, "\n") {
		_, _ = a.stderr.WriteString("\n")
	}
	a.notes.summary(e)
}

// summary tells how an execution went, in a few lines.
func (p *page) summary(e sallyport.Execution) {
	p.line("%s %s", p.status(e.Status), p.dim(strings.Join(figures(e), "  ")))
	if e.ErrorMessage != "" {
		p.line("  %s %s", clean(e.ErrorMessage), p.dim("code "+string(e.ErrorKind)))
	}
	for _, cut := range []struct {
		name  string
		cut   bool
		bytes int64
	}{{"stdout", e.StdoutTruncated, e.StdoutBytes}, {"stderr", e.StderrTruncated, e.StderrBytes}} {
		if cut.cut {
			p.line("  %s was cut; the script wrote %s", cut.name, bytesText(cut.bytes))
		}
	}
	for _, artifact := range e.Artifacts {
		p.line("  artifact %s  %s  %s", clean(artifact.Path), bytesText(artifact.Size), p.dim(clean(artifact.MediaType)))
	}
	if len(e.Artifacts) > 0 {
		p.line("  %s", p.dim("fetch one with: sallyport execution artifact "+string(e.ID)+" PATH"))
	}
	for _, note := range e.ArtifactNotes {
		p.line("  %s", p.yellow(clean(note)))
	}
	if len(e.Isolation.Missing) > 0 {
		p.line("  %s", p.yellow("ran without: "+layers(e.Isolation.Missing)))
	}
	p.line("  %s", p.dim("execution "+string(e.ID)))
}

func (p *page) status(s sallyport.Status) string {
	switch s {
	case sallyport.StatusSuccess:
		return p.green(string(s))
	case sallyport.StatusQueued, sallyport.StatusRunning:
		return p.yellow(string(s))
	case sallyport.StatusError, sallyport.StatusTimeout, sallyport.StatusResourceExhausted, sallyport.StatusCanceled,
		sallyport.StatusNotStarted, sallyport.StatusLost:
	}
	return p.red(clean(string(s)))
}

// figures are the numbers of an execution that were measured.
func figures(e sallyport.Execution) []string {
	var out []string
	if e.ExitCode != nil {
		out = append(out, fmt.Sprintf("exit %d", *e.ExitCode))
	}
	if e.SignalName != "" {
		out = append(out, clean(e.SignalName))
	}
	if e.Limit != "" {
		out = append(out, "limit "+clean(string(e.Limit)))
	}
	if e.Status.Terminal() {
		out = append(out, millis(e.DurationMS))
	}
	if e.CPUTimeMS != nil {
		out = append(out, "cpu "+millis(*e.CPUTimeMS))
	}
	if e.MemoryPeakBytes != nil {
		out = append(out, "peak "+bytesText(*e.MemoryPeakBytes))
	}
	if e.Isolation.Executor != "" {
		out = append(out, fmt.Sprintf("%s, %s", clean(e.Isolation.Executor), plural(len(e.Isolation.Layers), "layer", "layers")))
	}
	return out
}
