package mcpapi

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
)

// drainTimeout bounds how long the end of input waits for calls that are not answered yet: the longest run in the longest queue.
const drainTimeout = sallyport.MaxTimeout + sallyport.DefaultQueueWait + 2*sallyport.DefaultGrace

// ServeStdio speaks the protocol over lines, for one caller: each line of in is a message, each line of out an answer. It returns
// nil when in has ended and every call was answered, and ctx.Err() when ctx ends, which cancels the calls that run. Nothing else is
// written to out.
func (a *API) ServeStdio(ctx context.Context, principal sallyport.Principal, in io.Reader, out io.Writer) error {
	if !known(principal) {
		return &sallyport.Error{Op: "mcp.stdio", Code: sallyport.CodeUnauthenticated}
	}
	transport := &lineTransport{
		stop: ctx.Done(), lines: make(chan lineOrErr), closed: make(chan struct{}),
		out: mcpwire.NewWriter(out), unanswered: map[jsonrpc.ID]struct{}{}, answered: make(chan struct{}, 1),
	}
	go transport.read(mcpwire.NewLines(in, mcpwire.MaxLine))
	session, err := a.server.Connect(withCaller(ctx, caller{principal: principal}), transport, nil)
	if err != nil {
		return &sallyport.Error{Op: "mcp.stdio", Code: sallyport.CodeInternal, Err: err}
	}
	err = session.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// lineTransport is the SDK's transport over lines, with two differences to the SDK's own: a malformed line is answered and not the
// end of the connection, and the end of input waits for the answers that are due.
type lineTransport struct {
	stop   <-chan struct{}
	lines  chan lineOrErr
	closed chan struct{}
	close  sync.Once
	out    *mcpwire.Writer

	mu         sync.Mutex
	unanswered map[jsonrpc.ID]struct{}
	answered   chan struct{} // holds one signal: something was answered
}

type lineOrErr struct {
	line []byte
	err  error
}

// Connect is called once, by the SDK.
//
//nolint:ireturn // the SDK's interface
func (t *lineTransport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

// SessionID is none.
func (t *lineTransport) SessionID() string { return "" }

// Close unblocks Read.
func (t *lineTransport) Close() error {
	t.close.Do(func() { close(t.closed) })
	return nil
}

// read is a goroutine of its own because a read of standard input cannot be interrupted; it ends with its input or the process.
func (t *lineTransport) read(lines *mcpwire.Lines) {
	for {
		line, err := lines.Next()
		select {
		case t.lines <- lineOrErr{line, err}:
		case <-t.closed:
			return
		}
		if err != nil && !errors.Is(err, mcpwire.ErrLineTooLong) {
			return
		}
	}
}

// Read returns the next message that is fit for the SDK.
//
//nolint:ireturn // the SDK's interface
func (t *lineTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-t.stop:
			return nil, io.EOF
		case <-t.closed:
			return nil, io.EOF
		case next := <-t.lines:
			message, err := t.accept(next)
			if err != nil {
				if errors.Is(err, io.EOF) {
					t.drain()
				}
				return nil, err
			}
			if message != nil {
				return message, nil
			}
		}
	}
}

// accept decodes one line. It answers a faulty one itself and returns neither a message nor an error.
//
//nolint:ireturn,nilnil // the SDK's interface; a line that was answered here is neither
func (t *lineTransport) accept(next lineOrErr) (jsonrpc.Message, error) {
	switch {
	case errors.Is(next.err, mcpwire.ErrLineTooLong):
		return nil, t.out.WriteLine(mcpwire.TooLong(mcpwire.MaxLine).Response())
	case next.err != nil:
		return nil, next.err
	}
	outside, err := mcpwire.Parse(next.line)
	if err != nil {
		fault, ok := errors.AsType[*mcpwire.Error](err)
		if !ok {
			return nil, err
		}
		return nil, t.out.WriteLine(fault.Response())
	}
	message, err := jsonrpc.DecodeMessage(next.line)
	if response, ok := message.(*jsonrpc.Response); ok && err == nil {
		return response, nil // to what a call asked the client
	}
	req, isRequest := message.(*jsonrpc.Request)
	if err != nil || !isRequest {
		fault := &mcpwire.Error{ID: outside.ID, Code: mcpwire.CodeInvalidRequest, Message: "invalid request"}
		return nil, t.out.WriteLine(fault.Response())
	}
	// A subscription is answered when it ends, which the end of input brings about.
	if req.IsCall() && outside.Method != "subscriptions/listen" {
		t.mu.Lock()
		t.unanswered[req.ID] = struct{}{}
		t.mu.Unlock()
	}
	return req, nil
}

// Write writes one message.
func (t *lineTransport) Write(_ context.Context, message jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	err = t.out.WriteLine(data)
	if response, ok := message.(*jsonrpc.Response); ok {
		t.mu.Lock()
		delete(t.unanswered, response.ID)
		t.mu.Unlock()
		select {
		case t.answered <- struct{}{}:
		default:
		}
	}
	return err
}

// drain waits until every call is answered, within drainTimeout.
func (t *lineTransport) drain() {
	limit := time.NewTimer(drainTimeout)
	defer limit.Stop()
	for {
		t.mu.Lock()
		due := len(t.unanswered)
		t.mu.Unlock()
		if due == 0 {
			return
		}
		select {
		case <-t.answered:
		case <-t.stop:
			return
		case <-t.closed:
			return
		case <-limit.C:
			return
		}
	}
}
