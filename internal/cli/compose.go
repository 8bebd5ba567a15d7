package cli

import (
	"context"
	"io"
	"log/slog"

	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/server"
)

// compose describes the deployment of these settings with the executor of this binary.
func compose(settings config.Settings, logger *slog.Logger) (server.Config, io.Closer, error) {
	executor, err := newExecutor(settings, logger)
	if err != nil {
		return server.Config{}, nil, err
	}
	return settings.Server(config.Parts{
		Executor: executor, Found: bubblewrap.FindInterpreters(), Logger: logger, Version: Version(),
	}), executor, nil
}

func newExecutor(settings config.Settings, logger *slog.Logger) (*bubblewrap.Executor, error) {
	return bubblewrap.New(bubblewrap.Config{Program: settings.Bubblewrap, StateDir: settings.StateDir, Logger: logger})
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
