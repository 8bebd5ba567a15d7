package registry

import (
	"context"
	"path"
)

// ValidationReport says of every skill of a tree whether it can be used, and everything that is wrong with it.
type ValidationReport struct {
	Skills []ValidatedSkill `json:"skills"`
	// Ignored are files that belong to no skill.
	Ignored []ImportedFile   `json:"ignored"`
	Totals  ValidationTotals `json:"totals"`
}

// ValidatedSkill is one skill found. Digest is empty when it is not usable.
type ValidatedSkill struct {
	Path      string         `json:"path"`
	Slug      string         `json:"slug"`
	Name      string         `json:"name"`
	Usable    bool           `json:"usable"`
	SpecClean bool           `json:"spec_clean"`
	Digest    string         `json:"digest,omitempty"`
	Files     []ImportedFile `json:"files"`
	Problems  []Problem      `json:"problems"`
}

// ValidationTotals counts the report.
type ValidationTotals struct {
	Skills    int `json:"skills"`
	Usable    int `json:"usable"`
	SpecClean int `json:"spec_clean"`
	Errors    int `json:"errors"`
	Warnings  int `json:"warnings"`
	Notes     int `json:"notes"`
}

// Validate reads every skill of a tree exactly as [Service.Import] does, under the default bounds, and saves nothing; it needs
// no store. Its error is for what concerns the whole tree: a path that leaves it (UNSAFE_PATH), a tree that cannot be read, the
// context.
func Validate(ctx context.Context, tree Tree) (ValidationReport, error) {
	report := ValidationReport{Skills: []ValidatedSkill{}, Ignored: []ImportedFile{}}
	listed, err := tree.Entries(ctx)
	if err != nil {
		return report, err
	}
	outside := ImportReport{Ignored: report.Ignored}
	skills, err := discover(listed, &outside)
	if err != nil {
		return report, err
	}
	report.Ignored = outside.Ignored
	run := importRun{service: New(Config{}), tree: tree, index: newTreeIndex(listed)}
	if err := run.nameSlugs(ctx, skills); err != nil {
		return report, err
	}
	for _, found := range skills {
		imported, _, err := run.inspect(ctx, found)
		if err != nil {
			return report, err
		}
		if !imported.Usable {
			imported.refuseFiles()
		}
		skill := ValidatedSkill{
			Path: imported.Path, Slug: imported.Slug, Name: imported.Name, Usable: imported.Usable, SpecClean: imported.SpecClean,
			Digest: string(imported.Digest), Files: imported.Files, Problems: imported.Problems,
		}
		report.add(skill)
	}
	return report, nil
}

func (r *ValidationReport) add(skill ValidatedSkill) {
	r.Skills = append(r.Skills, skill)
	r.Totals.Skills++
	if skill.Usable {
		r.Totals.Usable++
	}
	if skill.SpecClean {
		r.Totals.SpecClean++
	}
	for _, found := range skill.Problems {
		switch found.Severity {
		case SeverityError:
			r.Totals.Errors++
		case SeverityWarning:
			r.Totals.Warnings++
		default:
			r.Totals.Notes++
		}
	}
}

// FilePath is where a file of the skill is in the tree.
func (s ValidatedSkill) FilePath(file string) string { return path.Join(s.Path, file) }
