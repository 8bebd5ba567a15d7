package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sallyport-dev/sallyport"
)

// RuntimeSettings describe one runtime: a program of the host, of a root folder or of an image. With the executor remote all but
// Extensions is empty, because the runner knows the rest.
type RuntimeSettings struct {
	// Program is the interpreter, an absolute path; with Root or Image it is a path in there.
	Program string
	// Root is an absolute path of this host.
	Root string
	// Image is a reference or an absolute path, without its digest, which is Digest.
	Image  string
	Digest string
	// Extensions are those of the scripts that may ask for the runtime by name; nil means by the program's name.
	Extensions []string
}

// Pinned is the image with its digest; empty when the runtime is none.
func (r RuntimeSettings) Pinned() string {
	if r.Image == "" {
		return ""
	}
	return r.Image + "@" + r.Digest
}

// maxRuntimes bounds the map.
const maxRuntimes = 256

// genericRuntimes are what a script is in by its extension alone, so they cannot name something else.
func genericRuntimes() []string { return []string{"python", "bash", "node"} }

// runtimeTree reads the map of runtimes. Whether each is used, and fits the executor, is judged when all settings are known.
func runtimeTree(s *Settings, node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return errors.New("want a map of names to runtimes such as {data-science: {root: /srv/runtimes/ds, program: /usr/bin/python3}}")
	}
	if len(node.Content)/2 > maxRuntimes {
		return fmt.Errorf("want at most %d runtimes", maxRuntimes)
	}
	list := map[string]RuntimeSettings{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		switch {
		case !plainTree(name) || !plainTree(value):
			return fmt.Errorf("line %d: anchors, aliases and merges are not used here", name.Line)
		case !runtimeWord(name.Value):
			return fmt.Errorf("line %d: want a runtime's name such as python-3.12, got %s", name.Line, quote(name.Value))
		case slices.Contains(genericRuntimes(), name.Value) || name.Value == auto:
			return fmt.Errorf("line %d: %s is what every such script asks for; take a name of its own, such as %s-team, "+
				"and set it in interpreters to serve them all", name.Line, quote(name.Value), name.Value)
		}
		if _, twice := list[name.Value]; twice {
			return fmt.Errorf("line %d: %s is there twice", name.Line, quote(name.Value))
		}
		one, err := runtimeOf(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name.Value, err)
		}
		list[name.Value] = one
	}
	s.Runtimes = list
	return nil
}

// runtimeOf reads one runtime.
func runtimeOf(node *yaml.Node) (RuntimeSettings, error) {
	var r RuntimeSettings
	if node.Kind != yaml.MappingNode {
		return r, fmt.Errorf("line %d: want program, and root or image, such as {program: /usr/bin/python3}", node.Line)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if seen[name.Value] {
			return r, fmt.Errorf("line %d: %s is there twice", name.Line, name.Value)
		}
		seen[name.Value] = true
		if err := runtimeMember(&r, name.Value, value); err != nil {
			return r, fmt.Errorf("line %d: %s: %w", name.Line, name.Value, err)
		}
	}
	switch {
	case r.Root != "" && r.Image != "":
		return r, errors.New("has a root and an image; keep one")
	case r.Program == "" && (r.Root != "" || r.Image != ""):
		return r, errors.New("needs its program, a path in there such as /usr/bin/python3")
	}
	return r, nil
}

func runtimeMember(r *RuntimeSettings, name string, value *yaml.Node) error {
	var text string
	if name != "extensions" {
		if err := scalar(&text, value); err != nil {
			return err
		}
	}
	switch name {
	case "program":
		return program(&r.Program, text)
	case "root":
		if err := program(&r.Root, text); err != nil {
			return err
		}
		if r.Root == "/" {
			return errors.New("want a folder that holds a system of its own; for the host's own take root out")
		}
		return nil
	case "image":
		return image(r, text)
	case "extensions":
		if err := wordList(&r.Extensions, value); err != nil {
			return err
		}
		for _, extension := range r.Extensions {
			if !plainExtension(extension) {
				return fmt.Errorf("want extensions of lower-case letters and digits without their dot, got %s", quote(extension))
			}
		}
		return nil
	default:
		return errors.New("a runtime has no such setting; it has program, root, image and extensions")
	}
}

