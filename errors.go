package sallyport

import (
	"context"
	"errors"
	"fmt"
)

// Class groups codes; every surface maps a class, never a code (package internal/reply).
type Class string

// The closed set of classes.
const (
	ClassInvalid         Class = "invalid"
	ClassUnauthenticated Class = "unauthenticated"
	ClassDenied          Class = "denied"
	ClassNotFound        Class = "not_found"
	ClassConflict        Class = "conflict"
	ClassTooLarge        Class = "too_large"
	ClassExhausted       Class = "exhausted"
	ClassUnavailable     Class = "unavailable"
	ClassDeadline        Class = "deadline" // our own limit, never the script's
	ClassOutcome         Class = "outcome"  // the script ran and did not succeed
	ClassCanceled        Class = "canceled"
	ClassInternal        Class = "internal"
)

// Classes lists every class.
func Classes() []Class {
	return []Class{
		ClassInvalid, ClassUnauthenticated, ClassDenied, ClassNotFound, ClassConflict, ClassTooLarge,
		ClassExhausted, ClassUnavailable, ClassDeadline, ClassOutcome, ClassCanceled, ClassInternal,
	}
}

// Code is one stable error code, spelled the same on every surface. Codes are append-only.
type Code string

// The codes. Each has exactly one row in [Catalogue].
const (
	CodeInvalidArgument       Code = "INVALID_ARGUMENT"
	CodeArgumentsMismatch     Code = "ARGUMENTS_MISMATCH"
	CodeUnsafePath            Code = "UNSAFE_PATH"
	CodeInvalidComponentType  Code = "INVALID_COMPONENT_TYPE"
	CodeSkillInvalid          Code = "SKILL_INVALID"
	CodeArgumentsTooLarge     Code = "ARGUMENTS_TOO_LARGE"
	CodeContentTooLarge       Code = "CONTENT_TOO_LARGE"
	CodeRequestTooLarge       Code = "REQUEST_TOO_LARGE"
	CodeSkillTooLarge         Code = "SKILL_TOO_LARGE"
	CodeUnauthenticated       Code = "UNAUTHENTICATED"
	CodeAccessDenied          Code = "ACCESS_DENIED"
	CodeFeatureDisabled       Code = "FEATURE_DISABLED"
	CodeGrantMissing          Code = "GRANT_MISSING"
	CodeGrantExpired          Code = "GRANT_EXPIRED"
	CodeGrantRevoked          Code = "GRANT_REVOKED"
	CodePinMismatch           Code = "PIN_MISMATCH"
	CodeInterpreterNotAllowed Code = "INTERPRETER_NOT_ALLOWED"
	CodeSecretMissing         Code = "SECRET_MISSING"
	CodeConfirmationRequired  Code = "CONFIRMATION_REQUIRED"
	CodeSkillNotFound         Code = "SKILL_NOT_FOUND"
	CodeRevisionNotFound      Code = "REVISION_NOT_FOUND"
	CodeScriptNotFound        Code = "SCRIPT_NOT_FOUND"
	CodeComponentNotFound     Code = "COMPONENT_NOT_FOUND"
	CodeGrantNotFound         Code = "GRANT_NOT_FOUND"
	CodeExecutionNotFound     Code = "EXECUTION_NOT_FOUND"
	CodeArtifactNotFound      Code = "ARTIFACT_NOT_FOUND"
	CodeConfirmationNotFound  Code = "CONFIRMATION_NOT_FOUND"
	CodeKeyNotFound           Code = "KEY_NOT_FOUND"
	CodeSecretNotFound        Code = "SECRET_NOT_FOUND"
	CodeTenantNotFound        Code = "TENANT_NOT_FOUND"
	CodeTeamNotFound          Code = "TEAM_NOT_FOUND"
	CodeRoleNotFound          Code = "ROLE_NOT_FOUND"
	CodePrincipalNotFound     Code = "PRINCIPAL_NOT_FOUND"
	CodeRouteNotFound         Code = "ROUTE_NOT_FOUND"
	CodeSkillArchived         Code = "SKILL_ARCHIVED"
	CodeSkillAmbiguous        Code = "SKILL_AMBIGUOUS"
	CodeSlugTaken             Code = "SLUG_TAKEN"
	CodeRevisionConflict      Code = "REVISION_CONFLICT"
	CodeGrantConflict         Code = "GRANT_CONFLICT"
	CodeNameTaken             Code = "NAME_TAKEN"
	CodeInUse                 Code = "IN_USE"
	CodeLastAdmin             Code = "LAST_ADMIN"
	CodePolicyConflict        Code = "POLICY_CONFLICT"
	CodeSlotsExhausted        Code = "SLOTS_EXHAUSTED"
	CodeRateLimited           Code = "RATE_LIMITED"
	CodeSandboxUnavailable    Code = "SANDBOX_UNAVAILABLE"
	CodeAuditUnavailable      Code = "AUDIT_UNAVAILABLE"
	CodeRunnerUnreachable     Code = "RUNNER_UNREACHABLE"
	CodeStoreUnavailable      Code = "STORE_UNAVAILABLE"
	CodeIdentityUnavailable   Code = "IDENTITY_UNAVAILABLE"
	CodeDeadlineExceeded      Code = "DEADLINE_EXCEEDED"
	CodeExecutionTimeout      Code = "EXECUTION_TIMEOUT"
	CodeResourceExhausted     Code = "RESOURCE_EXHAUSTED"
	CodeScriptExecutionError  Code = "SCRIPT_EXECUTION_ERROR"
	CodeExecutionCanceled     Code = "EXECUTION_CANCELED"
	CodeExecutionLost         Code = "EXECUTION_LOST"
	CodeCanceled              Code = "CANCELED"
	CodeInternal              Code = "INTERNAL"
)

