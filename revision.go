package sallyport

import (
	"encoding/json"
	"time"
)

// RevisionState says whether a revision was ever published.
type RevisionState string

// The states of a revision.
const (
	RevisionDraft     RevisionState = "draft"
	RevisionPublished RevisionState = "published"
)

// Revision is one immutable snapshot of a Skill. Only State changes, once, from draft to published.
type Revision struct {
	ID       RevisionID    `json:"id"`
	TenantID TenantID      `json:"-"`
	SkillID  SkillID       `json:"skill_id"`
	Number   int           `json:"number"` // 1, 2, ... within the skill
	State    RevisionState `json:"state"`
	Digest   Digest        `json:"digest"`
	// Frontmatter is the SKILL.md header as JSON (YAML 1.2 core schema), unknown fields kept.
	Frontmatter json.RawMessage `json:"frontmatter"`
	Message     string          `json:"message,omitempty"`
	Author      PrincipalID     `json:"author"`
	CreatedAt   time.Time       `json:"created_at"`
	PublishedAt *time.Time      `json:"published_at,omitempty"`
	// Components is the manifest, sorted by path bytes. Content is set only where a method says so.
	Components []Component `json:"components,omitempty"`
}

// Component returns the component with exactly this path.
func (r Revision) Component(path string) (Component, bool) {
	for _, c := range r.Components {
		if c.Path == path {
			return c, true
		}
	}
	return Component{}, false
}
