package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/config"
)

const (
	// servePatience is how long a stopping server lets running calls end by themselves before it cancels them.
	servePatience = 25 * time.Second
	// startPatience is how long a starting server waits for a command that is using the folder.
	startPatience = 3 * time.Second
)

type serveCommand struct {
	Listen  string   `help:"Listen on this address (default: 127.0.0.1:8787)." placeholder:"HOST:PORT"`
	TLSCert string   `help:"Serve TLS with this PEM certificate chain." name:"tls-cert" placeholder:"FILE"`
	TLSKey  string   `help:"The key that goes with --tls-cert." name:"tls-key" placeholder:"FILE"`
	Accept  []string `help:"Accept a risk of docs/production.md by name; may be repeated." placeholder:"RISK"`
	Check   bool     `help:"Print what the profile asks of these settings, and serve nothing."`
}

func (*serveCommand) kind() string { return "serve" }

func (c *serveCommand) flags() []config.Flag {
	var flags []config.Flag
	for _, f := range []config.Flag{
		{Key: "listen", Value: c.Listen, Name: "--listen"},
		{Key: "tls.cert", Value: c.TLSCert, Name: "--tls-cert"},
		{Key: "tls.key", Value: c.TLSKey, Name: "--tls-key"},
	} {
		if f.Value != "" {
			flags = append(flags, f)
		}
	}
	for _, risk := range c.Accept {
		flags = append(flags, config.Flag{Key: "accept", Value: risk, Name: "--accept"})
	}
	return flags
}

// serving is what serve prints when it is ready.
type serving struct {
	URL          string         `json:"url"`
	MCPURL       string         `json:"mcp_url"`
	Data         string         `json:"data"`
	Profile      config.Profile `json:"profile"`
	Scripts      bool           `json:"scripts"`
	Interpreters []string       `json:"interpreters"`
	Sandbox      servingSandbox `json:"sandbox"`
}

