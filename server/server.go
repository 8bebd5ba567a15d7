// Package server builds the whole system from one Config: store, services, gates, surfaces. It is the entry point for
// applications that embed Sallyport.
//
// It introduces the packages to each other and owns their life cycle; it leaves the choice of executor and everything an
// operator types to its caller. Its one invariant: the standard gates are always installed, in order.
package server

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/gate"
	"github.com/sallyport-dev/sallyport/internal/auth"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
	"github.com/sallyport-dev/sallyport/internal/store"
	"github.com/sallyport-dev/sallyport/internal/telemetry"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/secret"
)

// Server is one running installation. It is safe for concurrent use.
type Server struct {
	cfg       Config
	owner     *owner
	store     *store.Store
	outside   *os.File // checkpoints outside the database
	key       ed25519.PrivateKey
	backing   sync.Mutex // held while a backup is under way
	telemetry *telemetry.Telemetry
	exporter  *telemetry.Exporter

	registry *registry.Service
	access   *access.Service
	records  *records.Service
	calls    *audit.Recorder
	audit    *audit.Service
	secrets  *secret.Service
	runs     *run.Service
	mcp      *mcpapi.API

	network, local http.Handler
	closed         sync.Once
	closeErr       error
	// ready is closed while the server serves; Close takes it away.
	stopping chan struct{}
}

// New opens the data folder, migrates the database, closes as lost what a crash left open and builds the services. It
// takes the data folder's lock: STORE_UNAVAILABLE when another process owns it. A Config that contradicts itself is
// INVALID_ARGUMENT, all problems at once.
func New(ctx context.Context, cfg Config) (_ *Server, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg.withDefaults(), stopping: make(chan struct{})}
	s.cfg.Logger = slog.New(telemetry.Logs(s.cfg.Logger.Handler()))
	defer func() { //nolint:contextcheck // what is given back outlives the caller
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if s.owner, err = own(cfg.DataDir); err != nil {
		return nil, err
	}
	if s.store, err = store.Open(ctx, store.Config{Path: filepath.Join(cfg.DataDir, DatabaseFile), Logger: s.cfg.Logger}); err != nil {
		return nil, err
	}
	if err := s.services(ctx); err != nil {
		return nil, err
	}
	lost, err := s.runs.Recover(ctx)
	if err != nil {
		return nil, err
	}
	if lost > 0 {
		s.cfg.Logger.WarnContext(ctx, "executions that a crash left open were closed as lost", "count", lost)
	}
	if err := s.surfaces(); err != nil {
		return nil, err
	}
	return s, nil
}

// services builds the verbs on the store.
func (s *Server) services(ctx context.Context) error {
	key, err := signingKey(s.owner.root)
	if err != nil {
		return err
	}
	s.key = key
	s.outside, err = s.owner.root.OpenFile(checkpoints, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return &sallyport.Error{
			Op: "server.services", Code: sallyport.CodeStoreUnavailable, Message: "the data folder cannot be written", Err: err,
		}
	}
	cfg := s.cfg
	if s.exporter, err = telemetry.NewExporter(ctx, cfg.OTel, cfg.Version, cfg.Logger); err != nil {
		return err
	}
	tracer := cfg.Tracer
	if exported := s.exporter.Tracer(); exported != nil && tracer == nil {
		tracer = exported
	}
	s.telemetry = telemetry.New(telemetry.Config{Tracer: tracer, Pool: warmPool(cfg.Executor), Version: cfg.Version})
	if err := s.exporter.Metrics(ctx, s.telemetry.Gatherer()); err != nil {
		return err
	}
	s.audit = audit.New(audit.Config{Store: s.store, Calls: s.store, Failed: s.telemetry.AuditFailed, Key: key, CheckpointLog: s.outside, OpenLog: func() (io.ReadCloser, error) { return s.owner.root.Open(checkpoints) }, Archive: cfg.AuditArchive, Logger: cfg.Logger, Now: cfg.Now})
	s.registry = registry.New(registry.Config{
		Store: s.store, Trail: s.audit, MaxScriptBytes: cfg.MaxScriptBytes, Logger: cfg.Logger, Now: cfg.Now,
		PublishRequiresClean: cfg.PublishRequiresClean, FindingExclusions: cfg.FindingExclusions, Fetcher: s.fetcher(), Published: s.published,
	})
	s.records = records.New(records.Config{
		Store: s.store, Trail: s.audit, Skills: s.registry, Policy: cfg.retention(), Logger: cfg.Logger, Now: cfg.Now,
	})
	s.calls = audit.NewRecorder(audit.RecorderConfig{ //nolint:contextcheck // records outlive the calls that they are of
		Store: s.store, Redact: redactCall, Dropped: s.telemetry.CallsDropped, Logger: cfg.Logger,
	})
	s.access = access.New(access.Config{
		Store: s.store, Trail: s.audit, Skills: s.registry, Installation: cfg.installation(), Logger: cfg.Logger, Now: cfg.Now,
	})
	s.secrets = secret.New(secret.Config{Store: s.store, Trail: s.audit, Keys: s.secretKeys(), Logger: cfg.Logger, Now: cfg.Now})
	standard := gate.Standard(gate.Deps{
		Enabled:          func(sallyport.TenantID) bool { return cfg.ScriptsEnabled },
		Interpreters:     cfg.Interpreters,
		MaxArgumentBytes: cfg.MaxArgumentBytes,
		MaxInputBytes:    sallyport.DefaultInputBytes,
		MaxInputFiles:    sallyport.DefaultInputFiles,
		MaxScriptBytes:   cfg.MaxScriptBytes,
		MaxRevisionBytes: sallyport.MaxSkillBytes,
		Secrets:          s.secrets,
		Executor:         cfg.Executor,
		RequiredLayers:   cfg.RequiredLayers,
		Unattended:       !cfg.Confirm,
		Now:              cfg.Now,
	})
	s.runs = run.New(run.Config{
		Packages: cfg.Packages,
		Skills:   s.registry, Grants: s.store, Ledger: s.store, Policies: s.access, Confirmations: s.store,
		Confirm: cfg.Confirm, ConfirmSelf: cfg.ConfirmSelf, ConfirmInClient: cfg.ConfirmInClient, Secrets: s.secrets, ShowSecrets: cfg.ShowSecrets, Gates: slices.Concat(standard, cfg.Gates), Executor: cfg.Executor,
		Limits: cfg.Limits, MaxTimeout: cfg.MaxTimeout, Grace: cfg.Grace, SlotsTotal: cfg.SlotsTotal,
		SlotsPerTenant: cfg.SlotsPerTenant, QueueLength: cfg.QueueLength, QueueWait: cfg.QueueWait, Quotas: cfg.Quotas.run(),
		Mask: audit.Mask, Observer: s.telemetry, Logger: cfg.Logger, Now: cfg.Now,
	})
	return nil
}