// Retry says whether the same call may succeed later without anybody changing anything.
type Retry bool

// The two answers.
const (
	NoRetry  Retry = false
	CanRetry Retry = true
)

// Info is one row of the catalogue: all there is to know about a code.
type Info struct {
	Code    Code
	Class   Class
	Message string // the public sentence when an Error brings none; carries no format verb
	Retry   Retry
}

// catalogue is the one table of codes. Nothing else about a code exists anywhere.
var catalogue = []Info{
	{CodeInvalidArgument, ClassInvalid, "the request is malformed", NoRetry},
	{CodeArgumentsMismatch, ClassInvalid, "the arguments do not fit what the script declares", NoRetry},
	{CodeUnsafePath, ClassInvalid, "the path is not plain", NoRetry},
	{CodeInvalidComponentType, ClassInvalid, "the component is not a script", NoRetry},
	{CodeSkillInvalid, ClassInvalid, "the skill cannot be used", NoRetry},
	{CodeArgumentsTooLarge, ClassTooLarge, "the arguments are over the size limit", NoRetry},
	{CodeContentTooLarge, ClassTooLarge, "the script is over the size limit", NoRetry},
	{CodeRequestTooLarge, ClassTooLarge, "the request body is over the size limit", NoRetry},
	{CodeSkillTooLarge, ClassTooLarge, "the skill is over its file or size limit", NoRetry},
	{CodeUnauthenticated, ClassUnauthenticated, "a valid key or token is required", NoRetry},
	{CodeAccessDenied, ClassDenied, "access denied", NoRetry},
	{CodeFeatureDisabled, ClassDenied, "running scripts is switched off", NoRetry},
	{CodeGrantMissing, ClassDenied, "no grant allows this script for this tenant", NoRetry},
	{CodeGrantExpired, ClassDenied, "the grant for this script has expired", NoRetry},
	{CodeGrantRevoked, ClassDenied, "the grant for this script was revoked", NoRetry},
	{CodePinMismatch, ClassDenied, "the revision differs from the content the grant pins", NoRetry},
	{CodeInterpreterNotAllowed, ClassDenied, "no allowed interpreter runs this kind of script", NoRetry},
	{CodeSecretMissing, ClassDenied, "the script declares a secret that is not set", NoRetry},
	{CodeConfirmationRequired, ClassDenied, "a person must confirm this run", NoRetry},
	{CodeSkillNotFound, ClassNotFound, "no such skill", NoRetry},
	{CodeRevisionNotFound, ClassNotFound, "the skill has no such revision", NoRetry},
	{CodeScriptNotFound, ClassNotFound, "the revision has no such script", NoRetry},
	{CodeComponentNotFound, ClassNotFound, "the revision has no such component", NoRetry},
	{CodeGrantNotFound, ClassNotFound, "no such grant", NoRetry},
	{CodeExecutionNotFound, ClassNotFound, "no such execution", NoRetry},
	{CodeArtifactNotFound, ClassNotFound, "no such artifact", NoRetry},
	{CodeSecretNotFound, ClassNotFound, "no such secret", NoRetry},
	{CodeConfirmationNotFound, ClassNotFound, "no such question waits for an answer", NoRetry},
	{CodeKeyNotFound, ClassNotFound, "no such key", NoRetry},
	{CodeTenantNotFound, ClassNotFound, "no such tenant", NoRetry},
	{CodeTeamNotFound, ClassNotFound, "no such team", NoRetry},
	{CodeRoleNotFound, ClassNotFound, "no such role", NoRetry},
	{CodePrincipalNotFound, ClassNotFound, "no such principal", NoRetry},
	{CodeRouteNotFound, ClassNotFound, "no such route", NoRetry},
	{CodeSkillArchived, ClassConflict, "the skill is archived", NoRetry},
	{CodeSkillAmbiguous, ClassConflict, "the slug names a skill in more than one team; send team_id", NoRetry},
	{CodeSlugTaken, ClassConflict, "the slug is taken", NoRetry},
	{CodeRevisionConflict, ClassConflict, "the skill changed since the revision you expected", NoRetry},
	{CodeGrantConflict, ClassConflict, "the content changed since it was reviewed; review and grant again", NoRetry},
	{CodeNameTaken, ClassConflict, "the name is taken", NoRetry},
	{CodeInUse, ClassConflict, "it is still in use", NoRetry},
	{CodeLastAdmin, ClassConflict, "the tenant would be left without an administrator", NoRetry},
	{CodePolicyConflict, ClassConflict, "the policy changed since the version you expected", NoRetry},
	{CodeSlotsExhausted, ClassExhausted, "no execution slot became free in time", CanRetry},
	{CodeRateLimited, ClassExhausted, "too many requests", CanRetry},
	{CodeSandboxUnavailable, ClassUnavailable, "no working isolation on this host; an operator must act", NoRetry},
	{CodeAuditUnavailable, ClassUnavailable, "the audit trail cannot be written, so nothing was run", CanRetry},
	{CodeRunnerUnreachable, ClassUnavailable, "the runner cannot be reached", CanRetry},
	{CodeStoreUnavailable, ClassUnavailable, "the database cannot serve the request", CanRetry},
	{CodeIdentityUnavailable, ClassUnavailable, "the authorization server cannot be asked, so tokens cannot be checked", CanRetry},
	{CodeDeadlineExceeded, ClassDeadline, "the server did not finish the request in time", CanRetry},
	{CodeExecutionTimeout, ClassOutcome, "the script ran past its time limit and was stopped", CanRetry},
	{CodeResourceExhausted, ClassOutcome, "the script used more than it was allowed and was stopped", CanRetry},
	{CodeScriptExecutionError, ClassOutcome, "the script ended with an error", CanRetry},
	{CodeExecutionCanceled, ClassCanceled, "the caller cancelled the execution", CanRetry},
	{CodeExecutionLost, ClassOutcome, "the outcome of the execution was never learned; it will not be run again", CanRetry},
	{CodeCanceled, ClassCanceled, "the caller cancelled the request", CanRetry},
	{CodeInternal, ClassInternal, "internal error", NoRetry},
}

