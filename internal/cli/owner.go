package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/server"
)

// An owner is this process as the one that owns a data folder. Other processes reach it through the socket.
type owner struct {
	server       *server.Server
	executor     sallyport.Executor
	interpreters []sallyport.Interpreter // that may run
	// local serves this process and, through the socket, others; calls counts those that run.
	local  http.Handler
	calls  *busy
	socket *socket // nil when the folder cannot hold one
	// patience is how long close serves the callers that are left.
	patience time.Duration

	stop    context.CancelFunc
	stopped chan error
}

// own takes the data folder and opens everything in it. errOwned means that another process has it.
func (a *app) own(ctx context.Context, settings config.Settings, logger *slog.Logger) (*owner, error) {
	cfg, executor, err := compose(ctx, settings, logger)
	if err != nil {
		return nil, err
	}
	s, err := server.New(ctx, cfg)
	if err != nil {
		err = errors.Join(err, closeExecutor(executor))
		if ownedElsewhere(err) {
			return nil, errOwned
		}
		return nil, err
	}
	o := &owner{
		server: s, executor: executor, interpreters: cfg.Interpreters, patience: settings.LongestRun(),
		calls: newBusy(), stopped: make(chan error, 1),
	}
	o.local = o.calls.handler(s.LocalHandler())
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	o.stop = stop
	go func() { o.stopped <- s.Run(background) }()
	if o.socket, err = openSocket(ctx, settings.DataDir, o.local); err != nil {
		logger.WarnContext(ctx, "other processes cannot share the data folder and will wait for it", "cause", err.Error())
	}
	return o, nil
}

// close serves the callers that are left, then lets go of the folder.
func (o *owner) close(ctx context.Context) error {
	if o.socket != nil {
		o.socket.close(ctx, o.patience)
	}
	// A caller of this process that was interrupted has left its call behind.
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.patience)
	o.calls.wait(patient)
	cancel()
	o.stop()
	err := <-o.stopped
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, o.server.Close(), closeExecutor(o.executor)) //nolint:contextcheck // it outlives the caller
}
