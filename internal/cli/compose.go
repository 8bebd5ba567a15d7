package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/all"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/server"
)

// compose describes the deployment of these settings with the executor of this binary.
func compose(settings config.Settings, logger *slog.Logger) (server.Config, sallyport.Executor, error) {
	executor, err := newExecutor(settings, logger)
	if err != nil {
		return server.Config{}, nil, err
	}
	return settings.Server(config.Parts{
		Executor: executor, Found: bubblewrap.FindInterpreters(), Logger: logger, Version: Version(),
	}), executor, nil
}

// newExecutor makes the executor that the settings name. One that another was demanded instead of does not serve.
func newExecutor(settings config.Settings, logger *slog.Logger) (sallyport.Executor, error) {
	executor, err := all.New(settings.Executor, all.Config{Bubblewrap: bubblewrapConfig(settings, logger)})
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
	return bubblewrap.Config{Program: settings.Bubblewrap, StateDir: settings.StateDir, Logger: logger}
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
