package registry

import (
	"encoding/json"
	"fmt"
)

// SkillFile is the name of the file that makes a directory a skill, and under which a revision stores it.
const SkillFile = "SKILL.md"

// SkillMD is what [ParseSkillMD] found in a SKILL.md.
//
// There are two verdicts. Usable is the lenient profile: the frontmatter could be read, with a description and a
// name. SpecClean is the strict profile: the text of the Agent Skills specification, with ASCII names; no
// problem is more than a note.
type SkillMD struct {
	// Frontmatter is the header as a JSON object, unknown fields kept, in source order; nil when it could not be read.
	Frontmatter json.RawMessage
	// Name without surrounding blanks. It falls back to the directory's name. A name never becomes a path.
	Name string
	// Description is the text exactly as a YAML 1.2 reader gives it.
	Description string
	// Body is everything after the frontmatter, with LF line ends.
	Body string
	// BodyLine is the line on which Body begins, counted from 1.
	BodyLine int
	// SubsetFault says why hosts that read a subset of YAML cannot read the header, with what mends it; empty when they can.
	SubsetFault string
	// Repaired says that the header became YAML only after quoting; the file itself is never changed.
	Repaired  bool
	Usable    bool
	SpecClean bool
	Problems  []Problem
}

// ParseSkillMD is the one parser of SKILL.md: list, recall, import and run all read what it returns. directory is the name
// of the directory that holds the file, empty when unknown. It never fails: what is wrong is in Problems.
func ParseSkillMD(content []byte, directory string) SkillMD {
	p := skillParser{directory: directory}
	p.parse(content)
	p.md.Usable = !hasErrors(p.md.Problems)
	p.md.SpecClean = specClean(p.md.Problems)
	return p.md
}

// maxProblems bounds the findings on one file.
const maxProblems = 64

type skillParser struct {
	md        SkillMD
	directory string
	fields    yamlValue
}

// add records a finding. It returns it so that a severity can be raised.
func (p *skillParser) add(code string, line int, format string, args ...any) {
	p.addProblem(problem(code, SkillFile, line, format, args...))
}

// addError records a finding that makes the skill unusable whatever the catalogue says.
func (p *skillParser) addError(code string, line int, format string, args ...any) {
	found := problem(code, SkillFile, line, format, args...)
	found.Severity = SeverityError
	p.addProblem(found)
}

func (p *skillParser) addProblem(found Problem) {
	// An error always gets in: the verdict hangs on it.
	if len(p.md.Problems) < maxProblems || found.Severity == SeverityError {
		p.md.Problems = append(p.md.Problems, found)
	}
}

func (p *skillParser) parse(content []byte) {
	header, ok := p.split(content)
	if !ok {
		return
	}
	fields, fault := readHeader(header.text)
	if fault != nil && repairable(fault) || fault == nil && !describes(fields) {
		text, repairs := repairHeader(header.text)
		if again, stillBad := readHeader(text); stillBad == nil && (fault != nil || describes(again)) {
			fields, fault, p.md.Repaired = again, nil, true
			for _, r := range repairs {
				p.add(ProblemYAMLRepaired, header.line+r.line, "%s", r.message)
			}
		}
	}
	if fault != nil {
		line := 0
		if fault.line > 0 {
			line = header.line + fault.line - 1
		}
		p.add(fault.code, line, "the frontmatter cannot be read: %s", faultText(fault))
		return
	}
	switch {
	case p.md.Repaired:
	case loneReturn(content, len(header.text)):
		p.md.SubsetFault = "the lines of the frontmatter end in carriage returns; save the file with LF"
	case blanksBehindFence(content):
		p.md.SubsetFault = "the first line has blanks behind its three dashes; remove them"
	default:
		p.md.SubsetFault = subsetFault(header.text)
	}
	p.fields = fields
	p.md.Frontmatter = fields.jsonForm()
	p.checkFields(header.line)
}

func faultText(fault *yamlFault) string {
	if fault.code == ProblemYAMLInvalid {
		return fmt.Sprintf("%s; put text that has a colon, a quote or a special character into double quotes", fault.message)
	}
	return fault.message
}

// readHeader reads the frontmatter, which must be a mapping; an empty one counts as a mapping without fields.
func readHeader(text string) (yamlValue, *yamlFault) {
	v, fault := readYAML(text)
	switch {
	case fault != nil:
		return yamlValue{}, fault
	case v.kind == yamlNull && v.source == "":
		return yamlValue{kind: yamlMap, line: 1}, nil
	case v.kind != yamlMap:
		return yamlValue{}, &yamlFault{ProblemFrontmatterKind, v.line, "it is not a mapping; write it as lines of key: value"}
	}
	return v, nil
}

// describes is false when the description is a list or a mapping, as a sentence with a colon on a line of its own becomes.
func describes(fields yamlValue) bool {
	v, _ := fields.at("description")
	return v.kind != yamlList && v.kind != yamlMap
}

// repairable tells the faults that quoting can mend from the bounds, which it must not get around.
func repairable(fault *yamlFault) bool {
	switch fault.code {
	case ProblemYAMLInvalid, ProblemYAMLKeyNotText, ProblemFrontmatterKind:
		return true
	}
	return false
}
