package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
	"github.com/sallyport-dev/sallyport/registry"
)

// problemItems bounds the problems in one answer, maxTimeoutMS what a script may declare (a day; an installation allows far less).
const (
	problemItems = 50
	maxTimeoutMS = 24 * 60 * 60 * 1000
)

func (a *API) saveTool() tool {
	return tool{
		name: "save_cloud_skill", title: "Save a skill", kind: "save", scope: sallyport.ScopeMemoryWrite,
		description: "Save a skill: a new one, or a new revision of the one that slug names. name and instructions are required and become " +
			"its SKILL.md; components_json adds files (scripts, references, ...). Or save the one skill that url serves, where the " +
			"server may fetch it; then only team_id, publish and message go with it. Files that the skill has and the call does not " +
			"name are kept. A revision is a draft until publish is true. Pass expected_revision_id when changing a skill that was " +
			"read before, so that nobody else's change is lost. Saving does not let a script run: an administrator grants that for " +
			"the saved content. Use it when a procedure that worked should be kept for later or for others.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		input:       saveInput(), output: saveOutput(),
		call: a.save,
	}
}

type saveArguments struct {
	Name               string `json:"name"`
	Instructions       string `json:"instructions"`
	Description        string `json:"description"`
	Slug               string `json:"slug"`
	TeamID             string `json:"team_id"`
	Publish            bool   `json:"publish"`
	ComponentsJSON     string `json:"components_json"`
	URL                string `json:"url"`
	ExpectedRevisionID string `json:"expected_revision_id"`
	Message            string `json:"message"`
}

// componentArgument is one element of components_json. path and logical_path mean the same, and so do kind and type.
type componentArgument struct {
	Path          string           `json:"path"`
	LogicalPath   string           `json:"logical_path"`
	Kind          string           `json:"kind"`
	Type          string           `json:"type"`
	Content       *string          `json:"content"`
	ContentBase64 *string          `json:"content_base64"`
	MediaType     string           `json:"media_type"`
	Script        *settingArgument `json:"script"`
}

// settingArgument is the settings of a script, as sallyport.yaml names them.
type settingArgument struct {
	Runtime     string              `json:"runtime"`
	Input       sallyport.InputMode `json:"input"`
	InputSchema json.RawMessage     `json:"input_schema"`
	Argv        json.RawMessage     `json:"argv"`
	Limits      limitArgument       `json:"limits"`
	Secrets     []string            `json:"secrets"`
}

type limitArgument struct {
	TimeoutMS     int64 `json:"timeout_ms"`
	MemoryBytes   int64 `json:"memory_bytes"`
	Processes     int64 `json:"processes"`
	CPUMillis     int64 `json:"cpu_millis"`
	ScratchBytes  int64 `json:"scratch_bytes"`
	OutputBytes   int64 `json:"output_bytes"`
	ArtifactBytes int64 `json:"artifact_bytes"`
	ArtifactFiles int64 `json:"artifact_files"`
	CPUTimeMS     int64 `json:"cpu_time_ms"`
}

// saveData is the data of an envelope of kind save.
type saveData struct {
	Skill           skillSummary       `json:"skill"`
	Revision        revisionSummary    `json:"revision"`
	Created         bool               `json:"created"`
	Unchanged       bool               `json:"unchanged"`
	Published       bool               `json:"published"`
	Problems        []registry.Problem `json:"problems"`
	ProblemsLeftOut int                `json:"problems_left_out"`
}

func (a *API) save(ctx context.Context, c *call) answer {
	var args saveArguments
	if err := c.decode(&args); err != nil {
		return refused(c, err)
	}
	result, err := a.saveArguments(ctx, c, args)
	if err != nil {
		return refused(c, err)
	}
	data := saveData{
		Skill: summary(result.Skill), Revision: revisionView(result.Revision), Created: result.Created,
		Unchanged: result.Unchanged, Published: result.Skill.PublishedRevisionID == result.Revision.ID,
		Problems: result.Problems,
	}
	if data.Problems == nil {
		data.Problems = []registry.Problem{}
	}
	if left := len(data.Problems) - problemItems; left > 0 {
		data.Problems, data.ProblemsLeftOut = data.Problems[:problemItems], left
	}
	return succeeded(c, data, saveText(data), nil)
}

