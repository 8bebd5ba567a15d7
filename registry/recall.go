package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/sallyport-dev/sallyport"
)

const (
	opRecall = "registry.recall"

	defaultListLimit = 50
	maxListLimit     = 200
	maxQueryBytes    = 1 << 10
	maxCursorBytes   = 4 << 10
)

// List lists or searches the skills p can see. Needs memory:read.
func (s *Service) List(ctx context.Context, p sallyport.Principal, req ListRequest) (ListResult, error) {
	if err := p.Require(opRecall, sallyport.ScopeMemoryRead); err != nil {
		return ListResult{}, err
	}
	filter := SkillFilter{Owner: p.ID, Teams: p.Teams, Query: req.Query, IncludeArchived: req.IncludeArchived, Limit: req.Limit}
	switch {
	case req.TeamID != "" && !p.InTeam(req.TeamID):
		return ListResult{}, notInTeam(opRecall)
	case req.TeamID != "":
		filter.Owner, filter.Teams = "", []sallyport.TeamID{req.TeamID}
	}
	switch {
	case req.Limit == 0:
		filter.Limit = defaultListLimit
	case req.Limit < 0 || req.Limit > maxListLimit:
		return ListResult{}, sallyport.Errorf(opRecall, sallyport.CodeInvalidArgument, "limit is outside 1 to %d", maxListLimit)
	}
	if len(req.Query) > maxQueryBytes {
		return ListResult{}, sallyport.Errorf(opRecall, sallyport.CodeInvalidArgument, "the query has more than %d bytes; use a few words", maxQueryBytes)
	}
	at, err := parseCursor(req.Cursor)
	if err != nil {
		return ListResult{}, err
	}
	filter.Cursor = at.Store
	page, err := s.cfg.Store.ListSkills(ctx, p.TenantID, filter)
	if err != nil {
		return ListResult{}, err
	}
	shown := at.Shown + len(page.Skills)
	result := ListResult{Skills: page.Skills, LeftOut: max(0, page.Total-shown)}
	if result.Skills == nil {
		result.Skills = []sallyport.Skill{}
	}
	if page.NextCursor != "" {
		result.NextCursor = cursor{page.NextCursor, shown}.String()
	}
	return result, nil
}

// cursor is the store's cursor with the number of skills on the pages before, so that a page can say what is left.
type cursor struct {
	Store string `json:"s"`
	Shown int    `json:"n"`
}

func (c cursor) String() string {
	form, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(form)
}

func parseCursor(text string) (cursor, error) {
	var c cursor
	if text == "" {
		return c, nil
	}
	form, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(form) <= maxCursorBytes {
		err = json.Unmarshal(form, &c)
	}
	if err != nil || c.Store == "" || c.Shown < 0 {
		return cursor{}, sallyport.Errorf(opRecall, sallyport.CodeInvalidArgument, "the cursor is not one of a previous page; start without one")
	}
	return c, nil
}

// Show returns one skill. Needs memory:read.
func (s *Service) Show(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (SkillView, error) {
	skill, err := s.readable(ctx, p, ref)
	if err != nil {
		return SkillView{}, err
	}
	return s.view(ctx, p, skill)
}

func (s *Service) view(ctx context.Context, p sallyport.Principal, skill sallyport.Skill) (SkillView, error) {
	view := SkillView{Skill: skill}
	if skill.LatestRevisionID != "" {
		latest, err := s.cfg.Store.Revision(ctx, p.TenantID, skill.ID, skill.LatestRevisionID)
		if err != nil {
			return SkillView{}, err
		}
		view.Latest = &latest
	}
	switch skill.PublishedRevisionID {
	case "":
	case skill.LatestRevisionID:
		view.Published = view.Latest
	default:
		published, err := s.cfg.Store.Revision(ctx, p.TenantID, skill.ID, skill.PublishedRevisionID)
		if err != nil {
			return SkillView{}, err
		}
		view.Published = &published
	}
	return view, nil
}

func (s *Service) readable(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	if err := p.Require(opRecall, sallyport.ScopeMemoryRead); err != nil {
		return sallyport.Skill{}, err
	}
	return s.Resolve(ctx, p, ref)
}

// Revisions lists a skill's revisions, newest first, without manifests. Needs memory:read.
func (s *Service) Revisions(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) ([]sallyport.Revision, error) {
	skill, err := s.readable(ctx, p, ref)
	if err != nil {
		return nil, err
	}
	return s.cfg.Store.Revisions(ctx, p.TenantID, skill.ID)
}

// Revision returns one revision with its manifest, without content; an empty id means published, else latest.
// Needs memory:read.
func (s *Service) Revision(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
	skill, err := s.readable(ctx, p, ref)
	if err != nil {
		return sallyport.Revision{}, err
	}
	if id, err = chooseRevision(p, skill, id); err != nil {
		return sallyport.Revision{}, err
	}
	return s.cfg.Store.Revision(ctx, p.TenantID, skill.ID, id)
}

// Component returns one component with its Content, by path first, then by component id. Needs memory:read.
func (s *Service) Component(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, revision sallyport.RevisionID, pathOrID string) (sallyport.Component, error) {
	if pathOrID == "" {
		return sallyport.Component{}, sallyport.Errorf(opRecall, sallyport.CodeInvalidArgument, "no component is named; send its path or its id")
	}
	if err := sallyport.CheckPath(pathOrID); err != nil {
		return sallyport.Component{}, err
	}
	found, err := s.Revision(ctx, p, ref, revision)
	if err != nil {
		return sallyport.Component{}, err
	}
	component, exists := found.Component(pathOrID)
	for _, c := range found.Components {
		if !exists && string(c.ID) == pathOrID {
			component, exists = c, true
		}
	}
	if !exists {
		return sallyport.Component{}, sallyport.Errorf(opRecall, sallyport.CodeComponentNotFound, "the revision has no component %q; its manifest lists those it has", shorten(pathOrID))
	}
	return s.cfg.Store.ComponentContent(ctx, p.TenantID, found.ID, component.Path)
}
