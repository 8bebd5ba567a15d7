// Package reply maps an outcome to what each surface says: HTTP status, MCP isError, CLI exit code.
//
// It owns that one table and the writers of the HTTP envelope and its problem form. It leaves the codes and their
// classes to the root package and every decision to its callers. Its one invariant: a surface looks an answer up by
// class and never decides by code, so the same refusal reads the same everywhere.
package reply

import (
	"net/http"

	"github.com/sallyport-dev/sallyport"
)

// The exit codes that are no class's own. Exit 2 stays free: the Go runtime and flag parsing own it.
const (
	ExitOK       = 0
	ExitInternal = 1
)

// StatusClientClosedRequest answers a caller who cancelled; it is usually unseen.
const StatusClientClosedRequest = 499

// Row is what the surfaces say for one class.
type Row struct {
	Class sallyport.Class
	// HTTPStatus of the answer. Outcome is 200: the request succeeded, the script did not.
	HTTPStatus int
	// IsError is the MCP tool result's isError.
	IsError bool
	// ExitCode of the command line. For outcome it is the exit of an error of unknown status; [ExitExecution] and
	// [ExitCode] vary it by Status.
	ExitCode int
}

// classes is the one table. Every class of the root package has exactly one row.
var classes = []Row{
	{sallyport.ClassInvalid, http.StatusBadRequest, true, 10},
	{sallyport.ClassUnauthenticated, http.StatusUnauthorized, true, 11},
	{sallyport.ClassDenied, http.StatusForbidden, true, 12},
	{sallyport.ClassNotFound, http.StatusNotFound, true, 13},
	{sallyport.ClassConflict, http.StatusConflict, true, 14},
	{sallyport.ClassTooLarge, http.StatusRequestEntityTooLarge, true, 15},
	{sallyport.ClassExhausted, http.StatusTooManyRequests, true, 16},
	{sallyport.ClassUnavailable, http.StatusServiceUnavailable, true, 17},
	{sallyport.ClassDeadline, http.StatusGatewayTimeout, true, 18},
	{sallyport.ClassOutcome, http.StatusOK, true, 20},
	{sallyport.ClassCanceled, StatusClientClosedRequest, true, 130},
	{sallyport.ClassInternal, http.StatusInternalServerError, true, ExitInternal},
}

// Classes returns every row, in table order.
func Classes() []Row { return append([]Row(nil), classes...) }

// ForClass returns the row of class; an unknown class is internal.
func ForClass(class sallyport.Class) Row {
	for _, row := range classes {
		if row.Class == class {
			return row
		}
	}
	return Row{sallyport.ClassInternal, http.StatusInternalServerError, true, ExitInternal}
}

// ForError returns the row of err's class. A nil err is no error and has no class: its row is HTTP 200, isError false,
// exit 0.
func ForError(err error) Row {
	if err == nil {
		return Row{HTTPStatus: http.StatusOK, ExitCode: ExitOK}
	}
	return ForClass(sallyport.Lookup(sallyport.CodeOf(err)).Class)
}

// HTTPStatus of an answer whose call ended in err.
func HTTPStatus(err error) int { return ForError(err).HTTPStatus }

// IsError is the MCP isError of a result whose call ended in err.
func IsError(err error) bool { return ForError(err).IsError }
