package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// pickedFile is where a file of a skill is read from.
type pickedFile struct {
	source string // path in the tree
	size   int64
	mode   uint32
	row    int // in the report
}

// collector decides about every entry of one skill.
type collector struct {
	run   *importRun
	found foundSkill
	out   *ImportedSkill
	files map[string]pickedFile
	seen  map[string]bool // directories that were left out
	links int             // links followed so far
}

func (c *collector) result(name, result, reason string) {
	for i, file := range c.out.Files {
		if file.Path == name && file.Result != ResultIgnored {
			c.out.Files[i].Result, c.out.Files[i].Reason = result, reason
			return
		}
	}
}

func (c *collector) report(name, result, reason string) int {
	c.out.Files = append(c.out.Files, ImportedFile{Path: printable(name), Result: result, Reason: reason})
	return len(c.out.Files) - 1
}

func (c *collector) problem(code, name, format string, args ...any) {
	c.out.Problems = append(c.out.Problems, problem(code, printable(name), 0, format, args...))
}

func (c *collector) all() {
	c.seen = map[string]bool{}
	for _, entry := range c.found.entries {
		c.entry(entry, relativeTo(c.found.directory, entry.Path))
	}
	c.skillFile()
	for _, nested := range c.found.nested {
		c.problem(ProblemNestedSkill, nested, "it lies inside this skill and is one of its files; import it by its own path to make it a skill")
	}
}

// entry decides about one entry; name is relative to the skill.
func (c *collector) entry(entry TreeEntry, name string) {
	if name != "" {
		if whole, ignored := ignoredAt(name, entry.Type == EntryDir); ignored {
			if !c.seen[whole] {
				c.seen[whole] = true
				c.report(whole, ResultIgnored, "its name is on the list of names that are left out")
			}
			return
		}
	}
	switch {
	case entry.Fault != "":
		shown := name
		if shown == "" || shown == "." {
			shown = "./"
		}
		c.report(shown, ResultRefused, entry.Fault)
		c.problem(ProblemFileUnreadable, shown, "%s; the skill would be incomplete", entry.Fault)
	case entry.Type == EntryDir:
	case entry.Type == EntryOther:
		c.report(name, ResultRefused, "it is a device, a pipe or a socket and was not opened")
		c.problem(ProblemFileSpecial, name, "it is a device, a pipe or a socket and was left out; remove it")
	case entry.Type == EntrySubmodule:
		c.report(name, ResultRefused, reasonSubmodule)
		c.problem(ProblemSubmodule, name, "it is a git submodule and was left out; put copies of its files in its place")
	case entry.Type == EntrySymlink:
		c.link(entry.Path, name, 0)
	default:
		c.pick(name, entry.Path, entry, ResultKept, "")
	}
}

// pick takes a file into the skill.
func (c *collector) pick(name, source string, entry TreeEntry, result, reason string) {
	if err := sallyport.CheckPath(name); err != nil {
		c.report(name, ResultRefused, sallyport.Public(err).Message)
		c.problem(ProblemUnsafePath, name, "%s; rename the file", sallyport.Public(err).Message)
		return
	}
	if _, twice := c.files[name]; twice {
		c.report(name, ResultRefused, "the path is there twice")
		c.problem(ProblemUnsafePath, name, "the path is there twice; make the archive again")
		return
	}
	c.files[name] = pickedFile{source: source, size: entry.Size, mode: entry.Mode, row: c.report(name, result, reason)}
}

const (
	// maxLinkedDirectories bounds links to directories that hold links to directories.
	maxLinkedDirectories = 8
	// maxLinksOfSkill bounds the links of one skill, those met again through linked directories included.
	maxLinksOfSkill = 512
)

