package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runnerwire"
)

// peer is one runner, as this process sees it.
type peer struct {
	name string // for callers: it tells no address
	base *url.URL

	known chan struct{} // closed after the first poll
	once  sync.Once
	again chan struct{} // asks for a poll soon

	mu       sync.Mutex // guards the fields below
	state    state
	inFlight int
}

// state is what the last poll found.
type state struct {
	// err is why the runner cannot be used; nil when it answered.
	err error
	// extended says that the runner speaks for itself, and more than the minimal contract.
	extended bool
	// said is what it provides: its own words, or the operator's for a minimal one.
	said runnerwire.Capabilities
}

func (s state) usable() bool { return s.err == nil && s.said.Available && !s.said.Draining }

// fault says why the runner is not usable, without an address.
func (s state) fault() string {
	switch {
	case s.err != nil:
		if code := sallyport.CodeOf(s.err); code == sallyport.CodeUnauthenticated {
			return "does not accept our key or certificate"
		}
		return "cannot be reached"
	case s.said.Draining:
		return "is stopping"
	case !s.said.Available:
		return "has no working sandbox: " + short(s.said.Reason)
	}
	return ""
}

func (p *peer) now() (state, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.inFlight
}

func (p *peer) count(delta int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight += delta
}

// doubt asks for a poll soon: something went wrong.
func (p *peer) doubt() {
	select {
	case p.again <- struct{}{}:
	default:
	}
}

// failedPoll is how soon a runner that did not answer is asked again.
const failedPoll = time.Second

func (e *Executor) keepPolling(ctx context.Context, p *peer) {
	for {
		found := e.poll(ctx, p)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		before := p.state
		p.state = found
		p.mu.Unlock()
		first := false
		p.once.Do(func() { close(p.known); first = true })
		if was, is := before.usable(), found.usable(); first || was != is {
			e.tell(ctx, p, found)
		}
		pause := e.cfg.PollInterval
		if !found.usable() {
			pause = min(pause, failedPoll)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.again:
		case <-time.After(pause):
		}
	}
}

func (e *Executor) tell(ctx context.Context, p *peer, found state) {
	if found.usable() {
		e.log.InfoContext(ctx, "a runner is ready", "runner", p.base.Redacted(), "executor", found.said.Executor, "layers", found.said.Layers)
		return
	}
	cause := found.fault()
	if found.err != nil {
		cause = found.err.Error()
	}
	e.log.WarnContext(ctx, "a runner cannot be used", "runner", p.base.Redacted(), "cause", cause)
}

// pollTimeout bounds one question, and maxCapabilities its answer.
const (
	pollTimeout     = 5 * time.Second
	maxCapabilities = 64 << 10
)

// poll asks one runner what it can do.
func (e *Executor) poll(ctx context.Context, p *peer) state {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	got, err := e.exchange(ctx, p, http.MethodGet, runnerwire.PathCapabilities, nil, maxCapabilities)
	if err != nil {
		return state{err: err}
	}
	switch got.status {
	case http.StatusOK:
		s := state{extended: true}
		if err := runnerwire.Decode(got.body, &s.said); err != nil {
			return state{err: fmt.Errorf("the answer to GET /capabilities cannot be read: %w", err)}
		}
		if s.said.Protocol != runnerwire.Protocol {
			return state{err: fmt.Errorf("the runner speaks %q", short(s.said.Protocol))}
		}
		return s
	case http.StatusNotFound:
		return state{said: runnerwire.Capabilities{
			Executor: "minimal", Available: true, Layers: e.cfg.Layers, Missing: undeclared(e.cfg.Layers), Features: e.cfg.Features,
			Reason: "the runner declares nothing about itself", Remedy: "list in remote.provides what it enforces",
		}}
	case http.StatusUnauthorized, http.StatusForbidden:
		return state{err: &sallyport.Error{
			Op: "remote.poll", Code: sallyport.CodeUnauthenticated, Err: fmt.Errorf("the runner answered %d", got.status),
		}}
	default:
		return state{err: fmt.Errorf("the runner answered %d to GET /capabilities", got.status)}
	}
}

// undeclared is what any isolated runner would enforce, whatever its technique, and the operator did not list.
func undeclared(declared []sallyport.Layer) []sallyport.Layer {
	essential := []sallyport.Layer{
		sallyport.LayerNetworkIsolation, sallyport.LayerReadOnlySystem, sallyport.LayerMemoryLimit, sallyport.LayerProcessLimit,
		sallyport.LayerCPULimit, sallyport.LayerGroupKill, sallyport.LayerScratchLimit,
	}
	return without(essential, declared)
}

// short makes a runner's words fit for a sentence.
func short(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if letters := []rune(text); len(letters) > 200 {
		return string(letters[:200]) + "…"
	}
	return text
}

// Health is one runner as the last question found it, for operators: it names addresses.
type Health struct {
	Runner string `json:"runner"`
	Usable bool   `json:"usable"`
	// Cause is why it is not usable.
	Cause    string              `json:"cause,omitempty"`
	Minimal  bool                `json:"minimal"`
	Executor string              `json:"executor,omitempty"`
	Layers   []sallyport.Layer   `json:"layers"`
	Missing  []sallyport.Layer   `json:"missing,omitempty"`
	Features []sallyport.Feature `json:"features"`
	Runtimes []string            `json:"runtimes,omitempty"`
	Slots    int                 `json:"slots"`
	Used     int                 `json:"used"`
}

// Health lists the runners, in the order of the configuration. It waits for the first answer of each as long as ctx allows.
func (e *Executor) Health(ctx context.Context) []Health {
	e.await(ctx)
	list := make([]Health, 0, len(e.peers))
	for _, p := range e.peers {
		s, _ := p.now()
		h := Health{
			Runner: p.base.Redacted(), Usable: s.usable(), Cause: s.fault(), Minimal: s.err == nil && !s.extended, Executor: s.said.Executor,
			Layers: s.said.Layers, Missing: s.said.Missing, Features: s.said.Features, Runtimes: s.said.Runtimes,
			Slots: s.said.Slots, Used: s.said.Used,
		}
		if s.err != nil {
			h.Layers, h.Features = []sallyport.Layer{}, []sallyport.Feature{}
			h.Cause += ": " + short(s.err.Error())
		}
		list = append(list, h)
	}
	return list
}

// await waits until every runner was asked once.
func (e *Executor) await(ctx context.Context) {
	for _, p := range e.peers {
		select {
		case <-p.known:
		case <-ctx.Done():
			p.mu.Lock()
			if p.state.err == nil && p.state.said.Protocol == "" && !p.state.said.Available {
				p.state.err = errors.New("it has not answered yet")
			}
			p.mu.Unlock()
		}
	}
}
