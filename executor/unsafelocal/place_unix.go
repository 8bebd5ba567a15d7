//go:build unix

package unsafelocal

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// requestFault finds what no gate should have let through.
func requestFault(req sallyport.ExecRequest) string {
	l := req.Limits
	switch {
	case l.Timeout <= 0 || l.MemoryBytes <= 0 || l.Processes <= 0 || l.CPUMillis <= 0 || l.ScratchBytes <= 0 ||
		l.OutputBytes <= 0 || l.ArtifactBytes <= 0 || l.ArtifactFiles <= 0:
		return "every limit of a run must be set"
	case l.CPUTime != 0:
		return "a budget of CPU time cannot be kept without control groups"
	case req.Grace <= 0:
		return "a run needs a grace to be ended in"
	case req.Interpreter.Root != "" || req.Interpreter.Image != "":
		return "a runtime that is a folder or an image needs a sandbox"
	case !filepath.IsAbs(req.Interpreter.Program):
		return "the interpreter must be an absolute path"
	case !slices.ContainsFunc(req.Files, func(f sallyport.Component) bool { return f.Path == req.ScriptPath }):
		return "the script is not part of the revision"
	}
	for _, f := range req.Files {
		if sallyport.CheckPath(f.Path) != nil || sallyport.DigestOf(f.Content).Hex() != f.SHA256 {
			return "a file of the revision has an unsafe path or is not what its digest says"
		}
	}
	names := map[string]bool{}
	for _, in := range req.Inputs {
		if sallyport.CheckPath(in.Name) != nil || names[in.Name] {
			return "an input file has no plain name of its own"
		}
		names[in.Name] = true
	}
	for name, value := range req.Secrets {
		if !variableName(name) || reserved(name) || strings.ContainsRune(string(value), 0) {
			return "a secret's name is not a free variable name"
		}
	}
	return ""
}

func variableName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

func reserved(name string) bool {
	return slices.Contains([]string{"PATH", "HOME", "LANG", "TMPDIR", "PYTHONDONTWRITEBYTECODE"}, name) || strings.HasPrefix(name, "SKILL_")
}

// place is the folder of one run. It keeps runs from meeting by mistake; it keeps nobody out.
type place struct {
	dir, skill string
	root       *os.Root
}

// newPlace makes the folder and puts the revision and the caller's files into it.
func newPlace(req sallyport.ExecRequest) (p *place, err error) {
	dir, err := os.MkdirTemp("", "sallyport-unsafe-")
	if err != nil {
		return nil, err
	}
	p = &place{dir: dir, skill: filepath.Join(dir, "skill")}
	defer func() {
		if err != nil {
			p.remove()
		}
	}()
	if p.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	for _, sub := range []string{"skill", "home", "tmp", "input", "out/artifacts"} {
		if err := p.root.MkdirAll(sub, 0o700); err != nil {
			return nil, err
		}
	}
	for _, f := range req.Files {
		if err := p.write(path.Join("skill", f.Path), f.Content, 0o700); err != nil {
			return nil, err
		}
	}
	for _, in := range req.Inputs {
		if err := p.write(path.Join("input", in.Name), in.Content, 0o600); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *place) write(name string, content []byte, mode fs.FileMode) error {
	if err := p.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return p.root.WriteFile(name, content, mode)
}

func (p *place) script(name string) string { return filepath.Join(p.skill, filepath.FromSlash(name)) }

// environment is all that the script gets; nothing of ours is in it.
func (p *place) environment(req sallyport.ExecRequest) []string {
	at := func(name string) string { return filepath.Join(p.dir, name) }
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + at("home"), "LANG=C.UTF-8", "TMPDIR=" + at("tmp"),
		"SKILL_ROOT=" + p.skill, "SKILL_NAME=" + req.Slug, "SKILL_EXECUTION_ID=" + string(req.ExecutionID),
		"SKILL_OUTPUT=" + at("out/output"), "SKILL_ARTIFACTS=" + at("out/artifacts"), "SKILL_INPUT=" + at("input"),
	}
	if req.Interpreter.Runtime == "python" {
		env = append(env, "PYTHONDONTWRITEBYTECODE=1")
	}
	for name, value := range req.Secrets {
		env = append(env, name+"="+string(value))
	}
	return env
}

// remove removes the folder, also what the script closed to itself.
func (p *place) remove() {
	if err := os.RemoveAll(p.dir); errors.Is(err, fs.ErrPermission) {
		_ = filepath.WalkDir(p.dir, func(name string, entry fs.DirEntry, _ error) error {
			if entry != nil && entry.IsDir() {
				_ = os.Chmod(name, 0o700) //nolint:gosec // our own folder, to be removed
			}
			return nil
		})
		_ = os.RemoveAll(p.dir)
	}
	if p.root != nil {
		_ = p.root.Close()
	}
}
