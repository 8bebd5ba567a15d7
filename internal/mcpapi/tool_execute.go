package mcpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// The budgets of the text beside an execution, in bytes. The envelope holds the streams whole.
const (
	stdoutTextBytes = 16 << 10
	stderrTextBytes = 4 << 10
)

const executeName = "execute_cloud_skill"

// metaIdempotencyKey is the member of _meta that makes a call safe to repeat.
const metaIdempotencyKey = metaKey + "idempotency_key"

func (a *API) executeTool() tool {
	return tool{
		name: executeName, title: "Run a skill's script", kind: "execution", scope: sallyport.ScopeMemoryWrite,
		description: "Run one script of a skill in an isolated sandbox and return its typed result: status, exit code, stdout, stderr, " +
			"output_data and artifacts. Use it after recall_cloud_skill showed the script and the arguments it takes; name the " +
			"revision_id that was read when the run must be reproducible. Only components of kind script run, only with an " +
			"administrator's grant for exactly this content, without network, within time, memory, process and output limits. " +
			"Writes of the script are private to the run and gone afterwards; what it leaves in SKILL_ARTIFACTS comes back. " +
			"A refusal (isError, data null) is final until somebody changes what it names; a script that failed is isError too, " +
			"with data.",
		// The script sees a private copy and no network, so it can destroy nothing; it is still code that runs.
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(false)},
		input:       executeInput(a.cfg.MaxTimeout), output: executeOutput(),
		call: a.execute,
	}
}

type executeArguments struct {
	ScriptPath     string         `json:"script_path"`
	Slug           string         `json:"slug"`
	SkillID        string         `json:"skill_id"`
	TeamID         string         `json:"team_id"`
	RevisionID     string         `json:"revision_id"`
	InputArgs      jsontext.Value `json:"input_args"`
	TimeoutSeconds jsontext.Value `json:"timeout_seconds"`
	Argv           []string       `json:"argv"`
	Files          []inputFile    `json:"files"`
}

// inputFile is a file with the call: exactly one of Content and ContentBase64.
type inputFile struct {
	Name          string  `json:"name"`
	Content       *string `json:"content"`
	ContentBase64 *string `json:"content_base64"`
}

func (a *API) execute(ctx context.Context, c *call) answer {
	req, err := a.executeRequest(c)
	if err != nil {
		return refused(c, err)
	}
	refusal, err := a.answered(ctx, c)
	if err != nil {
		got := refused(c, sallyport.Errorf("mcp.execute", sallyport.CodeInvalidArgument, "the request state is not usable"))
		got.broken = err
		return got
	}
	if refusal != nil {
		return refused(c, refusal)
	}
	stop := c.progress(ctx, &req)
	execution, err := a.carryOut(ctx, c, req)
	stop()
	if err != nil {
		got := refused(c, err)
		got.executionID, got.question = execution.ID, a.ask(c, sallyport.Public(err))
		return got
	}
	return executed(c, execution)
}

// executed answers with the execution, and with the error of one that did not succeed.
func executed(c *call, execution sallyport.Execution) answer {
	// JSON null is no list.
	if execution.Artifacts == nil {
		execution.Artifacts = []sallyport.Artifact{}
	}
	if execution.Isolation.Layers == nil {
		execution.Isolation.Layers = []sallyport.Layer{}
	}
	got := succeeded(c, execution, executionText(execution), outcome(execution))
	got.executionID = execution.ID
	return got
}

// outcome is nil for success only: an execution that is not closed is no success either.
func outcome(execution sallyport.Execution) error {
	if err := execution.Err(); err != nil || execution.Status == sallyport.StatusSuccess {
		return err
	}
	return &sallyport.Error{Op: "mcp.execute", Code: sallyport.CodeInternal, Err: fmt.Errorf("the run returned with status %q", execution.Status)}
}

func (a *API) executeRequest(c *call) (run.Request, error) {
	var args executeArguments
	if err := c.decode(&args); err != nil {
		return run.Request{}, err
	}
	req := run.Request{
		Ref: sallyport.SkillRef{
			SkillID: sallyport.SkillID(args.SkillID), Slug: args.Slug, TeamID: sallyport.TeamID(args.TeamID),
		},
		RevisionID: sallyport.RevisionID(args.RevisionID), ScriptPath: args.ScriptPath,
		TraceParent: c.traceParent, RequestID: c.requestID,
	}
	if args.ScriptPath == "" {
		return run.Request{}, c.argument("script_path is required: the path of a script in the skill, or its component id")
	}
	if args.Slug == "" && args.SkillID == "" {
		return run.Request{}, c.argument("slug or skill_id is required")
	}
	switch args.InputArgs.Kind() {
	case '{':
		req.Args = json.RawMessage(args.InputArgs)
	case jsontext.KindInvalid, jsontext.KindNull:
	default:
		return run.Request{}, c.argument("input_args must be a JSON object, not text that holds one")
	}
	var err error
	if req.Timeout, err = a.timeout(c, args.TimeoutSeconds); err != nil {
		return run.Request{}, err
	}
	if len(args.Argv) > 0 {
		req.Argv = args.Argv
	}
	if req.IdempotencyKey, err = c.idempotencyKey(); err != nil {
		return run.Request{}, err
	}
	req.Files, err = inputs(c, args.Files)
	return req, err
}

