package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// auto stands for the interpreters that are found on the host.
const auto = "auto"

func autoInterpreters(target *map[string]string, value string) error {
	if value != auto {
		return fmt.Errorf("want auto or a map of extension to program, got %s", quote(value))
	}
	*target = map[string]string{auto: auto}
	return nil
}

func interpreters(target *map[string]string, values map[string]string) error {
	list := map[string]string{}
	for _, extension := range slices.Sorted(maps.Keys(values)) {
		if !plainExtension(extension) {
			return fmt.Errorf("want an extension of lower-case letters and digits without its dot, got %s", quote(extension))
		}
		// Whether a runtime's name will do is known when the executor is.
		path := values[extension]
		if !runtimeWord(path) {
			if err := program(&path, path); err != nil {
				return fmt.Errorf("%s: %w", extension, err)
			}
		}
		list[extension] = path
	}
	*target = list
	return nil
}

func plainExtension(s string) bool {
	if s == "" || len(s) > 16 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// AllowList returns the interpreters that the settings allow, sorted by extension, and behind them the runtimes that a script of
// an allowed extension may ask for by name. found are those of the host, for auto.
func (s Settings) AllowList(found []sallyport.Interpreter) []sallyport.Interpreter {
	if s.Interpreters == nil && s.Profile != ProfileDev {
		return nil
	}
	if s.Interpreters == nil || s.Interpreters[auto] != "" {
		return s.alternatives(slices.Clone(found))
	}
	list := make([]sallyport.Interpreter, 0, len(s.Interpreters))
	for _, extension := range slices.Sorted(maps.Keys(s.Interpreters)) {
		path := s.Interpreters[extension]
		if runtime, described := s.Runtimes[path]; described {
			list = append(list, runtime.interpreter(extension, path))
			continue
		}
		list = append(list, sallyport.Interpreter{
			Extension: extension, Runtime: runtimeName(extension, path), Program: path,
		})
	}
	return s.alternatives(list)
}

// runtimeName is what an execution reports: python, bash and node for their usual extensions, else the program's name
// without its version.
func runtimeName(extension, path string) string {
	if !filepath.IsAbs(path) {
		return path // a runtime's own name
	}
	switch extension {
	case "py":
		return "python"
	case "sh", "bash":
		return "bash"
	case "js", "mjs", "cjs":
		return "node"
	}
	if name := strings.TrimRight(filepath.Base(path), "0123456789.-"); name != "" {
		return name
	}
	return extension
}
