package reply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

// The table of the design, spelled out a second time on purpose: a changed number is a changed contract.
var contract = map[sallyport.Class]reply.Row{
	sallyport.ClassInvalid:         {HTTPStatus: 400, IsError: true, ExitCode: 10},
	sallyport.ClassUnauthenticated: {HTTPStatus: 401, IsError: true, ExitCode: 11},
	sallyport.ClassDenied:          {HTTPStatus: 403, IsError: true, ExitCode: 12},
	sallyport.ClassNotFound:        {HTTPStatus: 404, IsError: true, ExitCode: 13},
	sallyport.ClassConflict:        {HTTPStatus: 409, IsError: true, ExitCode: 14},
	sallyport.ClassTooLarge:        {HTTPStatus: 413, IsError: true, ExitCode: 15},
	sallyport.ClassExhausted:       {HTTPStatus: 429, IsError: true, ExitCode: 16},
	sallyport.ClassUnavailable:     {HTTPStatus: 503, IsError: true, ExitCode: 17},
	sallyport.ClassDeadline:        {HTTPStatus: 504, IsError: true, ExitCode: 18},
	sallyport.ClassOutcome:         {HTTPStatus: 200, IsError: true, ExitCode: 20},
	sallyport.ClassCanceled:        {HTTPStatus: 499, IsError: true, ExitCode: 130},
	sallyport.ClassInternal:        {HTTPStatus: 500, IsError: true, ExitCode: 1},
}

func TestEveryClassHasOneRow(t *testing.T) {
	t.Parallel()
	rows := map[sallyport.Class]int{}
	for _, row := range reply.Classes() {
		rows[row.Class]++
	}
	for _, class := range sallyport.Classes() {
		if rows[class] != 1 {
			t.Errorf("class %q has %d rows, want 1", class, rows[class])
		}
		want := contract[class]
		want.Class = class
		if diff := cmp.Diff(want, reply.ForClass(class)); diff != "" {
			t.Errorf("class %q (-want +got):\n%s", class, diff)
		}
		delete(rows, class)
	}
	if len(rows) != 0 {
		t.Errorf("rows without a class: %v", rows)
	}
	if got := reply.ForClass("no such class").Class; got != sallyport.ClassInternal {
		t.Errorf("an unknown class is %q, want internal", got)
	}
}

func TestEveryCodeHasASurface(t *testing.T) {
	t.Parallel()
	for _, info := range sallyport.Catalogue() {
		err := &sallyport.Error{Op: "test", Code: info.Code}
		row := contract[info.Class]
		if got := reply.HTTPStatus(err); got != row.HTTPStatus {
			t.Errorf("%s: HTTP %d, want %d", info.Code, got, row.HTTPStatus)
		}
		if !reply.IsError(err) {
			t.Errorf("%s: isError is false", info.Code)
		}
		if got := reply.ExitCode(err); got == reply.ExitOK || got == 2 {
			t.Errorf("%s: exit %d", info.Code, got)
		}
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	coded := func(code sallyport.Code) error { return &sallyport.Error{Op: "test", Code: code} }
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"nil":                {nil, 0},
		"stranger":           {errors.New("x"), 1},
		"unknown code":       {coded("NO_SUCH_CODE"), 1},
		"wrapped":            {fmt.Errorf("x: %w", coded(sallyport.CodeGrantMissing)), 12},
		"bare cancel":        {context.Canceled, 130},
		"bare deadline":      {context.DeadlineExceeded, 18},
		"script error":       {coded(sallyport.CodeScriptExecutionError), 20},
		"script timeout":     {coded(sallyport.CodeExecutionTimeout), 21},
		"script limits":      {coded(sallyport.CodeResourceExhausted), 22},
		"script lost":        {coded(sallyport.CodeExecutionLost), 23},
		"execution canceled": {coded(sallyport.CodeExecutionCanceled), 130},
		"deadline of ours":   {coded(sallyport.CodeDeadlineExceeded), 18},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reply.ExitCode(test.err); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestExitExecution(t *testing.T) {
	t.Parallel()
	want := map[sallyport.Status]int{
		sallyport.StatusQueued: 1, sallyport.StatusRunning: 1, sallyport.StatusSuccess: 0, sallyport.StatusError: 20,
		sallyport.StatusTimeout: 21, sallyport.StatusResourceExhausted: 22, sallyport.StatusCanceled: 130,
		sallyport.StatusNotStarted: 16, sallyport.StatusLost: 23,
	}
	for _, status := range sallyport.Statuses() {
		execution := sallyport.Execution{Status: status}
		if status == sallyport.StatusNotStarted {
			execution.ErrorKind = sallyport.CodeSlotsExhausted
		}
		code, ok := want[status]
		if !ok {
			t.Errorf("status %q is not in this test", status)
		}
		if got := reply.ExitExecution(execution); got != code {
			t.Errorf("status %q: exit %d, want %d", status, got, code)
		}
	}
	if got := reply.ExitExecution(sallyport.Execution{}); got != 1 {
		t.Errorf("the zero execution exits %d, want 1", got)
	}
}

func TestWriteProblem(t *testing.T) {
	t.Parallel()
	const marker = "/private/cause"
	err := &sallyport.Error{
		Op: "gate.grant", Code: sallyport.CodeGrantMissing, Message: "no grant; ask a reviewer",
		Details: map[string]any{"gate": "grant"}, Err: errors.New(marker),
	}
	rec := httptest.NewRecorder()
	if writeErr := reply.WriteProblem(rec, "execution", "r-1", err); writeErr != nil {
		t.Fatal(writeErr)
	}
	if rec.Code != http.StatusForbidden || rec.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %s", rec.Code, rec.Header().Get("Content-Type"))
	}
	if strings.Contains(rec.Body.String(), marker) {
		t.Errorf("the cause shows: %s", rec.Body)
	}
	var got map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"kind": "execution", "data": nil, "request_id": "r-1",
		"error": map[string]any{
			"code": "GRANT_MISSING", "message": "no grant; ask a reviewer", "retry": false,
			"details": map[string]any{"gate": "grant"},
		},
		"type": "tag:sallyport.dev,2026:errors/GRANT_MISSING", "status": 403.0,
		"title": "no grant allows this script for this tenant", "detail": "no grant; ask a reviewer",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problem (-want +got):\n%s", diff)
	}
}

