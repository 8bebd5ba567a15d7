package reply

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// The media types of an answer.
const (
	MediaJSON    = "application/json"
	MediaProblem = "application/problem+json"
)

// problemTypePrefix makes a code the URI that RFC 9457 asks for; nothing needs to resolve it.
const problemTypePrefix = "tag:sallyport.dev,2026:errors/"

// Problem is a refusal over HTTP: the envelope itself with the members of RFC 9457 beside its own.
type Problem struct {
	sallyport.Envelope[json.RawMessage]

	Type   string `json:"type"`
	Title  string `json:"title"`  // the catalogue's sentence
	Status int    `json:"status"` // as on the status line
	Detail string `json:"detail"` // the error's own sentence
}

// NewProblem builds the problem of err, which must not be nil. Only what a caller may see is in it.
func NewProblem(kind, requestID string, err error) Problem {
	envelope := sallyport.Failure[json.RawMessage](kind, requestID, err)
	return Problem{
		Envelope: envelope,
		Type:     problemTypePrefix + string(envelope.Error.Code),
		Title:    sallyport.Lookup(envelope.Error.Code).Message,
		Status:   HTTPStatus(err),
		Detail:   envelope.Error.Message,
	}
}

// WriteEnvelope sends envelope as application/json. The returned error is the connection's (or that data does not fit
// JSON, in which case the caller is told INTERNAL and nothing else was written).
func WriteEnvelope[T any](w http.ResponseWriter, status int, envelope sallyport.Envelope[T]) error {
	body, err := json.Marshal(envelope)
	if err != nil {
		broken := &sallyport.Error{Op: "reply", Code: sallyport.CodeInternal, Err: err}
		if writeErr := WriteProblem(w, envelope.Kind, envelope.RequestID, broken); writeErr != nil {
			return writeErr
		}
		return broken
	}
	return write(w, MediaJSON, status, body)
}

// WriteProblem sends the refusal or break err, which must not be nil, with the challenge and the retry hint that its
// class calls for. The status is the class table's. A challenge that is set already stays.
func WriteProblem(w http.ResponseWriter, kind, requestID string, err error) error {
	return WriteProblemStatus(w, HTTPStatus(err), kind, requestID, err)
}

// WriteProblemStatus is WriteProblem for the one refusal of HTTP itself that has a status and no class: 405.
func WriteProblemStatus(w http.ResponseWriter, status int, kind, requestID string, err error) error {
	problem := NewProblem(kind, requestID, err)
	problem.Status = status
	if challenge := Challenge(err); challenge != "" && w.Header().Get("WWW-Authenticate") == "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	if problem.Error.Retry == sallyport.CanRetry && problem.Status >= http.StatusTooManyRequests &&
		problem.Status != StatusClientClosedRequest {
		w.Header().Set("Retry-After", RetryAfter(err))
	}
	if problem.Status < http.StatusBadRequest {
		// An outcome is no problem: the request succeeded.
		return WriteEnvelope(w, problem.Status, problem.Envelope)
	}
	body, err := json.Marshal(problem)
	if err != nil {
		// Details that do not fit JSON: say the rest.
		problem.Error.Details = nil
		if body, err = json.Marshal(problem); err != nil {
			return err
		}
	}
	return write(w, MediaProblem, problem.Status, body)
}

// RetryAfter is the Retry-After header that goes with err: whole seconds, rounded up, and one when err says nothing about it.
func RetryAfter(err error) string {
	wait, ok := sallyport.RetryAfter(err)
	if !ok {
		return "1"
	}
	return strconv.FormatInt(int64(max(1, (wait+time.Second-1)/time.Second)), 10)
}

func write(w http.ResponseWriter, media string, status int, body []byte) error {
	body = append(body, '\n')
	header := w.Header()
	header.Set("Content-Type", media)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}
