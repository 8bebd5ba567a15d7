package reply

import "github.com/sallyport-dev/sallyport"

// outcome is one status of an execution: the code that names it in an error and its exit code.
type outcome struct {
	status sallyport.Status
	kind   sallyport.Code
	exit   int
}

// outcomes is the one row of the class table that varies. A status without a row has no exit of its own: not_started
// takes the exit of the code that stopped it, queued and running have no outcome yet.
var outcomes = []outcome{
	{sallyport.StatusSuccess, "", ExitOK},
	{sallyport.StatusError, sallyport.CodeScriptExecutionError, 20},
	{sallyport.StatusTimeout, sallyport.CodeExecutionTimeout, 21},
	{sallyport.StatusResourceExhausted, sallyport.CodeResourceExhausted, 22},
	{sallyport.StatusLost, sallyport.CodeExecutionLost, 23},
	{sallyport.StatusCanceled, sallyport.CodeExecutionCanceled, 130},
}

// ExitCode is the command line's exit code for a call that ended in err; nil is 0.
func ExitCode(err error) int {
	code := sallyport.CodeOf(err)
	for _, o := range outcomes {
		if o.kind != "" && o.kind == code {
			return o.exit
		}
	}
	return ForError(err).ExitCode
}

// ExitExecution is the command line's exit code for an execution, by its Status. An execution that is not closed, or
// whose status is unknown, is no success: it exits 1.
func ExitExecution(execution sallyport.Execution) int {
	for _, o := range outcomes {
		if o.status == execution.Status {
			return o.exit
		}
	}
	if execution.Status == sallyport.StatusNotStarted {
		return ExitCode(execution.Err())
	}
	return ExitInternal
}
