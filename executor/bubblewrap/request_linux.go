//go:build amd64 || arm64

package bubblewrap

import (
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// newSpec turns a request into a run. Gates have looked at all of it; what would be wrong here is checked again, because
// behind this point there is only the kernel.
func newSpec(req sallyport.ExecRequest) (spec, error) {
	invalid := func(sentence string) (spec, error) {
		return spec{}, &sallyport.Error{Op: "bubblewrap.request", Code: sallyport.CodeInvalidArgument, Message: sentence}
	}
	l := req.Limits
	switch {
	case limitFault(l) != "":
		return invalid(limitFault(l))
	case req.Grace <= 0:
		return invalid("a run needs a grace to be ended in")
	case !path.IsAbs(req.Interpreter.Program) || path.Clean(req.Interpreter.Program) != req.Interpreter.Program:
		return invalid("the interpreter must be an absolute path")
	case req.Interpreter.Root == "" && req.Interpreter.Image != "":
		return invalid("the image of the runtime is not unpacked")
	case req.Interpreter.Root != "" && rootFault(req.Interpreter.Root) != "":
		return invalid(rootFault(req.Interpreter.Root))
	case !slices.ContainsFunc(req.Files, func(f sallyport.Component) bool { return f.Path == req.ScriptPath }):
		return invalid("the script is not part of the revision")
	}
	if fault := inputFault(req.Inputs); fault != "" {
		return invalid(fault)
	}
	s := spec{
		argv:   append([]string{req.Interpreter.Program, path.Join(pathSkill, req.ScriptPath)}, req.Argv...),
		stdin:  req.Stdin,
		files:  req.Files,
		inputs: req.Inputs,
		root:   req.Interpreter.Root,
		limits: l,
		grace:  req.Grace,
		env: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin",
			"HOME=" + pathHome,
			"LANG=C.UTF-8",
			"TMPDIR=/tmp",
			"SKILL_ROOT=" + pathSkill,
			"SKILL_NAME=" + req.Slug,
			"SKILL_EXECUTION_ID=" + string(req.ExecutionID),
			"SKILL_OUTPUT=" + path.Join(pathOutputDir, nameOutput),
			"SKILL_ARTIFACTS=" + path.Join(pathOutputDir, nameArtifacts),
			"SKILL_INPUT=" + pathInput,
		},
	}
	if req.Interpreter.Runtime == "python" || strings.HasPrefix(path.Base(req.Interpreter.Program), "python") {
		// Compiled files would only fill the scratch of a folder that is thrown away.
		s.env = append(s.env, "PYTHONDONTWRITEBYTECODE=1")
	}
	for name := range req.Secrets {
		taken := slices.ContainsFunc(s.env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if taken || !variableName(name) {
			return invalid("a secret's name is not a free variable name")
		}
	}
	for name, value := range req.Secrets {
		s.env = append(s.env, name+"="+string(value))
	}
	for _, v := range append(slices.Clone(s.argv), s.env...) {
		if strings.IndexByte(v, 0) >= 0 {
			return invalid("an argument or variable contains a NUL byte")
		}
	}
	return s, nil
}

// inputFault finds an input file that has no place of its own.
func inputFault(inputs []sallyport.InputFile) string {
	taken := map[string]bool{}
	for _, in := range inputs {
		if sallyport.CheckPath(in.Name) != nil {
			return "the name of an input file is not a plain path"
		}
		if taken[in.Name] {
			return "two input files have one name"
		}
		taken[in.Name] = true
	}
	for _, in := range inputs {
		for dir := path.Dir(in.Name); dir != "."; dir = path.Dir(dir) {
			if taken[dir] {
				return "an input file has the name of another one's folder"
			}
		}
	}
	return ""
}

// variableName reports whether name is a letter or underscore, followed by letters, digits and underscores.
func variableName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || (c|0x20 >= 'a' && c|0x20 <= 'z')
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
