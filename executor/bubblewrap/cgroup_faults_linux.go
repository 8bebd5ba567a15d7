//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"io/fs"
	"strings"
)

// treeFaults collects why trees of control groups cannot be used. Its sentences reach callers, so they name the kernel's reason
// and the controllers, and no folder of this host: the path of a group can tell which container this is.
type treeFaults struct {
	reasons []string
	names   map[string][]string // of the trees, by reason
}

func (f *treeFaults) add(t tree, err error) {
	name := "v2"
	if !t.v2 {
		words := make([]string, len(t.controllers))
		for i, c := range t.controllers {
			words[i] = string(c)
		}
		name = strings.Join(words, "+")
	}
	reason := kernelReason(err)
	if f.names == nil {
		f.names = map[string][]string{}
	}
	if f.names[reason] == nil {
		f.reasons = append(f.reasons, reason)
	}
	f.names[reason] = append(f.names[reason], name)
}

func (f *treeFaults) sentences() []string {
	texts := make([]string, len(f.reasons))
	for i, reason := range f.reasons {
		texts[i] = "control groups (" + strings.Join(f.names[reason], ", ") + "): " + reason
	}
	return texts
}

// kernelReason leaves the path out of what a file operation failed with.
func kernelReason(err error) string {
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		return fault.Err.Error()
	}
	return err.Error()
}
