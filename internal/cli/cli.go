// Package cli is the command line: one file per command, every command a client of the HTTP API.
//
// It owns what an operator types and reads, the choice of where a call goes (connect.go), and, as the composition root, the
// choice of executor. It leaves every decision about skills, grants and runs to the server it talks to, be it in this process,
// behind the data folder's socket or behind a URL. Its one invariant: with --json, standard output carries exactly one JSON
// document, whatever happened.
package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

// exitUsage is the exit code for a command line that cannot be understood.
const exitUsage = 2

// Process is what a command line runs with. Every field is required.
type Process struct {
	Args           []string // without the program's name
	Stdin          *os.File
	Stdout, Stderr *os.File
	Env            config.Environment
}

// Standard is this very process.
func Standard() Process {
	return Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: config.ReadEnvironment(),
	}
}

// Main runs one command line and returns the exit code. The first SIGINT or SIGTERM asks the command to stop, a second
// one ends the process.
func Main(ctx context.Context, process Process) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	keepNoCore()
	var grammar commands
	a := newApp(process, &grammar.globals)
	command, err := a.parse(&grammar, process.Args)
	switch {
	case errors.Is(err, errHelpShown):
		return reply.ExitOK
	case err != nil:
		// Parsing stopped at the fault, so the flag may not have been reached.
		grammar.JSON = grammar.JSON || slices.Contains(beforeDashes(process.Args), "--json")
		return a.fail("usage", badUsage(err.Error()))
	}
	return a.finish(command, command.run(ctx, a))
}

// parse reads the command line into grammar and returns the command that it names.
func (a *app) parse(grammar *commands, args []string) (chosen, error) {
	parser, err := a.parser(grammar)
	if err != nil {
		return chosen{}, err
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		if _, ok := errors.AsType[*kong.ParseError](err); ok && !errors.Is(err, errHelpShown) {
			return chosen{}, errors.New(hint(err, parser.Model.Name))
		}
		return chosen{}, err
	}
	selected := parsed.Selected()
	if selected == nil {
		return chosen{}, errors.New("which command? see sallyport --help")
	}
	named, ok := reflect.TypeAssert[command](selected.Target.Addr())
	if !ok {
		return chosen{}, errors.New("which command? see " + selected.FullPath() + " --help")
	}
	return chosen{named}, nil
}

func (a *app) parser(grammar *commands) (*kong.Kong, error) {
	return kong.New(grammar,
		kong.Name("sallyport"),
		kong.Description(description),
		kong.NoDefaultHelp(),
		kong.Writers(a.stdout, a.stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100, NoExpandSubcommands: true}),
	)
}

// chosen is the command that a command line names.
type chosen struct{ command }

// hint adds where to look to a parser's sentence.
func hint(err error, name string) string {
	path := name
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		if selected := parse.Context.Selected(); selected != nil {
			path = selected.FullPath()
		}
	}
	return err.Error() + "; see " + path + " --help"
}

// beforeDashes returns what stands before "--": what follows belongs to a script.
func beforeDashes(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}

// A command is one line of commands.go that can be run.
type command interface {
	// kind is the kind of the envelope that the command prints.
	kind() string
	run(ctx context.Context, a *app) error
}

// errHelpShown ends parsing after --help.
var errHelpShown = errors.New("help was shown")

type helpFlag bool

// BeforeReset prints the help of what was named so far.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	return errors.Join(ctx.PrintUsage(false), errHelpShown)
}

// IgnoreDefault keeps the flag out of the values that are reset.
func (helpFlag) IgnoreDefault() {}

// usageError is a fault of the command line rather than of a value in it.
type usageError struct{ cause error }

func badUsage(message string) error {
	return usageError{&sallyport.Error{Op: "cli", Code: sallyport.CodeInvalidArgument, Message: message}}
}

// Error is for the log.
func (e usageError) Error() string { return e.cause.Error() }

// Unwrap gives the error that the envelope shows.
func (e usageError) Unwrap() error { return e.cause }

func invalid(format string, args ...any) error {
	return sallyport.Errorf("cli", sallyport.CodeInvalidArgument, format, args...)
}

func exitCode(err error) int {
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	return reply.ExitCode(err)
}

const description = "A control plane that runs the scripts of agent skills: only what was granted, exactly the bytes that were " +
	"granted, inside a sandbox, with a record that was on disk before the process began."
