package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// strictName is the name that every host accepts as the last segment of a skill's URI.
var strictName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// ListedName returns the frontmatter's name when every host accepts it, else the empty string. It is what the last segment of
// a skill's URI must equal.
func ListedName(frontmatter json.RawMessage) string {
	var fields struct {
		Name any `json:"name"`
	}
	if json.Unmarshal(frontmatter, &fields) != nil {
		return ""
	}
	name, isText := fields.Name.(string)
	if !isText || len(name) > maxNameLength || !strictName.MatchString(name) {
		return ""
	}
	return name
}

// ListingFaults says why strict hosts would refuse a list that holds this skill, each with what mends it; none means that it
// can be listed. One such entry costs them the whole list. The components need no content.
func ListingFaults(md SkillMD, components []sallyport.Component) []string {
	var faults []string
	for _, found := range listingFaults(md) {
		faults = append(faults, found.message)
	}
	var total int64
	for _, c := range components {
		total += c.Size
	}
	if len(components) > sallyport.MaxSkillFiles || total > sallyport.MaxSkillBytes {
		faults = append(faults, fmt.Sprintf("hosts need not take more than %d files and %d bytes; split the skill", sallyport.MaxSkillFiles, sallyport.MaxSkillBytes))
	}
	return faults
}

// listingFault is a fault in SKILL.md; codes are the problems that name its line.
type listingFault struct {
	message string
	codes   []string
}

func listingFaults(md SkillMD) []listingFault {
	fields, err := frontmatterFields(md.Frontmatter)
	if err != nil {
		return []listingFault{{"the frontmatter cannot be read; make it a YAML mapping", nil}}
	}
	var faults []listingFault
	add := func(message string, codes ...string) { faults = append(faults, listingFault{message, codes}) }
	has := func(code string) bool {
		return slices.ContainsFunc(md.Problems, func(p Problem) bool { return p.Code == code })
	}
	switch {
	case md.Repaired:
		add("the frontmatter is not YAML as it stands; put text with a colon into double quotes", ProblemYAMLRepaired)
	case has(ProblemTextBeforeFence):
		add("there is text before the frontmatter; make the line of three dashes the first line", ProblemTextBeforeFence)
	case has(ProblemFenceLong):
		add("the frontmatter ends with more than three dashes; write three", ProblemFenceLong)
	case has(ProblemNotUTF8):
		add("the file is not UTF-8; save it as UTF-8", ProblemNotUTF8)
	}
	if md.SubsetFault != "" {
		add(md.SubsetFault)
	}
	if ListedName(md.Frontmatter) == "" {
		add(fmt.Sprintf("name is not 1 to %d lower-case letters, digits and single hyphens; write name: %s", maxNameLength, Slug(md.Name)),
			ProblemNameMissing, ProblemNameNotText, ProblemNameTooLong, ProblemNameCharacters, ProblemNameNotASCII, ProblemNameHyphens)
	}
	if text, isText := fields["description"].(string); !isText || !shortEnough(text, maxDescriptionLength) {
		add(fmt.Sprintf("description is not text of 1 to %d characters; shorten it or put it in quotes", maxDescriptionLength),
			ProblemDescriptionTooLong, ProblemDescriptionNotText)
	}
	if value, found := fields["compatibility"]; found {
		if text, isText := value.(string); !isText || !shortEnough(text, maxCompatibilityLength) {
			add(fmt.Sprintf("compatibility is not text of 1 to %d characters; shorten it or leave it out", maxCompatibilityLength), ProblemCompatibility)
		}
	}
	if value, found := fields["metadata"]; found {
		if fault := metadataFault(value); fault != "" {
			add(fault, ProblemMetadata, ProblemMetadataCoerced)
		}
	}
	if _, found := fields[prototypeKey]; found {
		add("the field "+prototypeKey+" is refused by hosts; remove it", ProblemFieldUnknown)
	}
	return faults
}

// prototypeKey is refused by hosts written in JavaScript.
const prototypeKey = "__proto__"

func shortEnough(text string, limit int) bool {
	return text != "" && utf8.RuneCountInString(text) <= limit
}

func metadataFault(value any) string {
	metadata, isMap := value.(map[string]any)
	if !isMap {
		return "metadata is not a mapping; write it as lines of key: \"value\""
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if _, isText := metadata[key].(string); !isText {
			return fmt.Sprintf("metadata.%s is not text; put its value in quotes", shorten(key))
		}
		if key == prototypeKey {
			return "metadata has the key " + prototypeKey + ", which hosts refuse; remove it"
		}
	}
	return ""
}

// frontmatterFields decodes a frontmatter, numbers as they are written.
func frontmatterFields(frontmatter json.RawMessage) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(frontmatter))
	decoder.UseNumber()
	var fields map[string]any
	err := decoder.Decode(&fields)
	return fields, err
}

// notListed is the problem of a skill that hosts will not be shown, nil when they will. The components need no content.
func notListed(md SkillMD, components []sallyport.Component) *Problem {
	faults := ListingFaults(md, components)
	if len(faults) == 0 {
		return nil
	}
	line := 0
	for _, fault := range listingFaults(md) {
		for _, p := range md.Problems {
			if line == 0 && slices.Contains(fault.codes, p.Code) {
				line = p.Line
			}
		}
	}
	found := problem(ProblemNotListed, SkillFile, line,
		"the skill is left out of the list that MCP hosts read, because strict hosts would refuse the whole list; it is found by search and by slug: %s",
		strings.Join(faults, "; "))
	return &found
}