// saveArguments saves what the arguments hold, or what their url serves.
func (a *API) saveArguments(ctx context.Context, c *call, args saveArguments) (registry.SaveResult, error) {
	if args.URL == "" {
		req, err := saveRequest(c, args)
		if err != nil {
			return registry.SaveResult{}, err
		}
		return a.cfg.Skills.Save(ctx, c.principal, req)
	}
	list := strings.TrimSpace(args.ComponentsJSON)
	if args.Name+args.Instructions+args.Description+args.Slug+args.ExpectedRevisionID != "" || list != "" && list != "[]" {
		return registry.SaveResult{}, c.argument("url brings the whole skill; only team_id, publish and message go with it")
	}
	result, _, err := a.cfg.Skills.SaveURL(ctx, c.principal, args.URL, registry.ImportOptions{
		TeamID: sallyport.TeamID(args.TeamID), Publish: args.Publish, Message: args.Message,
	})
	return result, err
}

func saveRequest(c *call, args saveArguments) (registry.SaveRequest, error) {
	if args.Name == "" || strings.TrimSpace(args.Instructions) == "" {
		return registry.SaveRequest{}, c.argument("name and instructions are required")
	}
	files, err := saveFiles(args.ComponentsJSON)
	if err != nil {
		return registry.SaveRequest{}, c.invalid(err)
	}
	key, err := c.idempotencyKey()
	if err != nil {
		return registry.SaveRequest{}, err
	}
	skillMD := registry.ComposeSkillMD(args.Name, args.Description, args.Instructions)
	return registry.SaveRequest{
		IdempotencyKey:     key,
		Ref:                sallyport.SkillRef{Slug: args.Slug, TeamID: sallyport.TeamID(args.TeamID)},
		Files:              append([]registry.File{{Path: registry.SkillFile, Content: skillMD}}, files...),
		ExpectedRevisionID: sallyport.RevisionID(args.ExpectedRevisionID),
		Publish:            args.Publish,
		Message:            args.Message,
	}, nil
}

// saveFiles reads components_json, strictly; blank counts as absent.
func saveFiles(text string) ([]registry.File, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var list []componentArgument
	if err := strictjson.Decode([]byte(text), &list); err != nil {
		return nil, sallyport.Errorf("mcp.save", sallyport.CodeInvalidArgument, "components_json: %s", sallyport.Public(err).Message)
	}
	files := make([]registry.File, 0, len(list))
	seen := map[string]bool{strings.ToLower(registry.SkillFile): true}
	for i, item := range list {
		file, err := item.file()
		if err == nil && seen[strings.ToLower(file.Path)] {
			err = fmt.Errorf("the path %s comes twice, or is %s, which is made from name, description and instructions", file.Path, registry.SkillFile)
		}
		if err != nil {
			if _, ok := errors.AsType[*sallyport.Error](err); ok {
				return nil, err
			}
			return nil, sallyport.Errorf("mcp.save", sallyport.CodeInvalidArgument, "components_json[%d]: %v", i, err)
		}
		seen[strings.ToLower(file.Path)] = true
		files = append(files, file)
	}
	return files, nil
}

