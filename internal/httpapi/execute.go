package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

type executeBody struct {
	ScriptPath     string          `json:"script_path"`
	RevisionID     string          `json:"revision_id"`
	TeamID         string          `json:"team_id"`
	InputArgs      json.RawMessage `json:"input_args"`
	Argv           []*string       `json:"argv"`
	Files          []inputBody     `json:"files"`
	TimeoutSeconds json.RawMessage `json:"timeout_seconds"`
	Async          bool            `json:"async"`
}

type inputBody struct {
	Name          string  `json:"name"`
	Content       *string `json:"content"`
	ContentBase64 *string `json:"content_base64"`
}

// execute answers 200 with an execution for whatever the script did; its error member says what went wrong with it. With async it
// answers 202 as soon as the run is approved and recorded.
func execute(c *call, p sallyport.Principal) (answer, error) {
	req, async, err := c.runRequest()
	if err != nil {
		return answer{}, err
	}
	if req.IdempotencyKey, err = c.idempotencyKey(); err != nil {
		return answer{}, err
	}
	carryOut := c.api.cfg.Runs.Run
	if async {
		carryOut = c.api.cfg.Runs.Start
	}
	execution, err := carryOut(c.ctx(), p, req)
	if err != nil {
		return answer{}, err
	}
	got := executionAnswer(execution)
	if async && !execution.Status.Terminal() {
		got.status, got.location = http.StatusAccepted, "/v1/executions/"+string(execution.ID)
	}
	return got, nil
}

// idempotencyKey is the key that the caller sent, empty for none. Its form is judged by package run.
func (c *call) idempotencyKey() (string, error) {
	sent := c.r.Header.Values("Idempotency-Key")
	switch len(sent) {
	case 0:
		return "", nil
	case 1:
		return sent[0], nil
	default:
		return "", invalid("send one Idempotency-Key header")
	}
}

func explain(c *call, p sallyport.Principal) (answer, error) {
	req, async, err := c.runRequest()
	if err == nil && async {
		err = invalid("async is for execute: explain runs nothing")
	}
	if err != nil {
		return answer{}, err
	}
	explanation, err := c.api.cfg.Runs.Explain(c.ctx(), p, req)
	explanation.Steps = list(explanation.Steps)
	return ok(explanation), err
}

// runRequest is what execute and explain have in common; async says that the caller does not wait.
func (c *call) runRequest() (req run.Request, async bool, err error) {
	var body executeBody
	if err := c.decode(&body); err != nil {
		return run.Request{}, false, err
	}
	req, err = c.runRequestOf(body)
	return req, body.Async, err
}

func (c *call) runRequestOf(body executeBody) (run.Request, error) {
	timeout, err := seconds("timeout_seconds", body.TimeoutSeconds)
	if err != nil {
		return run.Request{}, err
	}
	req := run.Request{
		Ref: c.skillRef(body.TeamID), RevisionID: sallyport.RevisionID(body.RevisionID), ScriptPath: body.ScriptPath,
		Args: body.InputArgs, Timeout: timeout, TraceParent: traceParent(c.r.Header.Values("Traceparent")), RequestID: c.id,
	}
	// The bytes of the object go on as they came; only their kind is looked at.
	if len(req.Args) > 0 && strings.TrimSpace(string(req.Args))[0] != '{' {
		return run.Request{}, invalid("input_args must be a JSON object")
	}
	if req.Argv, err = texts("/argv", body.Argv); err != nil {
		return run.Request{}, err
	}
	for i, file := range body.Files {
		data, err := content(fmt.Sprintf("/files/%d", i), file.Content, file.ContentBase64)
		if err != nil {
			return run.Request{}, err
		}
		req.Files = append(req.Files, sallyport.InputFile{Name: file.Name, Content: data})
	}
	return req, nil
}

// traceParent takes a W3C trace context of version 00 that is well formed; any other is dropped, as that standard asks.
func traceParent(sent []string) string {
	if len(sent) != 1 || len(sent[0]) != 55 {
		return ""
	}
	parts := strings.Split(sent[0], "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return ""
	}
	for _, part := range parts {
		if strings.Trim(part, "0123456789abcdef") != "" {
			return ""
		}
	}
	if strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return ""
	}
	return sent[0]
}
