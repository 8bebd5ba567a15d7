package registry

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// SaveURL saves the one skill that a URL serves: to the team of opts or the default one, under the slug of its own name. Needs memory:write and
// a Config.Fetcher. A URL that serves none or several is INVALID_ARGUMENT and saves nothing; a skill that cannot be used is SKILL_INVALID with
// details.problems.
func (s *Service) SaveURL(ctx context.Context, p sallyport.Principal, url string, opts ImportOptions) (SaveResult, Source, error) {
	opts.Single = true
	report, source, err := s.ImportURL(ctx, p, url, opts)
	if err != nil {
		return SaveResult{}, Source{}, err
	}
	row := report.Skills[0]
	if row.Result == ResultRefused {
		return SaveResult{}, Source{}, refusal(row.Problems)
	}
	result := SaveResult{Unchanged: row.Result == ResultUnchanged, Problems: row.Problems}
	if opts.DryRun {
		return result, source, nil
	}
	if result.Skill, err = s.cfg.Store.Skill(ctx, p.TenantID, row.SkillID); err != nil {
		return SaveResult{}, Source{}, err
	}
	if result.Revision, err = s.cfg.Store.Revision(ctx, p.TenantID, row.SkillID, row.RevisionID); err != nil {
		return SaveResult{}, Source{}, err
	}
	result.Created = !result.Unchanged && result.Revision.Number == 1
	return result, source, nil
}

// checkSingle refuses a tree that does not hold exactly one skill, where one is wanted.
func checkSingle(opts ImportOptions, skills []foundSkill) error {
	if !opts.Single || len(skills) == 1 {
		return nil
	}
	if len(skills) == 0 {
		return sallyport.Errorf(opSave, sallyport.CodeInvalidArgument, "the URL serves no skill: no directory holds a %s; nothing was saved", SkillFile)
	}
	return sallyport.Errorf(opSave, sallyport.CodeInvalidArgument,
		"the URL serves %d skills and one is wanted; nothing was saved; name one, or import them all with: sallyport import URL", len(skills))
}
