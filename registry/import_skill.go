package registry

import (
	"context"
	"errors"

	"github.com/sallyport-dev/sallyport"
)

// importRun is one call of Import.
type importRun struct {
	service   *Service
	principal sallyport.Principal
	tree      Tree
	options   ImportOptions
	place     place
	index     treeIndex
	slugs     map[string]claim
	// slugOf holds, by directory, the slugs of skills that share their name with others; see nameSlugs.
	slugOf map[string]string
}

// claim is a slug that an earlier skill of the same import has.
type claim struct {
	path   string
	digest sallyport.Digest
}

// skill imports one skill. Its error stops the import: the context, or a store that does not work.
func (r *importRun) skill(ctx context.Context, found foundSkill) (ImportedSkill, error) {
	out, m, err := r.inspect(ctx, found)
	if err != nil || !out.Usable {
		return out, err
	}
	return out, r.save(ctx, &out, m)
}

// inspect reads one skill and decides about every file of it. It saves nothing and needs no store.
func (r *importRun) inspect(ctx context.Context, found foundSkill) (ImportedSkill, manifest, error) {
	var m manifest
	out := ImportedSkill{Path: printable(found.directory), Files: []ImportedFile{}, Problems: []Problem{}}
	collect := collector{run: r, found: found, out: &out, files: map[string]pickedFile{}}
	collect.all()
	directory := found.name()
	files, fits, err := collect.read(ctx)
	if err != nil {
		return out, m, err
	}
	if fits {
		if m, err = r.service.assemble(files, directory); err != nil {
			return out, m, err
		}
		out.Problems = append(out.Problems, m.problems...)
	} else {
		m.md = ParseSkillMD(files[SkillFile].content, directory) // for its name only
	}
	out.Name, out.Digest = m.md.Name, m.digest
	if out.Name != "" {
		out.Slug = Slug(out.Name)
	}
	if slug := r.slugOf[found.directory]; slug != "" && slug != out.Slug {
		out.Problems = append(out.Problems, problem(ProblemSlugPlaced, SkillFile, 0,
			"other skills of this import have the name %q and other content; this one goes by the slug %q, after its folder; give it a name of its own to change that",
			shorten(out.Name), slug))
		out.Slug = slug
	}
	if m.md.Repaired {
		collect.result(SkillFile, ResultRepaired, "its frontmatter is not YAML and was read as the problems say; the bytes are unchanged")
	}
	out.Usable = !hasErrors(out.Problems)
	out.SpecClean = specClean(out.Problems)
	if !out.Usable {
		out.Result, out.Digest = ResultRefused, ""
	}
	return out, m, nil
}

// save puts a usable skill where the import goes.
func (r *importRun) save(ctx context.Context, out *ImportedSkill, m manifest) error {
	if other, taken := r.slugs[out.Slug]; taken {
		if other.digest == m.digest {
			out.Result = ResultIgnored
			found := problem(ProblemSlugClash, SkillFile, 0, "the skill at %q has the same content; it was imported from there", other.path)
			found.Severity = SeverityNote
			out.Problems = append(out.Problems, found)
			return nil
		}
		out.refuse(problem(ProblemSlugClash, SkillFile, 0,
			"the skills at %q and %q have the same slug %q; the first was taken; rename one", other.path, out.Path, out.Slug))
		return nil
	}
	r.slugs[out.Slug] = claim{out.Path, m.digest}
	result, err := r.commit(ctx, out.Slug, m)
	if err != nil {
		if code := sallyport.CodeOf(err); code == sallyport.CodeRevisionConflict || code == sallyport.CodeSlugTaken {
			out.refuse(problem(ProblemConflict, SkillFile, 0, "%s", sallyport.Public(err).Message))
			return nil
		}
		switch sallyport.Lookup(sallyport.CodeOf(err)).Class {
		case sallyport.ClassInvalid, sallyport.ClassDenied, sallyport.ClassNotFound, sallyport.ClassConflict, sallyport.ClassTooLarge:
			public := sallyport.Public(err)
			out.refuse(problem(ProblemSkillNotSaved, SkillFile, 0, "%s: %s", public.Code, public.Message))
			return nil
		case sallyport.ClassUnauthenticated, sallyport.ClassExhausted, sallyport.ClassUnavailable, sallyport.ClassDeadline,
			sallyport.ClassOutcome, sallyport.ClassCanceled, sallyport.ClassInternal:
		}
		return err
	}
	out.Result = ResultImported
	if result.Unchanged {
		out.Result = ResultUnchanged
	}
	out.SkillID, out.RevisionID = result.Skill.ID, result.Revision.ID
	out.Published = result.Revision.ID != "" && result.Skill.PublishedRevisionID == result.Revision.ID
	return nil
}

// commit saves, or on a dry run only looks whether there is something to save.
func (r *importRun) commit(ctx context.Context, slug string, m manifest) (SaveResult, error) {
	existing, found, err := r.service.skillIn(ctx, r.principal, r.place, slug)
	if err != nil {
		return SaveResult{}, err
	}
	d := draft{op: "registry.import", place: r.place, slug: slug, manifest: m, publish: r.options.Publish, message: r.options.Message}
	if found {
		d.existing = &existing
	}
	if r.options.DryRun {
		return r.service.rehearse(ctx, r.principal, d)
	}
	result, err := r.service.commit(ctx, r.principal, d)
	if code := sallyport.CodeOf(err); code == sallyport.CodeRevisionConflict || code == sallyport.CodeSlugTaken {
		return r.again(ctx, d, err)
	}
	return result, err
}

// again looks once more at a skill that somebody else saved meanwhile. When that is what was to be imported there is nothing left to do; any
// other content is a conflict: who was first is not overwritten.
func (r *importRun) again(ctx context.Context, d draft, lost error) (SaveResult, error) {
	existing, found, err := r.service.skillIn(ctx, r.principal, r.place, d.slug)
	if err != nil || !found {
		return SaveResult{}, errors.Join(lost, err)
	}
	d.existing, d.latest = &existing, sallyport.Revision{}
	same, err := r.service.compare(ctx, r.principal, &d)
	switch {
	case err != nil:
		return SaveResult{}, err
	case same:
		return r.service.unchanged(ctx, r.principal, d)
	}
	return SaveResult{}, &sallyport.Error{
		Op: d.op, Code: sallyport.CodeRevisionConflict, Err: lost,
		Message: "somebody else saved the skill meanwhile, with other content; compare, and import again to add a revision after theirs",
	}
}
