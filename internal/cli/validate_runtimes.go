package cli

import (
	"context"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/runtimes"
	"github.com/sallyport-dev/sallyport/registry"
)

// runtimesFor says which runtime of the settings would serve a script: the named one, else the script's own, else that of its extension. It
// is nil when none is named and the settings have no runtimes, and then they need not be usable either.
func runtimesFor(ctx context.Context, a *app, name string) (registry.Runtimes, error) {
	settings, err := a.settings()
	if name == "" && (err != nil || len(settings.Runtimes) == 0 || settings.Executor == remote.Kind) {
		return nil, nil //nolint:nilerr // validate works where nothing is configured
	}
	if err != nil {
		return nil, err
	}
	store, err := runtimeStore(settings, runtimes.Limits{})
	if err != nil {
		return nil, err
	}
	rows := store.Resolve(ctx, settings.AllowList(hostInterpreters()))
	var named *sallyport.Interpreter
	if name != "" {
		row, err := runtimeNamed(ctx, settings, store, name)
		if err != nil {
			return nil, err
		}
		named = &row
	}
	known := map[string][]sallyport.Package{}
	return func(ctx context.Context, script sallyport.Component) (string, []sallyport.Package, bool) {
		row := named
		if row == nil {
			row = servingRow(settings, rows, script)
		}
		if row == nil {
			return "", nil, false
		}
		key := row.Root + "\x00" + row.Program
		packages, looked := known[key]
		if !looked {
			var err error
			if packages, err = runtimes.Packages(ctx, *row); err != nil {
				packages = nil // told as unknown
			}
			known[key] = packages
		}
		return row.Runtime, packages, packages != nil
	}, nil
}

// servingRow is the row of the allow-list for a script: by the name that it asks for, else the first for its extension.
func servingRow(settings config.Settings, rows []sallyport.Interpreter, script sallyport.Component) *sallyport.Interpreter {
	extension := strings.ToLower(strings.TrimPrefix(path.Ext(script.Path), "."))
	asked := ""
	if script.Script != nil {
		if _, described := settings.Runtimes[script.Script.Runtime]; described {
			asked = script.Script.Runtime
		}
	}
	for i, row := range rows {
		if row.Extension == extension && (asked == "" || row.Runtime == asked) {
			return &rows[i]
		}
	}
	return nil
}

// printNeeds writes what scripts need and their runtime does not have, in the form of problems. It changes no verdict.
func printNeeds(p *page, tree *registry.PathsTree, skill registry.ValidatedSkill) {
	for _, script := range skill.Needs {
		for _, need := range script.Packages {
			if sentence := need.Unmet(script.Runtime); sentence != "" {
				place := located(tree, skill.FilePath(script.Path))
				p.line("%s: %s: %s %s", p.bold(clean(place)), severityText(p, registry.SeverityWarning), clean(sentence), p.dim("[PACKAGE_"+strings.ToUpper(string(need.State))+"]"))
			}
		}
	}
}
