package gate

import (
	"bytes"
	"context"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// interpreterGate: the script's extension, or the program its first line names, is in the allow-list.
type interpreterGate struct {
	allowed []sallyport.Interpreter
}

func (interpreterGate) Name() string { return "interpreter" }

func (g interpreterGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	if row, found := g.find(c.Script); found {
		c.Interpreter = &row
		return nil
	}
	extensions := make([]string, 0, len(g.allowed))
	for _, row := range g.allowed {
		extensions = append(extensions, row.Extension)
	}
	message := "no interpreter is allowed for this kind of script"
	if len(extensions) > 0 {
		message += "; allowed extensions: " + strings.Join(extensions, ", ")
	}
	return &sallyport.Refusal{
		Code: sallyport.CodeInterpreterNotAllowed, Gate: g.Name(), Message: message,
		Details: map[string]any{"allowed": extensions},
	}
}

// find returns the row for script. A runtime that the script names wins among the rows for its extension; the generic
// names python, bash and node, which import infers, are content with any row.
func (g interpreterGate) find(script sallyport.Component) (sallyport.Interpreter, bool) {
	var runtime string
	if script.Script != nil {
		runtime = script.Script.Runtime
	}
	var fits []sallyport.Interpreter
	names := scriptNames(script)
	for _, row := range g.allowed {
		if row.Program != "" && matches(row, names) {
			fits = append(fits, row)
		}
	}
	for _, row := range fits {
		if runtime == "" || row.Runtime == runtime {
			return row, true
		}
	}
	if len(fits) > 0 && (runtime == "python" || runtime == "bash" || runtime == "node") && inferred(script, runtime) {
		return fits[0], true
	}
	return sallyport.Interpreter{}, false
}

// inferred reports whether runtime is what the script's own name says, so that declaring bash for a .py file does not
// fall back to the row for .py.
func inferred(script sallyport.Component, runtime string) bool {
	switch strings.ToLower(strings.TrimPrefix(path.Ext(script.Path), ".")) {
	case "py":
		return runtime == "python"
	case "sh", "bash":
		return runtime == "bash"
	case "js", "mjs", "cjs":
		return runtime == "node"
	}
	return true
}

// scriptNames are what the allow-list is asked for: the extension, or for a file without one the program of its shebang,
// with and without a version at its end.
func scriptNames(script sallyport.Component) []string {
	if extension := strings.TrimPrefix(path.Ext(script.Path), "."); extension != "" {
		return []string{strings.ToLower(extension)}
	}
	program := shebang(script.Content)
	if program == "" {
		return nil
	}
	return []string{program, strings.TrimRight(program, "0123456789.")}
}

func matches(row sallyport.Interpreter, names []string) bool {
	extension := strings.ToLower(strings.TrimPrefix(row.Extension, "."))
	for _, name := range names {
		if name != "" && (name == extension || len(names) > 1 && (name == row.Runtime || name == path.Base(row.Program))) {
			return true
		}
	}
	return false
}

// shebang returns the base name of the program in "#!/usr/bin/python3 -u" or "#!/usr/bin/env -S python3 -u".
func shebang(content []byte) string {
	line, _, _ := bytes.Cut(content[:min(len(content), 256)], []byte("\n"))
	rest, found := bytes.CutPrefix(bytes.TrimPrefix(line, []byte("\ufeff")), []byte("#!"))
	if !found {
		return ""
	}
	fields := strings.Fields(string(rest))
	for i, field := range fields {
		if i == 0 && path.Base(field) != "env" {
			return path.Base(field)
		}
		if i > 0 && !strings.HasPrefix(field, "-") && !strings.Contains(field, "=") {
			return path.Base(field)
		}
	}
	return ""
}
