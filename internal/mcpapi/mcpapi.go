// Package mcpapi is the MCP surface: the tools, over Streamable HTTP and over stdio, for the revisions 2026-07-28 and
// 2025-11-25 of the protocol.
//
// It owns what an agent sees: names, schemas, descriptions, budgets and the text beside every envelope. It leaves the meaning of a
// call to packages registry and run, authentication to its caller, and the protocol to the official SDK. Its one invariant: no
// message is handled without a Principal, and every answer of a tool, good or bad, is an Envelope.
package mcpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

// Skills is what the tools need of package registry.
type Skills interface {
	List(ctx context.Context, p sallyport.Principal, req registry.ListRequest) (registry.ListResult, error)
	Show(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (registry.SkillView, error)
	Revision(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error)
	Component(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, revision sallyport.RevisionID, pathOrID string) (sallyport.Component, error)
	Save(ctx context.Context, p sallyport.Principal, req registry.SaveRequest) (registry.SaveResult, error)
	SaveURL(ctx context.Context, p sallyport.Principal, url string, opts registry.ImportOptions) (registry.SaveResult, registry.Source, error)
	Context(ctx context.Context, p sallyport.Principal, req registry.ContextRequest) (registry.ContextResult, error)
}

// Runs is what the tools need of package run.
type Runs interface {
	Run(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error)
	Start(ctx context.Context, p sallyport.Principal, req run.Request) (sallyport.Execution, error)
	Wait(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID, patience time.Duration) (sallyport.Execution, error)
	Get(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID) (sallyport.Execution, error)
	Cancel(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID) error
	DecideInClient(ctx context.Context, p sallyport.Principal, id sallyport.ConfirmationID, request, revision sallyport.Digest, yes bool) (sallyport.Confirmation, error)
	Explain(ctx context.Context, p sallyport.Principal, req run.Request) (run.Explanation, error)
	List(ctx context.Context, p sallyport.Principal, req run.ListRequest) (run.ListResult, error)
}

// Config is what an API needs. Skills and Runs are required: without one, its tools answer INTERNAL.
type Config struct {
	Skills Skills
	Runs   Runs
	// Catalogue serves the Skills extension; nil leaves the extension out.
	Catalogue Catalogue
	// Version is what the server calls itself; empty means "dev".
	Version string
	// MaxTimeout is the top a caller may ask for, in whole seconds; zero means sallyport.MaxTimeout.
	MaxTimeout time.Duration
	// MaxBodyBytes bounds a message over HTTP; zero means sallyport.DefaultBodyBytes. A line on stdio is bounded by
	// mcpwire.MaxLine.
	MaxBodyBytes int64
	// ConfirmInClient lets a client ask its user whether a run may begin. Mask and MaskArgv hide secrets in what is shown; nil hides all.
	ConfirmInClient bool
	Mask            func(json.RawMessage) json.RawMessage
	MaskArgv        func([]string) []string
	// TaskAfter is how long a call that may become a task waits for its run first; zero means two seconds.
	TaskAfter time.Duration
	// Observe is told of every tool call when it is over; nil means nobody. It must not block.
	Observe func(ctx context.Context, call ToolCall)
	// StepUp answers a tool call whose scope the caller lacks with HTTP 403 and an insufficient_scope challenge, for callers
	// without a key: they can log in for more. False, and a caller with a key, gets an envelope of ACCESS_DENIED, which the model
	// can read.
	StepUp bool
	// ResourceMetadata is the URL of the server's metadata (RFC 9728), which challenges then name; empty for none.
	ResourceMetadata string
	Logger           *slog.Logger // nil discards; argument values are never logged

	// Extend and ExtendOptions put more on the server than the product has. They are for the conformance fixtures only.
	Extend        func(*mcp.Server)
	ExtendOptions func(*mcp.ServerOptions)
	ExtendTasks   Tasks
}

// API serves the tools. It is safe for concurrent use.
type API struct {
	cfg    Config
	tools  []tool
	tasks  []Tasks
	server *mcp.Server
	calls  callers
	// stateKey signs what travels through a client.
	stateKey []byte
	// streams ends when endStreams is called.
	streams    context.Context //nolint:containedctx // it is the life of the API, not of a call
	endStreams context.CancelFunc
}

// instructions tell a model what the server is for, before it reads any tool.
const instructions = `Sallyport keeps skills: named, versioned bundles of instructions, references and scripts.
1. recall_context gathers, for a task, what the best skills say and which of their scripts the caller may run, within a token budget.
2. recall_cloud_skill with a query finds skills; with a slug it returns one skill: its instructions, its scripts with the arguments they take, and its files.
3. execute_cloud_skill runs one script of a skill in a sandbox without network and returns its output. An administrator must have granted exactly this content; a refusal says what is missing, and calling again does not change it.
4. save_cloud_skill stores a new skill or a new revision of one.
Every result is an envelope {kind, data, error, request_id}. When error is set, error.code is stable and error.message says what to do.`

// New returns an API.
func New(cfg Config) *API {
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	if cfg.MaxTimeout <= 0 {
		cfg.MaxTimeout = sallyport.MaxTimeout
	}
	if cfg.MaxBodyBytes <= 0 {
		cfg.MaxBodyBytes = sallyport.DefaultBodyBytes
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Mask == nil {
		cfg.Mask = func(json.RawMessage) json.RawMessage { return json.RawMessage(`"***"`) }
	}
	if cfg.MaskArgv == nil {
		cfg.MaskArgv = func([]string) []string { return []string{"***"} }
	}
	if cfg.TaskAfter <= 0 {
		cfg.TaskAfter = defaultTaskAfter
	}
	a := &API{cfg: cfg, calls: callers{pending: map[string]caller{}}, stateKey: newStateKey()}
	a.streams, a.endStreams = context.WithCancel(context.Background()) //nolint:forbidigo // it ends with EndStreams
	a.tasks = append(a.tasks, executions{a})
	if cfg.ExtendTasks != nil {
		a.tasks = append(a.tasks, cfg.ExtendTasks)
	}
	a.tools = a.list()
	// The SDK gets no logger: its messages may quote what a caller sent.
	options := &mcp.ServerOptions{
		Instructions: instructions,
		// The tools never change while a server runs, nobody is told when skills do, and there is no logging capability.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		// The SDK's default is "public": any intermediary might then hand one tenant's answer to another.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	}
	if cfg.Catalogue != nil {
		options.Capabilities.Resources = &mcp.ResourceCapabilities{}
	}
	if cfg.ExtendOptions != nil {
		cfg.ExtendOptions(options)
	}
	if cfg.Catalogue != nil {
		declareSkills(options)
	}
	declareTasks(options)
	a.server = mcp.NewServer(&mcp.Implementation{Name: "sallyport", Title: "Sallyport", Version: cfg.Version}, options)
	for _, t := range a.tools {
		a.server.AddTool(t.describe(), a.handler(t))
	}
	if cfg.Extend != nil {
		cfg.Extend(a.server)
	}
	if cfg.Catalogue != nil {
		if err := a.addSkills(); err != nil {
			// Only a method's name can be wrong, and the names are constants.
			panic(err)
		}
	}
	if err := a.addTasks(); err != nil {
		panic(err)
	}
	// Added last, so it stands before everything else.
	a.server.AddReceivingMiddleware(a.guard)
	return a
}

// caller travels in the context of one message, because the SDK offers no other way from the transport to a handler. Nothing
// behind handler reads it: tools and services get the Principal as a parameter.
type caller struct {
	principal sallyport.Principal
	// gone ends when the caller hangs up; nil when the transport has other ways to say so.
	gone context.Context //nolint:containedctx // it is the other end of the wire, not this call's own context
	// arguments of a call to one of our tools, when they did not go through the SDK.
	arguments json.RawMessage
}

type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerFrom returns the caller of the message; false when there is none, or one who may do nothing.
func callerFrom(ctx context.Context) (caller, bool) {
	c, ok := ctx.Value(callerKey{}).(caller)
	return c, ok && known(c.principal)
}

// known reports whether p names somebody in some tenant.
func known(p sallyport.Principal) bool { return p.ID != "" && p.TenantID != "" }

// guard stands before every method of the protocol: without a Principal nothing is handled, and a panic ends one message and not
// the server.
func (a *API) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				a.cfg.Logger.ErrorContext(ctx, "an mcp handler panicked", "method", method, "cause", cause)
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		ctx = a.calledIn(ctx, req)
		if _, ok := callerFrom(ctx); !ok {
			return nil, &jsonrpc.Error{
				Code: mcpwire.CodeTransport, Message: sallyport.Lookup(sallyport.CodeUnauthenticated).Message,
			}
		}
		if call, ok := req.(*mcp.CallToolRequest); ok && method == mcpwire.MethodCallTool && !toolName(call.Params.Name) {
			// The SDK would repeat the name, whatever it is.
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool: a name is 1 to 128 letters, digits, _, - and dots; tools/list gives those there are"}
		}
		return next(ctx, method, req)
	}
}

// toolName reports whether a tool could have this name, by the rules of the protocol.
func toolName(name string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
	return name != "" && len(name) <= 128 && strings.Trim(name, allowed) == ""
}
