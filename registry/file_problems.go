package registry

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// hiddenInPath returns the problem of a path with characters that nobody sees: two such paths look like one. A joiner that a script or an
// emoji needs is none.
func hiddenInPath(name string) *Problem {
	hits := invisible(name)
	if len(hits) == 0 {
		return nil
	}
	first := hits[slices.Min(slices.Collect(maps.Keys(hits)))].first
	found := problem(ProblemInvisible, printable(name), 0, "the path has a character that nobody sees (U+%04X); rename the file", first)
	return &found
}

// lfsPointer is how every pointer of Git LFS begins, and lfsLargest more than any of them has.
const (
	lfsPointer = "version https://git-lfs.github.com/spec/v1\n"
	lfsLargest = 1024
)

// fileProblems says what will go wrong with the content of a component, which is kept byte for byte all the same.
func fileProblems(c sallyport.Component) []Problem {
	var problems []Problem
	if len(c.Content) < lfsLargest && bytes.HasPrefix(c.Content, []byte(lfsPointer)) && bytes.Contains(c.Content, []byte("\noid sha256:")) {
		problems = append(problems, problem(ProblemLFSPointer, c.Path, 1,
			"the file is a pointer of Git LFS and not the file itself; run: git lfs pull, and import the folder"))
	}
	if c.Kind == sallyport.KindScript && c.Script != nil && c.Script.Runtime == "bash" {
		if before, _, found := bytes.Cut(c.Content, []byte("\r\n")); found {
			problems = append(problems, problem(ProblemShellCRLF, c.Path, 1+bytes.Count(before, []byte("\n")),
				"lines end in CR LF, and bash will fail on \\r; save the script with LF, such as by: sed -i 's/\\r$//' %s", shellWord(c.Path)))
		}
	}
	return problems
}

// shellWord quotes a path for the line of a shell.
func shellWord(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" && !strings.HasPrefix(name, "-") {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// withoutRuntime is one note on all scripts that nothing built in runs: whoever imports them learns it now, not from the first refused run.
func withoutRuntime(components []sallyport.Component) *Problem {
	count, first := 0, ""
	for _, c := range components {
		if c.Kind == sallyport.KindScript && c.Script != nil && c.Script.Runtime == "" {
			if count++; count == 1 {
				first = c.Path
			}
		}
	}
	if count == 0 {
		return nil
	}
	found := problem(ProblemScriptRuntime, first, 0,
		"nothing built in runs this script (%s of the kind); it is kept, and runs only where sallyport.yaml names a runtime that the server has", plural(count, "file"))
	return &found
}
