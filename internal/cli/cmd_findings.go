package cli

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/registry"
)

type skillFindingsCommand struct {
	skillArg
	Revision string   `help:"The revision, by id or number (default: the published one, else the latest)." placeholder:"ID"`
	Exclude  []string `help:"Set aside and count what is found in these paths: a path, a pattern, or a folder with a slash at its end." placeholder:"PATTERN"`
	All      bool     `help:"List notes too."`
}

// Help says what the findings are worth.
func (*skillFindingsCommand) Help() string {
	return "Applies the static rules of docs/findings.md to exactly the bytes of one revision and runs nothing. Findings help a " +
		"reviewer; they are no proof of anything. What the rules cannot read is never a pass."
}

func (*skillFindingsCommand) kind() string { return "findings" }

func (c *skillFindingsCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		id, err := revisionNamed(ctx, api, c.ref(), c.Revision)
		if err != nil {
			return err
		}
		envelope, err := api.Findings(ctx, c.ref(), registry.FindingsRequest{RevisionID: id, Exclude: c.Exclude})
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, f registry.Findings) { printFindings(p, f, c.All, len(f.Findings)) })
	})
}

// printFindings lists at most this many findings, notes only with all, and sums up.
func printFindings(p *page, f registry.Findings, all bool, most int) {
	shown, hidden := 0, 0
	for _, found := range f.Findings {
		if found.Severity == registry.SeverityNote && !all {
			continue
		}
		if shown == most {
			hidden++
			continue
		}
		shown++
		where := found.File
		if found.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, found.Line)
		}
		p.line("  %s: %s: %s %s", p.bold(clean(where)), severityText(p, found.Severity), clean(found.Message), p.dim("["+clean(found.Rule)+"]"))
	}
	if hidden > 0 {
		p.line("  %s", p.dim(fmt.Sprintf("and %d more: sallyport skill findings %s", hidden, clean(f.Slug))))
	}
	for _, file := range f.Unscanned {
		p.line("  %s: %s: %s", p.bold(clean(file.File)), p.red("not scannable"), clean(file.Reason))
	}
	p.line("%s", findingsSummary(p, f))
}

func findingsSummary(p *page, f registry.Findings) string {
	t := f.Totals
	mark := p.yellow("not clean")
	switch {
	case f.Verdict != registry.ScanDone:
		mark = p.red("not scannable")
	case f.Clean:
		mark = p.green("clean")
	}
	text := fmt.Sprintf("%s: %s, %s, %s in %s", mark, plural(t.Errors, "error", "errors"), plural(t.Warnings, "warning", "warnings"),
		plural(t.Notes, "note", "notes"), plural(t.Files, "file", "files"))
	if t.Excluded > 0 {
		text += fmt.Sprintf("; %d set aside", t.Excluded)
	}
	if t.LeftOut > 0 {
		text += fmt.Sprintf("; %d more not listed", t.LeftOut)
	}
	return text + p.dim("  "+short(f.Digest)+", rules "+clean(f.RuleSet))
}
