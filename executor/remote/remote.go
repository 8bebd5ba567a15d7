// Package remote is the executor that sends each approved run to a runner: another process that takes work over HTTP.
//
// It owns the choice among several runners, the transport, and the verdict about a run whose answer did not come. It leaves
// isolation and limits to the runner, and approval, slots and records to its caller. Its one invariant: once a request may
// have reached a runner, it is never sent again, and nobody is told that nothing began.
//
// One run uses one connection. A connection that cannot be made is certainly not a start, so the next runner may be asked; one
// that breaks later belongs to this run alone, and the run is lost. Redirects are refused, answers are bounded, proxies named
// in the environment are not used.
package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Kind is the name of this executor.
const Kind = "remote"

// The defaults of [Config].
const (
	DefaultConnectTimeout = 2 * time.Second
	DefaultPollInterval   = 5 * time.Second
)

// Config describes the runners. Without runners New fails.
type Config struct {
	// Runners are base URLs, https://host:port. Plain http is accepted for loopback addresses only.
	Runners []string
	// Key is the bearer key that the runners ask for; empty sends none.
	Key sallyport.Secret
	// TLS holds the authorities to trust and the certificate to show; nil trusts those of the system and shows none.
	TLS *tls.Config
	// Layers and Features are what a runner provides that declares nothing about itself. A runner that answers
	// GET /capabilities speaks for itself. Empty means nothing, so most runs are refused.
	Layers   []sallyport.Layer
	Features []sallyport.Feature
	// ConnectTimeout bounds making a connection and its TLS handshake, each. Zero means two seconds.
	ConnectTimeout time.Duration
	// PollInterval is how often a runner is asked what it can do. Zero means five seconds.
	PollInterval time.Duration
	// Logger receives what an operator must know: runners that come and go. Nil discards.
	Logger *slog.Logger
}

// validate returns every problem, joined.
func (c Config) validate() ([]*url.URL, error) {
	var errs []error
	var bases []*url.URL
	seen := map[string]bool{}
	for _, text := range c.Runners {
		base, err := url.Parse(text)
		switch {
		case err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "":
			errs = append(errs, fmt.Errorf("runner %q is not a base URL such as https://host:port", text))
		case base.Scheme != "https" && base.Scheme != "http":
			errs = append(errs, fmt.Errorf("runner %q is neither https nor http", text))
		case base.Scheme == "http" && !loopback(base.Hostname()):
			errs = append(errs, fmt.Errorf("runner %q is beyond this machine and must be https", text))
		case seen[base.String()]:
			errs = append(errs, fmt.Errorf("runner %q is there twice", text))
		default:
			seen[base.String()] = true
			bases = append(bases, base)
		}
	}
	if len(c.Runners) == 0 {
		errs = append(errs, errors.New("no runner is named"))
	}
	if c.ConnectTimeout < 0 || c.PollInterval < 0 {
		errs = append(errs, errors.New("a time is negative"))
	}
	return bases, errors.Join(errs...)
}

// Interpreters are rows of an allow-list by the names that a runner of ours knows its interpreters by: python, bash, node.
func Interpreters() []sallyport.Interpreter {
	var rows []sallyport.Interpreter
	for _, r := range []struct{ extension, runtime string }{
		{"py", "python"}, {"sh", "bash"}, {"bash", "bash"}, {"js", "node"}, {"mjs", "node"}, {"cjs", "node"},
	} {
		rows = append(rows, sallyport.Interpreter{Extension: r.extension, Runtime: r.runtime, Program: r.runtime})
	}
	return rows
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Executor sends runs to runners. It is safe for concurrent use.
type Executor struct {
	cfg    Config
	log    *slog.Logger
	client *http.Client
	peers  []*peer
	turn   atomic.Uint64 // spreads runs over equally loaded runners

	stop    context.CancelFunc
	polling sync.WaitGroup
}

// New returns the executor and begins to ask the runners what they can do. It fails only for a Config that cannot be meant. Close
// ends it.
func New(cfg Config) (*Executor, error) {
	bases, err := cfg.validate()
	if err != nil {
		return nil, &sallyport.Error{
			Op: "remote.new", Code: sallyport.CodeInvalidArgument, Err: err,
			Message: "the configuration of the remote executor is wrong: " + strings.ReplaceAll(err.Error(), "\n", "; "),
		}
	}
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, DefaultConnectTimeout)
	cfg.PollInterval = cmp.Or(cfg.PollInterval, DefaultPollInterval)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Executor{cfg: cfg, log: cfg.Logger, client: newClient(cfg)}
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // the polling belongs to no caller; Close ends it
	e.stop = stop
	for i, base := range bases {
		p := &peer{name: fmt.Sprintf("runner %d of %d", i+1, len(bases)), base: base, known: make(chan struct{}), again: make(chan struct{}, 1)}
		e.peers = append(e.peers, p)
		e.polling.Go(func() { e.keepPolling(ctx, p) })
	}
	return e, nil
}

