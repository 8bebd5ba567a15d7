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
}

// Help says when the command fails.
func (*validateCommand) Help() string {
	return "Reads skills exactly as import does and prints everything that is wrong with them: file, line, severity, what " +
		"is wrong and what to do, code. It needs no data folder and no server, changes nothing and runs nothing. The exit " +
		"code is 0 when every skill can be used (with --strict: is clean), else 10."
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
	report, err := registry.Validate(ctx, tree)
	if err != nil {
		return err
	}
	verdict := c.verdict(report)
	if c.SARIF {
		if err := a.writeJSON(sarifOf(tree, report)); err != nil {
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
		for _, file := range skill.Files {
			if skill.Usable && file.Result != registry.ResultKept && !c.Quiet {
				p.line("%s: %s: %s", clean(located(tree, skill.FilePath(file.Path))), p.dim(clean(file.Result)), clean(file.Reason))
			}
		}
	}
	t := report.Totals
	p.line("%s", p.bold(fmt.Sprintf("%s: %d usable, %d spec-clean; %s, %s, %s", plural(t.Skills, "skill", "skills"), t.Usable, t.SpecClean,
		plural(t.Errors, "error", "errors"), plural(t.Warnings, "warning", "warnings"), plural(t.Notes, "note", "notes"))))
}

// located names a file of the tree the way people find it.
func located(tree *registry.PathsTree, name string) string {
	file, inside := tree.Locate(name)
	if inside == "" {
		return file
	}
	return file + "!" + inside
}
