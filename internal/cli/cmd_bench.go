package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/server"
)

type benchCommand struct {
	Rounds      int `help:"Starts to measure of each interpreter." default:"40" placeholder:"N"`
	Concurrency int `help:"How many are under way at once." default:"1" placeholder:"N"`
}

// Help says what is compared with what.
func (*benchCommand) Help() string {
	return "For each interpreter that these settings allow, a script that prints one word is run as any script is - gates, audit entry on " +
		"disk, sandbox, record - and, in turns with it, started as a plain process of this machine. The ratio of the two is what to " +
		"compare between machines and versions; times are not. It works in a folder of its own, which is gone afterwards."
}

func (*benchCommand) kind() string { return "bench" }

// The bounds of what may be asked for.
const (
	maxBenchRounds      = 10_000
	maxBenchConcurrency = 256
	benchWarmup         = 3
)

// benchReport is what bench prints with --json. Times are milliseconds.
type benchReport struct {
	Executor    string               `json:"executor"`
	Layers      []sallyport.Layer    `json:"layers"`
	Missing     []sallyport.Layer    `json:"missing,omitempty"`
	CPUs        int                  `json:"cpus"`
	Rounds      int                  `json:"rounds"`
	Concurrency int                  `json:"concurrency"`
	Runtimes    []benchOfInterpreter `json:"interpreters"`
}

type benchOfInterpreter struct {
	Runtime string `json:"runtime"`
	// Governed is the whole call; Plain the same program without Sallyport, absent where it is not on this machine.
	Governed percentiles  `json:"governed_ms"`
	Plain    *percentiles `json:"plain_ms,omitempty"`
	// Ratio is that of the medians.
	Ratio float64 `json:"ratio,omitempty"`
}

type percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func (c *benchCommand) run(ctx context.Context, a *app) (err error) {
	if a.args.URL != "" || a.args.Data != "" {
		return badUsage("bench brings its own data folder; leave out --data and --url")
	}
	if c.Rounds < 1 || c.Rounds > maxBenchRounds {
		return badUsage(fmt.Sprintf("--rounds is 1 to %d", maxBenchRounds))
	}
	if c.Concurrency < 1 || c.Concurrency > maxBenchConcurrency {
		return badUsage(fmt.Sprintf("--concurrency is 1 to %d", maxBenchConcurrency))
	}
	folder, err := os.MkdirTemp("", "sallyport-bench-")
	if err != nil {
		return invalid("a temporary folder cannot be made: %v", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	settings, err := a.benchSettings(filepath.Join(folder, "data"))
	if err != nil {
		return err
	}
	o, err := a.own(ctx, settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	b := &bench{command: c, app: a, owner: o, folder: folder}
	if err := errors.Join(b.measure(ctx), o.close(ctx)); err != nil {
		return err
	}
	return showOwn(a, sallyport.Success("bench", "", b.report), printBench)
}

// benchSettings are the user's settings on a fresh data folder, without the quotas that would refuse so many runs.
func (a *app) benchSettings(dir string) (config.Settings, error) {
	settings, err := a.settings(
		config.Flag{Key: "data", Value: dir, Name: "bench"},
		config.Flag{Key: "profile", Value: string(config.ProfileDev), Name: "bench"},
		config.Flag{Key: "scripts_enabled", Value: "true", Name: "bench"},
	)
	settings.Quotas = server.Quotas{}
	return settings, err
}

// bench is one measurement.
type bench struct {
	command *benchCommand
	app     *app
	owner   *owner
	folder  string
	report  benchReport
}

// benchScripts print one word in each language that has its own way to.
var benchScripts = map[string]string{ //nolint:gochecknoglobals // a constant table
	"py": "print('ready')\n", "sh": "echo ready\n", "bash": "echo ready\n", "js": "console.log('ready')\n", "mjs": "console.log('ready')\n",
	"cjs": "console.log('ready')\n",
}

func (b *bench) measure(ctx context.Context) error {
	operator, err := client.New(client.Config{URL: localURL, Transport: client.InProcess(b.owner.local)})
	if err != nil {
		return err
	}
	capabilities := b.owner.executor.Capabilities(ctx)
	b.report = benchReport{
		Executor: b.owner.executor.Kind(), Layers: capabilities.Layers, Missing: capabilities.Missing, CPUs: runtime.NumCPU(),
		Rounds: b.command.Rounds, Concurrency: b.command.Concurrency, Runtimes: []benchOfInterpreter{},
	}
	chosen := b.interpreters()
	if len(chosen) == 0 {
		return invalid("none of the interpreters that the settings allow can be measured: allow py, sh or js")
	}
	ref, err := b.prepare(ctx, operator, chosen)
	if err != nil {
		return err
	}
	for _, row := range chosen {
		b.app.progress("measuring %s", row.Runtime)
		found, err := b.compare(ctx, operator, ref, row)
		if err != nil {
			return err
		}
		b.report.Runtimes = append(b.report.Runtimes, found)
	}
	return nil
}

// interpreters are the first row of each runtime that there is a script for.
func (b *bench) interpreters() []sallyport.Interpreter {
	var chosen []sallyport.Interpreter
	for _, row := range b.owner.interpreters {
		// Behind the row that serves an extension are those that a script must ask for.
		known := func(other sallyport.Interpreter) bool {
			return other.Runtime == row.Runtime || other.Extension == row.Extension
		}
		if benchScripts[row.Extension] != "" && !slices.ContainsFunc(chosen, known) {
			chosen = append(chosen, row)
		}
	}
	return chosen
}

func benchScript(row sallyport.Interpreter) string { return "scripts/ready." + row.Extension }

// prepare saves a skill with the scripts and grants it.
func (b *bench) prepare(ctx context.Context, operator *client.Client, rows []sallyport.Interpreter) (sallyport.SkillRef, error) {
	ref := sallyport.SkillRef{Slug: "bench"}
	skill := filepath.Join(b.folder, "bench")
	files := map[string]string{"SKILL.md": "---\nname: bench\ndescription: Prints one word in each language.\n---\n\nFor measuring.\n"}
	for _, row := range rows {
		files[benchScript(row)] = benchScripts[row.Extension]
	}
	if err := writeFiles(b.folder, "bench", files); err != nil {
		return ref, &sallyport.Error{Op: "cli.bench", Code: sallyport.CodeInternal, Err: err}
	}
	var archive bytes.Buffer
	if err := registry.WriteTar(ctx, &archive, []string{skill}); err != nil {
		return ref, err
	}
	if _, err := operator.Import(ctx, &archive, registry.ImportOptions{Publish: true}); err != nil {
		return ref, err
	}
	view, err := operator.Skill(ctx, ref)
	if err != nil {
		return ref, err
	}
	_, err = operator.IssueGrant(ctx, access.IssueRequest{Ref: ref, RevisionID: view.Data.Published.ID, ExpectedDigest: view.Data.Published.Digest})
	return ref, err
}

// writeFiles makes the folder name in parent with the files.
func writeFiles(parent, name string, files map[string]string) error {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it was read from
	for path, content := range files {
		at := filepath.Join(name, path)
		if err := errors.Join(root.MkdirAll(filepath.Dir(at), 0o700), root.WriteFile(at, []byte(content), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// compare measures one interpreter: the call and the plain process in turns, so that whatever else the machine does hits both.
func (b *bench) compare(ctx context.Context, operator *client.Client, ref sallyport.SkillRef, row sallyport.Interpreter) (benchOfInterpreter, error) {
	governed := func() error {
		done, err := operator.Run(ctx, client.RunRequest{Ref: ref, ScriptPath: benchScript(row)})
		if err == nil {
			err = done.Data.Err()
		}
		if err == nil && done.Data.Stdout != "ready\n" {
			err = sallyport.Errorf("cli.bench", sallyport.CodeInternal, "the %s script printed %q", row.Runtime, done.Data.Stdout)
		}
		return err
	}
	script := filepath.Join(b.folder, "bench", benchScript(row))
	info, err := os.Stat(row.Program)
	local := err == nil && info.Mode().IsRegular() && row.Root == "" && filepath.IsAbs(row.Program)
	plain := func() error {
		out, err := exec.CommandContext(ctx, row.Program, script).Output()
		if err == nil && string(out) != "ready\n" {
			err = fmt.Errorf("it printed %q", out)
		}
		if err != nil {
			return sallyport.Errorf("cli.bench", sallyport.CodeInternal, "%s cannot be started without a sandbox: %v", row.Program, err)
		}
		return nil
	}
	calls := []func() error{governed}
	if local {
		calls = append(calls, plain)
	}
	for range benchWarmup {
		for _, call := range calls {
			if err := call(); err != nil {
				return benchOfInterpreter{}, err
			}
		}
	}
	took, err := b.rounds(calls)
	if err != nil {
		return benchOfInterpreter{}, err
	}
	found := benchOfInterpreter{Runtime: row.Runtime, Governed: percentilesOf(took[0])}
	if local {
		p := percentilesOf(took[1])
		found.Plain, found.Ratio = &p, float64(median(took[0]))/float64(median(took[1]))
	}
	return found, nil
}

// rounds calls each of calls in turn, by as many goroutines as were asked for, and returns how long each took. The first fault ends
// it.
func (b *bench) rounds(calls []func() error) ([][]time.Duration, error) {
	var (
		mu    sync.Mutex // guards what follows
		took  = make([][]time.Duration, len(calls))
		left  = b.command.Rounds
		fault error
		group sync.WaitGroup
	)
	next := func() bool {
		mu.Lock()
		defer mu.Unlock()
		left--
		return left >= 0 && fault == nil
	}
	for range b.command.Concurrency {
		group.Go(func() {
			for next() {
				for i, call := range calls {
					began := time.Now()
					err := call()
					elapsed := time.Since(began)
					mu.Lock()
					took[i] = append(took[i], elapsed)
					fault = errors.Join(fault, err)
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	return took, fault
}

// at is the value below which the given hundredths of the sorted values lie.
func at(sorted []time.Duration, hundredths int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*hundredths/100)]
}

func median(took []time.Duration) time.Duration { return at(slices.Sorted(slices.Values(took)), 50) }

func percentilesOf(took []time.Duration) percentiles {
	sorted := slices.Sorted(slices.Values(took))
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return percentiles{P50: ms(at(sorted, 50)), P95: ms(at(sorted, 95)), P99: ms(at(sorted, 99)), Max: ms(sorted[len(sorted)-1])}
}

func printBench(p *page, r benchReport) {
	p.line("%s, %s on %s, %s at once", p.bold(r.Executor), plural(r.Rounds, "round", "rounds"), plural(r.CPUs, "processor", "processors"),
		itoa(int64(r.Concurrency)))
	if len(r.Missing) > 0 {
		p.line("%s %s", p.yellow("without"), layers(r.Missing))
	}
	row := func(name, what string, ms percentiles, ratio string) []string {
		cells := []string{name, what}
		for _, value := range []float64{ms.P50, ms.P95, ms.P99, ms.Max} {
			cells = append(cells, fmt.Sprintf("%.1f", value))
		}
		return append(cells, ratio)
	}
	var rows [][]string
	for _, found := range r.Runtimes {
		ratio := ""
		if found.Plain != nil {
			ratio = fmt.Sprintf("%.2fx", found.Ratio)
		}
		rows = append(rows, row(found.Runtime, "governed run", found.Governed, ratio))
		if found.Plain != nil {
			rows = append(rows, row("", "plain process", *found.Plain, ""))
		}
	}
	p.table([]string{"runtime", "what", "p50 ms", "p95 ms", "p99 ms", "max ms", "ratio"}, rows)
}
