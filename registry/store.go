package registry

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Store is what this package needs of the database. Every method takes the tenant first and sees no other
// tenant's rows. All writes are atomic. Errors are *sallyport.Error: the code named at the method, else
// STORE_UNAVAILABLE.
type Store interface {
	// Skill returns one skill; SKILL_NOT_FOUND.
	Skill(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID) (sallyport.Skill, error)
	// SkillsBySlug returns every skill of the tenant with this slug, byte-exact, whoever owns it.
	SkillsBySlug(ctx context.Context, tenant sallyport.TenantID, slug string) ([]sallyport.Skill, error)
	// ListSkills returns one page in slug order, or in rank order when Query is set.
	ListSkills(ctx context.Context, tenant sallyport.TenantID, filter SkillFilter) (SkillPage, error)
	// Revisions returns all revisions of a skill, newest first, without manifests.
	Revisions(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID) ([]sallyport.Revision, error)
	// Revision returns one revision of this skill with its manifest, without content; REVISION_NOT_FOUND.
	Revision(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID) (sallyport.Revision, error)
	// RevisionContent is Revision with every component's Content, read in one transaction.
	RevisionContent(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID) (sallyport.Revision, error)
	// ComponentContent returns one component of a revision with its Content, by path; COMPONENT_NOT_FOUND.
	ComponentContent(ctx context.Context, tenant sallyport.TenantID, revision sallyport.RevisionID, path string) (sallyport.Component, error)
	// SaveRevision creates the skill when save.Create, else adds a revision to it, in one transaction:
	// SLUG_TAKEN when another skill has the slug in the same team (or is the same owner's personal one),
	// REVISION_CONFLICT when the latest revision is not save.ExpectedLatest. It assigns the revision number, and
	// publishes when save.Publish. Blobs are stored once by sha256. REVISION_CONFLICT too when save.Once stands for another revision.
	SaveRevision(ctx context.Context, tenant sallyport.TenantID, save RevisionSave) (sallyport.Skill, sallyport.Revision, error)
	// SavedOnce returns what a principal's idempotency key stands for, when it was recorded after since. A key whose revision is gone
	// stands for nothing.
	SavedOnce(ctx context.Context, tenant sallyport.TenantID, principal sallyport.PrincipalID, key string, since time.Time) (Saved, bool, error)
	// Publish points the skill at the revision, marks it published and keeps by whom; REVISION_NOT_FOUND.
	Publish(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID, at time.Time, by sallyport.PrincipalID) (sallyport.Skill, error)
	// DeleteRevision removes a draft of the skill with its manifest, and content that nothing else holds; REVISION_NOT_FOUND.
	// REVISION_CONFLICT, with a sentence that says which, when it is or ever was published, is the latest, or is named by a
	// grant (by its id, or by its digest) or by an execution; revoked and expired grants name, too.
	DeleteRevision(ctx context.Context, tenant sallyport.TenantID, skill sallyport.SkillID, id sallyport.RevisionID) error
	// SetArchived archives (at non-nil) or restores; SKILL_NOT_FOUND.
	SetArchived(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID, at *time.Time) (sallyport.Skill, error)
	// SetDeleted marks a skill for its purge and archives it unless it is; SetArchived with nil undoes both. SKILL_NOT_FOUND.
	SetDeleted(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID, at time.Time) (sallyport.Skill, error)
	// PurgeSkill removes every revision of an archived skill that neither a grant (by id or digest, revoked and expired ones too) nor
	// an execution names, content that nothing else holds, and the skill when no grant and no execution names it, in one transaction
	// with the entry that purge.Entry makes. What is published or latest and goes is not pointed at any more: the newest
	// revision that is left is the latest. SKILL_NOT_FOUND; REVISION_CONFLICT when the skill is not archived, or not deleted before
	// purge.DeletedBefore. With DryRun nothing changes and no entry is written.
	PurgeSkill(ctx context.Context, tenant sallyport.TenantID, id sallyport.SkillID, purge SkillPurge) (PurgeReport, error)
}

// SkillFilter selects skills a principal can see: its personal ones and those of its teams.
type SkillFilter struct {
	Owner           sallyport.PrincipalID // personal skills of this principal
	Teams           []sallyport.TeamID
	Query           string // free text; the store quotes it, it is never query syntax
	IncludeArchived bool
	Limit           int
	Cursor          string // opaque, of the store's making
}

// SkillPage is one page; Total counts all matches.
type SkillPage struct {
	Skills     []sallyport.Skill
	NextCursor string
	Total      int
}

// RevisionSave is one atomic save.
type RevisionSave struct {
	Create bool
	// Skill carries ID, TeamID, OwnerID, Slug, Name, Description and times for Create; else ID, Name and
	// Description, which replace the stored ones.
	Skill sallyport.Skill
	// ExpectedLatest is compared with the latest revision id when not Create.
	ExpectedLatest sallyport.RevisionID
	// Revision carries everything but Number; components carry Content.
	Revision sallyport.Revision
	Publish  bool
	// Instructions is the body of SKILL.md, for full text search.
	Instructions string
	// Once is the idempotency key of the revision's author, kept with the save; nil without one.
	Once *SaveOnce
}
