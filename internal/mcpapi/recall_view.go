package mcpapi

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// The budgets of recall, in bytes unless named otherwise.
const (
	searchBytes       = 32 << 10 // the skills of level 0, as JSON
	instructionsBytes = 64 << 10
	frontmatterBytes  = 16 << 10
	manifestItems     = 100
	scriptItems       = 50
	schemaBytes       = 32 << 10 // all schemas of level 1 together
	resourceBytes     = 256 << 10
)

// skillSummary is one skill in a list.
type skillSummary struct {
	SkillID             sallyport.SkillID    `json:"skill_id"`
	Slug                string               `json:"slug"`
	TeamID              sallyport.TeamID     `json:"team_id,omitempty"` // empty for a personal skill
	Name                string               `json:"name"`
	Description         string               `json:"description"`
	PublishedRevisionID sallyport.RevisionID `json:"published_revision_id,omitempty"`
	LatestRevisionID    sallyport.RevisionID `json:"latest_revision_id,omitempty"`
	Archived            bool                 `json:"archived"`
}

func summary(s sallyport.Skill) skillSummary {
	return skillSummary{
		SkillID: s.ID, Slug: s.Slug, TeamID: s.TeamID, Name: s.Name, Description: s.Description,
		PublishedRevisionID: s.PublishedRevisionID, LatestRevisionID: s.LatestRevisionID, Archived: s.Archived(),
	}
}

// summarize keeps skills in order until the budget is used, and always the first.
func summarize(skills []sallyport.Skill) (kept []skillSummary, dropped int) {
	kept = []skillSummary{}
	used := 0
	for i, s := range skills {
		item := summary(s)
		if encoded, err := encode(item); err == nil {
			used += len(encoded)
		}
		if used > searchBytes && i > 0 {
			return kept, len(skills) - i
		}
		kept = append(kept, item)
	}
	return kept, 0
}

// skillDetail is level 1: one skill at one revision.
type skillDetail struct {
	skillSummary

	Revision              revisionSummary    `json:"revision"`
	Frontmatter           json.RawMessage    `json:"frontmatter,omitempty"`
	Instructions          string             `json:"instructions"`
	InstructionsTruncated bool               `json:"instructions_truncated"`
	Scripts               []scriptSummary    `json:"scripts"`
	Components            []componentSummary `json:"components"`
	LeftOut               detailLeftOut      `json:"left_out"`
}

// detailLeftOut counts what a budget cut from level 1. Level 2 reads each of it.
type detailLeftOut struct {
	InstructionBytes int  `json:"instruction_bytes"`
	Scripts          int  `json:"scripts"`
	InputSchemas     int  `json:"input_schemas"`
	Components       int  `json:"components"`
	Frontmatter      bool `json:"frontmatter"`
}

func (l detailLeftOut) any() bool { return l != detailLeftOut{} }

type revisionSummary struct {
	RevisionID sallyport.RevisionID    `json:"revision_id"`
	Number     int                     `json:"number"`
	State      sallyport.RevisionState `json:"state"`
	Digest     sallyport.Digest        `json:"digest"`
	Message    string                  `json:"message,omitempty"`
	CreatedAt  time.Time               `json:"created_at"`
	Files      int                     `json:"files"`
}

func revisionView(r sallyport.Revision) revisionSummary {
	return revisionSummary{
		RevisionID: r.ID, Number: r.Number, State: r.State, Digest: r.Digest, Message: r.Message,
		CreatedAt: r.CreatedAt.UTC(), Files: len(r.Components),
	}
}

// scriptSummary is what a caller needs to run a script.
type scriptSummary struct {
	Path        string                `json:"path"`
	ComponentID sallyport.ComponentID `json:"component_id"`
	Runtime     string                `json:"runtime,omitempty"`
	Input       sallyport.InputMode   `json:"input,omitempty"`
	InputSchema json.RawMessage       `json:"input_schema,omitempty"`
	// Argv is none, free, or a schema for the list.
	Argv    json.RawMessage  `json:"argv,omitempty"`
	Limits  sallyport.Limits `json:"limits,omitzero"`
	Secrets []string         `json:"secrets,omitempty"`
	// InputSchemaLeftOut says that there is a schema and that the budget cut it.
	InputSchemaLeftOut bool `json:"input_schema_left_out,omitempty"`
}

