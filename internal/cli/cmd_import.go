package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/registry"
)

type importCommand struct {
	Paths    []string `arg:"" help:"Folders of skills, single skills, tar, tar.gz and zip archives of them, or git repositories of this machine (PATH#ref=NAME&subdir=PATH, or a bare one); or one https URL of such an archive, of a SKILL.md or of a git repository (https://HOST/NAME.git#ref=NAME&subdir=PATH), where the server may fetch it." name:"path"`
	Publish  bool     `help:"Publish what was imported; without it the revisions stay drafts."`
	Team     string   `help:"Import for this team (default: the team default)." placeholder:"TEAM" xor:"where"`
	Personal bool     `help:"Import for yourself alone." xor:"where"`
	DryRun   bool     `help:"Report what would happen and change nothing."`
	Message  string   `help:"A message for the revisions." placeholder:"TEXT"`
	All      bool     `help:"List every file of every skill."`
	Verbose  bool     `help:"List every ignored file instead of counting them by reason."`
	Progress bool     `help:"Report progress on standard error when it is no terminal, too; with --json as one JSON document a line."`
}

// Help says what the exit code means.
func (*importCommand) Help() string {
	return "Imports every skill it finds and reports on each and on every file; nothing in a skill is run. The exit code is 0 when at least one " +
		"skill is there afterwards, 14 when somebody else changed one meanwhile and nothing else was refused (import again), else that of the fault."
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
	progress := a.importProgress(c.Progress)
	opts.Progress = progress.step()
	return a.withClient(ctx, func(api *client.Client) error {
		if urls {
			progress.say("waiting for the server to fetch it")
			envelope, err := api.ImportURL(ctx, c.Paths[0], opts)
			progress.done()
			if err != nil {
				return err
			}
			return finishImport(a, envelope, envelope.Data.ImportReport, func(p *page, data client.URLImport) {
				c.printCommit(p, data.Commit)
				p.line("%s %s  %s  %s", p.dim("fetched"), clean(data.Source.URL), bytesText(data.Source.SizeBytes), p.dim(string(data.Source.Digest)))
				c.print(p, data.ImportReport)
			})
		}
		progress.say("reading what is to be imported")
		tree, err := registry.OpenPaths(ctx, c.Paths)
		if err != nil {
			progress.done()
			return err
		}
		reader, writer := io.Pipe()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			writer.CloseWithError(tree.WriteTar(ctx, writer))
		}()
		envelope, err := api.Import(ctx, reader, opts)
		progress.done()
		_ = reader.Close()
		<-sent // the writer reads from the tree
		err = errors.Join(err, tree.Close())
		if err != nil {
			return err
		}
		return finishImport(a, envelope, *envelope.Data, func(p *page, report registry.ImportReport) {
			c.printCommit(p, report.Commit)
			c.print(p, report)
		})
	})
}

// isURL tells URLs that a server fetches from paths: a path with a scheme is written ./https:/x, and file: names a path.
func isURL(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && !strings.ContainsAny(scheme, "/.") && scheme != "file" && scheme != "git+file"
}

func (*importCommand) printCommit(p *page, commit string) {
	if commit != "" {
		p.line("%s %s", p.dim("git commit"), clean(commit))
	}
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
	case onlyConflicts(report):
		return sallyport.Errorf("cli.import", sallyport.CodeRevisionConflict,
			"%s changed meanwhile by somebody else and not imported; import again to add a revision after theirs", plural(t.Refused, "skill was", "skills were"))
	case t.Imported+t.Unchanged == 0:
		return sallyport.Errorf("cli.import", sallyport.CodeSkillInvalid, "no skill was imported; the report says why")
	default:
		return nil
	}
}

// onlyConflicts reports whether skills were refused, and all of them because somebody else was first.
func onlyConflicts(report registry.ImportReport) bool {
	for _, skill := range report.Skills {
		if skill.Result != registry.ResultRefused {
			continue
		}
		if !slices.ContainsFunc(skill.Problems, func(p registry.Problem) bool { return p.Code == registry.ProblemConflict }) {
			return false
		}
	}
	return report.Totals.Refused > 0
}

func (c *importCommand) print(p *page, report registry.ImportReport) {
	for _, skill := range report.Skills {
		c.printSkill(p, skill)
	}
	if n := len(report.Ignored); n > 0 {
		p.line("%s", p.dim(plural(n, "file belongs", "files belong")+" to no skill"))
		c.printFiles(p, report.Ignored)
	}
	t := report.Totals
	summary := fmt.Sprintf("%s: %d imported, %d unchanged, %d refused; %s kept, %d ignored, %d refused",
		plural(t.Skills, "skill", "skills"), t.Imported, t.Unchanged, t.Refused,
		plural(t.FilesKept, "file", "files"), t.FilesIgnored, t.FilesRefused)
	if t.Ignored > 0 {
		summary += fmt.Sprintf("; %s the same as another", plural(t.Ignored, "skill is", "skills are"))
	}
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

// printFiles lists what did not simply come along, and counts what was ignored by reason; with --verbose it lists that too, with --all
// everything.
func (c *importCommand) printFiles(p *page, files []registry.ImportedFile) {
	printFiles(p, files, c.All, c.Verbose || c.All)
}

func printFiles(p *page, files []registry.ImportedFile, all, verbose bool) {
	var reasons []string
	ignored := map[string]int{}
	for _, file := range files {
		switch {
		case file.Result == registry.ResultKept && !all:
		case file.Result == registry.ResultIgnored && !verbose:
			if ignored[file.Reason]++; ignored[file.Reason] == 1 {
				reasons = append(reasons, file.Reason)
			}
		default:
			p.line("    %s %s %s", p.dim(clean(file.Result)), clean(file.Path), p.dim(clean(file.Reason)))
		}
	}
	for _, reason := range reasons {
		p.line("    %s %s %s", p.dim(registry.ResultIgnored), plural(ignored[reason], "file", "files"), p.dim(clean(reason)))
	}
}
