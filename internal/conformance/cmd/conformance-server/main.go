// Command conformance-server serves three MCP endpoints on loopback for test parties: the product as it ships, with skills in it, the
// product's MCP surface with the fixtures of the official suite, and a server whose runs want a person's yes. It prints their addresses and serves until it is told to stop.
// It is built for tests and never shipped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/conformance"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
	"github.com/sallyport-dev/sallyport/server"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	tree := flag.String("tree", "", "folder to write the published skills to, as an installer should")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *tree); err != nil {
		slog.Error("the conformance server stopped", "error", err) //nolint:sloglint // a test binary has no logger of its own
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, tree string) (err error) {
	if tree != "" {
		if err := writeTree(tree); err != nil {
			return err
		}
	}
	data, err := os.MkdirTemp("", "sallyport-conformance-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	product, err := server.New(ctx, server.Config{
		DataDir: data, ScriptsEnabled: true, LoopbackPrincipal: true, Version: "conformance",
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, product.Close()) }() //nolint:contextcheck // it outlives the signal that ends ctx
	if err := seed(ctx, product); err != nil {
		return err
	}

	fixtures := mcpapi.New(mcpapi.Config{
		Skills: product.Registry(), Runs: product.Runs(), Catalogue: product.Registry(), Version: "conformance",
		Extend: conformance.Extend, ExtendOptions: conformance.Options,
		ExtendTasks: conformance.NewJobs(),
	})
	asking, err := newAsking(ctx, filepath.Join(data, "asks"))
	if asking != nil {
		defer func() { err = errors.Join(err, asking.Close()) }() //nolint:contextcheck // it outlives the signal that ends ctx
	}
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/asks/", http.StripPrefix("/asks", asking.Handler()))
	mux.Handle("/", product.Handler())
	mux.Handle("/fixtures/mcp", fixtures.Handler(func(*http.Request) (sallyport.Principal, error) { return server.Loopback(), nil }))

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("product http://%[1]s/mcp\nfixtures http://%[1]s/fixtures/mcp\nasks http://%[1]s/asks/mcp\n", listener.Addr())
	return serve(ctx, listener, mux)
}

// serve serves until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := web.Shutdown(end); err != nil {
		_ = web.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
