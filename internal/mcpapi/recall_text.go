package mcpapi

import (
	"fmt"
	"strings"
)

// searchText is a list that an agent can choose from.
func searchText(query string, skills []skillSummary, leftOut int) string {
	var b strings.Builder
	switch {
	case len(skills) == 0 && query == "":
		return "There are no skills yet. save_cloud_skill stores one."
	case len(skills) == 0:
		return "No skill matches. Search for other words, or leave query empty to list all."
	}
	for _, s := range skills {
		fmt.Fprintf(&b, "- %s: %s", s.Slug, oneLine(s.Description))
		if s.PublishedRevisionID == "" {
			b.WriteString(" (draft)")
		}
		b.WriteByte('\n')
	}
	if leftOut > 0 {
		fmt.Fprintf(&b, "%d more left out; use a narrower query or a higher limit.\n", leftOut)
	}
	b.WriteString("Read one with its slug.")
	return b.String()
}

// skillText is what an agent needs to follow the skill when the host shows it text only.
func skillText(d skillDetail) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Skill %s (skill_id %s), revision %d %s (revision_id %s).\n", d.Slug, d.SkillID, d.Revision.Number,
		d.Revision.State, d.Revision.RevisionID)
	if d.Archived {
		b.WriteString("The skill is archived: it can be read and does not run.\n")
	}
	fmt.Fprintf(&b, "%s\n\n%s\n", oneLine(d.Description), strings.TrimSpace(d.Instructions))
	if len(d.Scripts) > 0 {
		b.WriteString("\nScripts, for execute_cloud_skill:\n")
	}
	for _, s := range d.Scripts {
		fmt.Fprintf(&b, "- %s (%s)", s.Path, s.Runtime)
		if len(s.InputSchema) > 0 {
			fmt.Fprintf(&b, " input_args: %s", s.InputSchema)
		}
		b.WriteByte('\n')
	}
	if len(d.Components) > 0 {
		b.WriteString("\nFiles, readable with resource:\n")
	}
	for _, c := range d.Components {
		fmt.Fprintf(&b, "- %s (%s, %d bytes)\n", c.Path, c.Kind, c.Size)
	}
	if d.LeftOut.any() {
		fmt.Fprintf(&b, "\nLeft out of this answer: %d bytes of instructions, %d scripts, %d schemas, %d files. Read SKILL.md and the others with resource.\n",
			d.LeftOut.InstructionBytes, d.LeftOut.Scripts, d.LeftOut.InputSchemas, d.LeftOut.Components)
	}
	return b.String()
}

// resourceText is the content itself, or what it is when it is no text.
func resourceText(r resource) string {
	if r.Content == nil {
		text := fmt.Sprintf("%s is binary (%s, %d bytes); %d bytes are in structured content as content_base64.", r.Path, r.MediaType, r.Size, r.ReturnedBytes)
		if r.Truncated {
			text += fmt.Sprintf(" The rest starts at offset %d.", r.NextOffset)
		}
		return text
	}
	if *r.Content == "" {
		return fmt.Sprintf("%s has nothing from byte %d on; it has %d bytes.", r.Path, r.Offset, r.Size)
	}
	if r.Truncated {
		return *r.Content + fmt.Sprintf("\n\n(truncated: %d of %d bytes; read on with offset %d)", r.ReturnedBytes, r.Size, r.NextOffset)
	}
	return *r.Content
}

// oneLine folds white space, so that a description cannot look like another line of the list.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