// published grants what was just published, where that is how grants are given.
func (s *Server) published(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision) {
	if _, err := s.access.GrantPublished(ctx, p, skill, revision); err != nil {
		s.cfg.Logger.ErrorContext(ctx, "what was published could not be granted; a reviewer can grant it", "skill_id", string(skill.ID), "error", err)
	}
}

// fetcher downloads skills, where that is allowed.
func (s *Server) fetcher() *registry.Fetcher {
	if !s.cfg.URLImport {
		return nil
	}
	return registry.NewFetcher(registry.FetchConfig{
		AllowPrivate: s.cfg.URLImportPrivate, SpoolDir: filepath.Join(s.cfg.DataDir, spoolFolder), Version: s.cfg.Version,
	})
}

// surfaces builds the two handlers: one for the network, one for the data folder's own operator.
func (s *Server) surfaces() error {
	tokens, err := s.cfg.identity(s.access.EnsureTenant)
	if err != nil {
		return err
	}
	who, metadata := auth.Config{Keys: s.access}, ""
	if tokens != nil {
		who.Tokens, metadata = tokens, s.cfg.resource().MetadataURL("/mcp")
	}
	s.mcp = mcpapi.New(mcpapi.Config{
		Skills: s.registry, Runs: s.runs, Catalogue: s.registry, Version: s.cfg.Version, MaxTimeout: s.cfg.MaxTimeout,
		MaxBodyBytes: s.cfg.MaxBodyBytes, Logger: s.cfg.Logger, StepUp: tokens != nil, ResourceMetadata: metadata,
		ConfirmInClient: s.cfg.ConfirmInClient, Mask: audit.Mask, MaskArgv: func(argv []string) []string { return run.MaskArgv(audit.Mask, argv) },
		Observe: s.toolCalled,
	})
	operator := Operator()
	local := who
	local.Fixed = &operator
	s.local = s.handler(admission{who: auth.New(local), access: s.access, local: true}, nil, s.Backup)
	if s.cfg.LoopbackPrincipal {
		p := Loopback()
		who.Loopback = &p
	}
	unproven := newStrangers(admission{who: auth.New(who), access: s.access}, s.cfg.Quotas.Address)
	s.network = newArrivals(s.maxBody()).bound(s.handler(newLimiter(unproven, s.cfg.Quotas, s.access.Policy), unproven.Public, nil))
	return nil
}

func (s *Server) maxBody() int64 { return cmp.Or(s.cfg.MaxBodyBytes, sallyport.DefaultBodyBytes) }

func (s *Server) handler(authenticator httpapi.Authenticator, public func(*http.Request) error, backup httpapi.Backup) http.Handler {
	return newBodies(s.maxBody()).bound(httpapi.New(httpapi.Config{
		Auth: authenticator, Public: public, Skills: s.registry, Catalogue: s.registry, Access: s.access, Directory: s.access, Reviews: s.access, GrantNotice: s.cfg.GrantNotice, Audit: s.audit, Secrets: s.secrets, Runs: s.runs, Records: s.records, Backup: backup, Ready: s.ready, Context: telemetry.Request,
		Resource: s.cfg.resource(), Metrics: s.telemetry.Handler(), MCP: s.mcp.Handler(authenticator.Principal), MaxBodyBytes: s.cfg.MaxBodyBytes,
		MaxImportBytes: s.cfg.MaxImportBytes, SpoolDir: filepath.Join(s.cfg.DataDir, spoolFolder),
		Logger: s.cfg.Logger, Now: s.cfg.Now, Version: s.cfg.Version,
	}))
}

