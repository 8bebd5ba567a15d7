// Package mcpbridge carries MCP between lines on stdio and a server's /mcp endpoint, for clients that start a command and cannot
// speak HTTP.
//
// It owns the transport only: concurrent calls, their cancellation, the headers that mirror a message, and an answer for every call
// when the server gives none. It leaves the content of messages, authentication and the protocol to the server. Its one invariant:
// nothing but protocol messages is ever written to the output.
package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
)

// MaxInFlight bounds the calls that wait for an answer at once.
const MaxInFlight = 64

// drainTimeout bounds how long the end of input waits for answers that are due: the longest run in the longest queue.
const drainTimeout = sallyport.MaxTimeout + sallyport.DefaultQueueWait + 2*sallyport.DefaultGrace

// methodListen is the one call that has no end of its own.
const methodListen = "subscriptions/listen"

// Config says where the server is.
type Config struct {
	// Client makes the requests; required. Its redirects are not followed, so the key goes nowhere else.
	Client *http.Client
	// URL of the endpoint, such as http://127.0.0.1:8787/mcp. Required.
	URL string
	// Key is sent as a bearer token; empty sends none.
	Key string
	// Logger receives what the protocol has no place for; nil discards. It must not write to the output of Run.
	Logger *slog.Logger
}

// Run forwards each line of in and writes each answer to out, until in ends and every call is answered (nil), or ctx ends
// (ctx.Err()), which cancels the calls in flight. It waits for everything it started, except for a read of in that nobody can
// interrupt.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	endpoint, err := url.Parse(cfg.URL)
	if cfg.Client == nil || err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return sallyport.Errorf("mcp.bridge", sallyport.CodeInvalidArgument, "the server's address must be an http or https URL")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	client := *cfg.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b := &bridge{cfg: cfg, client: &client, shown: endpoint.Redacted(), out: mcpwire.NewWriter(out), calls: map[string]*inFlight{}}

	ctx, stop := context.WithCancel(ctx)
	defer b.leave(ctx)
	defer b.started.Wait()
	defer stop()
	lines := make(chan lineOrErr)
	go read(ctx, mcpwire.NewLines(in, mcpwire.MaxLine), lines)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next := <-lines:
			switch {
			case errors.Is(next.err, mcpwire.ErrLineTooLong):
				b.answer(mcpwire.TooLong(mcpwire.MaxLine))
			case errors.Is(next.err, io.EOF):
				return b.drain(ctx)
			case next.err != nil:
				return next.err
			default:
				b.accept(ctx, next.line)
			}
		}
	}
}

type lineOrErr struct {
	line []byte
	err  error
}

// read is a goroutine of its own because a read of standard input cannot be interrupted.
func read(ctx context.Context, lines *mcpwire.Lines, to chan<- lineOrErr) {
	for {
		line, err := lines.Next()
		select {
		case to <- lineOrErr{line, err}:
		case <-ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, mcpwire.ErrLineTooLong) {
			return
		}
	}
}

type bridge struct {
	cfg     Config
	client  *http.Client
	shown   string // the address, without a password
	out     *mcpwire.Writer
	started sync.WaitGroup

	mu    sync.Mutex
	calls map[string]*inFlight // by id as received
	// version is what initialize agreed on, for the messages of the older revisions, which do not name theirs.
	version string
	// session is the server's, where it began one with the older revisions; within it the server may ask the client.
	session string
}

// inFlight is one call that waits for its answer.
type inFlight struct {
	message mcpwire.Message
	cancel  context.CancelFunc
}

// accept starts what one line asks for.
func (b *bridge) accept(ctx context.Context, line []byte) {
	message, err := mcpwire.Parse(line)
	if err != nil {
		fault, ok := errors.AsType[*mcpwire.Error](err)
		if !ok {
			fault = &mcpwire.Error{Code: mcpwire.CodeInvalidRequest, Message: "invalid request"}
		}
		b.answer(fault)
		return
	}
	switch {
	case message.Method == "":
		if b.inSession() == "" {
			b.cfg.Logger.DebugContext(ctx, "an answer that nobody asked for was dropped")
			return
		}
		b.started.Go(func() { b.notify(ctx, message, line) })
	case message.IsCall():
		b.call(ctx, message, line)
	case message.Method == "notifications/cancelled":
		// Closing the request is how a server without sessions learns of it.
		b.cancel(message.CancelID)
	default:
		b.started.Go(func() { b.notify(ctx, message, line) })
	}
}

// call starts a call, unless its id is taken or too many wait already.
func (b *bridge) call(ctx context.Context, message mcpwire.Message, line []byte) {
	ctx, cancel := context.WithCancel(ctx)
	id := string(message.ID)
	own := &inFlight{message, cancel}
	b.mu.Lock()
	_, taken := b.calls[id]
	full := len(b.calls) >= MaxInFlight
	if !taken && !full {
		b.calls[id] = own
	}
	b.mu.Unlock()
	switch {
	case taken:
		cancel()
		b.answer(&mcpwire.Error{Code: mcpwire.CodeInvalidRequest, Message: "invalid request: the id is in use by a call that is not answered yet"})
	case full:
		cancel()
		b.answer(&mcpwire.Error{
			ID: message.ID, Code: mcpwire.CodeTransport, Message: "too many calls wait for an answer; try again",
			Data: sallyport.Public(&sallyport.Error{Op: "mcp.bridge", Code: sallyport.CodeRateLimited}),
		})
	default:
		b.started.Go(func() {
			defer cancel()
			fault := b.forward(ctx, own, line)
			b.release(own)
			// A call that was cancelled gets no answer.
			if fault != nil && ctx.Err() == nil {
				fault.ID = message.ID
				b.answer(fault)
			}
		})
	}
}

// cancel ends the call with this id, if it is still in flight.
func (b *bridge) cancel(id json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if own, ok := b.calls[string(id)]; ok {
		own.cancel()
	}
}

// release makes the id of a call free again. It comes before the answer is written: the client may use the id as soon as it reads that.
func (b *bridge) release(own *inFlight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id := string(own.message.ID); b.calls[id] == own {
		delete(b.calls, id)
	}
}

// drain waits for the answers that are due.
func (b *bridge) drain(ctx context.Context) error {
	b.mu.Lock()
	for _, own := range b.calls {
		if own.message.Method == methodListen {
			own.cancel()
		}
	}
	b.mu.Unlock()
	done := make(chan struct{})
	go func() {
		b.started.Wait()
		close(done)
	}()
	limit := time.NewTimer(drainTimeout)
	defer limit.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return sallyport.Errorf("mcp.bridge", sallyport.CodeDeadlineExceeded, "the server did not answer every call before the time was over")
	}
}

// answer writes a fault. When the client no longer reads there is nobody left to tell.
func (b *bridge) answer(fault *mcpwire.Error) {
	if err := b.out.WriteLine(fault.Response()); err != nil {
		b.cfg.Logger.Warn("the client does not read", "error", err)
	}
}

func (b *bridge) inSession() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// enter keeps the session; an empty one is none.
func (b *bridge) enter(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session = session
}

func (b *bridge) agreed() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.version
}

func (b *bridge) agree(version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version = version
}
