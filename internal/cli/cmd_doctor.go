package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/executor/container"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/config"
)

type doctorCommand struct{}

// Help says what is looked at.
func (*doctorCommand) Help() string {
	return "The checks run a real sandbox on this machine and look at what it enforced; nothing is read from version numbers. " +
		"With --url, the server says what it can enforce. The exit code is 17 when scripts would not run."
}

func (*doctorCommand) kind() string { return "doctor" }

// diagnosis is what doctor found. Runs says whether a script would get past the isolation gate under these settings.
type diagnosis struct {
	Runs      bool               `json:"runs"`
	Isolation config.Isolation   `json:"isolation,omitempty"`
	Checks    []bubblewrap.Check `json:"checks"`
}

func (d *doctorCommand) run(ctx context.Context, a *app) error {
	found, err := d.look(ctx, a)
	if err != nil {
		return err
	}
	envelope := sallyport.Success("doctor", "", found)
	if !found.Runs {
		envelope.Error = sallyport.Public(sallyport.Errorf("cli.doctor", sallyport.CodeSandboxUnavailable,
			"scripts do not run here until what failed is mended"))
	}
	if err := showOwn(a, envelope, printDiagnosis); err != nil {
		return err
	}
	if !found.Runs {
		return reportedError{exitCode(&sallyport.Error{Code: sallyport.CodeSandboxUnavailable})}
	}
	return nil
}

func (d *doctorCommand) look(ctx context.Context, a *app) (diagnosis, error) {
	if a.args.URL != "" || a.args.Data == "" && a.env.URL != "" {
		return d.askServer(ctx, a)
	}
	settings, err := a.settings()
	if err != nil {
		return diagnosis{}, err
	}
	checks, err := probe(ctx, settings)
	if err != nil {
		return diagnosis{}, err
	}
	found := diagnosis{Runs: true, Isolation: settings.Isolation}
	for _, check := range checks {
		switch check.Result {
		case bubblewrap.CheckPass, bubblewrap.CheckAdvice:
		case bubblewrap.CheckFail:
			found.Runs = false
		case bubblewrap.CheckDegraded:
			found.Runs = found.Runs && settings.Isolation == config.IsolationDegrade
		}
	}
	others := []bubblewrap.Check{checkInterpreters(settings), checkFolder(settings)}
	for _, check := range others {
		found.Runs = found.Runs && check.Result != bubblewrap.CheckFail
	}
	found.Checks = append(checks, others...)
	return found, ctx.Err()
}

// probe tries out the executor of these settings.
func probe(ctx context.Context, settings config.Settings) ([]bubblewrap.Check, error) {
	executor, err := newExecutor(settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	var checks []bubblewrap.Check
	if prober, ok := executor.(interface {
		Probe(ctx context.Context) []bubblewrap.Check
	}); ok {
		checks = prober.Probe(ctx)
	} else {
		checks = capabilityChecks(executor.Capabilities(ctx))
	}
	started, err := runtimeChecks(ctx, settings, executor)
	return append(checks, started...), errors.Join(err, closeExecutor(executor))
}

// capabilityChecks turns what an executor says about itself into checks.
func capabilityChecks(found sallyport.Capabilities) []bubblewrap.Check {
	result := bubblewrap.CheckPass
	if !found.Available {
		result = bubblewrap.CheckFail
	}
	checks := []bubblewrap.Check{{Name: "sandbox", Result: result, Detail: found.Reason, Remedy: found.Remedy}}
	for _, layer := range found.Layers {
		checks = append(checks, bubblewrap.Check{Name: string(layer), Result: bubblewrap.CheckPass, Detail: "enforced"})
	}
	for _, layer := range found.Missing {
		checks = append(checks, bubblewrap.Check{Name: string(layer), Result: bubblewrap.CheckDegraded, Detail: "missing"})
	}
	return checks
}

// askServer turns what a server says about itself into checks.
func (*doctorCommand) askServer(ctx context.Context, a *app) (diagnosis, error) {
	found := diagnosis{}
	err := a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Capabilities(ctx)
		if err != nil {
			return err
		}
		found.Runs = envelope.Data.Executor.Available
		found.Checks = capabilityChecks(envelope.Data.Executor)
		return nil
	})
	return found, err
}