// ready says why the server cannot serve now. A sandbox that is away does not count: skills are still served.
func (s *Server) ready(ctx context.Context) error {
	select {
	case <-s.stopping:
		return sallyport.Errorf("server.ready", sallyport.CodeStoreUnavailable, "the server is stopping")
	default:
	}
	_, _, err := s.store.Head(ctx, sallyport.DefaultTenant)
	return err
}

// Handler serves the network: /v1, /mcp, /metrics, health. Callers need a key unless Config.LoopbackPrincipal.
func (s *Server) Handler() http.Handler { return s.network }

// LocalHandler serves the same to the data folder's own operator, who carries every scope of the default tenant, or of the one that
// [TenantHeader] names, and makes tenants. It must
// only ever be reached in process or through the folder's 0600 socket.
func (s *Server) LocalHandler() http.Handler { return s.local }

// ServeMCP serves MCP over one pair of streams to p until in ends or ctx does: the stdio transport.
func (s *Server) ServeMCP(ctx context.Context, p sallyport.Principal, in io.ReadCloser, out io.WriteCloser) error {
	return s.mcp.ServeStdio(ctx, p, in, out)
}

// EndStreams ends the streams of MCP clients that have no end of their own, so that serving can stop.
func (s *Server) EndStreams() { s.mcp.EndStreams() }

// Run does the background work until ctx ends: audit checkpoints, and the jobs of jobs.go. It returns the error of the checkpoints
// at the end.
func (s *Server) Run(ctx context.Context) error {
	var working sync.WaitGroup
	working.Go(func() { s.work(ctx, s.jobs()) })
	err := s.audit.Run(ctx)
	working.Wait()
	return err
}

// closeWait bounds how long Close waits for running executions.
const closeWait = 2 * time.Minute

// flushWait bounds how long telemetry is sent when a server stops.
const flushWait = 5 * time.Second

// warmPool is how the executor tells what it keeps ready; nil for one that keeps nothing.
func warmPool(executor sallyport.Executor) func() map[string]int {
	if keeper, ok := executor.(interface{ WarmSandboxes() map[string]int }); ok {
		return keeper.WarmSandboxes
	}
	return nil
}

// Close refuses to be ready, waits for running executions to be recorded and releases the data folder. The caller stops
// serving requests first. It may be called twice.
func (s *Server) Close() error {
	s.closed.Do(func() {
		close(s.stopping)
		s.EndStreams()
		ctx, cancel := context.WithTimeout(context.Background(), closeWait) //nolint:forbidigo // it outlives every caller
		defer cancel()
		s.closeErr = errors.Join(s.runs.Close(ctx), s.release())
	})
	return s.closeErr
}

// release gives back what New took, in the opposite order.
func (s *Server) release() error {
	var errs []error
	// What is left is sent while there is time: a collector that is away must not keep a server from stopping.
	flush, cancel := context.WithTimeout(context.Background(), flushWait) //nolint:forbidigo // it outlives every caller
	defer cancel()
	s.exporter.Shutdown(flush)
	if s.calls != nil {
		s.calls.Close()
	}
	if s.store != nil {
		errs = append(errs, s.store.Shutdown())
	}
	if s.outside != nil {
		errs = append(errs, s.outside.Close())
	}
	if s.owner != nil {
		errs = append(errs, s.owner.close())
	}
	return errors.Join(errs...)
}

// Registry keeps skills and revisions.
func (s *Server) Registry() *registry.Service { return s.registry }

// Access keeps grants and keys.
func (s *Server) Access() *access.Service { return s.access }

// Audit keeps the trail.
func (s *Server) Audit() *audit.Service { return s.audit }

// Secrets keeps the secrets of tenants.
func (s *Server) Secrets() *secret.Service { return s.secrets }

// Records removes what is old.
func (s *Server) Records() *records.Service { return s.records }

// Runs carries out scripts.
func (s *Server) Runs() *run.Service { return s.runs }

// Operator is the principal of LocalHandler: it carries every scope of the default tenant and looks after tenants.
func Operator() sallyport.Principal {
	return sallyport.Principal{
		ID: "operator", TenantID: sallyport.DefaultTenant,
		Teams: []sallyport.TeamID{sallyport.DefaultTeam}, Scopes: sallyport.Scopes(), Operator: true,
	}
}

// Loopback is the principal of a keyless caller on this machine. It can use and write skills and run what was granted; it
// cannot grant: an agent must not open its own gate.
func Loopback() sallyport.Principal {
	return sallyport.Principal{
		ID: "loopback", TenantID: sallyport.DefaultTenant, Teams: []sallyport.TeamID{sallyport.DefaultTeam},
		Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite},
	}
}

// discard is the logger of a Config without one.
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
