// Package runner is a process that takes approved runs over HTTP and carries them out with a local executor.
//
// It owns its own slots, its cache of revisions, who may send work, and the bounds of what is sent. It leaves isolation to the
// executor, and gates, grants and records to the servers that send: whoever holds its key decides what runs here. Its one
// invariant: one request is one run, which ends when its sender goes away.
package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runnerwire"
)

// The defaults of [Config].
const (
	DefaultCacheBytes   = 256 << 20
	DefaultMaxBodyBytes = 64 << 20
	DefaultPatience     = 90 * time.Second
	// MinKeyLength is the least a bearer key may have, in bytes.
	MinKeyLength = 20
)

// Config describes a runner. The zero value is refused: it has no executor and lets nobody in.
type Config struct {
	// Executor carries out the runs. Required.
	Executor sallyport.Executor
	// Runtimes are what a request may name as its runtime. Empty lets nothing run.
	Runtimes map[string]sallyport.Interpreter
	// Keys are bearer keys, any one of which lets a server in. TLS with required client certificates lets in whoever
	// shows one; with both, both are asked for. With neither, New fails.
	Keys []sallyport.Secret
	// TLS is how the runner speaks; nil serves loopback only, in the clear.
	TLS *tls.Config
	// RequiredLayers are the layers without which nothing runs, whatever a server asks for. Nil means every layer that the
	// executor knows (its Layers and Missing together); an empty list that is not nil demands none.
	RequiredLayers []sallyport.Layer
	// Slots is how many runs fit at the same time; zero means max(8, 4 x CPUs).
	Slots int
	// Tops are the most a request may ask for; unset fields mean ten minutes, 4 GiB of memory, 1024 processes, every
	// CPU, 1 GiB of scratch, 4 MiB of each stream, 64 MiB of artifacts in 256 files, and no budget of CPU time.
	Tops sallyport.Limits
	// CacheBytes bounds the revisions that are kept in memory. Zero means 256 MiB.
	CacheBytes int64
	// MaxBodyBytes bounds a request's body. Zero means 64 MiB.
	MaxBodyBytes int64
	// Patience is how long a stopping runner lets its runs end by themselves. Zero means 90 s.
	Patience time.Duration
	// Logger receives what an operator must know; nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	cpus := runtime.NumCPU()
	c.Slots = cmp.Or(c.Slots, max(8, 4*cpus))
	c.CacheBytes = cmp.Or(c.CacheBytes, DefaultCacheBytes)
	c.MaxBodyBytes = cmp.Or(c.MaxBodyBytes, DefaultMaxBodyBytes)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	top := sallyport.Limits{
		Timeout: 10 * time.Minute, MemoryBytes: 4 << 30, Processes: 1024, CPUMillis: int64(1000 * cpus), ScratchBytes: 1 << 30,
		OutputBytes: 4 << 20, ArtifactBytes: 64 << 20, ArtifactFiles: 256,
	}
	c.Tops = sallyport.Limits{
		Timeout: cmp.Or(c.Tops.Timeout, top.Timeout), MemoryBytes: cmp.Or(c.Tops.MemoryBytes, top.MemoryBytes),
		Processes: cmp.Or(c.Tops.Processes, top.Processes), CPUMillis: cmp.Or(c.Tops.CPUMillis, top.CPUMillis),
		ScratchBytes: cmp.Or(c.Tops.ScratchBytes, top.ScratchBytes), OutputBytes: cmp.Or(c.Tops.OutputBytes, top.OutputBytes),
		ArtifactBytes: cmp.Or(c.Tops.ArtifactBytes, top.ArtifactBytes), ArtifactFiles: cmp.Or(c.Tops.ArtifactFiles, top.ArtifactFiles),
		CPUTime: c.Tops.CPUTime,
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Executor == nil {
		errs = append(errs, errors.New("there is no executor"))
	}
	if len(c.Keys) == 0 && !c.clientCertificates() {
		errs = append(errs, errors.New("there is neither a key nor a demand for client certificates, so anybody could send work"))
	}
	for _, key := range c.Keys {
		if len(key) < MinKeyLength {
			errs = append(errs, fmt.Errorf("a key is shorter than %d bytes", MinKeyLength))
		}
	}
	if c.Slots < 0 || c.CacheBytes < 0 || c.MaxBodyBytes < 0 || c.Patience < 0 {
		errs = append(errs, errors.New("a bound is negative"))
	}
	return errors.Join(errs...)
}

func (c Config) clientCertificates() bool {
	return c.TLS != nil && c.TLS.ClientAuth == tls.RequireAndVerifyClientCert
}

// Runner takes work. It is safe for concurrent use.
type Runner struct {
	cfg      Config
	log      *slog.Logger
	keys     [][sha256.Size]byte
	slots    chan struct{} // holds one element per run
	requests chan struct{} // holds one element per authenticated request
	cache    *cache
	asked    *recent
	draining atomic.Bool
}

// New returns a Runner. It fails for a Config that would let nobody or everybody in.
func New(cfg Config) (*Runner, error) {
	if err := cfg.validate(); err != nil {
		return nil, &sallyport.Error{
			Op: "runner.new", Code: sallyport.CodeInvalidArgument, Err: err,
			Message: "the configuration of the runner is wrong: " + strings.ReplaceAll(err.Error(), "\n", "; "),
		}
	}
	cfg = cfg.withDefaults()
	r := &Runner{
		cfg: cfg, log: cfg.Logger, slots: make(chan struct{}, cfg.Slots), requests: make(chan struct{}, 2*cfg.Slots+16),
		cache: newCache(cfg.CacheBytes), asked: newRecent(4096),
	}
	for _, key := range cfg.Keys {
		r.keys = append(r.keys, sha256.Sum256([]byte(key)))
	}
	return r, nil
}

// Slots is how many runs fit at the same time.
func (r *Runner) Slots() int { return cap(r.slots) }

// Handler serves the contract. GET /healthz is open to everybody and tells nothing but whether the runner takes work.
func (r *Runner) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+runnerwire.PathRuns, r.run)
	mux.HandleFunc("GET "+runnerwire.PathCapabilities, r.capabilities)
	mux.HandleFunc("PUT "+runnerwire.PathRevisions+"{key}", r.store)
	outer := http.NewServeMux()
	outer.HandleFunc("GET "+runnerwire.PathHealth, r.health)
	outer.Handle("/", r.admit(mux))
	return outer
}

