package registry

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/internal/mediatype"
)

// defaultMode is the mode of a file that came without one.
const defaultMode = 0o644

// stagedFile is one file of a revision that is being put together.
type stagedFile struct {
	content   []byte
	mode      uint32
	mediaType string // empty derives it from the path and the content
}

// manifest is the content of a revision, checked. It is whole only when no problem is an error.
type manifest struct {
	md         SkillMD
	components []sallyport.Component // sorted by path, with Content, without ids
	digest     sallyport.Digest
	problems   []Problem
}

// assemble makes the manifest of a set of files. directory is the name of the skill's directory or its slug, empty when
// unknown. The error is INTERNAL only: what is wrong with the files is in the problems.
func (s *Service) assemble(files map[string]stagedFile, directory string) (manifest, error) {
	var m manifest
	skill, found := files[SkillFile]
	if found {
		m.md = ParseSkillMD(skill.content, directory)
	}
	if over := s.checkBounds(files); over != nil {
		m.problems = append(m.problems, *over)
		return m, nil
	}
	names := slices.Sorted(maps.Keys(files))
	m.problems = append(checkPaths(names), m.md.Problems...)
	if !found {
		m.problems = append(m.problems, problem(ProblemSkillMDMissing, SkillFile, 0, "there is no %s at the top of the skill; add it", SkillFile))
	}
	var declared settings
	if file, exists := files[SettingsFile]; exists {
		var problems []Problem
		declared, problems = parseSettings(file.content, files)
		m.problems = append(m.problems, problems...)
	}
	if hasErrors(m.problems) {
		return m, nil
	}
	for _, name := range names {
		component := componentOf(name, files[name], declared)
		if component.Kind == sallyport.KindScript && component.Size > s.cfg.MaxScriptBytes {
			m.problems = append(m.problems, problem(ProblemScriptTooLarge, name, 0,
				"the script has %d bytes, more than %d; it is kept and will not run; make it smaller", component.Size, s.cfg.MaxScriptBytes))
		}
		m.problems = append(m.problems, fileProblems(component)...)
		m.components = append(m.components, component)
	}
	digest, err := Digest(m.components)
	if err != nil {
		return m, err
	}
	m.digest = digest
	m.problems = append(m.problems, unreadableNeeds(m.components)...)
	if found := withoutRuntime(m.components); found != nil {
		m.problems = append(m.problems, *found)
	}
	if found := notListed(m.md, m.components); found != nil {
		m.problems = append(m.problems, *found)
	}
	return m, nil
}

func componentOf(name string, file stagedFile, declared settings) sallyport.Component {
	content := file.content
	if content == nil {
		content = []byte{}
	}
	c := sallyport.Component{
		Path: name, Kind: declared.kindOf(name, content), MediaType: file.mediaType,
		Size: int64(len(content)), SHA256: sallyport.DigestOf(content).Hex(), Mode: file.mode & 0o777, Content: content,
	}
	if c.MediaType == "" {
		c.MediaType = mediatype.Of(name, content)
	}
	if c.Mode == 0 {
		c.Mode = defaultMode
	}
	if c.Kind == sallyport.KindScript {
		c.Script = declared.scriptOf(name, content)
	}
	return c
}

func (s *Service) checkBounds(files map[string]stagedFile) *Problem {
	var total int64
	for _, file := range files {
		total += int64(len(file.content))
	}
	return s.checkSize(len(files), total)
}

// checkSize returns the problem of a skill with this many files and bytes, nil when it is within the bounds.
func (s *Service) checkSize(files int, total int64) *Problem {
	var found Problem
	switch {
	case files > s.cfg.MaxSkillFiles:
		found = problem(ProblemSkillTooLarge, "", 0, "the skill has %d files, more than %d; split it or leave files out", files, s.cfg.MaxSkillFiles)
	case total > s.cfg.MaxSkillBytes:
		found = problem(ProblemSkillTooLarge, "", 0, "the skill has %d bytes, more than %d; leave large files out", total, s.cfg.MaxSkillBytes)
	default:
		return nil
	}
	return &found
}

// checkPaths returns what is wrong with a sorted set of paths: one that is not plain, two that a file system could confuse,
// a file that is also a directory.
func checkPaths(names []string) []Problem {
	var problems []Problem
	files := make(map[string]string, len(names))
	for _, name := range names {
		if err := sallyport.CheckPath(name); err != nil {
			problems = append(problems, problem(ProblemUnsafePath, printable(name), 0, "%s; rename the file", sallyport.Public(err).Message))
			continue
		}
		if hidden := hiddenInPath(name); hidden != nil {
			problems = append(problems, *hidden)
			continue
		}
		key := foldPath(name)
		if other, taken := files[key]; taken {
			problems = append(problems, problem(ProblemUnsafePath, name, 0, "the path differs from %q only by case or by how accents are written; rename one", other))
			continue
		}
		files[key] = name
	}
	for _, name := range names {
		for parent := path.Dir(foldPath(name)); parent != "." && parent != "/"; parent = path.Dir(parent) {
			if other, taken := files[parent]; taken {
				problems = append(problems, problem(ProblemUnsafePath, name, 0, "%q is a file and a directory; rename one", other))
				break
			}
		}
	}
	return problems
}

// foldPath maps paths that some file system confuses to one key.
func foldPath(name string) string { return strings.ToLower(strings.ToUpper(norm.NFC.String(name))) }

// Digest computes the digest of a revision made of these components (path, kind, size, sha256 and script
// settings count; see internal/canonical).
func Digest(components []sallyport.Component) (sallyport.Digest, error) {
	return canonical.RevisionDigest(components)
}

// frontmatter is never empty in a stored revision.
func (m manifest) frontmatter() json.RawMessage {
	if len(m.md.Frontmatter) == 0 {
		return json.RawMessage("{}")
	}
	return m.md.Frontmatter
}
