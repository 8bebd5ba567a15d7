package mcpbridge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
)

// firstMirrored is the revision from which on headers repeat what the body says.
const firstMirrored = "2026-07-28"

// maxErrorBody bounds what is read of an answer that is no protocol message, in bytes.
const maxErrorBody = 64 << 10

// notify sends a message that expects no answer.
func (b *bridge) notify(ctx context.Context, message mcpwire.Message, line []byte) {
	resp, err := b.post(ctx, message, line)
	if err != nil {
		b.cfg.Logger.WarnContext(ctx, "a notification was not delivered", "method", message.Method, "error", err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusBadRequest {
		b.cfg.Logger.WarnContext(ctx, "a notification was refused", "method", message.Method, "status", resp.StatusCode)
	}
}

// forward makes one call and writes everything that the server says to it. It returns why there is no answer, nil when there was one.
func (b *bridge) forward(ctx context.Context, own *inFlight, line []byte) *mcpwire.Error {
	resp, err := b.post(ctx, own.message, line)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the address in it, which may hold a password
		}
		return broken("the server at %s cannot be reached: %v", b.shown, err)
	}
	defer func() { _ = resp.Body.Close() }()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode != http.StatusOK:
		return b.refusal(resp, own)
	case media == "text/event-stream":
		return b.stream(own, resp.Body)
	case media == "application/json":
		data, err := io.ReadAll(io.LimitReader(resp.Body, mcpwire.MaxLine+1))
		if err != nil || len(data) > mcpwire.MaxLine {
			return broken("the server's answer was cut off or is too large")
		}
		answered, err := b.deliver(own, data)
		return missing(answered, err)
	default:
		return broken("the server at %s does not speak MCP there", b.shown)
	}
}

// post sends one message, within the server's session if there is one. A session that the server no longer knows was refused before
// anything was done, so the message goes out again without.
func (b *bridge) post(ctx context.Context, message mcpwire.Message, line []byte) (*http.Response, error) {
	session := b.inSession()
	if message.ProtocolVersion != "" || message.Method == "initialize" {
		session = ""
	}
	resp, err := b.send(ctx, message, line, session)
	if err != nil || session == "" || resp.StatusCode != http.StatusNotFound {
		if err == nil && message.Method == "initialize" && resp.StatusCode == http.StatusOK {
			b.enter(resp.Header.Get(sessionHeader))
		}
		return resp, err
	}
	_ = resp.Body.Close()
	b.enter("")
	return b.send(ctx, message, line, "")
}

const sessionHeader = "Mcp-Session-Id"

// leaveWait bounds the goodbye.
const leaveWait = 2 * time.Second

// leave ends the server's session. One that cannot be told ends by itself.
func (b *bridge) leave(ctx context.Context) {
	session := b.inSession()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, b.cfg.URL, http.NoBody)
	if err != nil {
		return
	}
	b.identify(req, b.agreed(), session)
	if resp, err := b.client.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

// identify sets the headers that say who sends the request, and within what.
func (b *bridge) identify(req *http.Request, version, session string) {
	if b.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+b.cfg.Key)
	}
	if version != "" {
		req.Header.Set("Mcp-Protocol-Version", headerValue(version))
	}
	if session != "" {
		req.Header.Set(sessionHeader, session)
	}
}

// send is one request with the headers that belong to the message.
func (b *bridge) send(ctx context.Context, message mcpwire.Message, line []byte, session string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.cfg.URL, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	version := message.ProtocolVersion
	if version == "" && message.Method != "initialize" {
		version = b.agreed()
	}
	b.identify(req, version, session)
	if version >= firstMirrored {
		req.Header.Set("Mcp-Method", headerValue(message.Method))
		if message.Name != "" {
			req.Header.Set("Mcp-Name", headerValue(message.Name))
		}
	}
	return b.client.Do(req)
}

// stream writes the messages of an event stream until the answer came.
func (b *bridge) stream(own *inFlight, body io.Reader) *mcpwire.Error {
	events := newEvents(body, mcpwire.MaxLine)
	for {
		data, err := events.next()
		if err != nil {
			return missing(false, err)
		}
		answered, err := b.deliver(own, data)
		if answered || err != nil {
			return missing(answered, err)
		}
	}
}

// deliver writes one message as one line and reports whether it is the answer to the call.
func (b *bridge) deliver(own *inFlight, data []byte) (answered bool, err error) {
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil {
		return false, errors.New("the server sent a message that is no JSON")
	}
	var head struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	// A result that is no object has no version; the message is passed on whatever it is.
	_ = json.Unmarshal(line.Bytes(), &head)
	answered = head.Method == nil && sameID(head.ID, own.message.ID)
	if answered && own.message.Method == "initialize" && head.Result.ProtocolVersion != "" {
		b.agree(head.Result.ProtocolVersion)
	}
	if answered {
		b.release(own)
	}
	return answered, b.out.WriteLine(line.Bytes())
}

// refusal turns an answer of HTTP into one of the protocol: the server's own when it sent one.
func (b *bridge) refusal(resp *http.Response, own *inFlight) *mcpwire.Error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return broken("the server answered %s", resp.Status)
	}
	var body struct {
		ID    json.RawMessage `json:"id"`
		Error *struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal(data, &body); err != nil || body.Error == nil {
		return broken("the server answered %s", resp.Status)
	}
	if sameID(body.ID, own.message.ID) {
		answered, err := b.deliver(own, data)
		return missing(answered, err)
	}
	fault := &mcpwire.Error{Code: body.Error.Code, Message: body.Error.Message}
	var public sallyport.PublicError
	if len(body.Error.Data) > 0 && json.Unmarshal(body.Error.Data, &public) == nil && public.Code != "" {
		fault.Data = &public
	}
	return fault
}

// missing is nil when the answer came.
func missing(answered bool, err error) *mcpwire.Error {
	switch {
	case answered:
		return nil
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return broken("the server ended the stream without an answer; whether the call was carried out is not known")
	default:
		return broken("the server's answer could not be read: %v", err)
	}
}

func broken(format string, args ...any) *mcpwire.Error {
	return &mcpwire.Error{Code: mcpwire.CodeTransport, Message: fmt.Sprintf(format, args...)}
}

// sameID compares by value: a server may write a string in another way.
func sameID(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	if bytes.Equal(a, b) {
		return true
	}
	var textA, textB string
	return json.Unmarshal(a, &textA) == nil && json.Unmarshal(b, &textB) == nil && textA == textB
}

// headerValue writes s so that it survives in a header, in the way the protocol agreed on for what is not plain.
func headerValue(s string) string {
	plain := strings.TrimSpace(s) == s && !strings.HasPrefix(s, "=?base64?")
	for i := range len(s) {
		plain = plain && s[i] >= 0x20 && s[i] <= 0x7e
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}