// admit lets in whoever may send work, as many as are served at a time.
func (r *Runner) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.authentic(req) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			r.refuse(w, http.StatusUnauthorized, string(sallyport.CodeUnauthenticated), "a valid key or certificate is required", false)
			return
		}
		select {
		case r.requests <- struct{}{}:
			defer func() { <-r.requests }()
			next.ServeHTTP(w, req)
		default:
			r.refuse(w, http.StatusServiceUnavailable, string(sallyport.CodeSlotsExhausted), "the runner has too many requests", false)
		}
	})
}

func (r *Runner) authentic(req *http.Request) bool {
	if r.cfg.clientCertificates() && (req.TLS == nil || len(req.TLS.VerifiedChains) == 0) {
		return false
	}
	if len(r.keys) == 0 {
		return r.cfg.clientCertificates()
	}
	values := req.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	scheme, key, found := strings.Cut(values[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
	fits := 0
	for _, own := range r.keys {
		fits |= subtle.ConstantTimeCompare(sum[:], own[:])
	}
	return fits == 1
}

func (r *Runner) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "ok\n"
	if r.draining.Load() {
		text = "draining\n"
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write([]byte(text))
}

// Serve serves listener until ctx ends, then drains: it takes no more work, lets the runs under way end within the patience
// and cancels what is left. Without TLS it refuses a listener that is not on loopback.
func (r *Runner) Serve(ctx context.Context, listener net.Listener) error {
	if r.cfg.TLS == nil && !onLoopback(listener.Addr()) {
		return errors.Join(sallyport.Errorf("runner.serve", sallyport.CodeInvalidArgument,
			"%s is reachable from other machines and scripts and keys would travel in the clear: serve TLS", listener.Addr()), listener.Close())
	}
	server := &http.Server{
		Handler: r.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog:     slog.NewLogLogger(r.log.Handler(), slog.LevelWarn),
		BaseContext:  func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	if r.cfg.TLS != nil {
		secured := r.cfg.TLS.Clone()
		secured.MinVersion, secured.NextProtos = max(secured.MinVersion, tls.VersionTLS12), []string{"http/1.1"}
		listener = tls.NewListener(listener, secured)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return &sallyport.Error{Op: "runner.serve", Code: sallyport.CodeInternal, Err: err}
	case <-ctx.Done():
	}
	r.draining.Store(true)
	r.log.InfoContext(ctx, "stopping; runs under way may end first", "runs", len(r.slots), "patience", r.cfg.Patience.String())
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Patience)
	defer cancel()
	if err := server.Shutdown(patient); err != nil {
		r.log.WarnContext(ctx, "runs were cancelled", "cause", err.Error())
		_ = server.Close() // its connections end, and with them their runs
		r.settle(ctx)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return &sallyport.Error{Op: "runner.serve", Code: sallyport.CodeInternal, Err: err}
	}
	return nil
}

// settle waits a little for cancelled runs to be gone.
func (r *Runner) settle(ctx context.Context) {
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for len(r.slots) > 0 {
		select {
		case <-patient.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func onLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