func checkInterpreters(settings config.Settings) bubblewrap.Check {
	check := bubblewrap.Check{Name: "interpreters", Result: bubblewrap.CheckPass}
	found, elsewhere := bubblewrap.FindInterpreters(), true // then the programs are in images, or on the runners
	switch settings.Executor {
	case container.Kind:
		found = container.Interpreters()
	case remote.Kind:
		found = remote.Interpreters()
	default:
		elsewhere = false
	}
	allowed := settings.AllowList(found)
	var extensions []string
	for _, row := range allowed {
		if !slices.Contains(extensions, row.Extension) {
			extensions = append(extensions, row.Extension)
		}
		if row.Root != "" || row.Image != "" {
			continue // it is started for real, see runtimeChecks
		}
		if info, err := os.Stat(row.Program); !elsewhere && (err != nil || !info.Mode().IsRegular()) {
			check.Result, check.Detail = bubblewrap.CheckFail, row.Program+" is not there"
			check.Remedy = "install it, or take " + row.Extension + " out of the setting interpreters"
			return check
		}
	}
	if len(allowed) == 0 {
		check.Result, check.Detail = bubblewrap.CheckFail, "no interpreter is allowed"
		check.Remedy = "install python3, or list programs in the setting interpreters"
		return check
	}
	check.Detail = "scripts may be " + joinWords(extensions)
	return check
}

// checkFolder looks at the data folder without opening it, so it works beside its owner.
func checkFolder(settings config.Settings) bubblewrap.Check {
	check := bubblewrap.Check{Name: "data_folder", Result: bubblewrap.CheckPass, Detail: settings.DataDir}
	info, err := os.Stat(settings.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		check.Detail += " will be made"
		err = writable(parentOf(settings.DataDir))
	case err != nil || !info.IsDir():
		check.Result, check.Remedy = bubblewrap.CheckFail, "name a folder of your own with --data"
		check.Detail += " cannot be used as a folder"
	case info.Mode().Perm()&0o077 != 0:
		check.Result, check.Remedy = bubblewrap.CheckFail, "chmod 0700 "+settings.DataDir
		check.Detail += fmt.Sprintf(" is open to others (mode %04o)", info.Mode().Perm())
	default:
		err = writable(settings.DataDir)
	}
	if err != nil && check.Result == bubblewrap.CheckPass {
		check.Result, check.Remedy = bubblewrap.CheckFail, "free space there, make it writable, or name another folder with --data"
		check.Detail = settings.DataDir + " cannot be written: " + err.Error()
	}
	return check
}

// parentOf is the nearest folder above dir that exists.
func parentOf(dir string) string {
	for {
		parent := filepath.Dir(dir)
		if info, err := os.Stat(parent); parent == dir || err == nil && info.IsDir() {
			return parent
		}
		dir = parent
	}
}

// writable tries what every run needs of the data folder: to put something on its disk.
func writable(dir string) error {
	const page = 4 << 10
	file, err := os.CreateTemp(dir, ".sallyport-doctor-")
	if err == nil {
		_, err = file.Write(make([]byte, page))
		err = errors.Join(err, file.Sync(), file.Close(), os.Remove(file.Name()))
	}
	if fault, ok := errors.AsType[syscall.Errno](err); ok {
		return fault // the name of a file that is gone says nothing
	}
	return err
}

// together joins neighbours that are missing for the same reason.
func together(checks []bubblewrap.Check) []bubblewrap.Check {
	var out []bubblewrap.Check
	for _, check := range checks {
		if n := len(out) - 1; n >= 0 && check.Result != bubblewrap.CheckPass && check.Detail != "" &&
			out[n].Result == check.Result && out[n].Detail == check.Detail && out[n].Remedy == check.Remedy {
			out[n].Name += ", " + check.Name
			continue
		}
		out = append(out, check)
	}
	return out
}

func printDiagnosis(p *page, found diagnosis) {
	checks := together(found.Checks)
	width := 0
	for _, check := range checks {
		if check.Result == bubblewrap.CheckPass {
			width = max(width, len(check.Name))
		}
	}
	for _, check := range checks {
		mark := p.red("✗")
		switch check.Result {
		case bubblewrap.CheckPass:
			mark = p.green("✓")
		case bubblewrap.CheckDegraded, bubblewrap.CheckAdvice:
			mark = p.yellow("!")
		case bubblewrap.CheckFail:
		}
		p.line("%s %s  %s", mark, pad(check.Name, width), clean(check.Detail))
		if check.Remedy != "" && check.Result != bubblewrap.CheckPass {
			p.line("  %s %s", p.bold("→"), clean(check.Remedy))
		}
	}
	if found.Runs {
		p.line("%s", p.green("scripts run here"))
	} else {
		p.line("%s", p.red("scripts do not run here"))
	}
}
