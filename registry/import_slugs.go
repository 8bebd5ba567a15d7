package registry

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// nameSlugs gives skills of one name and of different content slugs after their folders: .claude/skills/pdf and .codex/skills/pdf become
// claude-pdf and codex-pdf. Where a skill lies decides, never the order, so no slug ever changes over to another skill because one was
// added. Skills of one content keep the one slug.
func (r *importRun) nameSlugs(ctx context.Context, skills []foundSkill) error {
	byName := map[string][]foundSkill{}
	for _, found := range skills {
		slug, err := r.slugByName(ctx, found)
		if err != nil {
			return err
		}
		if slug != "" {
			byName[slug] = append(byName[slug], found)
		}
	}
	taken := map[string]bool{}
	for slug := range byName {
		taken[slug] = true
	}
	r.slugOf = map[string]string{}
	for _, slug := range slices.Sorted(maps.Keys(byName)) {
		if len(byName[slug]) == 1 {
			continue
		}
		groups, err := r.byContent(ctx, byName[slug])
		if err != nil {
			return err
		}
		if len(groups) < 2 {
			continue
		}
		first := make([]string, len(groups))
		for i, group := range groups {
			first[i] = group[0]
		}
		for i, unique := range folderSlugs(slug, first, taken) {
			taken[unique] = true
			for _, directory := range groups[i] {
				r.slugOf[directory] = unique
			}
		}
	}
	return nil
}

// slugByName is the slug of a skill by its name alone, empty when it has none.
func (r *importRun) slugByName(ctx context.Context, found foundSkill) (string, error) {
	collect := collector{run: r, found: found, out: &ImportedSkill{}, files: map[string]pickedFile{}}
	collect.all()
	file, exists := collect.files[SkillFile]
	if !exists {
		return "", nil
	}
	content, err := r.tree.ReadFile(ctx, file.source, r.service.cfg.MaxSkillBytes)
	if err != nil {
		return "", stops(ctx, err)
	}
	if name := ParseSkillMD(content, found.name()).Name; name != "" {
		return Slug(name), nil
	}
	return "", nil
}

// byContent groups the directories of usable skills by digest, in path order.
func (r *importRun) byContent(ctx context.Context, skills []foundSkill) ([][]string, error) {
	var groups [][]string
	at := map[sallyport.Digest]int{}
	for _, found := range skills {
		skill, _, err := r.inspect(ctx, found)
		if err != nil {
			return nil, err
		}
		if !skill.Usable {
			continue
		}
		i, known := at[skill.Digest]
		if !known {
			i = len(groups)
			at[skill.Digest] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], found.directory)
	}
	return groups, nil
}

// name is what the directory of a skill is called, empty when unknown.
func (f foundSkill) name() string {
	if f.directory == "." {
		return ""
	}
	return path.Base(f.directory)
}

// folderSlugs returns a slug for each directory: the parts of its path that tell it from the others, and the name's slug. None is in taken,
// except the name's own slug for a directory that has no such part.
func folderSlugs(slug string, directories []string, taken map[string]bool) []string {
	paths := make([][]string, len(directories))
	for i, directory := range directories {
		paths[i] = strings.Split(directory, "/")
	}
	paths = cutCommon(paths)
	seen := map[string]bool{}
	out := make([]string, len(directories))
	for i, parts := range paths {
		if n := len(parts); n > 0 && Slug(parts[n-1]) == slug {
			parts = parts[:n-1]
		}
		unique := slug
		if len(parts) > 0 {
			unique = Slug(strings.Join(parts, "-") + "-" + slug)
		}
		if seen[unique] || unique != slug && taken[unique] {
			sum := sallyport.DigestOf([]byte(directories[i])).Hex()[:slugHashLength]
			unique = Slug(slug + "-" + sum)
		}
		seen[unique] = true
		out[i] = unique
	}
	return out
}

// cutCommon cuts the elements off that all paths begin with, and those that all end with.
func cutCommon(paths [][]string) [][]string {
	shortest := len(slices.MinFunc(paths, func(a, b []string) int { return len(a) - len(b) }))
	same := func(at func(p []string) string) bool {
		return !slices.ContainsFunc(paths[1:], func(p []string) bool { return at(p) != at(paths[0]) })
	}
	head := 0
	for head < shortest && same(func(p []string) string { return p[head] }) {
		head++
	}
	tail := 0
	for tail < shortest-head && same(func(p []string) string { return p[len(p)-1-tail] }) {
		tail++
	}
	out := make([][]string, len(paths))
	for i, p := range paths {
		out[i] = p[head : len(p)-tail]
	}
	return out
}
