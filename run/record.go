package run

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// recordTimeout bounds a write of the record, which no caller's cancellation may interrupt.
const recordTimeout = 30 * time.Second

// opening is the execution as it stands before the slot.
func (s *Service) opening(id sallyport.ExecutionID, c *sallyport.Candidate, req Request) sallyport.Execution {
	return sallyport.Execution{
		ID: id, TenantID: c.Principal.TenantID, PrincipalID: c.Principal.ID,
		SkillID: c.Skill.ID, Slug: c.Skill.Slug, RevisionID: c.Revision.ID, RevisionDigest: c.Digest,
		ScriptPath: c.Script.Path, Runtime: c.Interpreter.Runtime, Status: sallyport.StatusQueued,
		Artifacts: []sallyport.Artifact{}, Isolation: sallyport.Isolation{Executor: s.kind(), Layers: []sallyport.Layer{}, RuntimeDigest: c.Interpreter.Digest},
		Limits: c.Limits, GrantID: c.Grant.ID, TraceID: TraceID(req.TraceParent), CreatedAt: s.cfg.Now().UTC(),
	}
}

func (s *Service) kind() string {
	if s.cfg.Executor == nil {
		return "none"
	}
	return s.cfg.Executor.Kind()
}

// request is what the executor gets: the very bytes whose digest the pin gate compared.
func (s *Service) request(c *sallyport.Candidate, execution *sallyport.Execution, req Request, secrets map[string]sallyport.Secret) sallyport.ExecRequest {
	out := sallyport.ExecRequest{
		ExecutionID: execution.ID, TenantID: execution.TenantID, Slug: c.Skill.Slug, Digest: c.Digest,
		ScriptPath: c.Script.Path, Interpreter: *c.Interpreter, Content: c.Script.Content, ContentSHA256: c.Script.SHA256,
		Files: c.Revision.Components, Argv: c.Argv, Inputs: c.Files, Secrets: secrets, Limits: c.Limits, Grace: s.cfg.Grace,
		TraceParent: req.TraceParent, RequiredLayers: c.RequiredLayers,
	}
	input := sallyport.InputStdin
	if c.Script.Script != nil && c.Script.Script.Input != "" {
		input = c.Script.Script.Input
	}
	switch input {
	case sallyport.InputStdin:
		out.Stdin = c.Args
	case sallyport.InputFlags:
		// The schema gate made the same conversion, so this cannot fail for a candidate that passed it.
		if flags, err := sallyport.Flags(c.Args); err == nil {
			out.Argv = append(flags, c.Argv...)
		}
	case sallyport.InputNone:
	}
	return out
}

// runEntry is the script.run entry: who runs which bytes, by whose grant, with what, within which limits.
func (s *Service) runEntry(e sallyport.Execution, c *sallyport.Candidate) sallyport.Entry {
	detail := map[string]any{
		"skill_id": e.SkillID, "revision_id": e.RevisionID, "digest": e.RevisionDigest, "script": e.ScriptPath,
		"runtime": e.Runtime, "grant_id": e.GrantID, "executor": e.Isolation.Executor, "limits": e.Limits,
		// As text: the canonical form of an entry would round large numbers, and refuse those beyond a double.
		"input_args": string(s.cfg.Mask(c.Args)), "argv": MaskArgv(s.cfg.Mask, c.Argv), "files": filesOf(c), "trace_id": e.TraceID,
	}
	if e.Isolation.RuntimeDigest != "" {
		detail["runtime_digest"] = e.Isolation.RuntimeDigest
	}
	if c.Confirmation != nil {
		detail["confirmation_id"], detail["confirmed_by"] = c.Confirmation.ID, c.Confirmation.DecidedBy
	}
	return s.entry(sallyport.ActionScriptRun, e.PrincipalID, e.Slug+"/"+e.ScriptPath, e.ID, detail)
}

// filesOf names the input files, with their digests for their content.
func filesOf(c *sallyport.Candidate) []map[string]any {
	files := make([]map[string]any, 0, len(c.Files))
	for _, f := range c.Files {
		files = append(files, map[string]any{
			"name": f.Name, "size": len(f.Content), "sha256": sallyport.DigestOf(f.Content).Hex(),
		})
	}
	return files
}

