package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
)

// addTaskTools lists the tools of the task scenarios. A call that makes a task does not get here: see Jobs.
func addTaskTools(server *mcp.Server) {
	type greeting struct {
		Name string `json:"name" jsonschema:"whom to greet"`
	}
	addTool(server, "greet", "Greets at once, never as a task.", func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, error) {
		return text("Hello, " + in.Name + "!"), nil
	})
	addTool(server, "slow_compute", "Takes some seconds.", func(ctx context.Context, _ *mcp.CallToolRequest, in slow) (*mcp.CallToolResult, error) {
		return in.compute(ctx), nil
	})
	for name, description := range map[string]string{
		"failing_job": "Ends with an error of the tool.", "protocol_error_job": "Ends with an error of the protocol.",
		"multi_input": "Asks two things at once.", "test_tool_with_task": "Asks a name, then becomes a task.",
	} {
		addTool(server, name, description, func(_ context.Context, req *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, error) {
			if acceptedText(req.Params.InputResponses, "user_name", "name") == "" {
				return needs("", mcp.InputRequestMap{"user_name": question("What is your name?", "name", "string")}), nil
			}
			return text("this tool only works as a task"), nil
		})
	}
	type file struct {
		Filename string `json:"filename" jsonschema:"what to delete"`
	}
	addTool(server, "confirm_delete", "Asks before it deletes nothing.", func(context.Context, *mcp.CallToolRequest, file) (*mcp.CallToolResult, error) {
		return text("this tool only works as a task"), nil
	})
}

// slow are the arguments of slow_compute.
type slow struct {
	Seconds float64 `json:"seconds" jsonschema:"how long it takes"`
	Label   string  `json:"label,omitempty" jsonschema:"what it is called"`
}

func (in slow) compute(ctx context.Context) *mcp.CallToolResult {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
		return text("computed " + in.Label)
	}
}

// Jobs are the tasks of the fixtures, in memory. It is safe for concurrent use.
type Jobs struct {
	mu   sync.Mutex
	jobs map[string]*job
}

// NewJobs returns no tasks.
func NewJobs() *Jobs { return &Jobs{jobs: map[string]*job{}} }

// job is one task and whoever began it.
type job struct {
	task   mcpapi.Task
	owner  sallyport.PrincipalID
	stop   context.CancelFunc
	resume func() // called when the last input came
}

