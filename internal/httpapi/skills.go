package httpapi

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// mostListed is the largest page of skills or executions.
const mostListed = 200

func listSkills(c *call, p sallyport.Principal) (answer, error) {
	req := registry.ListRequest{
		TeamID:          sallyport.TeamID(c.query.text("team_id")),
		Query:           c.query.text("query"),
		IncludeArchived: c.query.boolean("archived"),
		Limit:           int(c.query.integer("limit", 1, mostListed)),
		Cursor:          c.query.text("cursor"),
	}
	if err := c.query.err; err != nil {
		return answer{}, err
	}
	result, err := c.api.cfg.Skills.List(c.ctx(), p, req)
	if err != nil {
		return answer{}, err
	}
	result.Skills = list(result.Skills)
	return ok(result), nil
}

func showSkill(c *call, p sallyport.Principal) (answer, error) {
	view, err := c.api.cfg.Skills.Show(c.ctx(), p, c.skillRef(c.query.text("team_id")))
	return ok(view), err
}

func publishSkill(c *call, p sallyport.Principal) (answer, error) {
	var body struct {
		RevisionID string  `json:"revision_id"`
		Override   *string `json:"override"`
	}
	if err := c.decodeOptional(&body); err != nil {
		return answer{}, err
	}
	ref := c.skillRef(c.query.text("team_id"))
	if body.Override != nil && *body.Override != "" {
		view, err := c.api.cfg.Skills.PublishOverride(c.ctx(), p, ref, sallyport.RevisionID(body.RevisionID), *body.Override)
		return c.covered(p, view, err)
	}
	view, err := c.api.cfg.Skills.Publish(c.ctx(), p, ref, sallyport.RevisionID(body.RevisionID))
	return c.covered(p, view, err)
}

func archiveSkill(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	skill, err := c.api.cfg.Skills.Archive(c.ctx(), p, c.skillRef(c.query.text("team_id")))
	return ok(registry.SkillView{Skill: skill}), err
}

func restoreSkill(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	skill, err := c.api.cfg.Skills.Restore(c.ctx(), p, c.skillRef(c.query.text("team_id")))
	return ok(registry.SkillView{Skill: skill}), err
}

type saveBody struct {
	Slug               string     `json:"slug"`
	SkillID            string     `json:"skill_id"`
	TeamID             string     `json:"team_id"`
	Personal           bool       `json:"personal"`
	Files              []fileBody `json:"files"`
	Remove             []*string  `json:"remove"`
	ReplaceAll         bool       `json:"replace_all"`
	ExpectedRevisionID string     `json:"expected_revision_id"`
	CreateOnly         bool       `json:"create_only"`
	Publish            bool       `json:"publish"`
	Message            string     `json:"message"`
}

type fileBody struct {
	Path          string      `json:"path"`
	Content       *string     `json:"content"`
	ContentBase64 *string     `json:"content_base64"`
	Mode          *int64      `json:"mode"`
	Kind          string      `json:"kind"`
	MediaType     string      `json:"media_type"`
	Script        *scriptBody `json:"script"`
}

type scriptBody struct {
	Runtime     string          `json:"runtime"`
	Input       string          `json:"input"`
	InputSchema json.RawMessage `json:"input_schema"`
	Argv        json.RawMessage `json:"argv"`
	Limits      *limitsBody     `json:"limits"`
	Secrets     []*string       `json:"secrets"`
}

// limitsBody is sallyport.Limits as a caller sends them; a zero that was sent is refused, never taken for unset.
type limitsBody struct {
	TimeoutMS     *int64 `json:"timeout_ms"`
	MemoryBytes   *int64 `json:"memory_bytes"`
	Processes     *int64 `json:"processes"`
	CPUMillis     *int64 `json:"cpu_millis"`
	CPUTimeMS     *int64 `json:"cpu_time_ms"`
	ScratchBytes  *int64 `json:"scratch_bytes"`
	OutputBytes   *int64 `json:"output_bytes"`
	ArtifactBytes *int64 `json:"artifact_bytes"`
	ArtifactFiles *int64 `json:"artifact_files"`
}

