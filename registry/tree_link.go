package registry

import (
	"path"
	"strings"
)

// treeIndex finds entries by path and follows symbolic links among them, without touching the source.
type treeIndex struct {
	entries     map[string]TreeEntry
	directories map[string]bool
}

func newTreeIndex(entries []TreeEntry) treeIndex {
	t := treeIndex{entries: make(map[string]TreeEntry, len(entries)), directories: map[string]bool{".": true}}
	for _, entry := range entries {
		name := entryName(entry.Path)
		if entry.Type == EntryDir {
			t.directories[name] = true
		} else {
			t.entries[name] = entry
		}
		for parent := path.Dir(name); !t.directories[parent] && parent != "/"; parent = path.Dir(parent) {
			t.directories[parent] = true
		}
	}
	return t
}

// maxLinks bounds the links that one resolution follows.
const maxLinks = 40

// resolve follows the symbolic link at name to a regular file or a directory of the tree. fault says why it cannot.
func (t treeIndex) resolve(name string) (target string, isDirectory bool, fault string) {
	const leaves, dangles, loops = "it leaves what was imported", "it points to nothing", "it runs in a circle"
	left := maxLinks
	link := t.entries[name]
	at := path.Dir(name)
	rest, ok := targetSegments(link.Target)
	if !ok {
		return "", false, leaves
	}
	for len(rest) > 0 {
		segment := rest[0]
		rest = rest[1:]
		switch segment {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return "", false, leaves
			}
			at = path.Dir(at)
			continue
		}
		at = path.Join(at, segment)
		entry, found := t.entries[at]
		switch {
		case found && entry.Type == EntrySymlink:
			if left--; left == 0 {
				return "", false, loops
			}
			further, ok := targetSegments(entry.Target)
			if !ok {
				return "", false, leaves
			}
			rest = append(further, rest...)
			at = path.Dir(at)
		case found && len(rest) > 0, !found && !t.directories[at]:
			return "", false, dangles
		}
	}
	if entry, found := t.entries[at]; found {
		if entry.Type != EntryFile || entry.Fault != "" {
			return "", false, "its target is not a readable file"
		}
		return at, false, ""
	}
	return at, true, ""
}

// targetSegments splits the target of a link; false when it is absolute or no path at all.
func targetSegments(target string) ([]string, bool) {
	slashed := strings.ReplaceAll(target, `\`, "/")
	if slashed == "" || strings.HasPrefix(slashed, "/") || len(slashed) > 1 && slashed[1] == ':' && isLetter(slashed[0]) {
		return nil, false
	}
	return strings.Split(slashed, "/"), true
}

// within reports whether name is directory or lies below it; "." holds everything.
func within(name, directory string) bool {
	return directory == "." || name == directory || strings.HasPrefix(name, directory+"/")
}
