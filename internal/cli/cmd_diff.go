package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/registry"
)

type skillDiffCommand struct {
	skillArg
	From string `arg:"" help:"The earlier revision, by id or number (default: the published one)." optional:""`
	To   string `arg:"" help:"The later revision, by id or number (default: the latest)." optional:""`
}

func (*skillDiffCommand) kind() string { return "diff" }

func (c *skillDiffCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		from, err := revisionNamed(ctx, api, c.ref(), c.From)
		if err != nil {
			return err
		}
		to, err := revisionNamed(ctx, api, c.ref(), c.To)
		if err != nil {
			return err
		}
		envelope, err := api.Diff(ctx, c.ref(), from, to)
		if err != nil {
			return err
		}
		return show(a, envelope, printDiff)
	})
}

func printDiff(p *page, d client.RevisionDiff) {
	from := "nothing"
	if d.From != nil {
		from = revisionText(*d.From)
	}
	p.line("%s  %s → %s", p.bold(clean(d.Slug)), from, revisionText(d.To))
	if d.Identical {
		p.line("%s", p.dim("the same content"))
	}
	for _, file := range d.Files {
		printFileDiff(p, file)
	}
	printFields(p, "frontmatter", d.Frontmatter)
	printFields(p, "settings", d.Settings)
	t := d.Totals
	p.line("%s", p.bold(fmt.Sprintf("%s added, %d removed, %d changed, %d renamed, %d unchanged",
		plural(t.Added, "file", "files"), t.Removed, t.Changed, t.Renamed, t.Unchanged)))
	for _, g := range d.GrantsNotCovering {
		p.line("%s %s does not allow revision %d: it pins %s", p.yellow("grant"), clean(grantSubject(g.Grant)), d.To.Number, p.dim(short(g.Pin)))
	}
}

func revisionText(r sallyport.Revision) string {
	return fmt.Sprintf("revision %d (%s, %s)", r.Number, r.State, short(r.Digest))
}

func printFileDiff(p *page, file registry.FileDiff) {
	name := clean(file.Path)
	if file.OldPath != "" {
		name = clean(file.OldPath) + " → " + name
	}
	line := fmt.Sprintf("%s %s", changeText(p, file.Change), p.bold(name))
	if b, a := file.Before, file.After; b != nil && a != nil {
		if b.Kind != a.Kind {
			line += fmt.Sprintf("  kind %s → %s", b.Kind, a.Kind)
		}
		if b.Mode != a.Mode {
			line += fmt.Sprintf("  mode %04o → %04o", b.Mode, a.Mode)
		}
	}
	if file.TextLeftOut != "" {
		line += "  " + p.dim(clean(file.TextLeftOut)+": "+sideText(file.Before)+" → "+sideText(file.After))
	}
	p.line("%s", line)
	for text := range strings.Lines(file.Text) {
		text = clean(strings.TrimRight(text, "\r\n"))
		switch {
		case strings.HasPrefix(text, "+"):
			text = p.green(text)
		case strings.HasPrefix(text, "-"):
			text = p.red(text)
		case strings.HasPrefix(text, "@@"):
			text = p.dim(text)
		}
		p.line("    %s", text)
	}
}

func sideText(side *registry.FileSide) string {
	if side == nil {
		return "nothing"
	}
	return bytesText(side.Size) + " " + side.SHA256[:min(12, len(side.SHA256))]
}

func changeText(p *page, change registry.Change) string {
	text := pad(string(change), 7)
	switch change {
	case registry.ChangeAdded:
		return p.green(text)
	case registry.ChangeRemoved:
		return p.red(text)
	case registry.ChangeChanged, registry.ChangeRenamed:
		return p.yellow(text)
	}
	return clean(text)
}

func printFields(p *page, title string, fields []registry.FieldDiff) {
	if len(fields) == 0 {
		return
	}
	p.line("%s", p.bold(title))
	for _, f := range fields {
		p.line("  %s %s  %s → %s", changeText(p, f.Change), clean(f.Name), cut(clean(valueText(f.Before)), 80), cut(clean(valueText(f.After)), 80))
	}
}

func valueText(value []byte) string {
	if len(value) == 0 {
		return "nothing"
	}
	return string(value)
}
