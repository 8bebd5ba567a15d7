package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

type validateCommand struct {
	Paths  []string `arg:"" help:"Folders of skills, single skills, SKILL.md files, or tar, tar.gz and zip archives." name:"path"`
	Strict bool     `help:"Demand that every skill is clean by the letter of the specification, not only usable."`
	SARIF  bool     `help:"Print a SARIF 2.1.0 log and nothing else on standard output." name:"sarif"`
	Quiet  bool     `help:"Leave out notes, and warnings too unless --strict." short:"q"`
	// The fields are apart from those of a report.
	Findings string   `help:"What to do about findings of the static rules: report them, demand that every skill is clean of all but notes, or leave them off." enum:"report,clean,off" default:"report" placeholder:"report|clean|off"`
	Exclude  []string `help:"Set aside and count what is found in these paths of a skill: a path, a pattern, or a folder with a slash at its end." placeholder:"PATTERN"`
	Runtime  string   `help:"Say which packages that scripts need are not in this runtime of the settings (default: in the one that would serve each, where the settings have runtimes)." placeholder:"NAME"`
	All      bool     `help:"List notes of the static rules too, and every ignored file."`
}

// Help says when the command fails.
func (*validateCommand) Help() string {
	return "Reads skills exactly as import does and prints everything that is wrong with them: file, line, severity, what " +
		"is wrong and what to do, code; and what the static rules of docs/findings.md find, which changes the exit code with " +
		"--findings=clean only. It needs no data folder and no server, changes nothing and runs nothing. The exit " +
		"code is 0 when every skill can be used (with --strict: is clean by the specification), else 10."
}

func (*validateCommand) kind() string { return "validation" }

func (c *validateCommand) run(ctx context.Context, a *app) (err error) {
	if c.SARIF && a.args.JSON {
		return badUsage("--sarif and --json each want standard output for themselves; give one")
	}
	tree, err := registry.OpenPaths(ctx, c.Paths)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	opts := registry.ValidateOptions{Findings: c.Findings != "off", Exclude: c.Exclude}
	if opts.Runtimes, err = runtimesFor(ctx, a, c.Runtime); err != nil {
		return err
	}
	report, err := registry.Validate(ctx, tree, opts)
	if err != nil {
		return err
	}
	verdict := c.verdict(report)
	if c.SARIF {
		if err := a.writeJSON(sarifOf(tree, report, c.All)); err != nil {
			return err
		}
	} else {
		envelope := sallyport.Success(c.kind(), "", report)
		envelope.Error = sallyport.Public(verdict)
		if err := showOwn(a, envelope, func(p *page, r registry.ValidationReport) { c.print(p, tree, r) }); err != nil {
			return err
		}
	}
	if verdict == nil {
		return nil
	}
	if !a.args.JSON {
		a.notes.line("%s %s", a.notes.red("sallyport:"), clean(sallyport.Public(verdict).Message))
	}
	return reportedError{exitCode(verdict)}
}

// verdict is the outcome: nil when the skills are as good as they must be.
func (c *validateCommand) verdict(report registry.ValidationReport) error {
	t := report.Totals
	switch {
	case t.Skills == 0:
		return sallyport.Errorf("cli.validate", sallyport.CodeSkillInvalid, "no skill was found: no folder there holds a SKILL.md")
	case t.Usable < t.Skills:
		return sallyport.Errorf("cli.validate", sallyport.CodeSkillInvalid, "%d of %s cannot be used", t.Skills-t.Usable, plural(t.Skills, "skill", "skills"))
	case c.Strict && t.SpecClean < t.Skills:
		return sallyport.Errorf("cli.validate", sallyport.CodeSkillInvalid, "%d of %s can be used but are not clean by the specification",
			t.Skills-t.SpecClean, plural(t.Skills, "skill", "skills"))
	case c.Findings == "clean" && t.Clean < t.Skills:
		return sallyport.Errorf("cli.validate", sallyport.CodeSkillInvalid, "%d of %s can be used but the static rules find something in them, or cannot read them",
			t.Skills-t.Clean, plural(t.Skills, "skill", "skills"))
	}
	return nil
}

// print writes one line per problem, in the form that editors and CI systems recognise.
func (c *validateCommand) print(p *page, tree *registry.PathsTree, report registry.ValidationReport) {
	for _, skill := range report.Skills {
		for _, found := range skill.Problems {
			if c.Quiet && (found.Severity == registry.SeverityNote || found.Severity == registry.SeverityWarning && !c.Strict) {
				continue
			}
			place := located(tree, skill.FilePath(found.File))
			if found.Line > 0 {
				place = fmt.Sprintf("%s:%d", place, found.Line)
			}
			p.line("%s: %s: %s %s", p.bold(clean(place)), severityText(p, found.Severity), clean(found.Message), p.dim("["+found.Code+"]"))
		}
		printNeeds(p, tree, skill)
		c.printFindings(p, tree, skill)
		if skill.Usable && !c.Quiet {
			files := make([]registry.ImportedFile, len(skill.Files))
			for i, file := range skill.Files {
				file.Path = located(tree, skill.FilePath(file.Path))
				files[i] = file
			}
			printFiles(p, files, false, c.All)
		}
	}
	t := report.Totals
	p.line("%s", p.bold(fmt.Sprintf("%s: %d usable, %d spec-clean; %s, %s, %s", plural(t.Skills, "skill", "skills"), t.Usable, t.SpecClean,
		plural(t.Errors, "error", "errors"), plural(t.Warnings, "warning", "warnings"), plural(t.Notes, "note", "notes"))))
	if c.Findings != "off" {
		p.line("%s", fmt.Sprintf("static rules: %d clean; %s, %s, %s", t.Clean, plural(t.FindingErrors, "error", "errors"),
			plural(t.FindingWarnings, "warning", "warnings"), plural(t.FindingNotes, "note", "notes")))
	}
}

// printFindings writes what the static rules found in one skill, in the same form as problems.
func (c *validateCommand) printFindings(p *page, tree *registry.PathsTree, skill registry.ValidatedSkill) {
	if skill.Findings == nil {
		return
	}
	line := func(file string, at int, severity, message, code string) {
		place := located(tree, skill.FilePath(file))
		if at > 0 {
			place = fmt.Sprintf("%s:%d", place, at)
		}
		p.line("%s: %s: %s %s", p.bold(clean(place)), severityText(p, severity), clean(message), p.dim("["+code+"]"))
	}
	for _, found := range skill.Findings.Findings {
		if found.Severity == registry.SeverityNote && !c.All || c.Quiet && found.Severity != registry.SeverityError && c.Findings != "clean" {
			continue
		}
		line(found.File, found.Line, found.Severity, found.Message, found.Rule)
	}
	for _, file := range skill.Findings.Unscanned {
		line(file.File, 0, registry.SeverityError, "the static rules cannot read it: "+file.Reason, ruleUnscanned)
	}
}

// ruleUnscanned is a file that the static rules cannot read; it is no pass.
const ruleUnscanned = "NOT_SCANNABLE"

// located names a file of the tree the way people find it.
func located(tree *registry.PathsTree, name string) string {
	file, inside := tree.Locate(name)
	if inside == "" {
		return file
	}
	return file + "!" + inside
}
