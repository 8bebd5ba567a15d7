package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/internal/config"
)

// A target is where the calls of a command go. Above it there is one code path: the HTTP API.
type target struct {
	url string
	key string
	// tenant is set by the operator of a folder only.
	tenant sallyport.TenantID
	// transport is nil for a server, which is reached as any other.
	transport http.RoundTripper
	// folder is nil when the target is a server.
	folder *folder
}

// localURL names the server behind a folder; no name is looked up.
const localURL = "http://localhost"

// target decides where calls go: --url, else --data, else SALLYPORT_URL, else the data folder of the settings.
func (a *app) target(logger *slog.Logger) (*target, error) {
	url := a.args.URL
	if url != "" && a.args.Data != "" {
		return nil, badUsage("--url and --data name two places; give one")
	}
	if url == "" && a.args.Data == "" {
		url = a.env.URL
	}
	if url != "" && a.args.Tenant != "" {
		return nil, badUsage("--tenant is for the operator of a data folder; a key of a server belongs to one tenant")
	}
	if url != "" {
		return &target{url: url, key: string(a.env.Key)}, nil
	}
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	f := a.folder(settings, logger)
	return &target{url: localURL, transport: f, folder: f, tenant: sallyport.TenantID(a.args.Tenant)}, nil
}

func (a *app) folder(settings config.Settings, logger *slog.Logger) *folder {
	return &folder{
		dir: settings.DataDir,
		open: func(ctx context.Context) (*owner, error) {
			return a.own(ctx, settings, logger)
		},
		waiting: func() { a.progress("waiting for another process to let go of %s", settings.DataDir) },
	}
}

// close lets go of what the target holds.
func (t *target) close(ctx context.Context) error {
	if t.folder == nil {
		return nil
	}
	return t.folder.close(ctx)
}

// withClient runs use with a client of the target, and closes the target.
func (a *app) withClient(ctx context.Context, use func(c *client.Client) error) (err error) {
	t, err := a.target(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close(ctx)) }()
	c, err := client.New(client.Config{
		URL: t.url, Key: t.key, Tenant: t.tenant, Transport: t.transport, Received: func(envelope []byte) { a.received = envelope },
	})
	if err != nil {
		return err
	}
	return use(c)
}

// ownedElsewhere says whether opening a folder failed because another process has it.
func ownedElsewhere(err error) bool {
	return sallyport.CodeOf(err) == sallyport.CodeStoreUnavailable && errors.Is(err, syscall.EWOULDBLOCK)
}
