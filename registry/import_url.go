package registry

import (
	"context"
	"errors"

	"github.com/sallyport-dev/sallyport"
)

// ImportURL imports what one URL serves: a zip, a tar, a tar.gz, a SKILL.md or a git repository. Needs memory:write, and a Config.Fetcher: without one it is
// FEATURE_DISABLED. What was fetched is in the Source; the message of the revisions names it unless there is one.
func (s *Service) ImportURL(ctx context.Context, p sallyport.Principal, url string, opts ImportOptions) (ImportReport, Source, error) {
	report := ImportReport{Skills: []ImportedSkill{}, Ignored: []ImportedFile{}}
	// Before anything is fetched for somebody who may not import.
	if _, err := s.importPlace(p, opts); err != nil {
		return report, Source{}, err
	}
	if s.cfg.Fetcher == nil {
		return report, Source{}, sallyport.Errorf("registry.import_url", sallyport.CodeFeatureDisabled,
			"importing from URLs is switched off; an operator can set url_import, or send the archive itself")
	}
	tree, source, err := s.cfg.Fetcher.Fetch(ctx, url)
	if err != nil {
		return report, Source{}, err
	}
	if opts.Message == "" {
		opts.Message = "imported from " + source.URL
	}
	report, err = s.Import(ctx, p, tree, opts)
	return report, source, errors.Join(err, tree.Close())
}