// link takes what a symbolic link points to. at is where the link is in the tree, name what it is called in the skill.
func (c *collector) link(at, name string, depth int) {
	if c.links++; c.links > maxLinksOfSkill {
		if c.links == maxLinksOfSkill+1 {
			c.problem(ProblemSkillTooLarge, name, "the skill has more than %d symbolic links; put copies of the files in their place", maxLinksOfSkill)
		}
		return
	}
	target, isDirectory, fault := c.run.index.resolve(at)
	switch {
	case fault == "" && !within(target, c.found.directory):
		fault = "it leaves the skill"
	case fault == "" && isDirectory && within(at, target):
		fault = "it points to a directory above itself"
	case fault == "" && isDirectory && depth >= maxLinkedDirectories:
		fault = "it leads through too many linked directories"
	}
	if fault != "" {
		reason := "a symbolic link was not followed: " + fault
		c.report(name, ResultRefused, reason)
		c.problem(ProblemLinkUnresolved, name, "%s; put a copy of the file in its place", reason)
		return
	}
	if !isDirectory {
		c.pick(name, target, c.run.index.entries[target], ResultRepaired,
			fmt.Sprintf("a symbolic link to %q, stored as a copy of that file", printable(relativeTo(c.found.directory, target))))
		return
	}
	for _, entry := range c.found.entries {
		if entry.Path == target || !within(entry.Path, target) {
			continue
		}
		if len(c.files) > c.run.service.cfg.MaxSkillFiles {
			return // the bound on files refuses the skill
		}
		below := path.Join(name, relativeTo(target, entry.Path))
		switch _, ignored := ignoredAt(below, entry.Type == EntryDir); {
		case ignored, entry.Type == EntryDir && entry.Fault == "":
		case entry.Type == EntrySymlink && entry.Fault == "":
			c.link(entry.Path, below, depth+1)
		case entry.Type == EntryFile && entry.Fault == "":
			c.pick(below, entry.Path, entry, ResultRepaired, "reached through a symbolic link, stored as a copy")
		default:
			c.report(below, ResultRefused, "reached through a symbolic link; it cannot be read")
		}
	}
}

// skillFile settles which file is SKILL.md when its name is written in another case or several times.
func (c *collector) skillFile() {
	var variants []string
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		if name != SkillFile && strings.EqualFold(name, SkillFile) {
			variants = append(variants, name)
		}
	}
	if len(variants) == 0 {
		return
	}
	if _, exact := c.files[SkillFile]; !exact {
		chosen := variants[len(variants)-1] // lower case sorts last
		file := c.files[chosen]
		c.files[SkillFile] = file
		c.out.Files[file.row].Result = ResultRepaired
		c.out.Files[file.row].Reason = "stored as " + SkillFile
		c.out.Files[file.row].Path = SkillFile
		found := problem(ProblemSkillMDCase, chosen, 0, "the file is named %q and was read as %s; rename it", chosen, SkillFile)
		if chosen != strings.ToLower(SkillFile) {
			found.Severity = SeverityWarning // only the lower-case name is known to other readers
		}
		c.out.Problems = append(c.out.Problems, found)
		delete(c.files, chosen)
		variants = variants[:len(variants)-1]
	}
	for _, name := range variants {
		c.out.Files[c.files[name].row].Result = ResultIgnored
		c.out.Files[c.files[name].row].Reason = "another spelling of " + SkillFile + " was read instead"
		c.problem(ProblemSkillMDCase, name, "the file differs from %s only by case and was left out; remove it", SkillFile)
		delete(c.files, name)
	}
}

// read reads the files; false when they are over the bounds, and then nothing is read but SKILL.md.
func (c *collector) read(ctx context.Context) (map[string]stagedFile, bool, error) {
	var total int64
	for _, file := range c.files {
		total += file.size
	}
	names, fits := slices.Sorted(maps.Keys(c.files)), !c.tooLarge(total)
	if !fits {
		names = slices.DeleteFunc(names, func(name string) bool { return name != SkillFile })
	}
	out := make(map[string]stagedFile, len(names))
	left := c.run.service.cfg.MaxSkillBytes
	for _, name := range names {
		file := c.files[name]
		content, err := c.run.tree.ReadFile(ctx, file.source, left)
		if err != nil {
			if fatal := stops(ctx, err); fatal != nil {
				return nil, false, fatal
			}
			c.out.Files[file.row].Result = ResultRefused
			c.out.Files[file.row].Reason = sallyport.Public(err).Message
			c.problem(ProblemFileUnreadable, name, "%s; the skill would be incomplete", sallyport.Public(err).Message)
			continue
		}
		if left -= int64(len(content)); left < 0 {
			if fits {
				c.tooLarge(c.run.service.cfg.MaxSkillBytes - left)
			}
			return out, false, nil
		}
		out[name] = stagedFile{content: content, mode: file.mode}
	}
	return out, fits, nil
}

func (c *collector) tooLarge(total int64) bool {
	found := c.run.service.checkSize(len(c.files), total)
	if found != nil {
		c.out.Problems = append(c.out.Problems, *found)
	}
	return found != nil
}

// stops returns the error when it ends the import: the context, or a fault that is not the file's.
func stops(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*sallyport.Error](err); ok && e.Code != sallyport.CodeInternal {
		return nil
	}
	return err
}
