package run

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/sallyport-dev/sallyport"
)

// Confirmations keeps the questions to a person, and their answers. Every method takes the tenant first; what is expired at now is as
// absent.
type Confirmations interface {
	// AskConfirmation stores a pending question with its entry in one transaction, unless the same principal waits for the answer to
	// the same question already: then it returns that one. A principal with most pending questions gets none more (found false).
	AskConfirmation(ctx context.Context, tenant sallyport.TenantID, c sallyport.Confirmation, most int, entry sallyport.Entry) (asked sallyport.Confirmation, found bool, err error)
	// Confirmed returns the approved question of a principal for a request and a revision.
	Confirmed(ctx context.Context, tenant sallyport.TenantID, principal sallyport.PrincipalID, request, revision sallyport.Digest, now time.Time) (sallyport.Confirmation, bool, error)
	// UseConfirmation marks an approved question as used; false when it is not approved any more.
	UseConfirmation(ctx context.Context, tenant sallyport.TenantID, id sallyport.ConfirmationID, now time.Time) (bool, error)
	// DecideConfirmation stores the state, expiry and decision of c with its entry in one transaction, if the question is pending.
	DecideConfirmation(ctx context.Context, tenant sallyport.TenantID, c sallyport.Confirmation, now time.Time, entry sallyport.Entry) (bool, error)
	// PendingConfirmation returns one pending question; CONFIRMATION_NOT_FOUND.
	PendingConfirmation(ctx context.Context, tenant sallyport.TenantID, id sallyport.ConfirmationID, now time.Time) (sallyport.Confirmation, error)
	// PendingConfirmations returns at most limit pending questions, oldest first.
	PendingConfirmations(ctx context.Context, tenant sallyport.TenantID, now time.Time, limit int) ([]sallyport.Confirmation, error)
}

const (
	// maxPending bounds the questions of one principal that wait for an answer, and maxListed those that are listed.
	maxPending, maxListed = 32, 200
	opConfirm             = "run.confirm"
)

// confirmed looks for a yes to exactly what the candidate is, where one is wanted.
func (s *Service) confirmed(ctx context.Context, c *sallyport.Candidate, req Request) error {
	wanted := s.cfg.Confirm || c.Policy.Confirm || c.Script.Script != nil && c.Script.Script.Confirm
	if !wanted || s.cfg.Confirmations == nil {
		return nil
	}
	request, err := confirmDigest(c, req)
	if err != nil {
		return err
	}
	confirmation, found, err := s.cfg.Confirmations.Confirmed(ctx, c.Principal.TenantID, c.Principal.ID, request, c.Digest, s.cfg.Now().UTC())
	if err == nil && found {
		c.Confirmation = &confirmation
	}
	return err
}

// question turns the refusal of the confirm gate into a question that a person can answer. When it cannot be kept the run is refused all
// the same.
func (s *Service) question(ctx context.Context, c *sallyport.Candidate, req Request, refusal *sallyport.Refusal) *sallyport.Refusal {
	if refusal.Code != sallyport.CodeConfirmationRequired || s.cfg.Confirmations == nil {
		return refusal
	}
	asked, found, err := s.keepQuestion(ctx, c, req)
	switch {
	case err != nil:
		s.cfg.Logger.ErrorContext(ctx, "a question to a person could not be kept", "error", err)
		return refusal
	case !found:
		refusal.Message = "a person must confirm this run, and too many questions of yours wait for an answer already"
		return refusal
	}
	refusal.Message = "a person must confirm this run; somebody else with the scope grants:write does, within 10 minutes, with: sallyport approve " +
		string(asked.ID) + ", or POST /v1/confirmations/" + string(asked.ID) + "/approve; then send the very same request again"
	details := map[string]any{
		"confirmation_id": asked.ID, "request_digest": asked.RequestDigest, "revision_digest": asked.RevisionDigest, "expires_at": asked.ExpiresAt,
	}
	maps.Copy(details, refusal.Details)
	refusal.Details = details
	return refusal
}

