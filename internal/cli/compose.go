package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/all"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/executor/container"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/executor/unsafelocal"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/runtimes"
	"github.com/sallyport-dev/sallyport/server"
)

// compose describes the deployment of these settings with the executor of this binary.
func compose(ctx context.Context, settings config.Settings, logger *slog.Logger) (server.Config, sallyport.Executor, error) {
	executor, err := newExecutor(settings, logger)
	if err != nil {
		return server.Config{}, nil, err
	}
	cfg := settings.Server(config.Parts{
		Executor: executor, Found: interpretersFor(executor), Logger: logger, Version: Version(),
	})
	if cfg.Interpreters, err = resolveRuntimes(ctx, settings, cfg.Interpreters); err != nil {
		return server.Config{}, nil, errors.Join(err, closeExecutor(executor))
	}
	warnOfRuntimes(ctx, logger, executor, cfg.Interpreters)
	if executor.Kind() == bubblewrap.Kind || executor.Kind() == unsafelocal.Kind {
		cfg.Packages = runtimes.Packages // of this host; others have their own
	}
	return cfg, executor, nil
}

// runtimeStore is the store of unpacked images of these settings: below the folder that the sandbox keeps revisions in.
func runtimeStore(settings config.Settings, limits runtimes.Limits) (*runtimes.Store, error) {
	dir, err := bubblewrapConfig(settings, nil).State()
	if err != nil {
		return nil, invalid("there is no folder to keep runtimes in: name one with the setting state")
	}
	return runtimes.Open(dir, limits), nil
}

// resolveRuntimes looks for the roots of the rows, and says of those that cannot serve why.
func resolveRuntimes(ctx context.Context, settings config.Settings, rows []sallyport.Interpreter) ([]sallyport.Interpreter, error) {
	if len(settings.Runtimes) == 0 {
		return rows, nil
	}
	store, err := runtimeStore(settings, runtimes.Limits{})
	if err != nil {
		return nil, err
	}
	return store.Resolve(ctx, rows), nil
}

// warnOfRuntimes logs what a run would be refused with, once for each runtime. An executor that starts containers needs no root.
func warnOfRuntimes(ctx context.Context, logger *slog.Logger, executor sallyport.Executor, rows []sallyport.Interpreter) {
	told := map[string]bool{}
	for _, row := range rows {
		if row.Fault != "" && executor.Kind() == bubblewrap.Kind && !told[row.Runtime] {
			told[row.Runtime] = true
			logger.WarnContext(ctx, "a runtime cannot serve", "runtime", row.Runtime, "reason", row.Fault)
		}
	}
}

// newExecutor makes the executor that the settings name. One that another was demanded instead of does not serve.
func newExecutor(settings config.Settings, logger *slog.Logger) (sallyport.Executor, error) {
	cfg, err := executorConfig(settings, logger)
	if err != nil {
		return nil, err
	}
	executor, err := all.New(settings.Executor, cfg)
	if err != nil {
		return nil, err
	}
	if demanded := settings.RequiredExecutor; demanded != "" && demanded != executor.Kind() {
		return nil, errors.Join(invalid("required_executor demands %s and the executor is %s: set executor, or take the demand back",
			demanded, executor.Kind()), closeExecutor(executor))
	}
	return executor, nil
}

func bubblewrapConfig(settings config.Settings, logger *slog.Logger) bubblewrap.Config {
	return bubblewrap.Config{
		Program: settings.Bubblewrap, StateDir: settings.StateDir, Profile: string(settings.SandboxProfile), Logger: logger,
	}
}

// executorConfig describes every kind of executor as the settings say.
func executorConfig(settings config.Settings, logger *slog.Logger) (all.Config, error) {
	runners, err := remoteConfig(settings, logger)
	return all.Config{
		Bubblewrap: bubblewrapConfig(settings, logger), Container: containerConfig(settings, logger), Remote: runners,
		UnsafeLocal: unsafelocal.Config{AcceptNoIsolation: settings.Accepts(config.RiskUnsafeLocal)},
	}, err
}

