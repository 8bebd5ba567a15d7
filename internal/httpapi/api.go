// Package httpapi serves Sallyport over HTTP: /v1 as JSON, the health probes, and the handlers of other surfaces that share
// the port.
//
// It owns the routes, the strict reading of requests, and the OpenAPI document that describes them. It leaves every
// decision about skills, grants, runs and audit to the services behind it, and who the caller is to package auth. Its one
// invariant: every answer, a refusal of the router and a crash of a handler included, is one envelope.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sallyport-dev/sallyport"
)

// Config is what a handler needs. A service that is nil breaks the calls to it (INTERNAL) and no others; a nil Auth
// refuses every caller.
type Config struct {
	Auth   Authenticator
	Skills Skills
	// Catalogue serves the discovery of skills under /.well-known.
	Catalogue Catalogue
	Access    Access
	Directory Directory
	Reviews   Reviews
	// GrantNotice is how long before its end a grant is shown as one that expires soon.
	GrantNotice time.Duration
	Audit       Audit
	Secrets     Secrets
	Runs        Runs
	Records     Records
	// Backup begins a backup of the installation, with its keys or without, and returns what writes it. Only the handler of the data
	// folder's own operator has one; nil refuses.
	Backup Backup

	// Public lets a request through for a route that is served to anybody, or for none at all; RATE_LIMITED when it does not. Nil lets
	// every one through.
	Public func(r *http.Request) error

	// Ready says why the server cannot serve now; nil means that it always can.
	Ready func(ctx context.Context) error
	// Metrics is mounted at /metrics, for authenticated callers; nil mounts nothing.
	Metrics http.Handler
	// MCP is mounted at /mcp and authenticates its callers itself; nil mounts nothing.
	MCP http.Handler

	// Resource describes the server to callers who can log in; the zero value describes nothing.
	Resource Resource

	// MaxBodyBytes bounds a JSON body; zero means sallyport.DefaultBodyBytes.
	MaxBodyBytes int64
	// MaxImportBytes bounds an uploaded archive, as it is sent and as it unpacks; zero means 1 GiB.
	MaxImportBytes int64
	// SpoolDir is a folder that exists; uploads are held there in files without a name. Empty means the system's.
	SpoolDir string

	// Context makes the context of a request from the caller's, its id and its W3C trace context, which may be empty; nil takes the
	// caller's as it is.
	Context func(ctx context.Context, requestID, traceParent string) context.Context

	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
	Version string           // what the server calls itself
}

// importsAtOnce bounds the uploads that are spooled at the same time.
const importsAtOnce = 4

func (c Config) withDefaults() Config {
	if c.Auth == nil {
		c.Auth = nobody{}
	}
	if c.MaxBodyBytes <= 0 {
		c.MaxBodyBytes = sallyport.DefaultBodyBytes
	}
	if c.MaxImportBytes <= 0 {
		c.MaxImportBytes = 1 << 30
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// api is the handler's state. It is safe for concurrent use.
type api struct {
	cfg     Config
	imports chan struct{} // holds one element per upload under way
	guard   *http.CrossOriginProtection
	// artifacts are the digests that the discovery index names.
	artifacts artifactDigests
	mux       *http.ServeMux
}

// New returns the handler of all routes. It is safe for concurrent use.
func New(cfg Config) http.Handler {
	a := &api{
		cfg: cfg.withDefaults(), imports: make(chan struct{}, importsAtOnce),
		guard: http.NewCrossOriginProtection(), mux: http.NewServeMux(),
	}
	for _, r := range routes() {
		a.mux.Handle(r.method+" "+r.pattern, a.endpoint(r))
	}
	for _, m := range mounts() {
		if handler := m.handler(a); handler != nil {
			a.mux.Handle(m.method+" "+m.pattern, handler)
		}
	}
	return a
}

// nobody refuses every caller.
type nobody struct{}

func (nobody) Principal(*http.Request) (sallyport.Principal, error) {
	return sallyport.Principal{}, &sallyport.Error{Op: "httpapi", Code: sallyport.CodeUnauthenticated}
}

func newRequestID() string { return uuid.NewString() }
