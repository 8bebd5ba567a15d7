package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/runner"
)

type runnerCommand struct {
	Listen  string `help:"Take work on this address (default: 127.0.0.1:8788)." placeholder:"HOST:PORT"`
	KeyFile string `help:"Read the bearer keys that servers send, one a line, from this file." placeholder:"FILE"`
}

// Help says who may send work.
func (*runnerCommand) Help() string {
	return "A server sends work with executor: remote. Whoever holds a key of the runner decides what it runs: gates, grants and the " +
		"audit trail are the server's. The settings runner.* of docs/config.md say the rest. SIGTERM lets runs end first."
}

func (*runnerCommand) kind() string { return "runner" }

func (c *runnerCommand) flags() []config.Flag {
	var flags []config.Flag
	for _, f := range []config.Flag{
		{Key: "runner.listen", Value: c.Listen, Name: "--listen"}, {Key: "runner.key_file", Value: c.KeyFile, Name: "--key-file"},
	} {
		if f.Value != "" {
			flags = append(flags, f)
		}
	}
	return flags
}

// running is what the runner prints when it is ready.
type running struct {
	URL      string            `json:"url"`
	Executor string            `json:"executor"`
	Slots    int               `json:"slots"`
	Runtimes []string          `json:"runtimes"`
	Sandbox  servingSandbox    `json:"sandbox"`
	Layers   []sallyport.Layer `json:"layers"`
}

func (c *runnerCommand) run(ctx context.Context, a *app) error {
	settings, err := a.settings(c.flags()...)
	if err != nil {
		return err
	}
	if settings.Executor == remote.Kind {
		return invalid("a runner carries out scripts itself: take executor: remote out of its settings")
	}
	logger := newLogger(a.stderr, settings)
	warn(ctx, logger, settings)
	executor, err := newExecutor(settings, logger)
	if err != nil {
		return err
	}
	return errors.Join(c.serve(ctx, a, settings, executor, logger), closeExecutor(executor))
}

func (c *runnerCommand) serve(ctx context.Context, a *app, settings config.Settings, executor sallyport.Executor, logger *slog.Logger) error {
	cfg, err := runnerConfig(ctx, settings, executor, logger)
	if err != nil {
		return err
	}
	r, err := runner.New(cfg)
	if err != nil {
		return err
	}
	var plain net.ListenConfig
	listener, err := plain.Listen(ctx, "tcp", cmp.Or(settings.Runner.Listen, config.DefaultRunnerListen))
	if err != nil {
		return invalid("runner.listen: %v", err)
	}
	scheme := "http"
	if cfg.TLS != nil {
		scheme = "https"
	}
	found := executor.Capabilities(ctx)
	ready := running{
		URL: scheme + "://" + listener.Addr().String(), Executor: executor.Kind(), Slots: r.Slots(),
		Runtimes: slices.Sorted(maps.Keys(cfg.Runtimes)), Layers: found.Layers,
		Sandbox: servingSandbox{Available: found.Available, Missing: found.Missing, Reason: found.Reason, Remedy: found.Remedy},
	}
	if err := showOwn(a, sallyport.Success("runner", "", ready), printRunning); err != nil {
		return errors.Join(err, listener.Close())
	}
	return r.Serve(ctx, listener)
}

// runnerConfig describes the runner of these settings.
func runnerConfig(ctx context.Context, settings config.Settings, executor sallyport.Executor, logger *slog.Logger) (runner.Config, error) {
	described := settings.Server(config.Parts{})
	tops := settings.Limits
	tops.Timeout = settings.MaxTimeout // the default of a caller is no bound
	cfg := runner.Config{
		Executor: executor, Runtimes: settings.RunnerRuntimes(interpretersFor(executor)), Slots: settings.Runner.Slots,
		RequiredLayers: described.RequiredLayers, Tops: tops, CacheBytes: settings.Runner.CacheBytes,
		Patience: settings.LongestRun(), Logger: logger,
	}
	for name, row := range cfg.Runtimes {
		rows, err := resolveRuntimes(ctx, settings, []sallyport.Interpreter{row})
		if err != nil {
			return cfg, err
		}
		cfg.Runtimes[name] = rows[0]
		warnOfRuntimes(ctx, logger, executor, rows)
	}
	from := settings.Runner
	if from.KeyFile != "" {
		keys, err := readKeys("runner.key_file", from.KeyFile)
		if err != nil {
			return cfg, err
		}
		cfg.Keys = keys
	}
	if from.Cert == "" {
		return cfg, nil
	}
	pair, err := tls.LoadX509KeyPair(from.Cert, from.Key)
	if err != nil {
		return cfg, invalid("runner.cert: the certificate and key cannot be used: %v", err)
	}
	cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if from.ClientCA != "" {
		pool, err := authorities("runner.client_ca", from.ClientCA)
		if err != nil {
			return cfg, err
		}
		cfg.TLS.ClientCAs, cfg.TLS.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return cfg, nil
}

func printRunning(p *page, r running) {
	p.line("%s on %s", p.bold("The runner takes work"), p.bold(r.URL))
	runtimes := joinWords(r.Runtimes)
	if runtimes == "" {
		runtimes = "none, so nothing runs (set interpreters or runner.runtimes)"
	}
	p.pairs([][2]string{
		{"executor", r.Executor},
		{"runtimes", clean(runtimes)},
		{"sandbox", strings.TrimSpace(sandboxText(p, r.Sandbox))},
	}...)
}
