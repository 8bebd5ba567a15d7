package registry

import "github.com/sallyport-dev/sallyport"

// ImportOptions say where imported skills go.
type ImportOptions struct {
	TeamID   sallyport.TeamID // empty means the default team, unless Personal
	Personal bool
	Publish  bool
	DryRun   bool
	Message  string
	// Single refuses a tree that does not hold exactly one skill.
	Single bool
	// Progress is told of every skill when it was dealt with, by the goroutine of the import; it must not block for long. Nil tells nobody.
	Progress func(ImportProgress)
}

// ImportProgress says how far an import is: a skill was dealt with, Done of Total.
type ImportProgress struct {
	Done   int    `json:"done"`
	Total  int    `json:"total"`
	Path   string `json:"path"`
	Slug   string `json:"slug"`
	Result string `json:"result"`
}

// ImportReport accounts for every skill and every file of an import.
type ImportReport struct {
	Skills []ImportedSkill `json:"skills"`
	// Ignored are files that belong to no skill.
	Ignored []ImportedFile `json:"ignored"`
	Totals  ImportTotals   `json:"totals"`
	// Commit is the git commit that the tree says it is of: a repository was read at it, or an archive made from it.
	Commit string `json:"commit,omitempty"`
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
	Reason string `json:"reason"`
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

// The results of an ImportedSkill and an ImportedFile.
const (
	ResultImported  = "imported"  // a new revision was saved
	ResultUnchanged = "unchanged" // the newest revision has the same content
	ResultKept      = "kept"
	ResultRepaired  = "repaired" // kept, and not as the source had it
	ResultRefused   = "refused"
	ResultIgnored   = "ignored"
)

func (r *ImportReport) ignore(name, reason string) {
	r.Ignored = append(r.Ignored, ImportedFile{Path: printable(name), Result: ResultIgnored, Reason: reason})
	r.Totals.Files++
	r.Totals.FilesIgnored++
}

// add accounts for one skill.
func (r *ImportReport) add(skill ImportedSkill) {
	if skill.Result == ResultRefused {
		skill.refuseFiles()
	}
	r.Skills = append(r.Skills, skill)
	r.Totals.Skills++
	switch skill.Result {
	case ResultImported:
		r.Totals.Imported++
	case ResultUnchanged:
		r.Totals.Unchanged++
	case ResultRefused:
		r.Totals.Refused++
	case ResultIgnored:
		r.Totals.Ignored++
	}
	if skill.SpecClean {
		r.Totals.SpecClean++
	}
	for _, file := range skill.Files {
		r.Totals.Files++
		switch file.Result {
		case ResultKept, ResultRepaired:
			r.Totals.FilesKept++
		case ResultRefused:
			r.Totals.FilesRefused++
		case ResultIgnored:
			r.Totals.FilesIgnored++
		}
	}
}

// refuseFiles says of every file of a refused skill that it was not kept.
func (s *ImportedSkill) refuseFiles() {
	for i, file := range s.Files {
		if file.Result == ResultKept || file.Result == ResultRepaired {
			s.Files[i].Result, s.Files[i].Reason = ResultRefused, "the skill was refused"
		}
	}
}

// refuse makes the skill refused, with one more problem.
func (s *ImportedSkill) refuse(found Problem) {
	s.Result = ResultRefused
	found.Severity = SeverityError
	s.Problems = append(s.Problems, found)
}
