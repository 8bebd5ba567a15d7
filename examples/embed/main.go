// Command embed is a program of its own with Sallyport inside and one gate more: nothing runs at the weekend.
//
// It owns that gate and the choice of what is switched on; everything else is package server. Its one invariant: the standard
// gates run first, because no configuration can remove or reorder them.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/server"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := serve(ctx, log)
	stop()
	if err != nil {
		log.Error("cannot serve", "error", err)
		os.Exit(1)
	}
}

// serve is all there is to embedding: an executor, a Config, a Handler.
func serve(ctx context.Context, log *slog.Logger) (err error) {
	executor, err := bubblewrap.New(bubblewrap.Config{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, executor.Close()) }()

	srv, err := server.New(ctx, server.Config{
		DataDir: "sallyport-data", Executor: executor, Interpreters: bubblewrap.FindInterpreters(),
		ScriptsEnabled: true, LoopbackPrincipal: true, Gates: []sallyport.Gate{weekdaysOnly{time.Now}}, Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Close()) }() //nolint:contextcheck // it must outlive ctx

	web := &http.Server{Addr: "127.0.0.1:8787", Handler: srv.Handler(), ReadHeaderTimeout: 10 * time.Second}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return srv.Run(groupCtx) })
	group.Go(func() error {
		if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-groupCtx.Done()
		patient, cancel := context.WithTimeout(context.WithoutCancel(groupCtx), 25*time.Second)
		defer cancel()
		return web.Shutdown(patient)
	})
	log.InfoContext(ctx, "serving", "mcp_url", "http://"+web.Addr+"/mcp")
	return group.Wait()
}
