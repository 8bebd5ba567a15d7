package httpapi

import (
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// executionAnswer has the same shape whenever an execution is read: the data, and beside it the error of a run that ended badly.
func executionAnswer(e sallyport.Execution) answer {
	e = shown(e)
	return answer{data: e, outcome: e.Err()}
}

func shown(e sallyport.Execution) sallyport.Execution {
	e.Artifacts = list(e.Artifacts)
	e.Isolation.Layers = list(e.Isolation.Layers)
	return e
}

func listExecutions(c *call, p sallyport.Principal) (answer, error) {
	req := run.ListRequest{
		Ref:    c.queryRef(),
		Status: sallyport.Status(c.query.text("status")),
		Limit:  int(c.query.integer("limit", 1, mostListed)),
		Cursor: c.query.text("cursor"),
	}
	if req.Status != "" && !slices.Contains(sallyport.Statuses(), req.Status) {
		c.query.fail(invalid("the query parameter status is none of %v", sallyport.Statuses()))
	}
	if err := c.query.err; err != nil {
		return answer{}, err
	}
	result, err := c.api.cfg.Runs.List(c.ctx(), p, req)
	if err != nil {
		return answer{}, err
	}
	result.Executions = list(result.Executions)
	for i, e := range result.Executions {
		result.Executions[i] = shown(e)
	}
	return ok(result), nil
}

// mostWaited bounds how long a call may wait for the end of an execution, in seconds.
const mostWaited = 60

// showExecution answers with the execution as it is; with wait, when it is over or that many seconds have passed.
func showExecution(c *call, p sallyport.Principal) (answer, error) {
	wait := time.Duration(c.query.integer("wait", 0, mostWaited)) * time.Second
	if err := c.query.err; err != nil {
		return answer{}, err
	}
	execution, err := c.api.cfg.Runs.Wait(c.ctx(), p, c.executionID(), wait)
	if err != nil {
		return answer{}, err
	}
	return executionAnswer(execution), nil
}

func (c *call) executionID() sallyport.ExecutionID { return sallyport.ExecutionID(c.r.PathValue("id")) }

func downloadArtifact(c *call, p sallyport.Principal) (answer, error) {
	path := c.r.PathValue("path")
	if err := sallyport.CheckPath(path); err != nil {
		return answer{}, err
	}
	artifact, content, err := c.api.cfg.Runs.Artifact(c.ctx(), p, c.executionID(), path)
	if err != nil {
		return answer{}, err
	}
	bytes, err := newRaw(artifact.Path, artifact.MediaType, artifact.SHA256, content)
	return answer{raw: bytes}, err
}

// cancellationData says that the request to stop was taken; the execution itself says how it ended.
type cancellationData struct {
	ExecutionID sallyport.ExecutionID `json:"execution_id"`
	Requested   bool                  `json:"requested"`
}

func cancelExecution(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	return ok(cancellationData{c.executionID(), true}), c.api.cfg.Runs.Cancel(c.ctx(), p, c.executionID())
}
