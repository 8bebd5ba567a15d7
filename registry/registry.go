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
	Logger         *slog.Logger     // nil discards
	Now            func() time.Time // nil means time.Now
}

// Trail is the audit trail as this package needs it.
type Trail interface {
	Append(ctx context.Context, entry sallyport.Entry) error
}

// Service is safe for concurrent use.
type Service struct {
	cfg Config
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg} }

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
}

// SaveResult says what a save did. Unchanged: equal content made no new revision.
type SaveResult struct {
	Skill     sallyport.Skill    `json:"skill"`
	Revision  sallyport.Revision `json:"revision"`
	Created   bool               `json:"created"`
	Unchanged bool               `json:"unchanged"`
	Problems  []Problem          `json:"problems"`
}

// Problem is one finding about a skill: a code, where, and the remedy in its message.
type Problem struct {
	Code    string `json:"code"`
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	// Severity is error (not usable), warning (usable, not spec-clean) or note.
	Severity string `json:"severity"`
}

// ImportOptions say where imported skills go.
type ImportOptions struct {
	TeamID   sallyport.TeamID // empty means the default team, unless Personal
	Personal bool
	Publish  bool
	DryRun   bool
	Message  string
}

// ImportReport accounts for every skill and every file of an import.
type ImportReport struct {
	Skills []ImportedSkill `json:"skills"`
	// Ignored are files that belong to no skill.
	Ignored []ImportedFile `json:"ignored"`
	Totals  ImportTotals   `json:"totals"`
}

// ImportedSkill is one skill found. Result is imported, unchanged, refused or ignored.
type ImportedSkill struct {
	Path       string               `json:"path"`
	Slug       string               `json:"slug"`
	Name       string               `json:"name"`
	Usable     bool                 `json:"usable"`
	SpecClean  bool                 `json:"spec_clean"`
	Result     string               `json:"result"`
	Published  bool                 `json:"published"`
	SkillID    sallyport.SkillID    `json:"skill_id,omitempty"`
	RevisionID sallyport.RevisionID `json:"revision_id,omitempty"`
	Digest     sallyport.Digest     `json:"digest,omitempty"`
	Files      []ImportedFile       `json:"files"`
	Problems   []Problem            `json:"problems"`
}

// ImportedFile is one file found. Result is kept, repaired, refused or ignored; Reason says why.
type ImportedFile struct {
	Path   string `json:"path"`
	Result string `json:"result"`
	Reason string `json:"reason,omitempty"`
}

// ImportTotals counts the report.
type ImportTotals struct {
	Skills       int `json:"skills"`
	Imported     int `json:"imported"`
	Unchanged    int `json:"unchanged"`
	Refused      int `json:"refused"`
	Ignored      int `json:"ignored"`
	SpecClean    int `json:"spec_clean"`
	Files        int `json:"files"`
	FilesKept    int `json:"files_kept"`
	FilesIgnored int `json:"files_ignored"`
	FilesRefused int `json:"files_refused"`
}

var errUnwritten = &sallyport.Error{Op: "registry", Code: sallyport.CodeInternal}

// Resolve finds the skill that ref names for p. An ID that is absent or not p's is ACCESS_DENIED either way; an
// unknown slug is SKILL_NOT_FOUND. Archived skills resolve; callers that must not use one check.
func (s *Service) Resolve(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	return sallyport.Skill{}, errUnwritten
}

// ResolveRevision returns the named revision of skill, else the published, else the latest, with its manifest
// and every component's Content. Another skill's revision is REVISION_NOT_FOUND.
func (s *Service) ResolveRevision(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, id sallyport.RevisionID) (sallyport.Revision, error) {
	return sallyport.Revision{}, errUnwritten
}

// List lists or searches the skills p can see. Needs memory:read.
func (s *Service) List(ctx context.Context, p sallyport.Principal, req ListRequest) (ListResult, error) {
	return ListResult{}, errUnwritten
}

// Show returns one skill. Needs memory:read.
func (s *Service) Show(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (SkillView, error) {
	return SkillView{}, errUnwritten
}

// Revisions lists a skill's revisions, newest first, without manifests. Needs memory:read.
func (s *Service) Revisions(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) ([]sallyport.Revision, error) {
	return nil, errUnwritten
}

// Revision returns one revision with its manifest, without content; an empty id means published, else latest.
// Needs memory:read.
func (s *Service) Revision(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
	return sallyport.Revision{}, errUnwritten
}

// Component returns one component with its Content, by path first, then by component id. Needs memory:read.
func (s *Service) Component(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, revision sallyport.RevisionID, pathOrID string) (sallyport.Component, error) {
	return sallyport.Component{}, errUnwritten
}

// Save creates a skill or adds a revision. Needs memory:write.
func (s *Service) Save(ctx context.Context, p sallyport.Principal, req SaveRequest) (SaveResult, error) {
	return SaveResult{}, errUnwritten
}

// Publish moves the published pointer of the skill to the revision (an older one rolls back); an empty id means
// the latest. Needs memory:write.
func (s *Service) Publish(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (SkillView, error) {
	return SkillView{}, errUnwritten
}

// Archive takes a skill out of lists and runs. Needs memory:write. Archiving twice is not an error.
func (s *Service) Archive(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	return sallyport.Skill{}, errUnwritten
}

// Restore undoes Archive. Needs memory:write.
func (s *Service) Restore(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef) (sallyport.Skill, error) {
	return sallyport.Skill{}, errUnwritten
}

// Import finds every skill below tree and saves each one atomically; one bad skill never stops its neighbours.
// Nothing in it is executed. Needs memory:write.
func (s *Service) Import(ctx context.Context, p sallyport.Principal, tree Tree, opts ImportOptions) (ImportReport, error) {
	return ImportReport{}, errUnwritten
}

// Digest computes the digest of a revision made of these components (path, kind, size, sha256 and script
// settings count; see internal/canonical).
func Digest(components []sallyport.Component) (sallyport.Digest, error) {
	return "", errUnwritten
}

// Tree is a source of files for Import: a folder, a tar, a zip.
type Tree interface {
	// Entries lists every entry below the root, in path order. Directories may be absent.
	Entries(ctx context.Context) ([]TreeEntry, error)
	// ReadFile reads a regular file that Entries listed, at most limit bytes plus one.
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)
	Close() error
}

// EntryType is the type of a TreeEntry.
type EntryType string

// The entry types.
const (
	EntryFile    EntryType = "file"
	EntryDir     EntryType = "dir"
	EntrySymlink EntryType = "symlink"
	EntryOther   EntryType = "other" // device, FIFO, socket
)

// TreeEntry is one entry of a Tree.
type TreeEntry struct {
	Path string // slash-separated; raw as the source had it, checked by Import
	Type EntryType
	Size int64
	Mode uint32
	// Target of a symlink, raw.
	Target string
	// Fault is set when the source could not read the entry: a sentence for the report.
	Fault string
}