// Create implements mcpapi.Tasks.
func (j *Jobs) Create(ctx context.Context, p sallyport.Principal, req *mcp.CallToolRequest, declared bool) (*mcpapi.Task, error) {
	ctx = context.WithoutCancel(ctx)
	after := func(d time.Duration, result *mcp.CallToolResult, err *jsonrpc.Error) *mcpapi.Task {
		return j.begin(ctx, p, func(ctx context.Context) (*mcp.CallToolResult, *jsonrpc.Error) {
			select {
			case <-ctx.Done():
				return nil, nil
			case <-time.After(d):
				return result, err
			}
		})
	}
	switch req.Params.Name {
	case "failing_job", "protocol_error_job", "test_tool_with_task":
		if !declared {
			return nil, mcpapi.TasksRequired()
		}
	default:
		if !declared {
			return nil, nil //nolint:nilnil // no task is not an error
		}
	}
	switch req.Params.Name {
	case "slow_compute":
		var in slow
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
		return j.begin(ctx, p, func(ctx context.Context) (*mcp.CallToolResult, *jsonrpc.Error) { return in.compute(ctx), nil }), nil
	case "failing_job":
		failed := text("the job failed")
		failed.IsError = true
		return after(time.Second, failed, nil), nil
	case "protocol_error_job":
		return after(0, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the job broke"}), nil
	case "test_tool_with_task":
		if name := acceptedText(req.Params.InputResponses, "user_name", "name"); name != "" {
			return after(0, text("Hello, "+name+"!"), nil), nil
		}
	case "confirm_delete":
		return j.asking(p, mcp.InputRequestMap{"confirm": question("Delete it?", "confirm", "boolean")}), nil
	case "multi_input":
		return j.asking(p, mcp.InputRequestMap{
			"first": question("The first name?", "name", "string"), "second": question("The second name?", "name", "string"),
		}), nil
	}
	return nil, nil //nolint:nilnil // no task is not an error
}

func (j *Jobs) add(p sallyport.Principal, status mcpapi.TaskStatus) (*job, mcpapi.Task) {
	now := time.Now().UTC()
	own := &job{
		task:  mcpapi.Task{ID: uuid.NewString(), Status: status, CreatedAt: now, UpdatedAt: now},
		owner: p.ID, stop: func() {}, resume: func() {},
	}
	j.jobs[own.task.ID] = own
	return own, own.task
}

func (own *job) become(status mcpapi.TaskStatus) {
	own.task.Status, own.task.UpdatedAt = status, time.Now().UTC()
}

// begin does work for a task; a context that ends cancels it.
func (j *Jobs) begin(ctx context.Context, p sallyport.Principal, work func(context.Context) (*mcp.CallToolResult, *jsonrpc.Error)) *mcpapi.Task {
	ctx, cancel := context.WithCancel(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	own, task := j.add(p, mcpapi.TaskWorking)
	own.stop = cancel
	go func() {
		result, err := work(ctx)
		j.mu.Lock()
		defer j.mu.Unlock()
		switch {
		case err != nil:
			own.become(mcpapi.TaskFailed)
			own.task.Error = err
		case ctx.Err() != nil:
			own.become(mcpapi.TaskCancelled)
		default:
			own.become(mcpapi.TaskCompleted)
			own.task.Result = result
		}
		cancel()
	}()
	return &task
}

// asking begins a task that ends when every input came.
func (j *Jobs) asking(p sallyport.Principal, inputs mcp.InputRequestMap) *mcpapi.Task {
	j.mu.Lock()
	defer j.mu.Unlock()
	own, task := j.add(p, mcpapi.TaskInputRequired)
	own.task.Inputs = inputs
	own.stop = func() { own.become(mcpapi.TaskCancelled) }
	own.resume = func() {
		own.become(mcpapi.TaskCompleted)
		own.task.Result = text(fmt.Sprintf("%d answers came", len(inputs)))
	}
	task.Status = mcpapi.TaskWorking // the handle tells of no input yet
	return &task
}

// ask looks a task of p up and does f with it.
func (j *Jobs) ask(p sallyport.Principal, id string, f func(own *job)) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	own, ok := j.jobs[id]
	if !ok || own.owner != p.ID {
		return false
	}
	f(own)
	return true
}

// Task implements mcpapi.Tasks.
func (j *Jobs) Task(_ context.Context, p sallyport.Principal, id string) (*mcpapi.Task, error) {
	var found *mcpapi.Task
	j.ask(p, id, func(own *job) {
		task := own.task
		task.Inputs = maps.Clone(task.Inputs)
		found = &task
	})
	return found, nil
}

// Update implements mcpapi.Tasks.
func (j *Jobs) Update(_ context.Context, p sallyport.Principal, id string, answers map[string]json.RawMessage) (bool, error) {
	return j.ask(p, id, func(own *job) {
		left := maps.Clone(own.task.Inputs)
		for key := range answers {
			delete(left, key)
		}
		if own.task.Status != mcpapi.TaskInputRequired {
			return
		}
		if own.task.Inputs = left; len(left) == 0 {
			own.resume()
		}
	}), nil
}

// Cancel implements mcpapi.Tasks.
func (j *Jobs) Cancel(_ context.Context, p sallyport.Principal, id string) (bool, error) {
	return j.ask(p, id, func(own *job) {
		if own.task.Status == mcpapi.TaskWorking || own.task.Status == mcpapi.TaskInputRequired {
			own.stop()
		}
	}), nil
}
