package mcpapi

import (
	"encoding/json"
	"fmt"
	"strings"
)

// contextData is the data of an envelope of kind context.
type contextData struct {
	MaxTokens int `json:"max_tokens"`
	// EstimatedTokens is the larger estimate of the two forms of the answer.
	EstimatedTokens int           `json:"estimated_tokens"`
	Items           []contextItem `json:"items"`
	// Cut lists what matched and is not there, best first; CutMore counts what had no room in this list either.
	Cut     []contextCut `json:"cut"`
	CutMore int          `json:"cut_more"`
	// SkillsLeftOut counts the skills that match and were not looked into.
	SkillsLeftOut int `json:"skills_left_out"`
	// Ignored names the parameters that came and mean nothing here.
	Ignored []string `json:"ignored"`
}

// contextCut is an item that was left out.
type contextCut struct {
	Kind      string `json:"kind"`
	Slug      string `json:"slug"`
	Path      string `json:"path,omitempty"`
	StartLine int    `json:"start_line,omitempty"`
	EndLine   int    `json:"end_line,omitempty"`
	Reason    string `json:"reason"` // max_tokens or max_items
}

// The bounds of the list of what was cut.
const (
	maxCuts = 20
	// cutShare is the part of the budget that is kept for it: one in eight.
	cutShare = 8
	// growth is room for numbers that become longer while the answer is put together, in units.
	growth = 30 * unitsPerToken
)

// packer puts items into a budget. Both forms of the answer, the structured one and the text, keep to it each.
type packer struct {
	maxTokens, maxItems int
	// textIsJSON says that the text is the data itself.
	textIsJSON bool
	envelope   func(contextData) ([]byte, error)
	data       contextData
}

// pack takes the candidates in order as long as there is room, a shorter form where the whole does not fit, and lists the others.
func (p *packer) pack(candidates []contextItem) (contextData, string, error) {
	budget := p.maxTokens * unitsPerToken
	base, text, err := p.measure()
	if err != nil {
		return contextData{}, "", err
	}
	structured := base + growth
	text += growth
	var cuts []contextCut
	for _, candidate := range candidates {
		reason := "max_items"
		if len(p.data.Items) < p.maxItems {
			room := budget - budget/cutShare
			item, one, other, ok := p.fit(candidate, room-structured, room-text)
			if ok {
				p.data.Items = append(p.data.Items, item)
				structured, text = structured+one, text+other
				continue
			}
			reason = "max_tokens"
		}
		cuts = append(cuts, contextCut{
			Kind: candidate.Kind, Slug: candidate.Slug, Path: candidate.Source.Path,
			StartLine: candidate.Source.StartLine, EndLine: candidate.Source.EndLine, Reason: reason,
		})
	}
	p.data.CutMore = len(cuts)
	for _, c := range cuts[:min(len(cuts), maxCuts)] {
		encoded, err := escaped(c)
		if err != nil {
			return contextData{}, "", err
		}
		one, other := units(string(encoded)+","), units(cutLine(c))
		if p.textIsJSON {
			other = one
		}
		if structured+one > budget || text+other > budget {
			break
		}
		structured, text = structured+one, text+other
		p.data.Cut = append(p.data.Cut, c)
		p.data.CutMore--
	}
	return p.settle(budget)
}

// fit returns the fullest form of the item that has room in both forms of the answer, and what it takes.
func (p *packer) fit(item contextItem, structured, text int) (fitting contextItem, one, other int, ok bool) {
	for more := true; more; {
		encoded, err := escaped(item)
		if err != nil {
			return item, 0, 0, false // a schema that is no JSON; it has no place in an answer
		}
		one, other = units(string(encoded)+","), units(itemText(item))
		if p.textIsJSON {
			other = one
		}
		if one <= structured && other <= text {
			return item, one, other, true
		}
		item, more = item.shorter()
	}
	return item, 0, 0, false
}

