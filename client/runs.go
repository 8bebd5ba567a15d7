package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// RunRequest asks to run a script, or to explain whether it would run.
type RunRequest struct {
	Ref        sallyport.SkillRef
	RevisionID sallyport.RevisionID // empty: published, else latest
	// ScriptPath is a component's path or its id.
	ScriptPath string
	// Args is input_args, a JSON object that is sent byte for byte; nil sends none.
	Args json.RawMessage
	// Argv is nil when absent.
	Argv  []string
	Files []sallyport.InputFile
	// TimeoutSeconds is nil when absent; a zero is sent, and refused.
	TimeoutSeconds *int64
	// TraceParent is a W3C trace context, empty when there is none.
	TraceParent string
	// IdempotencyKey makes Run safe to repeat for 24 hours: the same key runs once, and every other call with it gets that record.
	// Empty runs each call. Explain does not look at it.
	IdempotencyKey string
}

type runBody struct {
	ScriptPath     string               `json:"script_path"`
	RevisionID     sallyport.RevisionID `json:"revision_id,omitempty"`
	TeamID         sallyport.TeamID     `json:"team_id,omitempty"`
	Argv           []string             `json:"argv,omitzero"`
	Files          []inputBody          `json:"files,omitempty"`
	TimeoutSeconds *int64               `json:"timeout_seconds,omitempty"`
	Async          bool                 `json:"async,omitempty"`
}

type inputBody struct {
	Name          string `json:"name"`
	ContentBase64 string `json:"content_base64"`
}

// Run runs a script. It returns an error when the run was refused or broke; whatever the script did is data, and [Execution.Err]
// of the root package tells it as an error.
func (c *Client) Run(ctx context.Context, req RunRequest) (sallyport.Envelope[sallyport.Execution], error) {
	return c.execute(ctx, req, false)
}

// Start is Run for a caller who does not wait: it returns the execution as soon as it is approved and recorded. [Client.Wait] waits for
// its end and [Client.Cancel] stops it.
func (c *Client) Start(ctx context.Context, req RunRequest) (sallyport.Envelope[sallyport.Execution], error) {
	return c.execute(ctx, req, true)
}

func (c *Client) execute(ctx context.Context, req RunRequest, async bool) (sallyport.Envelope[sallyport.Execution], error) {
	r, err := req.post("/execute", async)
	if err != nil {
		return sallyport.Envelope[sallyport.Execution]{}, err
	}
	r.idempotent(req.IdempotencyKey)
	return call[sallyport.Execution](ctx, c, r)
}

// Explain asks the same gates without running.
func (c *Client) Explain(ctx context.Context, req RunRequest) (sallyport.Envelope[run.Explanation], error) {
	r, err := req.post("/explain", false)
	if err != nil {
		return sallyport.Envelope[run.Explanation]{}, err
	}
	return call[run.Explanation](ctx, c, r)
}

func (req RunRequest) post(verb string, async bool) (request, error) {
	path, _, err := skillPath(req.Ref)
	if err != nil {
		return request{}, err
	}
	body := runBody{
		ScriptPath: req.ScriptPath, RevisionID: req.RevisionID, TeamID: req.Ref.TeamID, Argv: req.Argv,
		TimeoutSeconds: req.TimeoutSeconds, Async: async,
	}
	for _, f := range req.Files {
		body.Files = append(body.Files, inputBody{f.Name, base64.StdEncoding.EncodeToString(f.Content)})
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return request{}, &sallyport.Error{Op: "client.run", Code: sallyport.CodeInternal, Err: err}
	}
	if encoded, err = withArgs(encoded, req.Args); err != nil {
		return request{}, err
	}
	r := request{method: http.MethodPost, path: path + verb, body: bytes.NewReader(encoded), media: "application/json"}
	if req.TraceParent != "" {
		r.header = http.Header{"Traceparent": {req.TraceParent}}
	}
	return r, nil
}

// withArgs puts args into the object as they are: an encoder would write them anew.
func withArgs(object []byte, args json.RawMessage) ([]byte, error) {
	if args == nil {
		return object, nil
	}
	if !json.Valid(args) {
		return nil, invalid("input_args is not JSON")
	}
	var b bytes.Buffer
	b.WriteString(`{"input_args":`)
	b.Write(args)
	b.WriteByte(',')
	b.Write(object[1:])
	return b.Bytes(), nil
}

// Executions lists executions, newest first, without their streams.
func (c *Client) Executions(ctx context.Context, req run.ListRequest) (sallyport.Envelope[run.ListResult], error) {
	query := refQuery(req.Ref)
	set(query, "status", req.Status)
	set(query, "cursor", req.Cursor)
	setLimit(query, req.Limit)
	return call[run.ListResult](ctx, c, get("/v1/executions", query))
}

// Execution returns one execution with its streams.
func (c *Client) Execution(ctx context.Context, id sallyport.ExecutionID) (sallyport.Envelope[sallyport.Execution], error) {
	path, err := idPath("/v1/executions", id)
	if err != nil {
		return sallyport.Envelope[sallyport.Execution]{}, err
	}
	return call[sallyport.Execution](ctx, c, get(path, nil))
}

// waitAtOnce is how long one call of Wait waits: under what stands in between usually allows.
const waitAtOnce = 30 * time.Second

// Wait returns the execution when it is over, or as it stands when patience is; a patience of zero has no end but that of ctx.
func (c *Client) Wait(ctx context.Context, id sallyport.ExecutionID, patience time.Duration) (sallyport.Envelope[sallyport.Execution], error) {
	path, err := idPath("/v1/executions", id)
	if err != nil {
		return sallyport.Envelope[sallyport.Execution]{}, err
	}
	began := time.Now()
	for {
		wait := waitAtOnce
		if patience > 0 {
			wait = min(wait, max(0, patience-time.Since(began)))
		}
		query := url.Values{"wait": {strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)}}
		envelope, err := call[sallyport.Execution](ctx, c, get(path, query))
		if err != nil || envelope.Data.Status.Terminal() || patience > 0 && time.Since(began) >= patience {
			return envelope, err
		}
	}
}

// Artifact returns the bytes of one artifact, checked against the digest that came with them.
func (c *Client) Artifact(ctx context.Context, id sallyport.ExecutionID, path string) ([]byte, error) {
	target, err := idPath("/v1/executions", id)
	if err != nil {
		return nil, err
	}
	inside, err := plainPath(path)
	if err != nil {
		return nil, err
	}
	content, header, err := c.bytes(ctx, get(target+"/artifacts"+inside, nil))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	if header.Get("Content-Digest") != "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":" {
		return nil, errDigest()
	}
	return content, nil
}

// Cancellation says that the request to stop was taken.
type Cancellation struct {
	ExecutionID sallyport.ExecutionID `json:"execution_id"`
	Requested   bool                  `json:"requested"`
}

// Cancel asks to stop an execution; the execution itself says how it ended.
func (c *Client) Cancel(ctx context.Context, id sallyport.ExecutionID) (sallyport.Envelope[Cancellation], error) {
	path, err := idPath("/v1/executions", id)
	if err != nil {
		return sallyport.Envelope[Cancellation]{}, err
	}
	return call[Cancellation](ctx, c, request{method: http.MethodPost, path: path + "/cancel"})
}

// idPath is the path of one thing. An empty id would name the list.
func idPath[T ~string](list string, id T) (string, error) {
	if id == "" {
		return "", invalid("an id is required")
	}
	return list + segment(id), nil
}
