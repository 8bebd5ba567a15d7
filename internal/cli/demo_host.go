package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/config"
)

// demoSettings are the user's settings on a fresh data folder, always on loopback and in the profile dev.
func (a *app) demoSettings(c *demoCommand) (config.Settings, error) {
	dir := c.Keep
	if dir == "" {
		parent, err := os.MkdirTemp("", "sallyport-demo-")
		if err != nil {
			return config.Settings{}, invalid("a temporary folder cannot be made: %v", err)
		}
		dir = filepath.Join(parent, "data")
	} else if err := emptyFolder(dir); err != nil {
		return config.Settings{}, err
	}
	return a.settings(
		config.Flag{Key: "data", Value: dir, Name: "--keep"},
		config.Flag{Key: "listen", Value: "127.0.0.1:0", Name: "demo"},
		config.Flag{Key: "profile", Value: string(config.ProfileDev), Name: "demo"},
		config.Flag{Key: "scripts_enabled", Value: "true", Name: "demo"},
		config.Flag{Key: "interpreters", Value: "auto", Name: "demo"},
	)
}

// emptyFolder accepts a folder that is absent or empty: the demo must not mix with somebody's data.
func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return invalid("--keep: %v", err)
	}
	return invalid("--keep: %s is not empty; name a new folder", dir)
}

// systemdRun is where systemd puts the program that gives a user a scope with controllers of its own.
const systemdRun = "/usr/bin/systemd-run"

// inOwnScope runs the demo once more inside a delegated scope, when an ordinary user's session lacks limits that systemd
// can give. done says that this happened.
func (a *app) inOwnScope(ctx context.Context) (done bool, err error) {
	if runtime.GOOS != "linux" || os.Geteuid() == 0 || a.env.RuntimeDir == "" {
		return false, nil
	}
	program, err := os.Executable()
	if _, missing := os.Stat(systemdRun); missing != nil || err != nil {
		return false, nil //nolint:nilerr // without either the demo goes on in the session it has
	}
	settings, err := a.settings()
	if err != nil {
		return true, err
	}
	executor, err := newExecutor(settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return true, err
	}
	found := executor.Capabilities(ctx)
	if err := closeExecutor(executor); err != nil {
		return true, err
	}
	if !found.Available || len(found.Missing) == 0 || !scopesWork(ctx) {
		return false, nil
	}
	words := append([]string{program}, a.process.Args...)
	code, err := runScoped(ctx, []*os.File{a.stdin, a.stdout, a.stderr}, append(words, "--delegated")...)
	switch {
	case err != nil:
		return true, &sallyport.Error{Op: "cli.demo", Code: sallyport.CodeInternal, Err: err}
	case code != 0:
		return true, reportedError{code}
	}
	return true, nil
}

// scopesWork tries a scope on something harmless: a session without a bus has none to give.
func scopesWork(ctx context.Context) bool {
	code, err := runScoped(ctx, []*os.File{nil, nil, nil}, "/bin/true")
	return err == nil && code == 0
}

// runScoped runs a command in a scope of its own and returns its exit code. The signals of the terminal reach it by
// themselves.
func runScoped(ctx context.Context, files []*os.File, command ...string) (int, error) {
	argv := append([]string{systemdRun, "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes", "--"}, command...)
	process, err := os.StartProcess(systemdRun, argv, &os.ProcAttr{Files: files})
	if err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = process.Signal(syscall.SIGTERM) })
	defer stop()
	state, err := process.Wait()
	if err != nil {
		return 0, err
	}
	return state.ExitCode(), nil
}
