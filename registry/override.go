package registry

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

const (
	opOverride = "registry.publish"

	maxReasonBytes = 1 << 10
	// maxShownFindings bounds the findings in the details of a refusal.
	maxShownFindings = 20
)

// PublishOverride is Publish for a revision that is not clean, for a reason that goes on record before anything changes. Besides
// memory:write it needs grants:write: who writes a skill does not wave it through. Without a trail to write to it is
// AUDIT_UNAVAILABLE.
func (s *Service) PublishOverride(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, reason string) (SkillView, error) {
	if err := p.Require(opOverride, sallyport.ScopeGrantsWrite); err != nil {
		return SkillView{}, err
	}
	reason = strings.TrimSpace(reason)
	if reason == "" || len(reason) > maxReasonBytes || !utf8.ValidString(reason) {
		return SkillView{}, sallyport.Errorf(opOverride, sallyport.CodeInvalidArgument, "override is the reason, UTF-8 text of 1 to %d bytes", maxReasonBytes)
	}
	return s.publishChecked(ctx, p, ref, id, reason)
}

// permit lets a stored revision be published when it is clean, need not be, or is overridden: then the reason is on record when permit
// returns.
func (s *Service) permit(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision, override string) error {
	if !s.cfg.PublishRequiresClean && override == "" {
		return nil
	}
	found, _, err := s.scanned(ctx, p, skill, revision.ID)
	if err != nil {
		return err
	}
	if override == "" {
		return s.clean(opOverride, found)
	}
	if s.cfg.Trail == nil {
		return &sallyport.Error{Op: opOverride, Code: sallyport.CodeAuditUnavailable}
	}
	found = found.without(s.cfg.FindingExclusions)
	detail := published(skill, revision)
	detail["override"], detail["rule_set"], detail["verdict"] = override, found.RuleSet, found.Verdict
	detail["clean"], detail["findings"] = found.Clean, found.Totals
	if err := s.append(ctx, p, sallyport.ActionSkillPublish, skill, &revision, detail); err != nil {
		return &sallyport.Error{
			Op: opOverride, Code: sallyport.CodeAuditUnavailable, Message: "the override cannot be put on record, so nothing was published", Err: err,
		}
	}
	return nil
}

// clean refuses findings that are more than notes, where that is demanded.
func (s *Service) clean(op string, found Findings) error {
	if !s.cfg.PublishRequiresClean {
		return nil
	}
	found = found.without(s.cfg.FindingExclusions)
	if found.Clean {
		return nil
	}
	shown := []Finding{}
	for _, f := range found.Findings {
		if f.Severity != SeverityNote && len(shown) < maxShownFindings {
			shown = append(shown, f)
		}
	}
	message := fmt.Sprintf("the revision has %s and %s, and this server publishes clean revisions only; mend them, or let a reviewer publish it with an override and a reason",
		plural(found.Totals.Errors, "error"), plural(found.Totals.Warnings, "warning"))
	if found.Verdict != ScanDone {
		message = "the rules cannot read every file of the revision, and this server publishes clean revisions only; mend the files, or let a reviewer publish it with an override and a reason"
	}
	return &sallyport.Error{
		Op: op, Code: sallyport.CodeSkillInvalid, Message: message,
		Details: map[string]any{"rule_set": found.RuleSet, "verdict": found.Verdict, "totals": found.Totals, "findings": shown, "unscanned": found.Unscanned},
	}
}
