package mcpapi

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/reply"
	"github.com/sallyport-dev/sallyport/run"
)

// executions are the tasks of execute_cloud_skill: the id of a task is that of its execution, so every one is in the database before
// its id leaves, and outlives the server.
type executions struct{ api *API }

// Create implements Tasks: the tool itself decides, when it knows whether its run is short.
func (executions) Create(context.Context, sallyport.Principal, *mcp.CallToolRequest, bool) (*Task, error) {
	return nil, nil //nolint:nilnil // no task is not an error
}

// own returns the execution with this id that p itself began; false when there is none.
func (t executions) own(ctx context.Context, p sallyport.Principal, id string) (sallyport.Execution, bool, error) {
	if _, err := uuid.Parse(id); err != nil || t.api.cfg.Runs == nil {
		return sallyport.Execution{}, false, nil //nolint:nilerr // what is no id names nothing
	}
	execution, err := t.api.cfg.Runs.Get(ctx, p, sallyport.ExecutionID(id))
	if sallyport.CodeOf(err) == sallyport.CodeExecutionNotFound {
		return sallyport.Execution{}, false, nil
	}
	return execution, err == nil && execution.PrincipalID == p.ID, err
}

// Task implements Tasks.
func (t executions) Task(ctx context.Context, p sallyport.Principal, id string) (*Task, error) {
	execution, found, err := t.own(ctx, p, id)
	if err != nil || !found {
		return nil, err
	}
	return t.api.taskOf(p, execution), nil
}

// Update implements Tasks: an execution asks for nothing, so every answer is one that nobody waits for.
func (t executions) Update(ctx context.Context, p sallyport.Principal, id string, _ map[string]json.RawMessage) (bool, error) {
	_, found, err := t.own(ctx, p, id)
	return found, err
}

// Cancel implements Tasks.
func (t executions) Cancel(ctx context.Context, p sallyport.Principal, id string) (bool, error) {
	execution, found, err := t.own(ctx, p, id)
	if err != nil || !found || execution.Status.Terminal() {
		return found, err
	}
	return true, t.api.cfg.Runs.Cancel(ctx, p, execution.ID)
}

// taskOf is the execution as a task. Whatever a script did is a result; only a cancelled run is none.
func (a *API) taskOf(p sallyport.Principal, e sallyport.Execution) *Task {
	task := &Task{ID: string(e.ID), Status: TaskWorking, Message: e.ScriptPath + " of " + e.Slug + ": " + string(e.Status), CreatedAt: e.CreatedAt, UpdatedAt: e.CreatedAt}
	if e.StartedAt != nil {
		task.UpdatedAt = *e.StartedAt
	}
	if e.FinishedAt != nil {
		task.UpdatedAt = *e.FinishedAt
	}
	switch {
	case !e.Status.Terminal():
	case e.Status == sallyport.StatusCanceled:
		task.Status = TaskCancelled
	default:
		task.Status = TaskCompleted
		t, _ := a.tool(executeName)
		got := executed(&call{tool: t, principal: p, requestID: uuid.NewString()}, e)
		task.Result = got.result()
	}
	return task
}

// result is the answer as the SDK sends it.
func (got answer) result() *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: got.text}},
		StructuredContent: got.envelope,
		IsError:           reply.IsError(got.err),
	}
}

// carryOut runs the script. For a caller who understands tasks it waits only for a while: what is not over by then goes on without the
// call, and the task stands for it.
func (a *API) carryOut(ctx context.Context, c *call, req run.Request) (sallyport.Execution, error) {
	slot := taskSlotFrom(ctx)
	// Who may not read executions could not ask for the task either.
	if slot == nil || !c.principal.Has(sallyport.ScopeMemoryRead) {
		return a.cfg.Runs.Run(ctx, c.principal, req)
	}
	started, err := a.cfg.Runs.Start(ctx, c.principal, req)
	if err != nil {
		return started, err
	}
	execution, err := a.cfg.Runs.Wait(ctx, c.principal, started.ID, a.cfg.TaskAfter)
	switch {
	case ctx.Err() != nil && req.IdempotencyKey == "":
		// The caller left before it knew of a task; nobody else can have begun this run.
		return started, a.cfg.Runs.Cancel(context.WithoutCancel(ctx), c.principal, started.ID)
	case err != nil:
		return started, err
	case !execution.Status.Terminal():
		slot.task = a.taskOf(c.principal, execution)
	}
	return execution, nil
}