// settle measures the whole and takes items back while it is too much. The estimate adds up, so it is not, unless this package
// counts wrongly; a budget holds in any case.
func (p *packer) settle(budget int) (contextData, string, error) {
	for {
		structured, text, err := p.measure()
		if err != nil {
			return contextData{}, "", err
		}
		most := max(structured, text)
		// The number itself is part of what it counts, and so are its digits.
		most += 2 * unitsPerToken
		p.data.EstimatedTokens = tokens(most)
		if most <= budget || len(p.data.Items)+len(p.data.Cut) == 0 {
			out, err := p.text()
			return p.data, out, err
		}
		if n := len(p.data.Cut); n > 0 {
			p.data.Cut = p.data.Cut[:n-1]
		} else {
			p.data.Items = p.data.Items[:len(p.data.Items)-1]
		}
		p.data.CutMore++
	}
}

// measure returns the units of both forms.
func (p *packer) measure() (structured, text int, err error) {
	encoded, err := p.envelope(p.data)
	if err != nil {
		return 0, 0, err
	}
	plain, err := p.text()
	return units(string(encoded)), units(plain), err
}

// escaped is v as JSON as it goes over the wire: the SDK writes <, > and & as escapes.
func escaped(v any) ([]byte, error) { return json.Marshal(v) }

// text is the answer for hosts that show text only.
func (p *packer) text() (string, error) {
	if p.textIsJSON {
		encoded, err := escaped(p.data)
		return string(encoded), err
	}
	var b strings.Builder
	if len(p.data.Items) == 0 {
		b.WriteString("Nothing in your skills matches. Describe the task in other words, or list the skills with recall_cloud_skill.\n")
	}
	for _, item := range p.data.Items {
		b.WriteString(itemText(item))
	}
	if len(p.data.Cut) > 0 {
		b.WriteString("\nLeft out:\n")
	}
	for _, c := range p.data.Cut {
		b.WriteString(cutLine(c))
	}
	if more := p.data.CutMore; more > 0 {
		fmt.Fprintf(&b, "%d more pieces left out; raise max_tokens or max_items.\n", more)
	}
	if p.data.SkillsLeftOut > 0 {
		fmt.Fprintf(&b, "%d more skills match; raise limit.\n", p.data.SkillsLeftOut)
	}
	if len(p.data.Ignored) > 0 {
		fmt.Fprintf(&b, "Without meaning here: %s.\n", strings.Join(p.data.Ignored, ", "))
	}
	return b.String(), nil
}

func cutLine(c contextCut) string {
	line := "- " + c.Kind + " of " + c.Slug
	if c.Path != "" {
		line += ": " + c.Path
	}
	if c.StartLine > 0 {
		line += fmt.Sprintf(" lines %d-%d", c.StartLine, c.EndLine)
	}
	return line + " (" + c.Reason + ")\n"
}

func itemText(i contextItem) string {
	var b strings.Builder
	source := fmt.Sprintf("%s lines %d-%d of %s", i.Source.Path, i.Source.StartLine, i.Source.EndLine, i.Slug)
	switch i.Kind {
	case itemSkill:
		fmt.Fprintf(&b, "\n# Skill %s (skill_id %s, revision_id %s)\n%s\n", i.Slug, i.SkillID, i.Source.RevisionID, i.Description)
	case itemInstructions:
		fmt.Fprintf(&b, "\n## Instructions, %s\n%s\n", source, i.Text)
	case itemReference:
		fmt.Fprintf(&b, "\n## Reference, %s\n%s\n", source, i.Text)
	case itemScript:
		fmt.Fprintf(&b, "\n## Script %s of %s (%s)\n", i.Source.Path, i.Slug, i.Runtime)
		if len(i.InputSchema) > 0 {
			fmt.Fprintf(&b, "input_args: %s\n", i.InputSchema)
		}
		if len(i.Argv) > 0 {
			fmt.Fprintf(&b, "argv: %s\n", i.Argv)
		}
		if i.InputSchemaLeftOut {
			b.WriteString("Its schema was left out; read the skill with recall_cloud_skill.\n")
		}
		switch {
		case i.Runnable == nil:
		case *i.Runnable:
			b.WriteString("You may run it now.\n")
		case i.Gate != nil:
			fmt.Fprintf(&b, "You may not run it now: %s: %s. %s\n", i.Gate.Code, i.Gate.Message, i.Gate.Remedy)
		}
		for _, r := range i.Recent {
			fmt.Fprintf(&b, "Run on %s: %s\n", r.CreatedAt.Format("2006-01-02 15:04"), r.Status)
		}
	}
	return b.String()
}