func saveSkill(c *call, p sallyport.Principal) (answer, error) {
	var body saveBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	req := registry.SaveRequest{
		Ref: sallyport.SkillRef{
			SkillID: sallyport.SkillID(body.SkillID), Slug: body.Slug, TeamID: sallyport.TeamID(body.TeamID),
		},
		Personal: body.Personal, ReplaceAll: body.ReplaceAll,
		ExpectedRevisionID: sallyport.RevisionID(body.ExpectedRevisionID),
		CreateOnly:         body.CreateOnly, Publish: body.Publish, Message: body.Message,
	}
	var err error
	if req.IdempotencyKey, err = c.idempotencyKey(); err != nil {
		return answer{}, err
	}
	if req.Remove, err = texts("/remove", body.Remove); err != nil {
		return answer{}, err
	}
	for i, sent := range body.Files {
		file, err := sent.file(fmt.Sprintf("/files/%d", i))
		if err != nil {
			return answer{}, err
		}
		req.Files = append(req.Files, file)
	}
	result, err := c.api.cfg.Skills.Save(c.ctx(), p, req)
	if err != nil {
		return answer{}, err
	}
	result.Problems = list(result.Problems)
	if result.Unchanged || result.Repeated {
		return ok(result), nil
	}
	return created(result, "/v1/skills/"+string(result.Skill.ID)+"/revisions/"+string(result.Revision.ID)), nil
}

func (f fileBody) file(place string) (registry.File, error) {
	data, err := content(place, f.Content, f.ContentBase64)
	if err != nil {
		return registry.File{}, err
	}
	file := registry.File{Path: f.Path, Content: data, Kind: sallyport.Kind(f.Kind), MediaType: f.MediaType}
	if f.Kind != "" && !file.Kind.Valid() {
		return registry.File{}, invalid("%s/kind is none of %v", place, sallyport.Kinds())
	}
	if f.Mode != nil {
		if *f.Mode < 1 || *f.Mode > 0o777 {
			return registry.File{}, invalid("%s/mode must hold permission bits, 1 to 511 (octal 777)", place)
		}
		file.Mode = uint32(*f.Mode)
	}
	if f.Script != nil {
		if file.Script, err = f.Script.settings(place + "/script"); err != nil {
			return registry.File{}, err
		}
	}
	return file, nil
}

func (s scriptBody) settings(place string) (*sallyport.ScriptSettings, error) {
	settings := &sallyport.ScriptSettings{
		Runtime: s.Runtime, Input: sallyport.InputMode(s.Input), InputSchema: absentNull(s.InputSchema),
		Argv: absentNull(s.Argv),
	}
	var err error
	if settings.Secrets, err = texts(place+"/secrets", s.Secrets); err != nil {
		return nil, err
	}
	switch settings.Input {
	case "", sallyport.InputStdin, sallyport.InputFlags, sallyport.InputNone:
	default:
		return nil, invalid("%s/input is none of stdin, flags, none", place)
	}
	if s.Limits != nil {
		limits, err := s.Limits.limits(place + "/limits")
		if err != nil {
			return nil, err
		}
		settings.Limits = limits
	}
	return settings, nil
}

// longestTimeoutMS keeps a timeout within what a duration can hold.
const longestTimeoutMS = int64(mostSeconds) * 1000

func (l limitsBody) limits(place string) (sallyport.Limits, error) {
	var limits sallyport.Limits
	var timeout, cpuTime int64
	for _, field := range []struct {
		name string
		sent *int64
		into *int64
	}{
		{"timeout_ms", l.TimeoutMS, &timeout},
		{"memory_bytes", l.MemoryBytes, &limits.MemoryBytes},
		{"processes", l.Processes, &limits.Processes},
		{"cpu_millis", l.CPUMillis, &limits.CPUMillis},
		{"cpu_time_ms", l.CPUTimeMS, &cpuTime},
		{"scratch_bytes", l.ScratchBytes, &limits.ScratchBytes},
		{"output_bytes", l.OutputBytes, &limits.OutputBytes},
		{"artifact_bytes", l.ArtifactBytes, &limits.ArtifactBytes},
		{"artifact_files", l.ArtifactFiles, &limits.ArtifactFiles},
	} {
		if field.sent == nil {
			continue
		}
		if *field.sent < 1 || (field.into == &timeout || field.into == &cpuTime) && *field.sent > longestTimeoutMS {
			return sallyport.Limits{}, invalid("%s/%s must be at least 1 and of a sane size; leave it out for no limit of its own", place, field.name)
		}
		*field.into = *field.sent
	}
	limits.Timeout = time.Duration(timeout) * time.Millisecond
	limits.CPUTime = time.Duration(cpuTime) * time.Millisecond
	return limits, nil
}

// absentNull takes a JSON null for absent.
func absentNull(value json.RawMessage) json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	return value
}

// list makes an absent list an empty one: a caller reads [], never null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
