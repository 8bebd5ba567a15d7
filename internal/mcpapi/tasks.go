package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
)

// The Tasks extension of the protocol and its methods.
const (
	tasksExtension   = "io.modelcontextprotocol/tasks"
	methodTaskGet    = "tasks/get"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"
)

const (
	// defaultTaskAfter is how long a call waits for its run before it is answered with a task.
	defaultTaskAfter = 2 * time.Second
	// taskPoll is how often a client should ask, in milliseconds.
	taskPoll = 1000
)

// TaskStatus is where a task is, as the extension spells it.
type TaskStatus string

// The statuses.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed"
	TaskFailed        TaskStatus = "failed"
	TaskCancelled     TaskStatus = "cancelled"
)

// Task is a call that is answered later.
type Task struct {
	ID      string
	Status  TaskStatus
	Message string
	// CreatedAt and UpdatedAt are in UTC.
	CreatedAt, UpdatedAt time.Time
	// Result of a completed task, Error of a failed one, Inputs that one needs: each for its status only.
	Result *mcp.CallToolResult
	Error  *jsonrpc.Error
	Inputs mcp.InputRequestMap
}

// Tasks are the tasks of one kind of tool. Whatever is not p's is not there.
type Tasks interface {
	// Create begins a task for a call of a tool that makes its own; nil says that the tool is called as any other. declared says
	// whether the client understands tasks.
	Create(ctx context.Context, p sallyport.Principal, req *mcp.CallToolRequest, declared bool) (*Task, error)
	// Task returns a task, nil when there is none of that id.
	Task(ctx context.Context, p sallyport.Principal, id string) (*Task, error)
	// Update hands over answers to inputs that the task needs; found says whether there is such a task.
	Update(ctx context.Context, p sallyport.Principal, id string, answers map[string]json.RawMessage) (found bool, err error)
	// Cancel asks to stop the task; one that is over stays as it is.
	Cancel(ctx context.Context, p sallyport.Principal, id string) (found bool, err error)
}

// taskHead is what a handle and a state have in common.
type taskHead struct {
	ResultType string     `json:"resultType"`
	TaskID     string     `json:"taskId"`
	Status     TaskStatus `json:"status"`
	Message    string     `json:"statusMessage,omitempty"`
	CreatedAt  time.Time  `json:"createdAt"`
	UpdatedAt  time.Time  `json:"lastUpdatedAt"`
	// TTLMs is null: an execution is kept as long as the installation keeps its records.
	TTLMs  *int64 `json:"ttlMs"`
	PollMs int64  `json:"pollIntervalMs,omitempty"`
}

type taskHandle struct {
	mcp.ResultBase

	taskHead
}

type taskState struct {
	mcp.ResultBase

	taskHead

	Result *mcp.CallToolResult `json:"result,omitempty"`
	Error  *jsonrpc.Error      `json:"error,omitempty"`
	Inputs mcp.InputRequestMap `json:"inputRequests,omitempty"`
}

type taskAck struct {
	mcp.ResultBase

	ResultType string `json:"resultType"`
}

type taskParams struct {
	mcp.ParamsBase

	TaskID string `json:"taskId"`
}

type taskUpdateParams struct {
	mcp.ParamsBase

	TaskID    string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses"`
}

func (t *Task) head(resultType string) taskHead {
	h := taskHead{
		ResultType: resultType, TaskID: t.ID, Status: t.Status, Message: t.Message,
		CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(),
	}
	if t.Status == TaskWorking || t.Status == TaskInputRequired {
		h.PollMs = taskPoll
	}
	return h
}

// declareTasks adds the extension to the capabilities of a server.
func declareTasks(options *mcp.ServerOptions) {
	if options.Capabilities == nil {
		options.Capabilities = &mcp.ServerCapabilities{}
	}
	options.Capabilities.AddExtension(tasksExtension, map[string]any{})
}

// addTasks registers the methods of the extension, and what turns a call into a task.
func (a *API) addTasks() error {
	a.server.AddReceivingMiddleware(a.asTask)
	return errors.Join(
		mcp.AddReceivingCustomMethod(a.server, methodTaskGet, a.getTask),
		mcp.AddReceivingCustomMethod(a.server, methodTaskUpdate, a.updateTask),
		mcp.AddReceivingCustomMethod(a.server, methodTaskCancel, a.cancelTask),
	)
}

// capable is a request that knows what its client declared.
type capable interface {
	ClientCapabilities() *mcp.ClientCapabilities
}