// containerConfig names this server to the engine by its machine and data folder, which stay the same when it starts again.
func containerConfig(settings config.Settings, logger *slog.Logger) container.Config {
	from := settings.Container
	host, _ := os.Hostname() // without one, two machines with one engine and one data folder's name could not be told apart
	owner := sallyport.DigestOf([]byte(host + "\x00" + settings.DataDir)).Hex()[:16]
	return container.Config{
		Socket: from.Socket, Images: from.Images, RequireDigest: from.RequireDigest != nil && *from.RequireDigest,
		Owner: owner, Profile: string(settings.SandboxProfile), Logger: logger,
	}
}

// remoteConfig reads the files that the settings of the executor remote name.
func remoteConfig(settings config.Settings, logger *slog.Logger) (remote.Config, error) {
	from := settings.Remote
	cfg := remote.Config{Runners: from.Runners, Layers: from.Layers, Features: from.Features, Logger: logger}
	if from.KeyFile != "" {
		keys, err := readKeys("remote.key_file", from.KeyFile)
		if err != nil {
			return cfg, err
		}
		if len(keys) != 1 {
			return cfg, invalid("remote.key_file: %s holds %d keys, want one", from.KeyFile, len(keys))
		}
		cfg.Key = keys[0]
	}
	if from.CA == "" && from.Cert == "" {
		return cfg, nil
	}
	cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if from.CA != "" {
		pool, err := authorities("remote.ca", from.CA)
		if err != nil {
			return cfg, err
		}
		cfg.TLS.RootCAs = pool
	}
	if from.Cert != "" {
		pair, err := tls.LoadX509KeyPair(from.Cert, from.Key)
		if err != nil {
			return cfg, invalid("remote.cert: the certificate and key cannot be used: %v", err)
		}
		cfg.TLS.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// maxKeyFile bounds a file of keys or certificates.
const maxKeyFile = 1 << 20

// readKeys reads bearer keys, one a line; lines that are empty or begin with # say nothing.
func readKeys(setting, path string) ([]sallyport.Secret, error) {
	data, err := readBounded(setting, path)
	if err != nil {
		return nil, err
	}
	var keys []sallyport.Secret
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys = append(keys, sallyport.Secret(line))
		}
	}
	return keys, nil
}

func authorities(setting, path string) (*x509.CertPool, error) {
	data, err := readBounded(setting, path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, invalid("%s: %s holds no certificate in PEM", setting, path)
	}
	return pool, nil
}

func readBounded(setting, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxKeyFile) {
		err = errors.New("it is no ordinary file")
	}
	if err != nil {
		return nil, invalid("%s: %s cannot be read: %v", setting, path, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, invalid("%s: %s cannot be read: %v", setting, path, err)
	}
	return data, nil
}

// hostInterpreters are the interpreters of this host that a sandbox can see.
func hostInterpreters() []sallyport.Interpreter { return bubblewrap.FindInterpreters() }

// interpretersFor are the rows that the word auto stands for: this host's programs, or, where scripts run elsewhere, the
// names that images and every runner of ours know them by.
func interpretersFor(executor sallyport.Executor) []sallyport.Interpreter {
	switch executor.Kind() {
	case container.Kind:
		return container.Interpreters()
	case remote.Kind:
		return remote.Interpreters()
	}
	return hostInterpreters()
}

// closeExecutor ends an executor that has something to end.
func closeExecutor(executor sallyport.Executor) error {
	if closer, ok := executor.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// newLogger logs to w as the settings say.
func newLogger(w io.Writer, settings config.Settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: settings.Level()}
	if settings.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// warn logs what looked like a mistake in the settings.
func warn(ctx context.Context, logger *slog.Logger, settings config.Settings) {
	for _, warning := range settings.Warnings {
		logger.WarnContext(ctx, "a setting was not used", "reason", warning)
	}
}
