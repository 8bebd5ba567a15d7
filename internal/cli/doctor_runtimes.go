package cli

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/runtimes"
)

// runtimeChecks starts the interpreter of every runtime of the settings inside of a real sandbox, with a script that does nothing.
func runtimeChecks(ctx context.Context, settings config.Settings, executor sallyport.Executor) ([]bubblewrap.Check, error) {
	if len(settings.Runtimes) == 0 || executor.Kind() == remote.Kind {
		return nil, nil // with runners, they have the runtimes
	}
	store, err := runtimeStore(settings, runtimes.Limits{})
	if err != nil {
		return nil, err
	}
	features := executor.Capabilities(ctx).Features
	var checks []bubblewrap.Check
	for _, name := range slices.Sorted(maps.Keys(settings.Runtimes)) {
		row := store.Resolve(ctx, []sallyport.Interpreter{settings.Interpreter(name)})[0]
		checks = append(checks, runtimeCheck(ctx, executor, features, store, row))
	}
	return checks, nil
}

func runtimeCheck(ctx context.Context, executor sallyport.Executor, features []sallyport.Feature, store *runtimes.Store, row sallyport.Interpreter) bubblewrap.Check {
	check := bubblewrap.Check{Name: "runtime_" + row.Runtime, Result: bubblewrap.CheckFail}
	container := row.Image != "" && slices.Contains(features, sallyport.FeatureImages)
	switch {
	case container || row.Root == "":
	case !slices.Contains(features, sallyport.FeatureRoots):
		check.Detail = "the executor " + executor.Kind() + " can use the host's own programs only"
		check.Remedy = "take " + row.Runtime + " out of runtimes, or use the executor bubblewrap"
		return check
	case row.Fault != "":
		check.Detail, check.Remedy = row.Fault, faultRemedy(store, row)
		if err := runtimes.Reachable(row.Root); err != nil && (row.Image == "" || unpacked(store, row)) {
			check.Detail = err.Error() // for an operator, with the path
		}
		return check
	}
	began := time.Now()
	result, err := executor.Execute(ctx, emptyRun(row))
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err != nil:
		check.Detail = "it was not started: " + err.Error()
	case result.StartError != "":
		check.Detail = row.Program + " was not started: " + result.StartError
	case result.ExitCode == nil || *result.ExitCode != 0:
		check.Detail = row.Program + " failed with a script that does nothing: " + cut(string(result.Stderr), 200)
	default:
		check.Result, check.Detail = bubblewrap.CheckPass, row.Program+" started in the sandbox in "+took.String()
		if row.Digest != "" {
			check.Detail += ", from " + row.Digest
		}
		return check
	}
	check.Remedy = "correct program in runtimes, or build it with what the program loads (docs/runtimes.md)"
	return check
}

func unpacked(store *runtimes.Store, row sallyport.Interpreter) bool {
	_, err := store.Describe(row.Digest)
	return err == nil
}

// faultRemedy says what makes a root usable.
func faultRemedy(store *runtimes.Store, row sallyport.Interpreter) string {
	switch {
	case row.Image != "" && !unpacked(store, row):
		return "sallyport runtime pull " + row.Runtime
	case runtimes.Reachable(row.Root) != nil:
		return "give the root folder to root or to the server's user alone, and let others pass the folders above it (chmod o+x)"
	case row.Image != "":
		return "sallyport runtime remove " + row.Runtime + " --force, then sallyport runtime pull " + row.Runtime
	default:
		return "correct program in runtimes (docs/runtimes.md)"
	}
}

// emptyRun is a run of a script that does nothing in any language.
func emptyRun(row sallyport.Interpreter) sallyport.ExecRequest {
	const script = "scripts/nothing"
	sum := sallyport.DigestOf(nil).Hex()
	limits := sallyport.DefaultLimits()
	limits.Timeout = 20 * time.Second
	return sallyport.ExecRequest{
		ExecutionID: sallyport.ExecutionID("doctor-" + strconv.FormatInt(time.Now().UnixNano(), 36)), TenantID: "doctor", Slug: "doctor",
		Digest: sallyport.DigestOf(nil), ScriptPath: script, Interpreter: row, Content: []byte{}, ContentSHA256: sum,
		Files:  []sallyport.Component{{Path: script, Kind: sallyport.KindScript, SHA256: sum, Content: []byte{}}},
		Limits: limits, Grace: sallyport.DefaultGrace,
	}
}
