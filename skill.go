package sallyport

import "time"

// Skill is a named, versioned bundle. It belongs to one team, or to one principal when TeamID is empty
// (personal). Its Slug is unique there.
type Skill struct {
	ID       SkillID     `json:"id"`
	TenantID TenantID    `json:"-"`
	TeamID   TeamID      `json:"team_id,omitempty"`
	OwnerID  PrincipalID `json:"owner_id,omitempty"` // set for a personal skill only
	Slug     string      `json:"slug"`
	// Name and Description come from the newest revision's SKILL.md.
	Name        string `json:"name"`
	Description string `json:"description"`
	// PublishedRevisionID is the published pointer; empty while nothing is published.
	PublishedRevisionID RevisionID `json:"published_revision_id,omitempty"`
	LatestRevisionID    RevisionID `json:"latest_revision_id,omitempty"`
	ArchivedAt          *time.Time `json:"archived_at,omitempty"`
	// DeletedAt is set for an archived skill that waits to be purged.
	DeletedAt *time.Time `json:"deleted_at,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
}

// Archived reports whether the skill is archived; an archived skill is listed on request only and
// never runs.
func (s Skill) Archived() bool { return s.ArchivedAt != nil }

// SlugMaxLength bounds a slug, in bytes.
const SlugMaxLength = 64

// ValidSlug reports whether s is a plain slug: 1 to [SlugMaxLength] of a-z, 0-9 and single hyphens, no
// hyphen first or last. A slug is never a path.
func ValidSlug(s string) bool {
	if s == "" || len(s) > SlugMaxLength || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '-' && s[i-1] != '-':
		default:
			return false
		}
	}
	return true
}

// SkillRef is how a caller names a skill: by ID, or by Slug with an optional TeamID. With a slug and no team the
// personal skill wins, then the caller's teams; a slug found in two teams is SKILL_AMBIGUOUS. When both
// SkillID and Slug are given they must agree, else INVALID_ARGUMENT; so is neither.
type SkillRef struct {
	SkillID SkillID
	Slug    string
	TeamID  TeamID
}