// idempotencyKey is the key in _meta, empty when there is none. Its form is judged by package run.
func (c *call) idempotencyKey() (string, error) {
	sent, there := c.meta[metaIdempotencyKey]
	if !there {
		return "", nil
	}
	key, ok := sent.(string)
	if !ok || key == "" {
		return "", c.argument("_meta %s must be text that is not empty", metaIdempotencyKey)
	}
	return key, nil
}

// inputs reads the files of a call. A gate judges their number and size.
func inputs(c *call, files []inputFile) ([]sallyport.InputFile, error) {
	var out []sallyport.InputFile
	for i, file := range files {
		content, err := content(file.Content, file.ContentBase64)
		if err != nil {
			return nil, c.argument("files[%d]: %v", i, err)
		}
		if file.Name == "" {
			return nil, c.argument("files[%d]: name is required", i)
		}
		out = append(out, sallyport.InputFile{Name: file.Name, Content: content})
	}
	return out, nil
}

// timeout reads timeout_seconds; absent is zero, which the run takes as the default.
func (a *API) timeout(c *call, value jsontext.Value) (time.Duration, error) {
	top := int64(a.cfg.MaxTimeout / time.Second)
	if kind := value.Kind(); kind == jsontext.KindInvalid || kind == jsontext.KindNull {
		return 0, nil
	}
	seconds, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || seconds < 1 || seconds > top {
		return 0, c.argument("timeout_seconds must be a whole number from 1 to %d", top)
	}
	return time.Duration(seconds) * time.Second, nil
}

// content returns the bytes of the one form that was sent.
func content(text, encoded *string) ([]byte, error) {
	switch {
	case text != nil && encoded != nil:
		return nil, errors.New("content and content_base64 exclude each other")
	case text != nil:
		return []byte(*text), nil
	case encoded != nil:
		decoded, err := base64.StdEncoding.Strict().DecodeString(*encoded)
		if err != nil {
			return nil, errors.New("content_base64 is not standard base64")
		}
		return decoded, nil
	default:
		return nil, errors.New("content or content_base64 is required")
	}
}

// executionText is a short account for a reader: what happened first, then what the script said.
func executionText(e sallyport.Execution) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s: %s", e.ScriptPath, e.Slug, e.Status)
	if e.ExitCode != nil {
		fmt.Fprintf(&b, ", exit code %d", *e.ExitCode)
	}
	if e.SignalName != "" {
		fmt.Fprintf(&b, ", %s", e.SignalName)
	}
	if e.Limit != "" {
		fmt.Fprintf(&b, ", %s limit", e.Limit)
	}
	fmt.Fprintf(&b, ", %d ms. Execution %s, revision %s.\n", e.DurationMS, e.ID, e.RevisionID)
	if err := e.Err(); err != nil {
		b.WriteString(refusalText(err) + "\n")
	}
	if len(e.OutputData) > 0 && len(e.OutputData) <= stdoutTextBytes && !sameJSON(e.OutputData, e.Stdout) {
		fmt.Fprintf(&b, "output_data:\n%s\n", e.OutputData)
	}
	stream(&b, "stdout", e.Stdout, stdoutTextBytes, e.StdoutTruncated)
	stream(&b, "stderr", e.Stderr, stderrTextBytes, e.StderrTruncated)
	for _, artifact := range e.Artifacts {
		fmt.Fprintf(&b, "artifact %s, %d bytes, %s\n", artifact.Path, artifact.Size, artifact.URI)
	}
	return b.String()
}

// sameJSON reports whether the output data is what stdout holds anyway.
func sameJSON(data json.RawMessage, stdout string) bool {
	return bytes.Equal(bytes.TrimSpace(data), bytes.TrimSpace([]byte(stdout)))
}

func stream(b *strings.Builder, name, text string, budget int, truncated bool) {
	if text == "" {
		return
	}
	kept, left := cut(text, budget)
	fmt.Fprintf(b, "%s:\n%s\n", name, strings.TrimSuffix(kept, "\n"))
	if left > 0 {
		fmt.Fprintf(b, "(%d more bytes of %s are in structured content)\n", left, name)
	}
	if truncated {
		fmt.Fprintf(b, "(the script wrote more to %s than its limit keeps)\n", name)
	}
}
