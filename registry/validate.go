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
	// Findings of the static rules, when they were asked for and the skill is usable.
	Findings *Findings `json:"findings,omitempty"`
	// Needs are the packages that scripts say they need, where the options said against which runtimes.
	Needs []ScriptNeeds `json:"needs,omitempty"`
}

// ValidateOptions say what Validate looks at beside the rules of the format.
type ValidateOptions struct {
	// Runtimes holds what scripts need against what would serve them; nil holds nothing.
	Runtimes Runtimes
	// Findings applies the static rules of [Scan] to every usable skill.
	Findings bool
	// Exclude are path patterns whose findings are set aside and counted; see [FindingsRequest].
	Exclude []string
}

// ValidationTotals counts the report.
type ValidationTotals struct {
	Skills    int `json:"skills"`
	Usable    int `json:"usable"`
	SpecClean int `json:"spec_clean"`
	Errors    int `json:"errors"`
	Warnings  int `json:"warnings"`
	Notes     int `json:"notes"`
	// Clean counts the skills in which the static rules read everything and found nothing but notes; FindingErrors and the others count what
	// they found. Zero when they were not applied.
	Clean           int `json:"clean"`
	FindingErrors   int `json:"finding_errors"`
	FindingWarnings int `json:"finding_warnings"`
	FindingNotes    int `json:"finding_notes"`
}

// Validate reads every skill of a tree exactly as [Service.Import] does, under the default bounds, and saves nothing; it needs
// no store. Its error is for what concerns the whole: a path that leaves the tree (UNSAFE_PATH), a tree that cannot be read, an exclusion that
// is none (INVALID_ARGUMENT), the context.
func Validate(ctx context.Context, tree Tree, opts ValidateOptions) (ValidationReport, error) {
	report := ValidationReport{Skills: []ValidatedSkill{}, Ignored: []ImportedFile{}}
	if err := checkExclusions("registry.validate", opts.Exclude); err != nil {
		return report, err
	}
	listed, err := tree.Entries(ctx)
	if err != nil {
		return report, err
	}
	outside := ImportReport{Ignored: report.Ignored}
	service := New(Config{})
	skills, err := service.find(ctx, tree, listed, &outside)
	if err != nil {
		return report, err
	}
	report.Ignored = outside.Ignored
	run := importRun{service: service, tree: tree, index: newTreeIndex(listed)}
	if err := run.nameSlugs(ctx, skills); err != nil {
		return report, err
	}
	for _, found := range skills {
		imported, content, err := run.inspect(ctx, found)
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
		if opts.Findings && skill.Usable {
			scanned := Scan(content.components).without(opts.Exclude)
			scanned.Digest, scanned.Slug = imported.Digest, imported.Slug
			skill.Findings = &scanned
		}
		if opts.Runtimes != nil && skill.Usable {
			skill.Needs = needs(ctx, content.components, opts.Runtimes)
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
	if found := skill.Findings; found != nil {
		if found.Clean {
			r.Totals.Clean++
		}
		r.Totals.FindingErrors += found.Totals.Errors
		r.Totals.FindingWarnings += found.Totals.Warnings
		r.Totals.FindingNotes += found.Totals.Notes
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
