package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/registry"
)

type importCommand struct {
	Paths    []string `arg:"" help:"Folders of skills, single skills, or tar, tar.gz and zip archives of them; or one https URL of such an archive or of a SKILL.md, where the server may fetch it." name:"path"`
	Publish  bool     `help:"Publish what was imported; without it the revisions stay drafts."`
	Team     string   `help:"Import for this team (default: the team default)." placeholder:"TEAM" xor:"where"`
	Personal bool     `help:"Import for yourself alone." xor:"where"`
	DryRun   bool     `help:"Report what would happen and change nothing."`
	Message  string   `help:"A message for the revisions." placeholder:"TEXT"`
	All      bool     `help:"List every file of every skill."`
}

func (*importCommand) kind() string { return "import" }

func (c *importCommand) run(ctx context.Context, a *app) error {
	urls := slices.ContainsFunc(c.Paths, isURL)
	if urls && len(c.Paths) > 1 {
		return badUsage("a URL is imported by itself; give one")
	}
	opts := registry.ImportOptions{
		TeamID: sallyport.TeamID(c.Team), Personal: c.Personal, Publish: c.Publish, DryRun: c.DryRun, Message: c.Message,
	}
	return a.withClient(ctx, func(api *client.Client) error {
		if urls {
			envelope, err := api.ImportURL(ctx, c.Paths[0], opts)
			if err != nil {
				return err
			}
			return finishImport(a, envelope, envelope.Data.ImportReport, func(p *page, data client.URLImport) {
				p.line("%s %s  %s  %s", p.dim("fetched"), clean(data.Source.URL), bytesText(data.Source.SizeBytes), p.dim(string(data.Source.Digest)))
				c.print(p, data.ImportReport)
			})
		}
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(registry.WriteTar(ctx, writer, c.Paths)) }()
		envelope, err := api.Import(ctx, reader, opts)
		_ = reader.Close()
		if err != nil {
			return err
		}
		return finishImport(a, envelope, *envelope.Data, c.print)
	})
}

// isURL tells URLs from paths: a path with a scheme is written ./https:/x.
func isURL(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && !strings.ContainsAny(scheme, "/.")
}

// finishImport prints a report and fails when it left nothing to use.
func finishImport[T any](a *app, envelope sallyport.Envelope[T], report registry.ImportReport, human func(*page, T)) error {
	none := noneImported(report)
	if envelope.Error == nil {
		envelope.Error = sallyport.Public(none)
	}
	if err := show(a, envelope, human); err != nil {
		return err
	}
	if none == nil {
		return nil
	}
	if !a.args.JSON {
		return none
	}
	return reportedError{exitCode(none)}
}

// noneImported is the outcome of an import that left nothing to use; the report beside it says why.
func noneImported(report registry.ImportReport) error {
	switch t := report.Totals; {
	case t.Skills == 0:
		return sallyport.Errorf("cli.import", sallyport.CodeSkillInvalid, "no skill was found: no folder there holds a SKILL.md")
	case t.Imported+t.Unchanged == 0:
		return sallyport.Errorf("cli.import", sallyport.CodeSkillInvalid, "no skill was imported; the report says why")
	default:
		return nil
	}
}

func (c *importCommand) print(p *page, report registry.ImportReport) {
	for _, skill := range report.Skills {
		c.printSkill(p, skill)
	}
	if n := len(report.Ignored); n > 0 {
		p.line("%s", p.dim(plural(n, "file belongs", "files belong")+" to no skill and was left out"))
		c.printFiles(p, report.Ignored)
	}
	t := report.Totals
	summary := fmt.Sprintf("%s: %d imported, %d unchanged, %d refused; %s kept, %d ignored, %d refused",
		plural(t.Skills, "skill", "skills"), t.Imported, t.Unchanged, t.Refused,
		plural(t.FilesKept, "file", "files"), t.FilesIgnored, t.FilesRefused)
	if c.DryRun {
		summary += " (nothing was changed)"
	}
	p.line("%s", p.bold(summary))
}

func (c *importCommand) printSkill(p *page, skill registry.ImportedSkill) {
	mark, state := p.green("✓"), skill.Result
	switch {
	case !skill.Usable || skill.Result == "refused":
		mark = p.red("✗")
	case skill.Result == "unchanged":
		mark = p.dim("=")
	}
	if skill.Published {
		state += ", published"
	} else if skill.RevisionID != "" {
		state += ", draft"
	}
	if skill.Usable && !skill.SpecClean {
		state += ", not spec-clean"
	}
	name := skill.Slug
	if name == "" {
		name = skill.Path
	}
	p.line("%s %s  %s  %s", mark, p.bold(clean(name)), clean(state), p.dim(short(skill.Digest)))
	for _, problem := range skill.Problems {
		place := problem.File
		if problem.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, problem.Line)
		}
		p.line("    %s %s %s", severityText(p, problem.Severity), p.dim(clean(place)), clean(problem.Message))
	}
	c.printFiles(p, skill.Files)
}

func severityText(p *page, severity string) string {
	switch severity {
	case "error":
		return p.red(severity)
	case "warning":
		return p.yellow(severity)
	default:
		return p.dim(clean(severity))
	}
}

// printFiles lists what did not simply come along; with --all, everything.
func (c *importCommand) printFiles(p *page, files []registry.ImportedFile) {
	for _, file := range files {
		if file.Result != "kept" || c.All {
			p.line("    %s %s %s", p.dim(clean(file.Result)), clean(file.Path), p.dim(clean(file.Reason)))
		}
	}
}
