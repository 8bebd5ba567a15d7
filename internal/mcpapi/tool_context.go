package mcpapi

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// The bounds of recall_context.
const (
	contextDefaultSkills = 5
	contextMaxSkills     = 20
	contextDefaultItems  = 40
	contextMaxItems      = 200
	contextDefaultTokens = 4000
	contextMinTokens     = 256
	contextMaxTokens     = 64_000
)

func (a *API) contextTool() tool {
	return tool{
		name: "recall_context", title: "Gather what skills say about a task", kind: "context", scope: sallyport.ScopeMemoryRead,
		description: "Gather one bundle for a task: the skills that fit best, the parts of their instructions and references that match, " +
			"and their scripts with the arguments they take, whether the caller may run them now, and how they ended lately. Use it at " +
			"the start of a task, instead of reading skill after skill. The whole answer stays within max_tokens; every item names " +
			"its source by URI, path, lines and digest, and cut says what was left out. It runs nothing and changes nothing.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)},
		input:       contextInput(), output: contextOutput(),
		call: a.gather,
	}
}

// contextArguments has every parameter that callers of such tools send. Those of the second group mean nothing here.
type contextArguments struct {
	Query      string         `json:"query"`
	TeamID     string         `json:"team_id"`
	Limit      jsontext.Value `json:"limit"`
	MaxItems   jsontext.Value `json:"max_items"`
	MaxTokens  jsontext.Value `json:"max_tokens"`
	PathFilter string         `json:"path_filter"`
	OutputJSON *bool          `json:"output_json"`

	Scope            *string `json:"scope"`
	Bucket           *string `json:"bucket"`
	AgentID          *string `json:"agent_id"`
	AgentInstanceID  *string `json:"agent_instance_id"`
	MemoryType       *string `json:"memory_type"`
	PreferWorking    *bool   `json:"prefer_working"`
	IncludeKnowledge *bool   `json:"include_knowledge"`
}

// ignored names the parameters that came and have no meaning here. One that says its own default asks for nothing.
func (a contextArguments) ignored() []string {
	names := []string{}
	text := func(name string, value *string, absent string) {
		if value != nil && *value != "" && *value != absent {
			names = append(names, name)
		}
	}
	flag := func(name string, value *bool) {
		if value != nil && *value {
			names = append(names, name)
		}
	}
	text("scope", a.Scope, "")
	text("bucket", a.Bucket, "%")
	text("agent_id", a.AgentID, "")
	text("agent_instance_id", a.AgentInstanceID, "")
	text("memory_type", a.MemoryType, "auto")
	flag("prefer_working", a.PreferWorking)
	flag("include_knowledge", a.IncludeKnowledge)
	slices.Sort(names)
	return names
}

func (a *API) gather(ctx context.Context, c *call) answer {
	var args contextArguments
	if err := c.decode(&args); err != nil {
		return refused(c, err)
	}
	if strings.TrimSpace(args.Query) == "" {
		return refused(c, c.argument("query is required; describe the task in a sentence"))
	}
	skills, ok := whole(args.Limit, contextDefaultSkills, 1, contextMaxSkills)
	if !ok {
		return refused(c, c.argument("limit must be a whole number from 1 to %d", contextMaxSkills))
	}
	items, ok := whole(args.MaxItems, contextDefaultItems, 1, contextMaxItems)
	if !ok {
		return refused(c, c.argument("max_items must be a whole number from 1 to %d", contextMaxItems))
	}
	most, ok := whole(args.MaxTokens, contextDefaultTokens, contextMinTokens, contextMaxTokens)
	if !ok {
		return refused(c, c.argument("max_tokens must be a whole number from %d to %d", contextMinTokens, contextMaxTokens))
	}
	found, err := a.cfg.Skills.Context(ctx, c.principal, registry.ContextRequest{
		TeamID: sallyport.TeamID(args.TeamID), Query: args.Query, Skills: skills, Paths: args.PathFilter,
	})
	if err != nil {
		return refused(c, err)
	}
	candidates, err := a.candidates(ctx, c, found)
	if err != nil {
		return refused(c, err)
	}
	p := packer{
		maxTokens: most, maxItems: items, textIsJSON: args.OutputJSON != nil && *args.OutputJSON,
		envelope: func(data contextData) ([]byte, error) {
			return escaped(sallyport.Success(c.tool.kind, c.requestID, data))
		},
		data: contextData{
			MaxTokens: most, Items: []contextItem{}, Cut: []contextCut{}, SkillsLeftOut: found.LeftOut, Ignored: args.ignored(),
		},
	}
	data, text, err := p.pack(candidates)
	if err != nil {
		return refused(c, &sallyport.Error{Op: "mcp.recall_context", Code: sallyport.CodeInternal, Err: err})
	}
	return succeeded(c, data, text, nil)
}
