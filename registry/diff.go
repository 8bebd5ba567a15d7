package registry

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mediatype"
)

const (
	opDiff = "registry.diff"

	// maxDiffFileBytes bounds a side of a textual comparison.
	maxDiffFileBytes = 256 << 10
	// maxDiffTextBytes bounds the texts of one answer together.
	maxDiffTextBytes = 512 << 10
)

// Change says what became of a file or a value.
type Change string

// The changes. A renamed file has the bytes of one that is gone.
const (
	ChangeAdded   Change = "added"
	ChangeRemoved Change = "removed"
	ChangeChanged Change = "changed"
	ChangeRenamed Change = "renamed"
)

// RevisionDiff is what differs between two revisions of one skill.
type RevisionDiff struct {
	SkillID sallyport.SkillID `json:"skill_id"`
	Slug    string            `json:"slug"`
	// From is absent when To is compared with nothing: it is the skill's only revision. Neither carries a manifest.
	From *sallyport.Revision `json:"from_revision,omitempty"`
	To   sallyport.Revision  `json:"to_revision"`
	// Identical: both have the same digest. File modes may differ then, as the digest leaves them out.
	Identical bool `json:"identical"`
	// Files are those that differ, by path.
	Files []FileDiff `json:"files"`
	// Frontmatter are the fields of SKILL.md's header that differ, nested ones as metadata.author.
	Frontmatter []FieldDiff `json:"frontmatter"`
	// Settings are the script settings that differ, as "scripts/run.py input_schema".
	Settings []FieldDiff `json:"settings"`
	Totals   DiffTotals  `json:"totals"`
}

// DiffTotals counts files.
type DiffTotals struct {
	Added     int `json:"added"`
	Removed   int `json:"removed"`
	Changed   int `json:"changed"`
	Renamed   int `json:"renamed"`
	Unchanged int `json:"unchanged"`
}

// FileDiff is one file that differs.
type FileDiff struct {
	Path string `json:"path"`
	// OldPath is set for a renamed file.
	OldPath string    `json:"old_path,omitempty"`
	Change  Change    `json:"change"`
	Before  *FileSide `json:"before,omitempty"`
	After   *FileSide `json:"after,omitempty"`
	// Text is a unified diff; empty when the bytes are equal or TextLeftOut says why there is none.
	Text        string `json:"text,omitempty"`
	TextLeftOut string `json:"text_left_out,omitempty"`
}

// FileSide is a file in one of the two revisions.
type FileSide struct {
	Kind   sallyport.Kind `json:"kind"`
	Size   int64          `json:"size"`
	SHA256 string         `json:"sha256"`
	Mode   uint32         `json:"mode"`
}

// Diff compares two revisions of a skill. An empty to means the latest; an empty from the published one, else the one before
// to. Needs memory:read; REVISION_NOT_FOUND.
func (s *Service) Diff(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, from, to sallyport.RevisionID) (RevisionDiff, error) {
	skill, err := s.readable(ctx, p, ref)
	if err != nil {
		return RevisionDiff{}, err
	}
	if from, to, err = s.chooseSides(ctx, p, skill, from, to); err != nil {
		return RevisionDiff{}, err
	}
	after, err := s.cfg.Store.RevisionContent(ctx, p.TenantID, skill.ID, to)
	if err != nil {
		return RevisionDiff{}, err
	}
	d := RevisionDiff{SkillID: skill.ID, Slug: skill.Slug, To: after, Frontmatter: []FieldDiff{}, Settings: []FieldDiff{}}
	d.To.Components = nil
	var before sallyport.Revision
	if from != "" {
		if before, err = s.cfg.Store.RevisionContent(ctx, p.TenantID, skill.ID, from); err != nil {
			return RevisionDiff{}, err
		}
		side := before
		side.Components = nil
		d.From = &side
	}
	d.Identical = before.Digest.Equal(after.Digest)
	d.files(before.Components, after.Components)
	d.Frontmatter = append(d.Frontmatter, diffJSON("", before.Frontmatter, after.Frontmatter)...)
	d.Settings = append(d.Settings, diffSettings(before.Components, after.Components)...)
	return d, nil
}

