package registry

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// maxSkillDepth bounds how many folders deep a SKILL.md is looked for.
const maxSkillDepth = 16

// Import finds every skill below tree and saves each one atomically; one bad skill never stops its neighbours.
// Nothing in it is executed. Needs memory:write.
//
// Every directory with a SKILL.md that lies inside no other skill is a skill. A slug that exists where the import goes gets a
// new revision; equal content makes none. The error is for what concerns the whole import: the caller's rights, a path that
// leaves the tree (UNSAFE_PATH, nothing is saved), a tree or a store that stops working; the report then holds what was done.
func (s *Service) Import(ctx context.Context, p sallyport.Principal, tree Tree, opts ImportOptions) (ImportReport, error) {
	report := ImportReport{Skills: []ImportedSkill{}, Ignored: []ImportedFile{}}
	to, err := s.importPlace(p, opts)
	if err != nil {
		return report, err
	}
	listed, err := tree.Entries(ctx)
	if err != nil {
		return report, err
	}
	skills, err := s.find(ctx, tree, listed, &report)
	if err != nil {
		return report, err
	}
	if err := checkSingle(opts, skills); err != nil {
		return report, err
	}
	report.Commit = CommitOf(tree)
	opts.Message = withCommit(opts.Message, report.Commit)
	run := importRun{service: s, principal: p, tree: tree, options: opts, place: to, index: newTreeIndex(listed), slugs: map[string]claim{}}
	if err := run.nameSlugs(ctx, skills); err != nil {
		return report, err
	}
	for i, found := range skills {
		skill, err := run.skill(ctx, found)
		if err != nil {
			return report, err
		}
		report.add(skill)
		if opts.Progress != nil {
			opts.Progress(ImportProgress{Done: i + 1, Total: len(skills), Path: skill.Path, Slug: skill.Slug, Result: skill.Result})
		}
	}
	if len(skills) == 0 {
		// Not counted as a file: it is the answer to an import that found nothing.
		report.Ignored = append(report.Ignored, ImportedFile{
			Path: ".", Result: ResultIgnored,
			Reason: fmt.Sprintf("no skill was found: no directory holds a %s", SkillFile),
		})
	}
	return report, nil
}

func (s *Service) importPlace(p sallyport.Principal, opts ImportOptions) (place, error) {
	const op = "registry.import"
	if err := p.Require(op, sallyport.ScopeMemoryWrite); err != nil {
		return place{}, err
	}
	if err := checkMessage(op, opts.Message); err != nil {
		return place{}, err
	}
	return newPlace(op, p, opts.TeamID, opts.Personal)
}

// foundSkill is a directory with a SKILL.md and every entry at or below it.
type foundSkill struct {
	directory string
	entries   []TreeEntry
	nested    []string // SKILL.md files of directories below
}

// find finds the skills of a tree and accounts for everything outside of them. A SKILL.md without any frontmatter, such as an index of the
// skills below it, does not swallow those: it is reported as no skill, and they are looked for.
func (s *Service) find(ctx context.Context, tree Tree, listed []TreeEntry, report *ImportReport) ([]foundSkill, error) {
	plain := map[string]bool{}
	for {
		before := *report
		skills, err := discover(listed, report, plain)
		if err != nil {
			return nil, err
		}
		more := false
		for _, skill := range skills {
			if len(skill.nested) == 0 {
				continue
			}
			found, err := s.noSkill(ctx, tree, skill)
			if err != nil {
				return nil, err
			}
			if found {
				plain[skill.directory], more = true, true
			}
		}
		if !more {
			return skills, nil
		}
		*report = before
		report.Ignored = report.Ignored[:len(before.Ignored):len(before.Ignored)]
	}
}

// noSkill reports whether the SKILL.md of a directory is a text without frontmatter.
func (s *Service) noSkill(ctx context.Context, tree Tree, skill foundSkill) (bool, error) {
	run := importRun{service: s, tree: tree, index: newTreeIndex(skill.entries)}
	collect := collector{run: &run, found: skill, out: &ImportedSkill{}, files: map[string]pickedFile{}}
	collect.all()
	file, exists := collect.files[SkillFile]
	if !exists {
		return false, nil
	}
	content, err := tree.ReadFile(ctx, file.source, s.cfg.MaxSkillBytes)
	if err != nil {
		return false, stops(ctx, err)
	}
	return slices.ContainsFunc(ParseSkillMD(content, "").Problems, func(p Problem) bool { return p.Code == ProblemFrontmatterMissing }), nil
}

