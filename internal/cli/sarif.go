package cli

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/registry"
)

// A SARIF log, version 2.1.0, as far as it is used here.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       sarifTool     `json:"tool"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID            string             `json:"id"`
	Short         sarifText          `json:"shortDescription"`
	Configuration sarifConfiguration `json:"defaultConfiguration"`
}

type sarifConfiguration struct {
	Level string `json:"level"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	RuleIndex int             `json:"ruleIndex"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
	// Prints are stable while only lines move.
	Prints map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

const sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"

// sarifOf turns a report into a log. Every rule of the catalogues is described, whether or not it fired. Notes of the static rules, of which
// there is one for every web address, are in it with all only.
func sarifOf(tree *registry.PathsTree, report registry.ValidationReport, all bool) sarifLog {
	driver := sarifDriver{Name: "sallyport", Version: Version(), Rules: []sarifRule{}}
	index := map[string]int{}
	for _, info := range registry.ProblemCatalogue() {
		index[info.Code] = len(driver.Rules)
		driver.Rules = append(driver.Rules, sarifRule{info.Code, sarifText{info.Rule}, sarifConfiguration{info.Severity}})
	}
	for _, info := range registry.FindingCatalogue() {
		index[info.Rule] = len(driver.Rules)
		driver.Rules = append(driver.Rules, sarifRule{info.Rule, sarifText{info.About}, sarifConfiguration{info.Severity}})
	}
	index[ruleUnscanned] = len(driver.Rules)
	driver.Rules = append(driver.Rules, sarifRule{
		ruleUnscanned, sarifText{"a file that the static rules cannot read is no pass"}, sarifConfiguration{registry.SeverityError},
	})
	results := []sarifResult{}
	add := func(skill registry.ValidatedSkill, rule, name string, line int, level, message string) {
		file, inside := tree.Locate(skill.FilePath(name))
		physical := sarifPhysical{Artifact: sarifArtifact{fileURI(file)}}
		switch {
		case inside != "":
			message = inside + ": " + message // a line of a member is no line of the archive
		case line > 0:
			physical.Region = &sarifRegion{line}
		}
		results = append(results, sarifResult{
			RuleID: rule, RuleIndex: index[rule], Level: level, Message: sarifText{message},
			Locations: []sarifLocation{{physical}},
			Prints:    map[string]string{"sallyport/v1": rule + ":" + skill.FilePath(name)},
		})
	}
	for _, skill := range report.Skills {
		for _, found := range skill.Problems {
			add(skill, found.Code, found.File, found.Line, found.Severity, found.Message)
		}
		if skill.Findings == nil {
			continue
		}
		for _, found := range skill.Findings.Findings {
			if found.Severity != registry.SeverityNote || all {
				add(skill, found.Rule, found.File, found.Line, found.Severity, found.Message)
			}
		}
		for _, file := range skill.Findings.Unscanned {
			add(skill, ruleUnscanned, file.File, 0, registry.SeverityError, file.Reason)
		}
	}
	return sarifLog{
		Schema: sarifSchema, Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{driver}, ColumnKind: "unicodeCodePoints", Results: results}},
	}
}

// fileURI is a file as a reference: relative as it was named, so that a log fits the checkout it was made in.
func fileURI(file string) string {
	u := url.URL{Path: filepath.ToSlash(file)}
	if strings.HasPrefix(u.Path, "/") {
		u.Scheme = "file"
	}
	return u.String()
}
