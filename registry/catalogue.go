package registry

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// CatalogueRequest selects one page of the catalogue.
type CatalogueRequest struct {
	Limit  int    // skills that are looked at, 1..200; 0 means 50
	Cursor string // from a previous CataloguePage
}

// CatalogueEntry is a skill at one revision, as hosts of the Skills extension see it. Revision carries the manifest without content.
type CatalogueEntry struct {
	Skill    sallyport.Skill
	Revision sallyport.Revision
}

// CataloguePage is one page. Entries are the published skills that every host accepts, in slug order; it may be empty although
// another page follows. Unlisted counts the published skills of this page that strict hosts would refuse (see [ListingFaults]).
type CataloguePage struct {
	Entries    []CatalogueEntry
	Unlisted   int
	NextCursor string
}

// Catalogue lists what p can offer to hosts: published skills that are not archived, at their published revision. Needs
// memory:read. A skill that is unpublished or archived while the page is made is left out.
func (s *Service) Catalogue(ctx context.Context, p sallyport.Principal, req CatalogueRequest) (CataloguePage, error) {
	found, err := s.List(ctx, p, ListRequest{Limit: req.Limit, Cursor: req.Cursor})
	if err != nil {
		return CataloguePage{}, err
	}
	page := CataloguePage{Entries: []CatalogueEntry{}, NextCursor: found.NextCursor}
	for _, skill := range found.Skills {
		if skill.PublishedRevisionID == "" || skill.Archived() {
			continue
		}
		revision, err := s.cfg.Store.Revision(ctx, p.TenantID, skill.ID, skill.PublishedRevisionID)
		if err != nil {
			return CataloguePage{}, err
		}
		listed, err := s.listed(ctx, p, revision)
		switch {
		case err != nil:
			return CataloguePage{}, err
		case listed:
			page.Entries = append(page.Entries, CatalogueEntry{skill, revision})
		default:
			page.Unlisted++
		}
	}
	return page, nil
}

// listed reports whether every host accepts the revision in a list.
func (s *Service) listed(ctx context.Context, p sallyport.Principal, revision sallyport.Revision) (bool, error) {
	if _, found := revision.Component(SkillFile); !found {
		return false, nil
	}
	file, err := s.cfg.Store.ComponentContent(ctx, p.TenantID, revision.ID, SkillFile)
	if err != nil {
		return false, err
	}
	return len(ListingFaults(ParseSkillMD(file.Content, ""), revision.Components)) == 0, nil
}

// Served finds what a URI of the Skills extension names: the skill at the revision id, or at its published revision when id is
// empty; an archived or unpublished skill has none of the latter (REVISION_NOT_FOUND). Needs memory:read.
func (s *Service) Served(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (CatalogueEntry, error) {
	skill, err := s.readable(ctx, p, ref)
	if err != nil {
		return CatalogueEntry{}, err
	}
	if id == "" && !skill.Archived() {
		id = skill.PublishedRevisionID
	}
	if id == "" {
		return CatalogueEntry{}, &sallyport.Error{Op: opRecall, Code: sallyport.CodeRevisionNotFound}
	}
	revision, err := s.cfg.Store.Revision(ctx, p.TenantID, skill.ID, id)
	if err != nil {
		return CatalogueEntry{}, err
	}
	return CatalogueEntry{skill, revision}, nil
}

// Content returns the revision with every component's Content, checked against the digest. Needs memory:read.
func (s *Service) Content(ctx context.Context, p sallyport.Principal, entry CatalogueEntry) (sallyport.Revision, error) {
	if err := p.Require(opRecall, sallyport.ScopeMemoryRead); err != nil {
		return sallyport.Revision{}, err
	}
	skill, err := s.Resolve(ctx, p, sallyport.SkillRef{SkillID: entry.Skill.ID})
	if err != nil {
		return sallyport.Revision{}, err
	}
	return s.ResolveRevision(ctx, p, skill, entry.Revision.ID)
}
