package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpbridge"
	"github.com/sallyport-dev/sallyport/server"
)

type mcpCommand struct{}

// Help says what goes where.
func (*mcpCommand) Help() string {
	return "An MCP client starts this command and speaks to it over standard input and output. It serves the data folder; when " +
		"another process owns the folder, or --url or SALLYPORT_URL names a server, it passes every message on to that one. " +
		"The log goes to standard error."
}

func (*mcpCommand) kind() string { return "mcp" }

func (c *mcpCommand) run(ctx context.Context, a *app) error {
	if a.args.JSON {
		return badUsage("--json is not for mcp: its standard output is the protocol")
	}
	settings, err := a.settings()
	if err != nil {
		return err
	}
	logger := newLogger(a.stderr, settings)
	warn(ctx, logger, settings)
	t, err := a.target(logger)
	if err != nil {
		return err
	}
	err = c.serve(ctx, a, t, logger)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // asked to stop, and stopped
	}
	return errors.Join(err, t.close(ctx))
}

func (c *mcpCommand) serve(ctx context.Context, a *app, t *target, logger *slog.Logger) error {
	if t.folder != nil {
		switch err := t.folder.take(ctx); {
		case err == nil:
			p, err := agent(ctx, t.folder.owned().server, t.tenant)
			if err != nil {
				return err
			}
			return t.folder.owned().server.ServeMCP(ctx, p, a.stdin, a.stdout)
		case !errors.Is(err, errOwned):
			return err
		}
		logger.InfoContext(ctx, "another process owns the data folder; messages go to it")
	}
	return mcpbridge.Run(ctx, mcpbridge.Config{
		Client: &http.Client{Transport: inTenant{t.transport, t.tenant}}, URL: strings.TrimSuffix(t.url, "/") + "/mcp", Key: t.key, Logger: logger,
	}, a.stdin, a.stdout)
}

// agent is the operator as far as an agent may be it: it can use and write skills and run what was granted, and cannot grant.
func agent(ctx context.Context, s *server.Server, tenant sallyport.TenantID) (sallyport.Principal, error) {
	p, err := s.Access().Operate(ctx, server.Operator(), cmp.Or(tenant, sallyport.DefaultTenant))
	p.Scopes, p.Operator = server.Loopback().Scopes, false
	return p, err
}

// inTenant is a transport that says which tenant the operator acts in.
type inTenant struct {
	next   http.RoundTripper
	tenant sallyport.TenantID
}

// RoundTrip implements http.RoundTripper.
func (t inTenant) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.tenant != "" {
		r = r.Clone(r.Context())
		r.Header.Set(server.TenantHeader, string(t.tenant))
	}
	if t.next == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	return t.next.RoundTrip(r)
}