func (c componentArgument) file() (registry.File, error) {
	path, err := either("path", c.Path, "logical_path", c.LogicalPath)
	if err != nil {
		return registry.File{}, err
	}
	if path == "" {
		return registry.File{}, errors.New("path is required")
	}
	if err := sallyport.CheckPath(path); err != nil {
		return registry.File{}, err
	}
	kind, err := either("kind", c.Kind, "type", c.Type)
	if err != nil {
		return registry.File{}, err
	}
	file := registry.File{Path: path, Kind: sallyport.Kind(kind), MediaType: c.MediaType}
	if kind != "" && !file.Kind.Valid() {
		return registry.File{}, fmt.Errorf("the kind %q is none of %s", kind, kinds())
	}
	if file.Content, err = content(c.Content, c.ContentBase64); err != nil {
		return registry.File{}, err
	}
	if c.Script == nil {
		return file, nil
	}
	if kind != "" && file.Kind != sallyport.KindScript {
		return registry.File{}, fmt.Errorf("script settings do not go with the kind %s", kind)
	}
	file.Script, err = c.Script.settings()
	return file, err
}

func (s settingArgument) settings() (*sallyport.ScriptSettings, error) {
	modes := []sallyport.InputMode{"", sallyport.InputStdin, sallyport.InputFlags, sallyport.InputNone}
	if !slices.Contains(modes, s.Input) {
		return nil, fmt.Errorf("the input %q is none of stdin, flags, none", s.Input)
	}
	l := s.Limits
	for _, value := range []int64{l.TimeoutMS, l.MemoryBytes, l.Processes, l.CPUMillis, l.ScratchBytes, l.OutputBytes, l.ArtifactBytes, l.ArtifactFiles, l.CPUTimeMS} {
		if value < 0 {
			return nil, errors.New("a limit must not be negative")
		}
	}
	if l.TimeoutMS > maxTimeoutMS {
		return nil, fmt.Errorf("timeout_ms must not be over %d", maxTimeoutMS)
	}
	if l.CPUTimeMS > maxTimeoutMS {
		return nil, fmt.Errorf("cpu_time_ms must not be over %d", maxTimeoutMS)
	}
	return &sallyport.ScriptSettings{
		Runtime: s.Runtime, Input: s.Input, InputSchema: present(s.InputSchema), Argv: present(s.Argv), Secrets: s.Secrets,
		Limits: sallyport.Limits{
			Timeout: time.Duration(l.TimeoutMS) * time.Millisecond, MemoryBytes: l.MemoryBytes, Processes: l.Processes,
			CPUMillis: l.CPUMillis, ScratchBytes: l.ScratchBytes, OutputBytes: l.OutputBytes,
			ArtifactBytes: l.ArtifactBytes, ArtifactFiles: l.ArtifactFiles,
			CPUTime: time.Duration(l.CPUTimeMS) * time.Millisecond,
		},
	}, nil
}

// present returns nil for a JSON null.
func present(value json.RawMessage) json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	return value
}

// either returns the one of two names for the same thing that was sent.
func either(nameA, a, nameB, b string) (string, error) {
	if a != "" && b != "" && a != b {
		return "", fmt.Errorf("%s and %s differ", nameA, nameB)
	}
	if a != "" {
		return a, nil
	}
	return b, nil
}

func kinds() string {
	names := []string{}
	for _, k := range sallyport.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// saveText says what was saved and what is left to do.
func saveText(d saveData) string {
	var b strings.Builder
	what := "Saved"
	switch {
	case d.Unchanged:
		what = "Nothing changed in"
	case d.Created:
		what = "Created"
	}
	fmt.Fprintf(&b, "%s %s (skill_id %s): revision %d, %s, revision_id %s, %s, %d files.\n", what, d.Skill.Slug, d.Skill.SkillID,
		d.Revision.Number, d.Revision.State, d.Revision.RevisionID, d.Revision.Digest, d.Revision.Files)
	if !d.Published {
		b.WriteString("It is not the published revision; call again with publish true to publish it.\n")
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "- %s %s: %s\n", p.Severity, p.Code, p.Message)
	}
	if d.ProblemsLeftOut > 0 {
		fmt.Fprintf(&b, "%d more problems left out.\n", d.ProblemsLeftOut)
	}
	return b.String()
}