// Kind returns "remote".
func (*Executor) Kind() string { return Kind }

// Close stops asking the runners. Runs under way are not touched.
func (e *Executor) Close() error {
	e.stop()
	e.polling.Wait()
	e.client.CloseIdleConnections()
	return nil
}

// Execute sends req to the least loaded runner that can serve it. A runner that cannot be connected to, or that says itself
// that it began nothing because it is full or stopping, is passed over; any other failure is final.
func (e *Executor) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	if err := ctx.Err(); err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	if fault := requestFault(req); fault != "" {
		return sallyport.Result{}, sallyport.NotStarted(&sallyport.Error{Op: "remote.execute", Code: sallyport.CodeInvalidArgument, Message: fault})
	}
	// A little before the caller gives up, so that silence is told as what it is.
	began := time.Now()
	bounded, cancel := context.WithDeadlineCause(ctx, began.Add(req.Limits.Timeout+req.Grace-req.Grace/16), errSilent)
	defer cancel()

	candidates, err := e.candidates(bounded, req)
	if err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	var last error
	for _, c := range candidates {
		if time.Since(began) > req.Grace/2 {
			break // what is left would cut the script's own time
		}
		result, failed := e.attempt(bounded, c, req, req.Grace-time.Since(began))
		if failed == nil {
			return result, nil
		}
		last = failed.err
		if err := ctx.Err(); err != nil {
			return sallyport.Result{}, failed.mark(err)
		}
		if !failed.next {
			return sallyport.Result{}, failed.mark(failed.err)
		}
		e.log.WarnContext(ctx, "a runner was passed over", "runner", c.peer.base.Redacted(), "cause", failed.err.Error())
	}
	if last == nil {
		last = unreachable(errors.New("no time was left to ask a runner"))
	}
	return sallyport.Result{}, sallyport.NotStarted(last)
}

// requestFault finds what would be wrong with any runner.
func requestFault(req sallyport.ExecRequest) string {
	l := req.Limits
	switch {
	case l.Timeout <= 0 || l.MemoryBytes <= 0 || l.Processes <= 0 || l.CPUMillis <= 0 || l.ScratchBytes <= 0 ||
		l.OutputBytes <= 0 || l.ArtifactBytes <= 0 || l.ArtifactFiles <= 0 || l.CPUTime < 0:
		return "every limit of a run must be set"
	case req.Grace <= 0:
		return "a run needs a grace to be ended in"
	}
	return ""
}

// failure is why an attempt gave no result.
type failure struct {
	err error
	// certain says that nothing of the script began; next, that another runner may be asked.
	certain, next bool
}

// mark marks err as not started when that is certain.
func (f *failure) mark(err error) error {
	if f.certain {
		return sallyport.NotStarted(err)
	}
	return err
}

// errSilent is the cause of a run whose answer did not come in time.
var errSilent = errors.New("the runner did not answer within the timeout and the grace")

func unreachable(cause error) error {
	return &sallyport.Error{Op: "remote.execute", Code: sallyport.CodeRunnerUnreachable, Err: cause}
}
