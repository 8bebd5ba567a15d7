package gate

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/shebang"
)

// interpreterGate: the script's extension, or the program its first line names, is in the allow-list of the installation and in
// the tenant's, and the runtime that the script asks for is there.
type interpreterGate struct {
	allowed []sallyport.Interpreter
}

func (interpreterGate) Name() string { return "interpreter" }

func (g interpreterGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	var fits []sallyport.Interpreter
	for _, row := range g.allowed {
		if row.Program != "" && matches(row, c.Script) && c.Policy.Allows(normal(row.Extension)) {
			fits = append(fits, row)
		}
	}
	if len(fits) == 0 {
		return g.refuseExtension(c.Policy)
	}
	wanted, whose := asked(c.Script), "the script asks for the runtime "
	for i := 0; wanted == "" && i < len(fits); i++ {
		wanted, whose = c.Policy.Runtimes[normal(fits[i].Extension)], "the tenant's policy names the runtime "
	}
	if wanted == "" {
		c.Interpreter = &fits[0]
		return nil
	}
	for i := range fits {
		if fits[i].Runtime == wanted {
			c.Interpreter = &fits[i]
			return nil
		}
	}
	var names []string
	for _, row := range fits {
		if !slices.Contains(names, row.Runtime) {
			names = append(names, row.Runtime)
		}
	}
	return &sallyport.Refusal{
		Code: sallyport.CodeInterpreterNotAllowed, Gate: g.Name(),
		Message: whose + wanted + ", which is not among those for such a script here: " + strings.Join(names, ", "),
		Details: map[string]any{"runtime": wanted, "runtimes": names},
	}
}

// refuseExtension says which kinds of script are allowed.
func (g interpreterGate) refuseExtension(policy sallyport.Policy) *sallyport.Refusal {
	extensions := make([]string, 0, len(g.allowed))
	for _, row := range g.allowed {
		if policy.Allows(normal(row.Extension)) && !slices.Contains(extensions, row.Extension) {
			extensions = append(extensions, row.Extension)
		}
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

// asked is the runtime that the script names. The generic names python, bash and node, which import infers, are no wish: any row
// for such a script will do, the first one first.
func asked(script sallyport.Component) string {
	if script.Script == nil {
		return ""
	}
	runtime := script.Script.Runtime
	if (runtime == "python" || runtime == "bash" || runtime == "node") && inferred(script, runtime) {
		return ""
	}
	return runtime
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
	return normal(path.Ext(name))
}

func normal(extension string) string {
	return strings.ToLower(strings.TrimPrefix(extension, "."))
}

// matches reports whether row is for script: by the script's extension, and for a file without one by the program that its
// first line names, which may be the row's extension, runtime or program.
func matches(row sallyport.Interpreter, script sallyport.Component) bool {
	allowed := normal(row.Extension)
	if own := extension(script.Path); own != "" {
		return own == allowed
	}
	return slices.ContainsFunc(shebang.Names(script.Content), func(name string) bool {
		return name != "" && (name == allowed || name == row.Runtime || name == path.Base(row.Program))
	})
}