func declares(req mcp.Request) bool {
	r, ok := req.(capable)
	if !ok {
		return false
	}
	capabilities := r.ClientCapabilities()
	if capabilities == nil {
		return false
	}
	_, declared := capabilities.Extensions[tasksExtension]
	return declared
}

// TasksRequired is the error for a client that did not declare the extension and asks for what needs it.
func TasksRequired() error {
	return &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client must declare the extension " + tasksExtension,
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
	}
}

// taskSlot travels down to a tool whose caller understands tasks; what the tool puts there is the answer.
type taskSlot struct{ task *Task }

type taskSlotKey struct{}

func taskSlotFrom(ctx context.Context) *taskSlot {
	slot, _ := ctx.Value(taskSlotKey{}).(*taskSlot)
	return slot
}

// asTask answers a call with a task when its tool made one, and keeps the methods of the extension from clients that did not declare it.
func (a *API) asTask(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case methodTaskGet, methodTaskUpdate, methodTaskCancel:
			if !declares(req) {
				return nil, TasksRequired()
			}
			return next(ctx, method, req)
		case mcpwire.MethodCallTool:
		default:
			return next(ctx, method, req)
		}
		call, ok := req.(*mcp.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		who, _ := callerFrom(ctx)
		declared := declares(req)
		for _, tasks := range a.tasks {
			task, err := tasks.Create(ctx, who.principal, call, declared)
			if err != nil {
				return nil, err
			}
			if task != nil {
				return &taskHandle{taskHead: task.head("task")}, nil
			}
		}
		if !declared {
			return next(ctx, method, req)
		}
		slot := &taskSlot{}
		result, err := next(context.WithValue(ctx, taskSlotKey{}, slot), method, req)
		if err == nil && slot.task != nil {
			return &taskHandle{taskHead: slot.task.head("task")}, nil
		}
		return result, err
	}
}

var errNoTask = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no task of yours has this id"}

// ofTask asks each kind of task until one knows the id.
func (a *API) ofTask(ctx context.Context, ask func(p sallyport.Principal, tasks Tasks) (found bool, err error)) error {
	who, ok := callerFrom(ctx)
	if !ok {
		return protocolError(&sallyport.Error{Op: "mcp.tasks", Code: sallyport.CodeUnauthenticated}, "")
	}
	for _, tasks := range a.tasks {
		found, err := ask(who.principal, tasks)
		if err != nil {
			return protocolError(err, "")
		}
		if found {
			return nil
		}
	}
	return errNoTask
}

func (a *API) getTask(ctx context.Context, _ *mcp.ServerSession, params *taskParams) (*taskState, error) {
	var task *Task
	err := a.ofTask(ctx, func(p sallyport.Principal, tasks Tasks) (bool, error) {
		var err error
		task, err = tasks.Task(ctx, p, params.TaskID)
		return task != nil, err
	})
	if err != nil {
		return nil, err
	}
	state := &taskState{taskHead: task.head("complete")}
	switch task.Status {
	case TaskCompleted:
		state.Result = task.Result
	case TaskFailed:
		state.Error = task.Error
	case TaskInputRequired:
		state.Inputs = task.Inputs
	case TaskWorking, TaskCancelled:
	}
	return state, nil
}

func (a *API) updateTask(ctx context.Context, _ *mcp.ServerSession, params *taskUpdateParams) (*taskAck, error) {
	err := a.ofTask(ctx, func(p sallyport.Principal, tasks Tasks) (bool, error) {
		return tasks.Update(ctx, p, params.TaskID, params.Responses)
	})
	return &taskAck{ResultType: "complete"}, err
}

func (a *API) cancelTask(ctx context.Context, _ *mcp.ServerSession, params *taskParams) (*taskAck, error) {
	err := a.ofTask(ctx, func(p sallyport.Principal, tasks Tasks) (bool, error) {
		return tasks.Cancel(ctx, p, params.TaskID)
	})
	return &taskAck{ResultType: "complete"}, err
}

// checkTaskName holds the Mcp-Name header of a request about a task against the id in its body, where the revision mirrors it.
func checkTaskName(r *http.Request, message mcpwire.Message) *mcpwire.Error {
	switch message.Method {
	case methodTaskGet, methodTaskUpdate, methodTaskCancel:
	default:
		return nil
	}
	if message.ProtocolVersion == "" || r.Header.Get("Mcp-Name") == message.Name && message.Name != "" {
		return nil
	}
	return &mcpwire.Error{ID: message.ID, Code: mcp.CodeHeaderMismatch, Message: "header mismatch: Mcp-Name must be the task id of the body"}
}