func (s *Service) keepQuestion(ctx context.Context, c *sallyport.Candidate, req Request) (sallyport.Confirmation, bool, error) {
	request, err := confirmDigest(c, req)
	if err != nil {
		return sallyport.Confirmation{}, false, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return sallyport.Confirmation{}, false, &sallyport.Error{Op: opConfirm, Code: sallyport.CodeInternal, Err: err}
	}
	shown, err := json.Marshal(s.shown(c))
	if err != nil {
		return sallyport.Confirmation{}, false, &sallyport.Error{Op: opConfirm, Code: sallyport.CodeInternal, Err: err}
	}
	now := s.cfg.Now().UTC()
	confirmation := sallyport.Confirmation{
		ID: sallyport.ConfirmationID(id.String()), TenantID: c.Principal.TenantID, PrincipalID: c.Principal.ID,
		SkillID: c.Skill.ID, Slug: c.Skill.Slug, RevisionID: c.Revision.ID, RevisionDigest: c.Digest, ScriptPath: c.Script.Path,
		RequestDigest: request, Request: shown, State: sallyport.ConfirmationPending, CreatedAt: now, ExpiresAt: now.Add(sallyport.ConfirmationLife),
	}
	return s.cfg.Confirmations.AskConfirmation(ctx, c.Principal.TenantID, confirmation, maxPending,
		s.confirmEntry(sallyport.ActionConfirmationAsk, c.Principal.ID, confirmation))
}

func (s *Service) confirmEntry(action sallyport.Action, actor sallyport.PrincipalID, c sallyport.Confirmation) sallyport.Entry {
	return s.entry(action, actor, c.Slug+"/"+c.ScriptPath, "", map[string]any{
		"confirmation_id": c.ID, "asked_by": c.PrincipalID, "skill_id": c.SkillID, "revision_id": c.RevisionID, "digest": c.RevisionDigest,
		"request_digest": c.RequestDigest, "request": c.Request, "in_client": c.InClient, "expires_at": c.ExpiresAt,
	})
}

// shown is what a person reads of a request: what the trail holds of it.
func (s *Service) shown(c *sallyport.Candidate) map[string]any {
	return map[string]any{"input_args": string(s.cfg.Mask(c.Args)), "argv": MaskArgv(s.cfg.Mask, c.Argv), "files": filesOf(c), "limits": c.Limits}
}

// confirmDigest is over the script and everything that is handed to it, however the request named them.
func confirmDigest(c *sallyport.Candidate, req Request) (sallyport.Digest, error) {
	req.Ref = sallyport.SkillRef{SkillID: c.Skill.ID}
	req.RevisionID, req.ScriptPath, req.Args = c.Revision.ID, c.Script.Path, c.Args
	return requestDigest(req)
}

// use spends the yes of the candidate, before anything is opened: what comes between it and the run costs the yes, never a second run.
func (s *Service) use(ctx context.Context, c *sallyport.Candidate) error {
	if c.Confirmation == nil {
		return nil
	}
	used, err := s.cfg.Confirmations.UseConfirmation(ctx, c.Principal.TenantID, c.Confirmation.ID, s.cfg.Now().UTC())
	if err == nil && !used {
		err = (&sallyport.Refusal{Code: sallyport.CodeConfirmationRequired, Gate: "confirm", Message: "the confirmation of this run was used by another call"}).Err()
	}
	return err
}

// Confirmations lists the questions that wait for an answer, oldest first: those of skills that p can see with grants:write, else p's own.
// Needs memory:read.
func (s *Service) Confirmations(ctx context.Context, p sallyport.Principal) ([]sallyport.Confirmation, error) {
	if err := p.Require("run.confirmations", sallyport.ScopeMemoryRead); err != nil {
		return nil, err
	}
	found := []sallyport.Confirmation{}
	if s.cfg.Confirmations == nil {
		return found, nil
	}
	pending, err := s.cfg.Confirmations.PendingConfirmations(ctx, p.TenantID, s.cfg.Now().UTC(), maxListed)
	for _, c := range pending {
		if c.PrincipalID == p.ID || p.Has(sallyport.ScopeGrantsWrite) && s.canSee(ctx, p, c) {
			found = append(found, c)
		}
	}
	return found, err
}

