package mcpapi

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// The bounds of a search.
const (
	recallDefaultLimit = 10
	recallMaxLimit     = 50
)

func (a *API) recallTool() tool {
	return tool{
		name: "recall_cloud_skill", title: "Find and read skills", kind: "recall", scope: sallyport.ScopeMemoryRead,
		description: "Find a skill and read it, in three levels. Level 0: without slug and skill_id it searches names, descriptions, " +
			"instructions and file paths for query (an empty query lists all). Level 1: with slug or skill_id it returns one skill: its " +
			"instructions, its scripts with the arguments they take, and its files. Level 2: with resource too it returns one file " +
			"of that skill. Use it before starting work that a skill may cover, and before execute_cloud_skill. Answers keep to a " +
			"budget and say what was left out. Pass the revision_id of level 1 on, so that what is read next and what is run is the " +
			"same content.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)},
		input:       recallInput(), output: recallOutput(),
		call: a.recall,
	}
}

type recallArguments struct {
	Query      string         `json:"query"`
	Slug       string         `json:"slug"`
	SkillID    string         `json:"skill_id"`
	TeamID     string         `json:"team_id"`
	Resource   string         `json:"resource"`
	RevisionID string         `json:"revision_id"`
	Limit      jsontext.Value `json:"limit"`
	Offset     jsontext.Value `json:"offset"`
}

// recallData is the data of an envelope of kind recall. Level says which of the other members is there.
type recallData struct {
	Level    int            `json:"level"`
	Skills   []skillSummary `json:"skills,omitzero"`   // level 0
	LeftOut  *int           `json:"left_out,omitzero"` // level 0: matches that are not among Skills
	Skill    *skillDetail   `json:"skill,omitzero"`    // level 1
	Resource *resource      `json:"resource,omitzero"` // level 2
}

func (a *API) recall(ctx context.Context, c *call) answer {
	var args recallArguments
	if err := c.decode(&args); err != nil {
		return refused(c, err)
	}
	limit, ok := whole(args.Limit, recallDefaultLimit, 1, recallMaxLimit)
	if !ok {
		return refused(c, c.argument("limit must be a whole number from 1 to %d", recallMaxLimit))
	}
	offset, ok := whole(args.Offset, 0, 0, sallyport.MaxSkillBytes)
	if !ok {
		return refused(c, c.argument("offset must be a whole number from 0 to %d", sallyport.MaxSkillBytes))
	}
	ref := sallyport.SkillRef{
		SkillID: sallyport.SkillID(args.SkillID), Slug: args.Slug, TeamID: sallyport.TeamID(args.TeamID),
	}
	var data recallData
	var text string
	var err error
	switch named := args.Slug != "" || args.SkillID != ""; {
	case named && args.Resource != "":
		data, text, err = a.recallResource(ctx, c.principal, ref, args, offset)
	case named:
		data, text, err = a.recallSkill(ctx, c.principal, ref, sallyport.RevisionID(args.RevisionID))
	case args.Resource != "" || args.RevisionID != "":
		err = c.argument("slug or skill_id is required with resource and with revision_id")
	default:
		data, text, err = a.recallSearch(ctx, c.principal, args, limit)
	}
	if err != nil {
		return refused(c, err)
	}
	return succeeded(c, data, text, nil)
}

// whole reads a whole number within bounds; absent is the default.
func whole(value jsontext.Value, absent, low, high int) (int, bool) {
	if kind := value.Kind(); kind == jsontext.KindInvalid || kind == jsontext.KindNull {
		return absent, true
	}
	n, err := strconv.Atoi(string(value))
	return n, err == nil && n >= low && n <= high
}

func (a *API) recallSearch(ctx context.Context, p sallyport.Principal, args recallArguments, limit int) (recallData, string, error) {
	found, err := a.cfg.Skills.List(ctx, p, registry.ListRequest{
		TeamID: sallyport.TeamID(args.TeamID), Query: args.Query, Limit: limit,
	})
	if err != nil {
		return recallData{}, "", err
	}
	skills, dropped := summarize(found.Skills)
	leftOut := found.LeftOut + dropped
	return recallData{Skills: skills, LeftOut: &leftOut}, searchText(args.Query, skills, leftOut), nil
}

func (a *API) recallSkill(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (recallData, string, error) {
	view, err := a.cfg.Skills.Show(ctx, p, ref)
	if err != nil {
		return recallData{}, "", err
	}
	own := sallyport.SkillRef{SkillID: view.Skill.ID}
	var revision sallyport.Revision
	switch {
	case id != "":
		revision, err = a.cfg.Skills.Revision(ctx, p, own, id)
	case view.Published != nil:
		revision = *view.Published
	case view.Latest != nil:
		revision = *view.Latest
	default:
		err = &sallyport.Error{Op: "mcp.recall", Code: sallyport.CodeRevisionNotFound}
	}
	if err != nil {
		return recallData{}, "", err
	}
	instructions, err := a.instructions(ctx, p, own, revision)
	if err != nil {
		return recallData{}, "", err
	}
	detail := describeSkill(view.Skill, revision, instructions)
	return recallData{Level: 1, Skill: &detail}, skillText(detail), nil
}

// instructions returns the text of SKILL.md below its header; a revision without one has none.
func (a *API) instructions(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, revision sallyport.Revision) (string, error) {
	i := slices.IndexFunc(revision.Components, func(c sallyport.Component) bool { return strings.EqualFold(c.Path, registry.SkillFile) })
	if i < 0 {
		return "", nil
	}
	file, err := a.cfg.Skills.Component(ctx, p, ref, revision.ID, revision.Components[i].Path)
	if err != nil {
		return "", err
	}
	return strings.TrimLeft(registry.ParseSkillMD(file.Content, "").Body, "\n"), nil
}

func (a *API) recallResource(
	ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, args recallArguments, offset int,
) (recallData, string, error) {
	component, err := a.cfg.Skills.Component(ctx, p, ref, sallyport.RevisionID(args.RevisionID), args.Resource)
	if err != nil {
		if _, ok := errors.AsType[*sallyport.Error](err); !ok {
			err = &sallyport.Error{Op: "mcp.recall", Code: sallyport.CodeInternal, Err: err}
		}
		return recallData{}, "", err
	}
	if offset > len(component.Content) {
		return recallData{}, "", sallyport.Errorf("mcp.recall", sallyport.CodeInvalidArgument,
			"offset is beyond the end: %s has %d bytes", component.Path, len(component.Content))
	}
	r := readResource(component, offset)
	return recallData{Level: 2, Resource: &r}, resourceText(r), nil
}
