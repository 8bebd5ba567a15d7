package run

import (
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Config is what a Service needs. Skills, Grants, Ledger and Gates are required; without Gates every run is refused.
type Config struct {
	Skills Skills
	Grants Grants
	Ledger Ledger
	// Secrets opens what scripts declare; nil refuses every run of a script that declares one.
	Secrets Secrets
	// ShowSecrets leaves the values of secrets where a script prints them; a tenant's policy can still hide them.
	ShowSecrets bool
	// Policies narrow for a tenant what the installation allows; nil narrows nothing.
	Policies Policies
	// Confirmations keeps the questions to a person; nil refuses what wants one.
	Confirmations Confirmations
	// Confirm wants a person's yes for every run; the confirm gate must know too. ConfirmSelf lets whoever asked say yes, and
	// ConfirmInClient takes the word of the asking client for what its user said.
	Confirm, ConfirmSelf, ConfirmInClient bool
	// Packages lists what scripts can import in a runtime, for Explain; nil for an installation that does not know.
	Packages func(ctx context.Context, interpreter sallyport.Interpreter) ([]sallyport.Package, error)
	// Gates in order; package gate lists the standard ones.
	Gates    []sallyport.Gate
	Executor sallyport.Executor
	// Limits of the installation; unset fields mean the defaults of the root package.
	Limits sallyport.Limits
	// MaxTimeout is the top a caller may ask for; zero means sallyport.MaxTimeout.
	MaxTimeout time.Duration
	// Grace after the timeout, until the caller stops waiting; zero means sallyport.DefaultGrace.
	Grace time.Duration
	// SlotsTotal and SlotsPerTenant bound concurrent runs; zero means auto: max(8, 4 x CPUs) and max(2, half).
	SlotsTotal, SlotsPerTenant int
	// QueueLength and QueueWait bound the wait for a slot; zero means the defaults of the root package.
	QueueLength int
	QueueWait   time.Duration
	Quotas      Quotas
	// Mask hides secrets in a JSON value, by key name. Nil hides the whole value.
	Mask     func(json.RawMessage) json.RawMessage
	Observer Observer         // nil observes nothing
	Logger   *slog.Logger     // nil discards
	Now      func() time.Time // for stored times; nil means time.Now
}

func (c Config) withDefaults() Config {
	c.Limits = fill(c.Limits)
	if c.MaxTimeout == 0 {
		c.MaxTimeout = sallyport.MaxTimeout
	}
	if c.Grace == 0 {
		c.Grace = sallyport.DefaultGrace
	}
	if c.SlotsTotal == 0 {
		c.SlotsTotal = max(8, 4*runtime.NumCPU())
	}
	if c.SlotsPerTenant == 0 {
		c.SlotsPerTenant = max(2, c.SlotsTotal/2)
	}
	if c.QueueLength == 0 {
		c.QueueLength = sallyport.DefaultQueueLength
	}
	if c.QueueWait == 0 {
		c.QueueWait = sallyport.DefaultQueueWait
	}
	if c.Mask == nil {
		c.Mask = func(json.RawMessage) json.RawMessage { return json.RawMessage(`"***"`) }
	}
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// FullLimits returns l with the default in every unset field: what an installation with these limits allows.
func FullLimits(l sallyport.Limits) sallyport.Limits { return fill(l) }

// fill sets every unset field from the defaults: an executor must never see an unlimited run.
func fill(l sallyport.Limits) sallyport.Limits {
	d := sallyport.DefaultLimits()
	set := func(field *int64, value int64) {
		if *field == 0 {
			*field = value
		}
	}
	if l.Timeout == 0 {
		l.Timeout = d.Timeout
	}
	set(&l.MemoryBytes, d.MemoryBytes)
	set(&l.Processes, d.Processes)
	set(&l.CPUMillis, d.CPUMillis)
	set(&l.ScratchBytes, d.ScratchBytes)
	set(&l.OutputBytes, d.OutputBytes)
	set(&l.ArtifactBytes, d.ArtifactBytes)
	set(&l.ArtifactFiles, d.ArtifactFiles)
	return l
}

// Service runs scripts. It is safe for concurrent use.
type Service struct {
	cfg        Config
	slots      *slots
	quotas     *quotas
	background sync.WaitGroup // executor calls and start records; see Close
	closing    chan struct{}  // closed by Close
	closeOnce  sync.Once
	unrecorded atomic.Int64 // outcomes that wait to be recorded

	mu     sync.Mutex // guards active
	active map[sallyport.ExecutionID]*activeRun
}

type activeRun struct {
	tenant sallyport.TenantID
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the record was closed
	// detached says that nobody waits for the run: the service ends it when it closes. running says that its script was started.
	detached, running bool
}

// New returns a Service.
func New(cfg Config) *Service {
	cfg = cfg.withDefaults()
	return &Service{
		cfg:     cfg,
		slots:   newSlots(cfg.SlotsTotal, cfg.SlotsPerTenant, cfg.QueueLength, cfg.QueueWait),
		quotas:  newQuotas(cfg.Quotas),
		active:  map[sallyport.ExecutionID]*activeRun{},
		closing: make(chan struct{}),
	}
}

// Close waits until every executor call that was not abandoned has returned, and every run that Start began is over, at most as long
// as ctx allows. The runs of Start that wait for a slot are cancelled at once, those whose script runs when closeReserve of the time is
// left. The caller stops calling Run and Start first.
func (s *Service) Close(ctx context.Context) error {
	s.closeOnce.Do(func() { close(s.closing) })
	defer s.drain(ctx)()
	done := make(chan struct{})
	go func() {
		s.background.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unrecorded counts outcomes that could not be written yet.
func (s *Service) Unrecorded() int64 { return s.unrecorded.Load() }

// track makes the execution cancellable by id and returns the context of its caller.
func (s *Service) track(ctx context.Context, e sallyport.Execution) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active[e.ID] = &activeRun{tenant: e.TenantID, cancel: cancel, done: done}
	return ctx, func() {
		cancel(nil)
		close(done)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.active, e.ID)
	}
}

// Recover closes as lost what a crash left open. It must run before the first Run of a process that owns the data folder; such a
// run is never started again. It returns how many it closed.
func (s *Service) Recover(ctx context.Context) (int, error) {
	open, err := s.cfg.Ledger.Unfinished(ctx)
	if err != nil {
		return 0, err
	}
	for i, e := range open {
		at := s.cfg.Now().UTC()
		e.Status, e.ErrorKind, e.FinishedAt = sallyport.StatusLost, sallyport.CodeExecutionLost, &at
		e.ErrorMessage = sallyport.Lookup(sallyport.CodeExecutionLost).Message
		entry := s.entry(sallyport.ActionScriptFinished, e.PrincipalID, e.Slug+"/"+e.ScriptPath, e.ID, finishedDetail(e))
		if err := s.cfg.Ledger.Close(ctx, e.TenantID, e, nil, entry); err != nil {
			return i, err
		}
		s.cfg.Observer.Finished(ctx, e)
	}
	return len(open), nil
}

// Capabilities reports what the executor can enforce now; without an executor, nothing.
func (s *Service) Capabilities(ctx context.Context) sallyport.Capabilities {
	if s.cfg.Executor == nil {
		return sallyport.Capabilities{Reason: "no executor is configured", Layers: []sallyport.Layer{}, Features: []sallyport.Feature{}}
	}
	return s.cfg.Executor.Capabilities(ctx)
}
