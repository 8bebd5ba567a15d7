package run

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/requires"
)

// The results of a Step.
const (
	stepPassed     = "passed"
	stepRefused    = "refused"
	stepNotReached = "not_reached"
)

// Explain walks the same steps as Run without running, recording or counting anything, and says which gate would refuse and what
// opens it. What cannot be resolved at all is explained too, except for a missing scope, which is an error. Needs memory:write.
func (s *Service) Explain(ctx context.Context, p sallyport.Principal, req Request) (Explanation, error) {
	if err := p.Require("run.explain", sallyport.ScopeMemoryWrite); err != nil {
		return Explanation{}, err
	}
	explanation := Explanation{}
	candidate, err := s.resolve(ctx, p, req)
	if sallyport.Lookup(sallyport.CodeOf(err)).Class == sallyport.ClassInternal && err != nil {
		return Explanation{}, err
	}
	if candidate.Skill.ID != "" {
		explanation.SkillID, explanation.Slug = candidate.Skill.ID, candidate.Skill.Slug
		explanation.RevisionID, explanation.RevisionDigest = candidate.Revision.ID, candidate.Digest
		explanation.ScriptPath, explanation.Limits = candidate.Script.Path, candidate.Limits
	}
	explanation.step("resolve", err)
	for _, gate := range s.cfg.Gates {
		if explanation.Refusal != nil {
			explanation.Steps = append(explanation.Steps, Step{Name: gate.Name(), Result: stepNotReached})
			continue
		}
		// A nil *Refusal must not become a non-nil error.
		if refusal := s.ask(ctx, gate, candidate); refusal != nil {
			explanation.step(gate.Name(), refusal.Err())
		} else {
			explanation.step(gate.Name(), nil)
		}
	}
	if candidate.Interpreter != nil {
		explanation.Runtime = candidate.Interpreter.Runtime
		s.explainPackages(ctx, &explanation, candidate)
	}
	if candidate.Grant != nil {
		explanation.GrantID = candidate.Grant.ID
	}
	explanation.Runnable = explanation.Refusal == nil
	if !explanation.Runnable {
		explanation.Remedy = remedy(explanation.Refusal, candidate)
	}
	return explanation, nil
}

// explainPackages holds what the script says it needs against its runtime. A list that cannot be read is no reason to explain nothing.
func (s *Service) explainPackages(ctx context.Context, x *Explanation, c *sallyport.Candidate) {
	needs := requires.Of(c.Script, c.Revision.Components)
	for _, fault := range needs.Faults {
		x.Warnings = append(x.Warnings, fault.File+": "+fault.Message)
	}
	var packages []sallyport.Package
	if s.cfg.Packages != nil && len(needs.Requirements) > 0 {
		var err error
		if packages, err = s.cfg.Packages(ctx, *c.Interpreter); err != nil {
			s.cfg.Logger.WarnContext(ctx, "the packages of a runtime cannot be listed", "runtime", c.Interpreter.Runtime, "error", err)
			packages = nil
		}
	}
	for _, need := range needs.Against(packages, packages != nil) {
		x.Packages = append(x.Packages, need)
		if sentence := need.Unmet(c.Interpreter.Runtime); sentence != "" {
			x.Warnings = append(x.Warnings, sentence)
		}
	}
}

func (x *Explanation) step(name string, err error) {
	if err == nil {
		x.Steps = append(x.Steps, Step{Name: name, Result: stepPassed})
		return
	}
	x.Refusal = sallyport.Public(err)
	x.Steps = append(x.Steps, Step{Name: name, Result: stepRefused, Code: x.Refusal.Code, Message: x.Refusal.Message})
}

// remedy names what opens the gate that refuses: the tenant's policy, where it is that which shuts it.
func remedy(refusal *sallyport.PublicError, c *sallyport.Candidate) string {
	if setting, ok := refusal.Details["policy"].(string); ok {
		return "an administrator of the tenant changes " + setting + " with: sallyport policy set"
	}
	grant := "sallyport grant issue " + c.Skill.Slug + " " + c.Script.Path
	if c.Revision.ID != "" && c.Revision.ID != c.Skill.PublishedRevisionID {
		grant += " --revision " + string(c.Revision.ID)
	}
	switch refusal.Code {
	case sallyport.CodeGrantMissing, sallyport.CodeGrantExpired, sallyport.CodeGrantRevoked, sallyport.CodePinMismatch:
		return "a reviewer reads the revision and runs: " + grant
	case sallyport.CodeFeatureDisabled:
		return "an operator sets scripts_enabled: true in server.yaml and restarts the server"
	case sallyport.CodeInterpreterNotAllowed:
		return "an operator adds the extension to interpreters in server.yaml, or the runtime to runtimes, or the author uses an allowed one"
	case sallyport.CodeSandboxUnavailable:
		return "an operator runs: sallyport doctor"
	case sallyport.CodeSecretMissing:
		return "an administrator sets each that is missing: sallyport secret set NAME"
	case sallyport.CodeConfirmationRequired:
		return "run it: a person is asked, in the client or with sallyport approve"
	case sallyport.CodeSkillArchived:
		return "sallyport skill restore " + c.Skill.Slug
	case sallyport.CodeSkillNotFound, sallyport.CodeAccessDenied:
		return "list the skills you can see: sallyport skill list"
	case sallyport.CodeRevisionNotFound, sallyport.CodeScriptNotFound, sallyport.CodeInvalidComponentType:
		return "look at the skill: sallyport skill show " + c.Skill.Slug
	default:
		return ""
	}
}
