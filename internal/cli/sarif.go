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

// sarifOf turns a report into a log. Every rule of the catalogue is described, whether or not it fired.
func sarifOf(tree *registry.PathsTree, report registry.ValidationReport) sarifLog {
	driver := sarifDriver{Name: "sallyport", Version: Version(), Rules: []sarifRule{}}
	index := map[string]int{}
	for i, info := range registry.ProblemCatalogue() {
		index[info.Code] = i
		driver.Rules = append(driver.Rules, sarifRule{info.Code, sarifText{info.Rule}, sarifConfiguration{info.Severity}})
	}
	results := []sarifResult{}
	for _, skill := range report.Skills {
		for _, found := range skill.Problems {
			file, inside := tree.Locate(skill.FilePath(found.File))
			message := found.Message
			physical := sarifPhysical{Artifact: sarifArtifact{fileURI(file)}}
			switch {
			case inside != "":
				message = inside + ": " + message // a line of a member is no line of the archive
			case found.Line > 0:
				physical.Region = &sarifRegion{found.Line}
			}
			results = append(results, sarifResult{
				RuleID: found.Code, RuleIndex: index[found.Code], Level: found.Severity, Message: sarifText{message},
				Locations: []sarifLocation{{physical}},
				Prints:    map[string]string{"sallyport/v1": found.Code + ":" + skill.FilePath(found.File)},
			})
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