type servingSandbox struct {
	Available bool              `json:"available"`
	Missing   []sallyport.Layer `json:"missing,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Remedy    string            `json:"remedy,omitempty"`
}

func (s servingSandbox) proven() bool { return s.Available && len(s.Missing) == 0 }

func (c *serveCommand) run(ctx context.Context, a *app) error {
	settings, err := a.settings(c.flags()...)
	if err != nil {
		return err
	}
	logger := newLogger(a.stderr, settings)
	warn(ctx, logger, settings)
	// Refused before anything is opened when it would be refused whatever the sandbox can do.
	if c.Check {
		return c.check(ctx, a, settings)
	}
	if err := settings.CheckRisks(config.Seen{}); err != nil {
		return err
	}
	secured, err := certificate(settings)
	if err != nil {
		return err
	}
	o, err := a.ownSoon(ctx, settings, logger)
	if err != nil {
		return err
	}
	err = c.serve(ctx, a, settings, secured, o, logger)
	return errors.Join(err, o.close(ctx))
}

// ownSoon takes the folder, waiting a little for a command that is using it.
func (a *app) ownSoon(ctx context.Context, settings config.Settings, logger *slog.Logger) (*owner, error) {
	begin := time.Now()
	for {
		o, err := a.own(ctx, settings, logger)
		switch {
		case err == nil:
			return o, nil
		case !errors.Is(err, errOwned):
			return nil, err
		case time.Since(begin) > startPatience:
			return nil, sallyport.Errorf("cli.serve", sallyport.CodeStoreUnavailable,
				"another process already owns the data folder %s; end it, or serve another folder with --data", settings.DataDir)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(folderPoll):
		}
	}
}

func (c *serveCommand) serve(ctx context.Context, a *app, settings config.Settings, secured *tls.Config, o *owner, logger *slog.Logger) error {
	sandbox := sandboxNow(ctx, o)
	if err := settings.CheckRisks(config.Seen{SandboxKnown: true, SandboxProven: sandbox.proven()}); err != nil {
		return err
	}
	listener, err := listen(ctx, settings, secured)
	if err != nil {
		return err
	}
	described := settings.Server(config.Parts{})
	ready := serving{
		URL: urlOf(settings, listener.Addr()), Data: settings.DataDir, Profile: settings.Profile,
		Scripts: described.ScriptsEnabled, Sandbox: sandbox,
	}
	ready.MCPURL = ready.URL + "/mcp"
	for _, row := range o.interpreters {
		if !slices.Contains(ready.Interpreters, row.Extension) {
			ready.Interpreters = append(ready.Interpreters, row.Extension)
		}
	}
	server := httpServer(ctx, o.server.Handler(), settings.LongestRun())
	server.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	server.RegisterOnShutdown(o.server.EndStreams)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := showOwn(a, sallyport.Success("serve", "", ready), printServing); err != nil {
		return errors.Join(err, server.Close(), <-served)
	}
	select {
	case err := <-served:
		return &sallyport.Error{Op: "cli.serve", Code: sallyport.CodeInternal, Err: err}
	case <-ctx.Done():
	}
	logger.InfoContext(ctx, "stopping; running calls may end first", "patience", servePatience.String())
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), servePatience)
	defer cancel()
	if err := server.Shutdown(patient); err != nil {
		logger.WarnContext(ctx, "running calls were cancelled", "cause", err.Error())
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return &sallyport.Error{Op: "cli.serve", Code: sallyport.CodeInternal, Err: err}
	}
	return nil
}

func sandboxNow(ctx context.Context, o *owner) servingSandbox {
	found := o.server.Runs().Capabilities(ctx)
	return servingSandbox{Available: found.Available, Missing: found.Missing, Reason: found.Reason, Remedy: found.Remedy}
}

// certificate is how the server speaks TLS, nil when it does not.
func certificate(settings config.Settings) (*tls.Config, error) {
	if !settings.TLS() {
		return nil, nil //nolint:nilnil // no TLS is not an error
	}
	pair, err := tls.LoadX509KeyPair(settings.TLSCert, settings.TLSKey)
	if err != nil {
		return nil, invalid("tls: the certificate and key cannot be used: %v", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"},
	}, nil
}

func listen(ctx context.Context, settings config.Settings, secured *tls.Config) (net.Listener, error) {
	var plain net.ListenConfig
	listener, err := plain.Listen(ctx, "tcp", settings.Listen)
	if err != nil {
		return nil, invalid("listen: %v", err)
	}
	if secured == nil {
		return listener, nil
	}
	return tls.NewListener(listener, secured), nil
}

// urlOf is where a client of this machine finds the server.
func urlOf(settings config.Settings, addr net.Addr) string {
	scheme := "http"
	if settings.TLS() {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return scheme + "://" + addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func printServing(p *page, s serving) {
	p.line("%s on %s", p.bold("Sallyport serves"), p.bold(s.URL))
	scripts := "off (set scripts_enabled: true)"
	switch {
	case s.Scripts && len(s.Interpreters) == 0:
		scripts = "on, but no interpreter is allowed (set interpreters)"
	case s.Scripts:
		scripts = fmt.Sprintf("on, for %s", joinWords(s.Interpreters))
	}
	p.pairs([][2]string{
		{"MCP", s.MCPURL},
		{"data", clean(s.Data)},
		{"profile", string(s.Profile)},
		{"scripts", scripts},
		{"sandbox", sandboxText(p, s.Sandbox)},
	}...)
}

func sandboxText(p *page, s servingSandbox) string {
	switch {
	case !s.Available:
		return p.red("unavailable") + ": " + clean(s.Reason) + "; nothing runs. " + clean(s.Remedy)
	case len(s.Missing) > 0:
		return p.yellow("without "+layers(s.Missing)) + " (see sallyport doctor)"
	default:
		return p.green("every layer is enforced")
	}
}