func finishedDetail(e sallyport.Execution) map[string]any {
	detail := map[string]any{
		"status": e.Status, "error_kind": e.ErrorKind, "duration_ms": e.DurationMS, "queue_ms": e.QueueMS,
		"oom_kills": e.OOMKills, "isolation": e.Isolation, "stdout_bytes": e.StdoutBytes, "stderr_bytes": e.StderrBytes,
		"stdout_truncated": e.StdoutTruncated, "stderr_truncated": e.StderrTruncated, "artifacts": e.Artifacts,
		"stdout_sha256": sallyport.DigestOf([]byte(e.Stdout)).Hex(), "stderr_sha256": sallyport.DigestOf([]byte(e.Stderr)).Hex(),
	}
	if e.ExitCode != nil {
		detail["exit_code"] = *e.ExitCode
	}
	if e.Signal != 0 {
		detail["signal"] = e.Signal
	}
	if e.ProcessLimitHits != 0 {
		detail["process_limit_hits"] = e.ProcessLimitHits
	}
	if e.Limit != "" {
		detail["limit"] = e.Limit
	}
	if e.MemoryPeakBytes != nil {
		detail["memory_peak_bytes"] = *e.MemoryPeakBytes
	}
	if e.CPUTimeMS != nil {
		detail["cpu_time_ms"] = *e.CPUTimeMS
	}
	return detail
}

func (s *Service) entry(action sallyport.Action, actor sallyport.PrincipalID, entity string, id sallyport.ExecutionID, detail map[string]any) sallyport.Entry {
	raw, err := json.Marshal(detail)
	if err != nil {
		// Only raw JSON that the masker made could fail here; the entry says so rather than miss.
		raw = json.RawMessage(`{"unreadable":true}`)
	}
	return sallyport.Entry{At: s.cfg.Now().UTC(), Actor: actor, Action: action, Entity: entity, ExecutionID: id, Detail: raw}
}

// MaskArgv hides the values of arguments whose names look secret to mask: --token=x and --token x.
func MaskArgv(mask func(json.RawMessage) json.RawMessage, argv []string) []string {
	masked := make([]string, 0, len(argv))
	hide := false
	for _, arg := range argv {
		name, _, assigned := strings.Cut(arg, "=")
		secret := strings.HasPrefix(arg, "-") && looksSecret(mask, strings.TrimLeft(name, "-"))
		switch {
		case hide:
			masked = append(masked, "***")
		case secret && assigned:
			masked = append(masked, name+"=***")
		default:
			masked = append(masked, arg)
		}
		hide = !hide && secret && !assigned
	}
	return masked
}

// looksSecret asks the one masker whether it would hide a member of this name.
func looksSecret(mask func(json.RawMessage) json.RawMessage, name string) bool {
	probe, err := json.Marshal(map[string]string{name: "x"})
	return err != nil || string(mask(probe)) != string(probe)
}

// refuse records a no before anything began: script.denied for a gate's refusal and for ACCESS_DENIED, a counter for all. The run is
// refused whether or not that entry can be written.
func (s *Service) refuse(ctx context.Context, c *sallyport.Candidate, gate string, err error) error {
	code := sallyport.CodeOf(err)
	s.cfg.Observer.Refused(ctx, gate, code)
	if gate == "" && code != sallyport.CodeAccessDenied || c.Principal.TenantID == "" {
		return err
	}
	entity := c.Skill.Slug
	if c.Script.Path != "" {
		entity += "/" + c.Script.Path
	}
	detail := map[string]any{"gate": gate, "code": code, "reason": sallyport.Public(err).Message}
	if c.Digest != "" {
		detail["digest"], detail["skill_id"], detail["revision_id"] = c.Digest, c.Skill.ID, c.Revision.ID
	}
	entry := s.entry(sallyport.ActionScriptDenied, c.Principal.ID, entity, "", detail)
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := s.cfg.Ledger.Deny(record, c.Principal.TenantID, entry); err != nil {
		s.cfg.Observer.DenyUnrecorded(ctx)
		s.cfg.Logger.ErrorContext(ctx, "a refusal was not recorded", "code", code, "error", err)
	}
	return err
}

// finish closes the record, on a context that outlives the caller: a hung-up client must not leave an Execution open. broken is why
// no outcome is known; nil when the execution carries one.
func (s *Service) finish(ctx context.Context, e sallyport.Execution, artifacts []sallyport.ArtifactFile, broken error) (sallyport.Execution, error) {
	spanned, end := s.cfg.Observer.Span(ctx, "sallyport.finish", "")
	answer := s.conclude(&e, broken)
	at := s.cfg.Now().UTC()
	e.FinishedAt = &at
	record, cancel := context.WithTimeout(context.WithoutCancel(spanned), recordTimeout)
	defer cancel()
	entry := s.entry(sallyport.ActionScriptFinished, e.PrincipalID, e.Slug+"/"+e.ScriptPath, e.ID, finishedDetail(e))
	err := s.cfg.Ledger.Close(record, e.TenantID, e, artifacts, entry)
	end(err)
	if err != nil {
		// The script did run: its outcome is told now, and recorded as soon as the ledger can.
		s.cfg.Logger.ErrorContext(ctx, "the outcome of an execution was not recorded", "execution_id", e.ID, "error", err)
		s.cfg.Observer.FinishUnrecorded(ctx)
		s.recordLater(ctx, e, artifacts, entry)
	}
	s.cfg.Observer.Finished(ctx, e)
	return e, answer
}