// image reads a path or a reference that ends in its digest: what has none could be another image tomorrow.
func image(r *RuntimeSettings, text string) error {
	source, digest, found := strings.Cut(text, "@")
	if !found {
		return fmt.Errorf("want the image by digest, %s@sha256:..., got %s; sallyport runtime add %s prints it", text, quote(text), text)
	}
	parsed, err := sallyport.ParseDigest(digest)
	switch {
	case err != nil || string(parsed) != digest:
		return fmt.Errorf("want sha256: and 64 lower-case hex digits after the @, got %s", quote(digest))
	case strings.HasPrefix(source, "/"):
		if err := program(&source, source); err != nil {
			return err
		}
	case source == "" || strings.Trim(source, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:/[]") != "" || strings.HasPrefix(source, "."):
		return fmt.Errorf("want an absolute path or a reference such as registry.example.org/team/python, got %s", quote(source))
	}
	r.Image, r.Digest = source, digest
	return nil
}

// runtimeFaults finds runtimes that the other settings contradict.
func (s Settings) runtimeFaults(fault func(string)) {
	remote := s.Executor == executorRemote
	for _, name := range slices.Sorted(maps.Keys(s.Runtimes)) {
		r := s.Runtimes[name]
		at := "runtimes: " + name + ": "
		switch {
		case remote && r.Program != "":
			fault(at + "with the executor remote the runner says what a runtime is; describe it in the runner's server.yaml, " +
				"and leave extensions here")
		case !remote && r.Program == "":
			fault(at + "needs its program, such as /usr/bin/python3")
		case len(s.serves(name)) == 0:
			fault(at + "no script would use it; name the extensions of its scripts, or set it in interpreters")
		}
	}
	if remote {
		return
	}
	for _, extension := range slices.Sorted(maps.Keys(s.Interpreters)) {
		value := s.Interpreters[extension]
		if value == auto || filepath.IsAbs(value) {
			continue
		}
		if _, known := s.Runtimes[value]; !known && !s.hasImage(value) {
			fault("interpreters: " + extension + ": want an absolute path, got " + quote(value) +
				"; the name of a runtime must be described in runtimes, have an image with the executor container, or belong to a runner with the executor remote")
		}
	}
}

// hasImage reports whether the executor container starts an image for a runtime of this name.
func (s Settings) hasImage(runtime string) bool {
	return s.Executor == executorContainer && s.Container.Images[runtime] != ""
}

// serves lists the extensions of the scripts that may run in a runtime: those that say so, else those of its program's name, and
// those that interpreters gives it.
func (s Settings) serves(name string) []string {
	r := s.Runtimes[name]
	list := slices.Clone(r.Extensions)
	if list == nil {
		list = usualExtensions(r.Program)
	}
	for extension, value := range s.Interpreters {
		if value == name {
			list = append(list, extension)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// usualExtensions are those of the scripts that a program of this name is for.
func usualExtensions(path string) []string {
	switch base := strings.TrimRight(filepath.Base(path), "0123456789."); base {
	case "python", "pypy":
		return []string{"py"}
	case "bash", "sh", "dash":
		return []string{"bash", "sh"}
	case "node", "nodejs":
		return []string{"cjs", "js", "mjs"}
	}
	return nil
}

// interpreter is a runtime as a row of the allow-list.
func (r RuntimeSettings) interpreter(extension, name string) sallyport.Interpreter {
	row := sallyport.Interpreter{Extension: extension, Runtime: name, Program: r.Program, Root: r.Root, Image: r.Pinned(), Digest: r.Digest}
	if row.Program == "" {
		row.Program = name // a runner's own word
	}
	return row
}

// Interpreter is the runtime of a name as a row of the allow-list, without an extension; the zero value when there is none.
func (s Settings) Interpreter(name string) sallyport.Interpreter {
	described, known := s.Runtimes[name]
	if !known {
		return sallyport.Interpreter{}
	}
	return described.interpreter("", name)
}

// alternatives are the rows for the runtimes that a script may ask for by name, behind the rows that serve their extensions.
func (s Settings) alternatives(rows []sallyport.Interpreter) []sallyport.Interpreter {
	defaults := slices.Clone(rows)
	for _, name := range slices.Sorted(maps.Keys(s.Runtimes)) {
		for _, extension := range s.serves(name) {
			allowed, same := false, false
			for _, row := range defaults {
				allowed = allowed || row.Extension == extension
				same = same || row.Extension == extension && row.Runtime == name
			}
			if allowed && !same {
				rows = append(rows, s.Runtimes[name].interpreter(extension, name))
			}
		}
	}
	return rows
}