// Catalogue returns every row, in table order.
func Catalogue() []Info { return append([]Info(nil), catalogue...) }

// Lookup returns the row of code; an unknown code is INTERNAL.
func Lookup(code Code) Info {
	for _, info := range catalogue {
		if info.Code == code {
			return info
		}
	}
	return Info{Code: CodeInternal, Class: ClassInternal, Message: "internal error"}
}

// Error is the one error type: Op names the operation for the log, Code is what surfaces map, Message is an
// optional public sentence in place of the table's, Err is the private cause that no caller ever sees.
// Message and Details must never hold a host path, a secret or another tenant's data.
type Error struct {
	Op      string
	Code    Code
	Message string
	Details map[string]any
	Err     error
}

// Error is for the log, not for callers.
func (e *Error) Error() string {
	s := e.Op + ": " + string(e.Code)
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause to the product itself.
func (e *Error) Unwrap() error { return e.Err }

// Errorf builds an Error with a public sentence.
func Errorf(op string, code Code, format string, args ...any) *Error {
	return &Error{Op: op, Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of err: an Error's own, CANCELED or DEADLINE_EXCEEDED for a bare context error,
// INTERNAL for anything else, and the empty code for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return Lookup(e.Code).Code
	}
	switch {
	case errors.Is(err, context.Canceled):
		return CodeCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return CodeDeadlineExceeded
	}
	return CodeInternal
}

// PublicError is what a caller sees of an error, inside the Envelope.
type PublicError struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Retry   Retry          `json:"retry"`
	Details map[string]any `json:"details,omitempty"`
}

// Public returns what a caller may see of err; nil for nil. The cause never shows.
func Public(err error) *PublicError {
	if err == nil {
		return nil
	}
	info := Lookup(CodeOf(err))
	public := &PublicError{Code: info.Code, Message: info.Message, Retry: info.Retry}
	if e, ok := errors.AsType[*Error](err); ok && info.Code != CodeInternal {
		if e.Message != "" {
			public.Message = e.Message
		}
		public.Details = e.Details
	}
	return public
}