// maxUnrecorded bounds the outcomes that are kept in memory for a ledger that cannot write; what is over it, or left when the service
// closes, is closed as lost at the next start.
const maxUnrecorded = 256

// recordLater tries again, ever more slowly, until the outcome is recorded or the service closes.
func (s *Service) recordLater(ctx context.Context, e sallyport.Execution, artifacts []sallyport.ArtifactFile, entry sallyport.Entry) {
	if s.unrecorded.Add(1) > maxUnrecorded {
		s.unrecorded.Add(-1)
		return
	}
	ctx = context.WithoutCancel(ctx)
	s.background.Go(func() {
		for wait := time.Second; ; wait = min(2*wait, time.Minute) {
			select {
			case <-s.closing:
				return
			case <-time.After(wait):
			}
			record, cancel := context.WithTimeout(ctx, recordTimeout)
			err := s.cfg.Ledger.Close(record, e.TenantID, e, artifacts, entry)
			cancel()
			if err == nil {
				s.unrecorded.Add(-1)
				s.cfg.Logger.InfoContext(ctx, "the outcome of an execution was recorded late", "execution_id", e.ID)
				return
			}
		}
	})
}

// conclude turns a break into a status and an answer: SLOTS_EXHAUSTED and "nothing began" are not_started, the caller's
// cancellation is canceled, a deaf executor is a timeout, all else is lost.
func (s *Service) conclude(e *sallyport.Execution, broken error) (answer error) {
	if broken == nil {
		return nil
	}
	began := e.Status == sallyport.StatusRunning
	code := sallyport.CodeOf(broken)
	_, executors := errors.AsType[*executorError](broken)
	fail := func(status sallyport.Status, kind sallyport.Code) {
		e.Status, e.ErrorKind, e.ErrorMessage = status, kind, sallyport.Lookup(kind).Message
	}
	switch {
	case errors.Is(broken, errStopping):
		fail(sallyport.StatusCanceled, sallyport.CodeExecutionCanceled)
		e.ErrorMessage = "the server stopped before the execution ended, and ended it"
		return nil
	case errors.Is(broken, errDeaf):
		fail(sallyport.StatusTimeout, sallyport.CodeExecutionTimeout)
		e.Limit = sallyport.LimitWall
		return nil
	case !executors && (errors.Is(broken, context.Canceled) || code == sallyport.CodeCanceled):
		fail(sallyport.StatusCanceled, sallyport.CodeExecutionCanceled)
		return nil
	case !executors && errors.Is(broken, context.DeadlineExceeded):
		// The caller's own deadline passed; the script's never shows up here.
		fail(sallyport.StatusCanceled, sallyport.CodeExecutionCanceled)
		return nil
	case !began || sallyport.IsNotStarted(broken):
		fail(sallyport.StatusNotStarted, public(code))
	default:
		fail(sallyport.StatusLost, sallyport.CodeExecutionLost)
	}
	if own, ok := errors.AsType[*sallyport.Error](broken); ok && public(code) == code {
		e.ErrorMessage = sallyport.Public(own).Message
		return onRecord(*own, e.ID)
	}
	return onRecord(sallyport.Error{Op: "run.execute", Code: public(code), Err: broken}, e.ID)
}

// onRecord names the execution whose record was opened: a caller who is told to try again can see first how far it came.
func onRecord(answer sallyport.Error, id sallyport.ExecutionID) *sallyport.Error {
	details := map[string]any{"execution_id": string(id)}
	maps.Copy(details, answer.Details)
	answer.Details = details
	return &answer
}

// public keeps the codes that an executor's error may carry to the caller; all else is INTERNAL, so that its message
// stays with us.
func public(code sallyport.Code) sallyport.Code {
	switch code {
	case sallyport.CodeSlotsExhausted, sallyport.CodeSandboxUnavailable, sallyport.CodeRunnerUnreachable, sallyport.CodeInvalidArgument:
		return code
	default:
		return sallyport.CodeInternal
	}
}

// TraceID returns the trace id of a W3C traceparent, empty when it is malformed.
func TraceID(traceParent string) string {
	parts := strings.Split(traceParent, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || len(parts[1]) != 32 || strings.Trim(parts[1], "0123456789abcdef") != "" ||
		strings.Trim(parts[1], "0") == "" {
		return ""
	}
	return parts[1]
}