func TestWriteProblemHeaders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err                   error
		status                int
		challenge, retryAfter string
	}{
		"no credentials": {
			&sallyport.Error{Code: sallyport.CodeUnauthenticated}, 401, `Bearer realm="sallyport"`, "",
		},
		"bad credentials": {
			&sallyport.Error{Code: sallyport.CodeUnauthenticated, Details: map[string]any{"challenge": "invalid_token"}},
			401, `Bearer realm="sallyport", error="invalid_token"`, "",
		},
		"a challenge cannot inject": {
			&sallyport.Error{Code: sallyport.CodeUnauthenticated, Details: map[string]any{"challenge": "x\", y=\"\r\n"}},
			401, `Bearer realm="sallyport"`, "",
		},
		"missing scope": {
			sallyport.Principal{}.Require("x", sallyport.ScopeGrantsWrite), 403,
			`Bearer realm="sallyport", error="insufficient_scope", scope="grants:write"`, "",
		},
		"denied by a gate": {&sallyport.Error{Code: sallyport.CodePinMismatch}, 403, "", ""},
		"slots":            {&sallyport.Error{Code: sallyport.CodeSlotsExhausted}, 429, "", "1"},
		"audit":            {&sallyport.Error{Code: sallyport.CodeAuditUnavailable}, 503, "", "1"},
		"sandbox":          {&sallyport.Error{Code: sallyport.CodeSandboxUnavailable}, 503, "", ""},
		"canceled":         {context.Canceled, 499, "", ""},
		"internal":         {errors.New("x"), 500, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := httptest.NewRecorder()
			if err := reply.WriteProblem(rec, "k", "r", test.err); err != nil {
				t.Fatal(err)
			}
			if rec.Code != test.status {
				t.Errorf("status %d, want %d", rec.Code, test.status)
			}
			if got := rec.Header().Get("WWW-Authenticate"); got != test.challenge {
				t.Errorf("challenge %q, want %q", got, test.challenge)
			}
			if got := rec.Header().Get("Retry-After"); got != test.retryAfter {
				t.Errorf("retry-after %q, want %q", got, test.retryAfter)
			}
		})
	}
}

func TestWriteProblemThatDoesNotFitJSON(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	err := &sallyport.Error{Code: sallyport.CodeInvalidArgument, Details: map[string]any{"f": func() {}}}
	if err := reply.WriteProblem(rec, "k", "r", err); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(rec.Body.String(), "INVALID_ARGUMENT") || rec.Code != http.StatusBadRequest {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

func TestWriteEnvelope(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	if err := reply.WriteEnvelope(rec, http.StatusCreated, sallyport.Success("grant", "r-2", map[string]int{"n": 1})); err != nil {
		t.Fatal(err)
	}
	if got, want := rec.Body.String(), `{"kind":"grant","data":{"n":1},"error":null,"request_id":"r-2"}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if rec.Code != http.StatusCreated || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %v", rec.Code, rec.Header())
	}
}

func TestWriteEnvelopeThatDoesNotFitJSON(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	err := reply.WriteEnvelope(rec, http.StatusOK, sallyport.Success("x", "r", func() {}))
	if sallyport.CodeOf(err) != sallyport.CodeInternal {
		t.Errorf("got %v, want INTERNAL", err)
	}
	if rec.Code != http.StatusInternalServerError || !strings.Contains(rec.Body.String(), `"INTERNAL"`) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}
