package bubblewrap

import (
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport"
)

// FindInterpreters returns the rows of the allow-list for the interpreters of this host that a sandbox can see: py with
// python3, sh and bash with bash, js, mjs and cjs with node. A program in somebody's home is not one of them.
func FindInterpreters() []sallyport.Interpreter {
	var rows []sallyport.Interpreter
	for _, r := range []struct {
		program, runtime string
		extensions       []string
	}{
		{"python3", "python", []string{"py"}},
		{"bash", "bash", []string{"sh", "bash"}},
		{"node", "node", []string{"js", "mjs", "cjs"}},
	} {
		path, ok := findProgram(r.program)
		if !ok {
			continue
		}
		for _, extension := range r.extensions {
			rows = append(rows, sallyport.Interpreter{Extension: extension, Runtime: r.runtime, Program: path})
		}
	}
	return rows
}

// findProgram looks in the folders that are both the host's own and mounted in every sandbox. What a link there points
// to must be mounted as well.
func findProgram(name string) (string, bool) {
	for _, dir := range []string{"/usr/bin", "/usr/local/bin", "/bin"} {
		path := filepath.Join(dir, name)
		target, err := filepath.EvalSymlinks(path)
		if err != nil || !visibleInside(target) {
			continue
		}
		if info, err := os.Stat(target); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}
