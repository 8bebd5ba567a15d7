package gate

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/shebang"
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
	for _, row := range g.allowed {
		if row.Program != "" && matches(row, script) {
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
	switch extension(script.Path) {
	case "py":
		return runtime == "python"
	case "sh", "bash":
		return runtime == "bash"
	case "js", "mjs", "cjs":
		return runtime == "node"
	}
	return true
}

// extension of a path, without its dot and in lower case, as the rows of the allow-list are compared.
func extension(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

// matches reports whether row is for script: by the script's extension, and for a file without one by the program that its
// first line names, which may be the row's extension, runtime or program.
func matches(row sallyport.Interpreter, script sallyport.Component) bool {
	allowed := strings.ToLower(strings.TrimPrefix(row.Extension, "."))
	if own := extension(script.Path); own != "" {
		return own == allowed
	}
	return slices.ContainsFunc(shebang.Names(script.Content), func(name string) bool {
		return name != "" && (name == allowed || name == row.Runtime || name == path.Base(row.Program))
	})
}