type componentSummary struct {
	Path        string                `json:"path"`
	ComponentID sallyport.ComponentID `json:"component_id"`
	Kind        sallyport.Kind        `json:"kind"`
	MediaType   string                `json:"media_type"`
	Size        int64                 `json:"size"`
	SHA256      string                `json:"sha256"`
}

func describeSkill(skill sallyport.Skill, revision sallyport.Revision, instructions string) skillDetail {
	d := skillDetail{
		skillSummary: summary(skill), Revision: revisionView(revision),
		Scripts: []scriptSummary{}, Components: []componentSummary{},
	}
	d.Instructions, d.LeftOut.InstructionBytes = cut(instructions, instructionsBytes)
	d.InstructionsTruncated = d.LeftOut.InstructionBytes > 0
	if len(revision.Frontmatter) <= frontmatterBytes {
		d.Frontmatter = revision.Frontmatter
	} else {
		d.LeftOut.Frontmatter = true
	}
	schemas := 0
	for _, c := range revision.Components {
		if len(d.Components) < manifestItems {
			d.Components = append(d.Components, componentSummary{
				Path: c.Path, ComponentID: c.ID, Kind: c.Kind, MediaType: c.MediaType, Size: c.Size, SHA256: c.SHA256,
			})
		} else {
			d.LeftOut.Components++
		}
		if c.Kind != sallyport.KindScript {
			continue
		}
		if len(d.Scripts) == scriptItems {
			d.LeftOut.Scripts++
			continue
		}
		script := scriptSummary{Path: c.Path, ComponentID: c.ID}
		if s := c.Script; s != nil {
			script.Runtime, script.Input, script.Limits, script.Secrets = s.Runtime, s.Input, s.Limits, s.Secrets
			if size := len(s.InputSchema) + len(s.Argv); schemas+size <= schemaBytes {
				schemas += size
				script.InputSchema, script.Argv = s.InputSchema, s.Argv
			} else {
				script.InputSchemaLeftOut = true
				d.LeftOut.InputSchemas++
			}
		}
		d.Scripts = append(d.Scripts, script)
	}
	return d
}

// resource is level 2: one component, from an offset on. Exactly one of Content and ContentBase64 is there.
type resource struct {
	componentSummary

	Content       *string `json:"content,omitempty"`
	ContentBase64 *string `json:"content_base64,omitempty"`
	Offset        int     `json:"offset"`
	ReturnedBytes int     `json:"returned_bytes"`
	// Truncated says that the file goes on; NextOffset reads on.
	Truncated  bool `json:"truncated"`
	NextOffset int  `json:"next_offset,omitempty"`
}

// readResource returns at most resourceBytes of the component from offset on, text as text.
func readResource(c sallyport.Component, offset int) resource {
	r := resource{
		componentSummary: componentSummary{
			Path: c.Path, ComponentID: c.ID, Kind: c.Kind, MediaType: c.MediaType, Size: c.Size, SHA256: c.SHA256,
		},
		Offset: offset,
	}
	rest := c.Content[offset:]
	if utf8.Valid(c.Content) && !strings.Contains(string(c.Content), "\x00") && utf8.Valid(rest) {
		kept, left := cut(string(rest), resourceBytes)
		r.Content, r.ReturnedBytes, r.Truncated = &kept, len(kept), left > 0
	} else {
		kept := rest[:min(len(rest), resourceBytes)]
		encoded := base64.StdEncoding.EncodeToString(kept)
		r.ContentBase64, r.ReturnedBytes, r.Truncated = &encoded, len(kept), len(kept) < len(rest)
	}
	if r.Truncated {
		r.NextOffset = offset + r.ReturnedBytes
	}
	return r
}