// discover is find with the directories given whose SKILL.md makes no skill.
func discover(listed []TreeEntry, report *ImportReport, plain map[string]bool) ([]foundSkill, error) {
	roots := map[string]bool{}
	for _, entry := range listed {
		name := entryName(entry.Path)
		if escapes(entry) {
			return nil, unsafeEntry("registry.import", entry.Path)
		}
		if isSkillFile(entry) && strings.Count(name, "/") <= maxSkillDepth && !hasDots(path.Dir(name)) && !plain[path.Dir(name)] {
			roots[path.Dir(name)] = true
		}
	}
	skills := map[string]*foundSkill{}
	ignored := map[string]bool{}
	for _, entry := range listed {
		name := entryName(entry.Path)
		owner, found := outermost(roots, name, entry.Type == EntryDir)
		if !found {
			if hasDots(name) && entry.Fault == "" {
				return nil, unsafeEntry("registry.import", entry.Path)
			}
			if isSkillFile(entry) && plain[path.Dir(name)] {
				report.ignore(name, "not a skill: no frontmatter; the skills in the folders below it were looked at")
				continue
			}
			report.ignoreEntry(entry, name, ignored)
			continue
		}
		skill := skills[owner]
		if skill == nil {
			skill = &foundSkill{directory: owner}
			skills[owner] = skill
		}
		entry.Path = name
		skill.entries = append(skill.entries, entry)
		if isSkillFile(entry) && path.Dir(name) != owner {
			skill.nested = append(skill.nested, relativeTo(owner, name))
		}
	}
	out := make([]foundSkill, 0, len(skills))
	for _, skill := range skills {
		out = append(out, *skill)
	}
	slices.SortFunc(out, func(a, b foundSkill) int { return strings.Compare(a.directory, b.directory) })
	return out, nil
}

// isSkillFile reports whether an entry makes its directory a skill. The case of the name is looked at later.
func isSkillFile(entry TreeEntry) bool {
	name := entryName(entry.Path)
	_, ignored := ignoredAt(name, false)
	return entry.Type != EntryDir && !ignored && strings.EqualFold(path.Base(name), SkillFile)
}

// outermost returns the topmost skill that name lies in. A directory may be the skill itself.
func outermost(roots map[string]bool, name string, isDirectory bool) (string, bool) {
	if roots["."] {
		return ".", true
	}
	for i := range len(name) {
		if name[i] == '/' && roots[name[:i]] {
			return name[:i], true
		}
	}
	return name, isDirectory && roots[name]
}

func hasDots(name string) bool {
	return name != "." && slices.ContainsFunc(strings.Split(name, "/"), func(segment string) bool { return segment == ".." || segment == "." })
}

func relativeTo(directory, name string) string {
	if directory == "." {
		return name
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, directory), "/")
}

// reasonSubmodule is what becomes of a submodule.
const reasonSubmodule = "a git submodule is not followed; import its repository by its own URL"

// ignoreEntry accounts for an entry outside every skill.
func (r *ImportReport) ignoreEntry(entry TreeEntry, name string, seen map[string]bool) {
	if whole, ignored := ignoredAt(name, entry.Type == EntryDir); ignored {
		if !seen[whole] {
			seen[whole] = true
			r.ignore(whole, "its name is on the list of names that are left out")
		}
		return
	}
	switch {
	case entry.Fault != "":
		r.ignore(name, entry.Fault)
	case entry.Type == EntryDir:
	case entry.Type == EntrySymlink:
		r.ignore(name, "a symbolic link outside every skill is not followed; import its target by its own path")
	case entry.Type == EntryOther:
		r.ignore(name, "it is a device, a pipe or a socket")
	case entry.Type == EntrySubmodule:
		r.ignore(name, reasonSubmodule)
	case isSkillFile(entry):
		r.ignore(name, fmt.Sprintf("it lies more than %d folders deep; import a folder nearer to it", maxSkillDepth))
	default:
		r.ignore(name, "it belongs to no skill")
	}
}
