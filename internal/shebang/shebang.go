// Package shebang reads the first line of a script.
//
// It owns the one reading of that line, so that import and the interpreter gate never disagree about it. It leaves what a
// program is good for to its callers. Its one invariant: it looks at a bounded beginning of the content and nothing else.
package shebang

import (
	"bytes"
	"path"
	"strings"
)

// maxLine bounds the part of the first line that is looked at, in bytes, as the kernel does.
const maxLine = 256

// Names returns what the program in the first line of content goes by, its base name first and then that without a version
// at its end: python3.11 and python for "#!/usr/bin/python3.11 -u" and for "#!/usr/bin/env -S A=1 python3.11". Nil when the
// line names no program by an absolute path.
func Names(content []byte) []string {
	name := program(content)
	if name == "" {
		return nil
	}
	return []string{name, strings.TrimRight(name, "0123456789.")}
}

func program(content []byte) string {
	line, _, _ := bytes.Cut(content[:min(len(content), maxLine)], []byte("\n"))
	rest, found := bytes.CutPrefix(bytes.TrimPrefix(line, []byte("\ufeff")), []byte("#!"))
	fields := strings.Fields(string(rest))
	if !found || len(fields) == 0 || !strings.HasPrefix(fields[0], "/") { // Rust begins attributes with #![
		return ""
	}
	if first := path.Base(fields[0]); first != "env" {
		return first
	}
	for _, field := range fields[1:] {
		if !strings.HasPrefix(field, "-") && !strings.Contains(field, "=") {
			return path.Base(field)
		}
	}
	return ""
}
