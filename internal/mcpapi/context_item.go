package mcpapi

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

// The bounds of what is asked about scripts.
const (
	contextScripts         = 12 // that are explained, of all skills together
	contextScriptsOfSkill  = 5
	contextRecent          = 3 // outcomes of a script
	contextExecutions      = 100
	contextDescription     = 600 // bytes
	contextShortText       = 160 // bytes, when there is little room
	contextGateText        = 400 // bytes of a gate's sentence
	contextFirstReferences = 2   // that come before the second skill's
)

// The kinds of a contextItem.
const (
	itemSkill        = "skill"
	itemInstructions = "instructions"
	itemReference    = "reference"
	itemScript       = "script"
)

// contextItem is one piece of the bundle. Source says where it is from; the other members depend on the kind.
type contextItem struct {
	Kind   string        `json:"kind"`
	Slug   string        `json:"slug"`
	Source contextSource `json:"source"`

	// Of a skill. The digest of its source is the revision's.
	SkillID     sallyport.SkillID `json:"skill_id,omitempty"`
	Name        string            `json:"name,omitempty"`
	Description string            `json:"description,omitempty"`
	Draft       bool              `json:"draft,omitempty"` // nothing is published, so this is the latest revision

	// Of instructions and references.
	Heading   string `json:"heading,omitempty"`
	Text      string `json:"text,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`

	// Of a script.
	Runtime            string              `json:"runtime,omitempty"`
	Input              sallyport.InputMode `json:"input,omitempty"`
	InputSchema        json.RawMessage     `json:"input_schema,omitempty"`
	Argv               json.RawMessage     `json:"argv,omitempty"`
	InputSchemaLeftOut bool                `json:"input_schema_left_out,omitempty"`
	Runnable           *bool               `json:"runnable,omitempty"`
	Gate               *contextGate        `json:"gate,omitempty"`
	Recent             []contextRun        `json:"recent,omitempty"`
}

// contextSource is where an item is from. URI can be read with resources/read; the lines are of that file.
type contextSource struct {
	URI        string               `json:"uri"`
	Path       string               `json:"path,omitempty"`
	RevisionID sallyport.RevisionID `json:"revision_id"`
	StartLine  int                  `json:"start_line,omitempty"`
	EndLine    int                  `json:"end_line,omitempty"`
	Digest     sallyport.Digest     `json:"digest"`
}

// contextGate is what stands between the caller and a run.
type contextGate struct {
	Code    sallyport.Code `json:"code"`
	Message string         `json:"message"`
	Remedy  string         `json:"remedy,omitempty"`
}

// contextRun is one recent run of a script, whoever started it.
type contextRun struct {
	ExecutionID sallyport.ExecutionID `json:"execution_id"`
	Status      sallyport.Status      `json:"status"`
	ExitCode    *int                  `json:"exit_code,omitempty"`
	ErrorKind   sallyport.Code        `json:"error_kind,omitempty"`
	DurationMS  int64                 `json:"duration_ms"`
	CreatedAt   time.Time             `json:"created_at"`
	SameContent bool                  `json:"same_content"` // it ran this very revision's bytes
}

// candidates are the items in the order in which they get room: each skill with its best instructions, its scripts and its best
// references, the best skill first; then what is left of each, in the same order.
func (a *API) candidates(ctx context.Context, c *call, found registry.ContextResult) ([]contextItem, error) {
	var first, rest []contextItem
	scripts := 0
	for _, skill := range found.Skills {
		root := skillRoot(skill.CatalogueEntry, true)
		first = append(first, skillItem(skill, root))
		for i, passage := range skill.Instructions {
			item := passageItem(itemInstructions, skill, root, passage)
			if i == 0 {
				first = append(first, item)
			} else {
				rest = append(rest, item)
			}
		}
		recent, err := a.recentRuns(ctx, c.principal, skill)
		if err != nil {
			return nil, err
		}
		for i, script := range skill.Scripts {
			item := scriptItem(skill, root, script, recent)
			if i >= contextScriptsOfSkill || scripts >= contextScripts {
				rest = append(rest, item) // unexplained
				continue
			}
			scripts++
			if err := a.explain(ctx, c, skill, &item); err != nil {
				return nil, err
			}
			first = append(first, item)
		}
		for i, passage := range skill.References {
			item := passageItem(itemReference, skill, root, passage)
			if i < contextFirstReferences {
				first = append(first, item)
			} else {
				rest = append(rest, item)
			}
		}
	}
	return append(first, rest...), nil
}

func skillItem(skill registry.ContextSkill, root string) contextItem {
	description, _ := cut(oneLine(skill.Skill.Description), contextDescription)
	return contextItem{
		Kind: itemSkill, Slug: skill.Skill.Slug, SkillID: skill.Skill.ID, Name: skill.Skill.Name, Description: description,
		Draft: skill.Skill.PublishedRevisionID == "",
		Source: contextSource{
			URI: fileURI(root, registry.SkillFile), RevisionID: skill.Revision.ID, Digest: skill.Revision.Digest,
		},
	}
}