func (s *Service) canSee(ctx context.Context, p sallyport.Principal, c sallyport.Confirmation) bool {
	_, err := s.cfg.Skills.Resolve(ctx, p, sallyport.SkillRef{SkillID: c.SkillID})
	return err == nil
}

// Decide answers a pending question for somebody else: yes lets the same request of the same principal run once within ten minutes. It
// is audited in the transaction that stores it. Needs grants:write. ACCESS_DENIED for whoever asked, unless the installation allows
// that; CONFIRMATION_NOT_FOUND for what is not pending any more or about a skill that p cannot see.
func (s *Service) Decide(ctx context.Context, p sallyport.Principal, id sallyport.ConfirmationID, yes bool) (sallyport.Confirmation, error) {
	if err := p.Require(opConfirm, sallyport.ScopeGrantsWrite); err != nil {
		return sallyport.Confirmation{}, err
	}
	c, err := s.pending(ctx, p, id)
	if err != nil {
		return c, err
	}
	if c.PrincipalID == p.ID && !s.cfg.ConfirmSelf {
		return sallyport.Confirmation{}, sallyport.Errorf(opConfirm, sallyport.CodeAccessDenied,
			"whoever asks for a run cannot confirm it; somebody else with grants:write does, or the operator sets confirm.self")
	}
	return s.decide(ctx, p, c, yes)
}

// DecideInClient answers a question of p's own, asked of the person in front of p's client. It holds only for the request and the
// revision that the client was asked about. Needs memory:write; ACCESS_DENIED where the installation does not take a client's word.
func (s *Service) DecideInClient(
	ctx context.Context, p sallyport.Principal, id sallyport.ConfirmationID, request, revision sallyport.Digest, yes bool,
) (sallyport.Confirmation, error) {
	if err := p.Require(opConfirm, sallyport.ScopeMemoryWrite); err != nil {
		return sallyport.Confirmation{}, err
	}
	if !s.cfg.ConfirmInClient {
		return sallyport.Confirmation{}, &sallyport.Error{Op: opConfirm, Code: sallyport.CodeAccessDenied}
	}
	c, err := s.pending(ctx, p, id)
	if err != nil {
		return c, err
	}
	if c.PrincipalID != p.ID || c.RequestDigest != request || c.RevisionDigest != revision {
		return sallyport.Confirmation{}, &sallyport.Error{Op: opConfirm, Code: sallyport.CodeConfirmationNotFound}
	}
	c.InClient = true
	return s.decide(ctx, p, c, yes)
}

func (s *Service) pending(ctx context.Context, p sallyport.Principal, id sallyport.ConfirmationID) (sallyport.Confirmation, error) {
	absent := &sallyport.Error{Op: opConfirm, Code: sallyport.CodeConfirmationNotFound}
	if s.cfg.Confirmations == nil {
		return sallyport.Confirmation{}, absent
	}
	c, err := s.cfg.Confirmations.PendingConfirmation(ctx, p.TenantID, id, s.cfg.Now().UTC())
	if err == nil && !s.canSee(ctx, p, c) {
		err = absent
	}
	return c, err
}

func (s *Service) decide(ctx context.Context, p sallyport.Principal, c sallyport.Confirmation, yes bool) (sallyport.Confirmation, error) {
	now := s.cfg.Now().UTC().Truncate(time.Microsecond)
	action := sallyport.ActionConfirmationDeny
	c.State, c.DecidedAt, c.DecidedBy = sallyport.ConfirmationDenied, &now, p.ID
	if yes {
		action, c.State, c.ExpiresAt = sallyport.ActionConfirmationApprove, sallyport.ConfirmationApproved, now.Add(sallyport.ConfirmationLife)
	}
	decided, err := s.cfg.Confirmations.DecideConfirmation(ctx, p.TenantID, c, now, s.confirmEntry(action, p.ID, c))
	if err == nil && !decided {
		err = &sallyport.Error{Op: opConfirm, Code: sallyport.CodeConfirmationNotFound}
	}
	if err != nil {
		return sallyport.Confirmation{}, err
	}
	return c, nil
}
