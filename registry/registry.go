// Package registry saves, publishes, recalls, imports and archives skills and their revisions.
//
// It owns the reading of SKILL.md and sallyport.yaml, the rules of a revision's content and the search over
// skills. It leaves SQL to its Store, permission to run to package access, and running to package run. Its
// one invariant: a revision, once saved, never changes, and a failed save leaves nothing behind.
package registry

import (
	"context"
	"log/slog"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Config is what a Service needs. Store and Trail are required.
type Config struct {
	Store Store
	// Trail receives skill.save, skill.publish, skill.archive and skill.restore, best effort, after the store.
	Trail Trail
	// MaxSkillFiles and MaxSkillBytes bound one skill; zero means the defaults of the root package.
	MaxSkillFiles int
	MaxSkillBytes int64
	// MaxScriptBytes bounds one script; zero means sallyport.DefaultScriptBytes.
	MaxScriptBytes int64
	// PublishRequiresClean refuses to publish a revision that [Scan] finds anything in but notes, or cannot read, unless the call
	// overrides it with a reason.
	PublishRequiresClean bool
	// FindingExclusions are path patterns whose findings are set aside and counted; see [FindingsRequest].
	FindingExclusions []string
	// Published is told of every revision that was just published, with its components; nil tells nobody. What it does cannot undo the
	// publication.
	Published func(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, revision sallyport.Revision)
	// Fetcher downloads what ImportURL names; nil refuses every URL.
	Fetcher *Fetcher
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
}

// Trail is the audit trail as this package needs it.
type Trail interface {
	Append(ctx context.Context, entry sallyport.Entry) error
}

// Service is safe for concurrent use.
type Service struct {
	cfg   Config
	scans scanCache
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.MaxSkillFiles <= 0 {
		cfg.MaxSkillFiles = sallyport.MaxSkillFiles
	}
	if cfg.MaxSkillBytes <= 0 {
		cfg.MaxSkillBytes = sallyport.MaxSkillBytes
	}
	if cfg.MaxScriptBytes <= 0 {
		cfg.MaxScriptBytes = sallyport.DefaultScriptBytes
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Service{cfg: cfg}
}

// ListRequest selects skills.
type ListRequest struct {
	TeamID          sallyport.TeamID
	Query           string // full text; empty lists all by slug
	IncludeArchived bool
	Limit           int    // 1..200, 0 means 50
	Cursor          string // from a previous ListResult
}

// ListResult is a page of skills. LeftOut counts matches that are on no page so far.
type ListResult struct {
	Skills     []sallyport.Skill `json:"skills"`
	NextCursor string            `json:"next_cursor,omitempty"`
	LeftOut    int               `json:"left_out"`
}

// SkillView is one skill with the revisions a caller acts on; their manifests carry no content.
type SkillView struct {
	Skill     sallyport.Skill     `json:"skill"`
	Published *sallyport.Revision `json:"published_revision,omitempty"`
	Latest    *sallyport.Revision `json:"latest_revision,omitempty"`
}

// File is one file to save. Kind and Script, when set, are written into the revision's sallyport.yaml before
// the digest is computed, so the files alone give the digest.
type File struct {
	Path      string
	Content   []byte
	Mode      uint32 // permission bits; 0 means 0644
	Kind      sallyport.Kind
	MediaType string
	Script    *sallyport.ScriptSettings
}

// SaveRequest creates a skill or adds a revision to one.
type SaveRequest struct {
	// Ref names the skill to add a revision to. An unknown slug creates the skill; an empty Ref derives the
	// slug from the name in SKILL.md.
	Ref sallyport.SkillRef
	// Personal saves a new skill for the caller alone; else it goes to Ref.TeamID, or the default team.
	Personal bool
	// Files that replace or add to the latest revision's. Omitted files are kept unless ReplaceAll.
	Files      []File
	Remove     []string // paths to leave out of the new revision
	ReplaceAll bool
	// ExpectedRevisionID is the latest revision the caller built on; stale is REVISION_CONFLICT. Empty means no
	// expectation, unless CreateOnly.
	ExpectedRevisionID sallyport.RevisionID
	// CreateOnly refuses an existing slug with SLUG_TAKEN.
	CreateOnly bool
	Publish    bool
	Message    string
	// IdempotencyKey makes the save safe to repeat for 24 hours: the same key of the same principal makes one revision, and every other
	// save with it gets that one, as Repeated. Empty saves each time.
	IdempotencyKey string
}

// SaveResult says what a save did. Unchanged: equal content made no new revision.
type SaveResult struct {
	Skill     sallyport.Skill    `json:"skill"`
	Revision  sallyport.Revision `json:"revision"`
	Created   bool               `json:"created"`
	Unchanged bool               `json:"unchanged"`
	// Repeated says that an earlier save with the same idempotency key made the revision; Problems are not told again.
	Repeated bool      `json:"repeated,omitempty"`
	Problems []Problem `json:"problems"`
}

// Problem is one finding about a skill: a code, where, and the remedy in its message. Line is 0 where the whole file is meant.
type Problem struct {
	Code    string `json:"code"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Message string `json:"message"`
	// Severity is error (not usable), warning (usable, not spec-clean) or note.
	Severity string `json:"severity"`
}