func passageItem(kind string, skill registry.ContextSkill, root string, passage registry.ContextPassage) contextItem {
	source := fileSource(skill, root, passage.File)
	source.StartLine, source.EndLine = passage.StartLine, passage.EndLine
	return contextItem{Kind: kind, Slug: skill.Skill.Slug, Source: source, Heading: passage.Heading, Text: passage.Text}
}

func fileSource(skill registry.ContextSkill, root string, file sallyport.Component) contextSource {
	return contextSource{
		URI: fileURI(root, file.Path), Path: file.Path, RevisionID: skill.Revision.ID, Digest: sallyport.Digest("sha256:" + file.SHA256),
	}
}

func scriptItem(skill registry.ContextSkill, root string, script sallyport.Component, recent map[string][]contextRun) contextItem {
	item := contextItem{
		Kind: itemScript, Slug: skill.Skill.Slug, SkillID: skill.Skill.ID, Source: fileSource(skill, root, script), Recent: recent[script.Path],
	}
	if s := script.Script; s != nil {
		item.Runtime, item.Input, item.InputSchema, item.Argv = s.Runtime, s.Input, s.InputSchema, s.Argv
	}
	return item
}

// recentRuns are the newest runs of the skill's scripts, by path.
func (a *API) recentRuns(ctx context.Context, p sallyport.Principal, skill registry.ContextSkill) (map[string][]contextRun, error) {
	if len(skill.Scripts) == 0 {
		return nil, nil
	}
	found, err := a.cfg.Runs.List(ctx, p, run.ListRequest{Ref: sallyport.SkillRef{SkillID: skill.Skill.ID}, Limit: contextExecutions})
	if err != nil {
		return nil, err
	}
	recent := map[string][]contextRun{}
	for _, e := range found.Executions {
		if len(recent[e.ScriptPath]) == contextRecent {
			continue
		}
		recent[e.ScriptPath] = append(recent[e.ScriptPath], contextRun{
			ExecutionID: e.ID, Status: e.Status, ExitCode: e.ExitCode, ErrorKind: e.ErrorKind, DurationMS: e.DurationMS,
			CreatedAt: e.CreatedAt.UTC(), SameContent: e.RevisionDigest == skill.Revision.Digest,
		})
	}
	return recent, nil
}

// explain asks the gates whether the caller may run the script now. Only what broke is an error.
func (a *API) explain(ctx context.Context, c *call, skill registry.ContextSkill, item *contextItem) error {
	explained, err := a.cfg.Runs.Explain(ctx, c.principal, run.Request{
		Ref: sallyport.SkillRef{SkillID: skill.Skill.ID}, RevisionID: skill.Revision.ID, ScriptPath: item.Source.Path, RequestID: c.requestID,
	})
	item.Runnable = &explained.Runnable
	public := explained.Refusal
	if err != nil {
		switch sallyport.Lookup(sallyport.CodeOf(err)).Class {
		case sallyport.ClassInternal, sallyport.ClassUnavailable, sallyport.ClassCanceled, sallyport.ClassDeadline:
			return err
		case sallyport.ClassInvalid, sallyport.ClassUnauthenticated, sallyport.ClassDenied, sallyport.ClassNotFound, sallyport.ClassConflict,
			sallyport.ClassTooLarge, sallyport.ClassExhausted, sallyport.ClassOutcome:
		}
		item.Runnable, public = new(bool), sallyport.Public(err)
		if public.Code == sallyport.CodeAccessDenied {
			explained.Remedy = "an administrator gives the caller the scope " + string(sallyport.ScopeMemoryWrite)
		}
	}
	if public == nil {
		return nil
	}
	remedy := explained.Remedy
	if remedy == "" && public.Code == sallyport.CodeArgumentsMismatch {
		remedy = "send input_args that fit input_schema; the gates before this one let the call pass"
	}
	message, _ := cut(public.Message, contextGateText)
	remedy, _ = cut(remedy, contextGateText)
	item.Gate = &contextGate{Code: public.Code, Message: message, Remedy: remedy}
	return nil
}

// shorter returns the item with less in it, for when it does not fit; false when there is nothing that can go.
func (i contextItem) shorter() (contextItem, bool) {
	switch i.Kind {
	case itemSkill:
		if len(i.Description) > contextShortText {
			i.Description, _ = cut(i.Description, contextShortText)
			return i, true
		}
	case itemScript:
		if len(i.InputSchema)+len(i.Argv) > 0 {
			i.InputSchema, i.Argv, i.InputSchemaLeftOut = nil, nil, true
			return i, true
		}
		if len(i.Recent) > 0 {
			i.Recent = nil
			return i, true
		}
	case itemInstructions, itemReference:
		if len(i.Text) > 2*contextShortText {
			i.Text, _ = cut(i.Text, len(i.Text)/2)
			i.Text, i.Truncated = strings.TrimRight(i.Text, "\n"), true
			i.Source.EndLine = i.Source.StartLine + strings.Count(i.Text, "\n")
			return i, true
		}
	}
	return i, false
}