// chooseSides fills in the revisions that were not named; from stays empty when there is none before to.
func (s *Service) chooseSides(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, from, to sallyport.RevisionID) (_, _ sallyport.RevisionID, err error) {
	if to = cmp.Or(to, skill.LatestRevisionID); to == "" {
		return "", "", sallyport.Errorf(opDiff, sallyport.CodeRevisionNotFound, "the skill has no revision yet; save one")
	}
	if from = cmp.Or(from, skill.PublishedRevisionID); from != "" {
		return from, to, nil
	}
	revisions, err := s.cfg.Store.Revisions(ctx, p.TenantID, skill.ID)
	if err != nil {
		return "", "", err
	}
	at := slices.IndexFunc(revisions, func(r sallyport.Revision) bool { return r.ID == to })
	if at >= 0 && at+1 < len(revisions) {
		from = revisions[at+1].ID
	}
	return from, to, nil
}

// files compares two manifests with content.
func (d *RevisionDiff) files(before, after []sallyport.Component) {
	old, gone := map[string]sallyport.Component{}, map[string][]sallyport.Component{}
	for _, c := range before {
		old[c.Path] = c
	}
	d.Files = []FileDiff{}
	var added []sallyport.Component
	for _, c := range after {
		was, there := old[c.Path]
		delete(old, c.Path)
		switch {
		case !there:
			added = append(added, c)
		case *sideOf(was) == *sideOf(c):
			d.Totals.Unchanged++
		default:
			d.Totals.Changed++
			d.Files = append(d.Files, FileDiff{Path: c.Path, Change: ChangeChanged, Before: sideOf(was), After: sideOf(c)})
		}
	}
	for _, c := range before {
		if _, left := old[c.Path]; left {
			gone[c.SHA256] = append(gone[c.SHA256], c)
		}
	}
	for _, c := range added {
		file := FileDiff{Path: c.Path, Change: ChangeAdded, After: sideOf(c)}
		if same := gone[c.SHA256]; len(same) > 0 {
			file.Change, file.OldPath, file.Before = ChangeRenamed, same[0].Path, sideOf(same[0])
			gone[c.SHA256] = same[1:]
			delete(old, same[0].Path)
			d.Totals.Renamed++
		} else {
			d.Totals.Added++
		}
		d.Files = append(d.Files, file)
	}
	for _, c := range before {
		if _, left := old[c.Path]; left {
			d.Totals.Removed++
			d.Files = append(d.Files, FileDiff{Path: c.Path, Change: ChangeRemoved, Before: sideOf(c)})
		}
	}
	slices.SortFunc(d.Files, func(a, b FileDiff) int { return strings.Compare(a.Path, b.Path) })
	d.texts(before, after)
}

func sideOf(c sallyport.Component) *FileSide {
	return &FileSide{Kind: c.Kind, Size: c.Size, SHA256: c.SHA256, Mode: c.Mode}
}

// texts adds unified diffs, in path order, while they fit.
func (d *RevisionDiff) texts(before, after []sallyport.Component) {
	left := maxDiffTextBytes
	for i := range d.Files {
		file := &d.Files[i]
		if file.Before != nil && file.After != nil && file.Before.SHA256 == file.After.SHA256 {
			continue
		}
		old, now := contentAt(before, file.Path, file.Before), contentAt(after, file.Path, file.After)
		switch {
		case len(old) > maxDiffFileBytes || len(now) > maxDiffFileBytes:
			file.TextLeftOut = "too large to compare as text"
		case !mediatype.Text(old) || !mediatype.Text(now):
			file.TextLeftOut = "binary"
		case left <= 0:
			file.TextLeftOut = "the answer is full; read the two components"
		default:
			text := unified(file, old, now)
			if len(text) > left {
				file.TextLeftOut, left = "the answer is full; read the two components", 0
				continue
			}
			file.Text, left = text, left-len(text)
		}
	}
}

func contentAt(components []sallyport.Component, path string, side *FileSide) []byte {
	if side == nil {
		return nil
	}
	component, _ := sallyport.Revision{Components: components}.Component(path)
	return component.Content
}

// unified is the text of a unified diff. Its heading is of two lines, for tools that apply patches.
func unified(file *FileDiff, old, now []byte) string {
	from, to := "a/"+file.Path, "b/"+file.Path
	if file.Before == nil {
		from = "/dev/null"
	}
	if file.After == nil {
		to = "/dev/null"
	}
	text := string(diff.Diff(from, old, to, now))
	_, text, _ = strings.Cut(text, "\n") // a command line that nobody typed
	return text
}
