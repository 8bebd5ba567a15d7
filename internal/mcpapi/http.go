package mcpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

// Handler serves Streamable HTTP, both revisions on one URL: the newer without sessions, the older with one for whoever asks for it.
// principal authenticates each request: an error of UNAUTHENTICATED becomes a 401 challenge, ACCESS_DENIED a 403 one, others the status
// of their class. What principal does not name is not served. A caller who closes the stream cancels the call.
func (a *API) Handler(principal func(*http.Request) (sallyport.Principal, error)) http.Handler {
	protocol := mcp.NewStreamableHTTPHandler(
		func(r *http.Request) *mcp.Server {
			if _, ok := callerFrom(r.Context()); !ok {
				return nil // the SDK answers 400
			}
			return a.server
		},
		&mcp.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: a.cfg.MaxBodyBytes,
		},
	)
	within := &sessions{byID: map[string]*session{}, protocol: mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return a.server }, // nobody gets there but through serveSession
		&mcp.StreamableHTTPOptions{SessionTimeout: sessionIdle, MaxRequestBodyBytes: a.cfg.MaxBodyBytes},
	)}
	// Browsers name the page that asks. Only pages of this very host may.
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.deny(w, nil, sallyport.Errorf("mcp.origin", sallyport.CodeAccessDenied, "requests from another origin are refused"))
	}))
	return origin.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del(callHeader)
		stream := (r.Method == http.MethodGet || r.Method == http.MethodDelete) && r.Header.Get(sessionHeader) != ""
		if r.Method != http.MethodPost && !stream {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		who, err := authenticate(r, principal)
		if err != nil {
			a.challenge(w, r, who, err)
			return
		}
		if stream {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(a.streams, cancel)() //nolint:contextcheck // two contexts meet here on purpose
			a.serveSession(w, r.WithContext(ctx), caller{principal: who}, within)
			return
		}
		a.serve(w, r, who, protocol, within)
	}))
}

// authenticate never lets an empty principal through.
func authenticate(r *http.Request, principal func(*http.Request) (sallyport.Principal, error)) (sallyport.Principal, error) {
	unknown := &sallyport.Error{Op: "mcp.authenticate", Code: sallyport.CodeUnauthenticated}
	if principal == nil {
		return sallyport.Principal{}, unknown
	}
	who, err := principal(r)
	if err == nil && !known(who) {
		err = unknown
	}
	return who, err
}

// serve judges the outside of the message and hands it to the SDK.
func (a *API) serve(w http.ResponseWriter, r *http.Request, who sallyport.Principal, protocol http.Handler, within *sessions) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != reply.MediaJSON {
		http.Error(w, "Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.cfg.MaxBodyBytes))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			a.deny(w, nil, sallyport.Errorf("mcp.body", sallyport.CodeRequestTooLarge, "the message is over %d bytes", a.cfg.MaxBodyBytes))
			return
		}
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	message, err := mcpwire.Parse(body)
	if err != nil {
		fault, ok := errors.AsType[*mcpwire.Error](err)
		if !ok {
			fault = &mcpwire.Error{Code: mcpwire.CodeInvalidRequest, Message: "invalid request"}
		}
		write(w, http.StatusBadRequest, fault)
		return
	}
	if scope, lacks := a.lacks(who, message); a.cfg.StepUp && who.KeyID == "" && lacks {
		err := who.Require("mcp."+message.Name, scope)
		w.Header().Set("WWW-Authenticate", reply.InsufficientScope(who, scope)+reply.Metadata(a.cfg.ResourceMetadata))
		a.deny(w, message.ID, err)
		return
	}
	if fault := checkTaskName(r, message); fault != nil {
		write(w, http.StatusBadRequest, fault)
		return
	}
	from := caller{principal: who, gone: r.Context()}
	if _, found := a.tool(message.Name); found && message.Method == mcpwire.MethodCallTool {
		// The arguments take a way around the SDK: it would decode them for its header checks, through float64.
		from.arguments, body = message.Arguments, message.WithoutArguments(body)
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if inSession(r, message) {
		a.serveSession(w, r, from, within)
		return
	}
	protocol.ServeHTTP(w, r.WithContext(withCaller(r.Context(), from))) //nolint:contextcheck // it is the request's own
}

// lacks reports whether the message calls a tool, or a method of the Skills extension, whose scope the caller does not carry.
func (a *API) lacks(who sallyport.Principal, message mcpwire.Message) (sallyport.Scope, bool) {
	switch message.Method {
	case methodTaskGet, methodTaskUpdate:
		return sallyport.ScopeMemoryRead, !who.Has(sallyport.ScopeMemoryRead)
	case methodTaskCancel:
		return sallyport.ScopeMemoryWrite, !who.Has(sallyport.ScopeMemoryWrite)
	case mcpwire.MethodCallTool:
		t, found := a.tool(message.Name)
		return t.scope, found && !who.Has(t.scope)
	case methodSkillsList, methodSkillsGet, methodDirectoryRead, methodListResources, methodReadResource:
		return sallyport.ScopeMemoryRead, a.cfg.Catalogue != nil && !who.Has(sallyport.ScopeMemoryRead)
	}
	return "", false
}

// challenge answers a caller that is not let in. A token that came and was refused is invalid_token; without one the challenge names
// no error.
func (a *API) challenge(w http.ResponseWriter, r *http.Request, who sallyport.Principal, err error) {
	switch sallyport.CodeOf(err) {
	case sallyport.CodeUnauthenticated:
		header := `Bearer realm="sallyport", scope="` + reply.UsefulScopes + `"`
		if r.Header.Get("Authorization") != "" {
			header += `, error="invalid_token", error_description="the key or token is not valid"`
		}
		w.Header().Set("WWW-Authenticate", header+reply.Metadata(a.cfg.ResourceMetadata))
	case sallyport.CodeAccessDenied:
		w.Header().Set("WWW-Authenticate", reply.InsufficientScope(who, ""))
	}
	a.cfg.Logger.InfoContext(r.Context(), "mcp request refused", "code", sallyport.CodeOf(err), "remote", r.RemoteAddr)
	a.deny(w, nil, err)
}

// deny answers with err, in the form of the protocol and with our public error as its data.
func (a *API) deny(w http.ResponseWriter, id json.RawMessage, err error) {
	public := sallyport.Public(err)
	if public.Code == sallyport.CodeRateLimited {
		w.Header().Set("Retry-After", reply.RetryAfter(err))
	}
	write(w, reply.HTTPStatus(err), &mcpwire.Error{
		ID: id, Code: mcpwire.CodeTransport, Message: string(public.Code) + ": " + public.Message, Data: public,
	})
}

func write(w http.ResponseWriter, status int, fault *mcpwire.Error) {
	w.Header().Set("Content-Type", reply.MediaJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// A client that is gone is no error of ours.
	_, _ = w.Write(fault.Response())
}
