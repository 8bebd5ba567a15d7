package registry

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport"
)

// FindingRuleSet names the rules that [Scan] applies. It changes whenever the same bytes could give other findings.
const FindingRuleSet = "sallyport/1"

// ScanVerdict says whether the rules could be applied to every file.
type ScanVerdict string

// The verdicts. The zero value is none of them and no pass.
const (
	ScanDone       ScanVerdict = "scanned"
	ScanImpossible ScanVerdict = "not_scannable" // some file could not be read by the rules; never a pass
)

// Findings is what the static rules found in exactly the bytes of Digest. Nothing is executed to find it.
type Findings struct {
	SkillID    sallyport.SkillID    `json:"skill_id,omitempty"`
	Slug       string               `json:"slug,omitempty"`
	RevisionID sallyport.RevisionID `json:"revision_id,omitempty"`
	Digest     sallyport.Digest     `json:"digest"`
	RuleSet    string               `json:"rule_set"`
	Verdict    ScanVerdict          `json:"verdict"`
	// Clean: scanned, and nothing more than notes.
	Clean bool `json:"clean"`
	// Findings are ordered by file and line; errors of a file never give way to its notes.
	Findings []Finding `json:"findings"`
	// Unscanned are the files that the rules could not read.
	Unscanned []Unscanned `json:"unscanned"`
	// Exclusions are the path patterns whose findings were set aside, with how many.
	Exclusions []Exclusion   `json:"exclusions"`
	Totals     FindingTotals `json:"totals"`
}

// Finding is one place where a rule fired.
type Finding struct {
	Rule string `json:"rule"`
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Severity is error, warning or note.
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// Unscanned is a file that the rules could not read, and why.
type Unscanned struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// Exclusion is a pattern of paths and the number of findings it set aside.
type Exclusion struct {
	Pattern  string `json:"pattern"`
	Findings int    `json:"findings"`
}

// FindingTotals counts. LeftOut are findings beyond the bound; they count in none of the others.
type FindingTotals struct {
	Files    int `json:"files"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
	Excluded int `json:"excluded"`
	LeftOut  int `json:"left_out"`
}

const (
	opFindings = "registry.findings"

	maxExclusions     = 32
	maxExclusionBytes = 256
)

// FindingsRequest names a revision and the paths whose findings the reader sets aside.
type FindingsRequest struct {
	// RevisionID: empty means the published revision, else the latest.
	RevisionID sallyport.RevisionID
	// Exclude are patterns as of package path, or directories with a slash at the end, for everything below.
	Exclude []string
}

// Findings scans a revision. Needs memory:read. A pattern that is malformed is INVALID_ARGUMENT. The skill itself cannot
// exclude anything: only the reader and the configuration can.
func (s *Service) Findings(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, req FindingsRequest) (Findings, error) {
	if err := checkExclusions(opFindings, req.Exclude); err != nil {
		return Findings{}, err
	}
	skill, err := s.readable(ctx, p, ref)
	if err != nil {
		return Findings{}, err
	}
	id, err := chooseRevision(p, skill, req.RevisionID)
	if err != nil {
		return Findings{}, err
	}
	found, revision, err := s.scanned(ctx, p, skill, id)
	if err != nil {
		return Findings{}, err
	}
	found = found.without(slices.Concat(s.cfg.FindingExclusions, req.Exclude))
	found.SkillID, found.Slug, found.RevisionID = skill.ID, skill.Slug, revision.ID
	return found, nil
}

// scanned returns the findings of a stored revision, all of them.
func (s *Service) scanned(ctx context.Context, p sallyport.Principal, skill sallyport.Skill, id sallyport.RevisionID) (Findings, sallyport.Revision, error) {
	revision, err := s.cfg.Store.Revision(ctx, p.TenantID, skill.ID, id)
	if err != nil {
		return Findings{}, revision, err
	}
	if found, known := s.scans.get(revision.Digest); known {
		return found, revision, nil
	}
	// With content, checked against the digest that the findings are kept under.
	whole, err := s.ResolveRevision(ctx, p, skill, id)
	if err != nil {
		return Findings{}, revision, err
	}
	found := Scan(whole.Components)
	found.Digest = whole.Digest
	s.scans.put(found)
	return found, revision, nil
}

// CheckExclusions is INVALID_ARGUMENT when one of the patterns of an operator is no exclusion.
func CheckExclusions(patterns []string) error { return checkExclusions(opFindings, patterns) }

// checkExclusions refuses patterns that could never fit, or fit what was not meant.
func checkExclusions(op string, patterns []string) error {
	if len(patterns) > maxExclusions {
		return sallyport.Errorf(op, sallyport.CodeInvalidArgument, "more than %d exclusions", maxExclusions)
	}
	for _, pattern := range patterns {
		_, err := path.Match(pattern, "x")
		if err != nil || len(pattern) > maxExclusionBytes || sallyport.CheckPath(strings.TrimSuffix(pattern, "/")) != nil {
			return sallyport.Errorf(op, sallyport.CodeInvalidArgument,
				"%q is no exclusion; write a path, a pattern such as tests/*.py, or a folder with a slash at its end", shorten(pattern))
		}
	}
	return nil
}

func excludes(pattern, file string) bool {
	if folder, isFolder := strings.CutSuffix(pattern, "/"); isFolder {
		return within(file, folder)
	}
	fits, err := path.Match(pattern, file)
	return err == nil && fits
}

// without sets findings in excluded paths aside and says how many. What could not be scanned stays.
func (f Findings) without(patterns []string) Findings {
	f.Exclusions = []Exclusion{}
	set := make([]int, len(patterns))
	kept := []Finding{}
	for _, found := range f.Findings {
		at := slices.IndexFunc(patterns, func(pattern string) bool { return excludes(pattern, found.File) })
		if at < 0 {
			kept = append(kept, found)
			continue
		}
		set[at]++
	}
	for i, pattern := range patterns {
		f.Exclusions = append(f.Exclusions, Exclusion{pattern, set[i]})
	}
	f.Totals.Excluded = len(f.Findings) - len(kept)
	f.Findings = kept
	return f.counted()
}

// counted fills in what follows from the findings.
func (f Findings) counted() Findings {
	f.Totals.Errors, f.Totals.Warnings, f.Totals.Notes = 0, 0, 0
	for _, found := range f.Findings {
		switch found.Severity {
		case SeverityError:
			f.Totals.Errors++
		case SeverityWarning:
			f.Totals.Warnings++
		default:
			f.Totals.Notes++
		}
	}
	f.Verdict = ScanDone
	if len(f.Unscanned) > 0 {
		f.Verdict = ScanImpossible
	}
	f.Clean = f.Verdict == ScanDone && f.Totals.Errors == 0 && f.Totals.Warnings == 0 && f.Totals.LeftOut == 0
	return f
}

func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Rule, b.Rule))
	})
}

// maxScansKept bounds the findings that are remembered.
const maxScansKept = 256

// scanCache remembers findings by digest. They depend on nothing else but the rules, which are this binary's. The zero value
// is ready to use.
type scanCache struct {
	mu    sync.Mutex
	known map[sallyport.Digest]Findings
}

func (c *scanCache) get(digest sallyport.Digest) (Findings, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, known := c.known[digest]
	return found, known
}

func (c *scanCache) put(found Findings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxScansKept {
		c.known = map[sallyport.Digest]Findings{}
	}
	c.known[found.Digest] = found
}
