package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/config"
)

// app is what a running command works with.
type app struct {
	process        Process
	stdin          *os.File
	stdout, stderr *os.File
	env            config.Environment
	args           *globals

	outTerminal, errTerminal bool
	// received is the last envelope of a server, as it sent it.
	received []byte
	// page is standard output for people, notes is standard error for people.
	page, notes *page
}

func newApp(process Process, args *globals) *app {
	a := &app{
		process: process, stdin: process.Stdin, stdout: process.Stdout, stderr: process.Stderr, env: process.Env, args: args,
		outTerminal: isTerminal(process.Stdout), errTerminal: isTerminal(process.Stderr),
	}
	a.page = &page{w: a.stdout, color: a.outTerminal && !a.env.NoColor}
	a.notes = &page{w: a.stderr, color: a.errTerminal && !a.env.NoColor}
	return a
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// settings merges what the command line, the environment and server.yaml say. extra are the command's own short forms.
func (a *app) settings(extra ...config.Flag) (config.Settings, error) {
	flags, err := a.args.flags()
	if err != nil {
		return config.Settings{}, err
	}
	return config.Load(config.Sources{Flags: append(flags, extra...), Env: a.env, File: a.args.Config})
}

// reportedError is an outcome that the command has already printed in full; exit is its exit code.
type reportedError struct{ exit int }

func (e reportedError) Error() string { return fmt.Sprintf("exit %d", e.exit) }

// finish turns what a command returned into the exit code, and reports what it has not reported itself.
func (a *app) finish(c command, err error) int {
	if err == nil {
		return 0
	}
	if done, ok := errors.AsType[reportedError](err); ok {
		return done.exit
	}
	return a.fail(c.kind(), err)
}

// fail reports an error: the envelope on standard output with --json, else a sentence on standard error.
func (a *app) fail(kind string, err error) int {
	exit := exitCode(err)
	if a.args.JSON {
		requestID := ""
		if sent, unread := a.lastEnvelope(); unread == nil && sent.Error != nil {
			requestID = sent.RequestID
		}
		if writeErr := a.writeJSON(sallyport.Failure[struct{}](kind, requestID, err)); writeErr != nil {
			a.notes.line("sallyport: standard output cannot be written")
		}
		return exit
	}
	public := sallyport.Public(err)
	a.notes.line("%s %s", a.notes.red("sallyport:"), clean(public.Message))
	if _, usage := errors.AsType[usageError](err); !usage {
		a.notes.line("%s", a.notes.dim("code "+string(public.Code)))
		a.cause(err)
	}
	return exit
}

// cause shows the private cause of an error of this very process: it is the operator's own. What a server keeps to itself
// never gets here.
func (a *app) cause(err error) {
	own, ok := errors.AsType[*sallyport.Error](err)
	if !ok || own.Err == nil {
		return
	}
	a.notes.line("%s", a.notes.dim("cause "+cut(clean(own.Err.Error()), 400)))
}

// show prints the envelope of a server: with --json as the server sent it, fields that this command does not know included,
// else what human makes of its data.
func show[T any](a *app, envelope sallyport.Envelope[T], human func(p *page, data T)) error {
	if !a.args.JSON {
		return showOwn(a, envelope, human)
	}
	sent, err := a.lastEnvelope()
	if err != nil {
		return err
	}
	if envelope.Error != nil {
		sent.Error = envelope.Error // the command's own verdict about the data
	}
	return a.writeJSON(sent)
}

// lastEnvelope is what the server sent last, with its data untouched.
func (a *app) lastEnvelope() (sallyport.Envelope[json.RawMessage], error) {
	var sent sallyport.Envelope[json.RawMessage]
	if err := json.Unmarshal(a.received, &sent); err != nil {
		return sent, &sallyport.Error{Op: "cli.print", Code: sallyport.CodeInternal, Err: err}
	}
	return sent, nil
}

// showOwn prints an envelope that the command made itself.
func showOwn[T any](a *app, envelope sallyport.Envelope[T], human func(p *page, data T)) error {
	if a.args.JSON {
		return a.writeJSON(envelope)
	}
	if envelope.Data != nil {
		human(a.page, *envelope.Data)
	}
	return nil
}

// writeJSON writes the one document.
func (a *app) writeJSON(document any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	if a.outTerminal {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(document); err != nil {
		return &sallyport.Error{Op: "cli.print", Code: sallyport.CodeInternal, Err: err}
	}
	return nil
}

// progress is a line for people who wait; scripts do not see it.
func (a *app) progress(format string, args ...any) {
	if a.errTerminal && !a.args.JSON {
		a.notes.line("%s", a.notes.dim(fmt.Sprintf(format, args...)))
	}
}
