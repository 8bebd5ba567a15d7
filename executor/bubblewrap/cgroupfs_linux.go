//go:build amd64 || arm64

package bubblewrap

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is one mounted hierarchy.
type tree struct {
	v2          bool
	controllers []controller
	// own is the folder of the group that this process is in, top the folder where the hierarchy is mounted.
	own, top string
}

// findTrees reads where the hierarchies are mounted and which of their groups we are in.
func findTrees(mountinfo, selfCgroup []byte) []tree {
	type membership struct {
		controllers []string
		path        string
	}
	var memberships []membership
	for line := range strings.Lines(string(selfCgroup)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 {
			memberships = append(memberships, membership{strings.Split(fields[1], ","), fields[2]})
		}
	}
	var trees []tree
	scanner := bufio.NewScanner(bytes.NewReader(mountinfo))
	for scanner.Scan() {
		// id parent major:minor root mountpoint options [optional...] - type source super-options
		before, after, ok := strings.Cut(scanner.Text(), " - ")
		fields, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(tail) < 3 {
			continue
		}
		root, mountpoint := unescapeMount(fields[3]), unescapeMount(fields[4])
		options := strings.Split(tail[2], ",")
		for _, m := range memberships {
			t := tree{v2: tail[0] == "cgroup2", top: mountpoint}
			switch {
			case t.v2 && len(m.controllers) == 1 && m.controllers[0] == "":
			case tail[0] == "cgroup" && slices.ContainsFunc(m.controllers, func(c string) bool { return slices.Contains(options, c) }):
				for _, c := range m.controllers {
					t.controllers = append(t.controllers, controller(c))
				}
			default:
				continue
			}
			// In a container the mount shows a part of the tree, and paths may be counted from there or from the top.
			relative, below := strings.CutPrefix(m.path, strings.TrimSuffix(root, "/"))
			if !below || (relative != "" && relative[0] != '/') {
				relative = m.path
			}
			t.own = filepath.Join(mountpoint, relative)
			trees = append(trees, t)
			break
		}
	}
	return trees
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	for _, e := range [][2]string{{`\040`, " "}, {`\011`, "\t"}, {`\012`, "\n"}, {`\134`, `\`}} {
		s = strings.ReplaceAll(s, e[0], e[1])
	}
	return s
}

// isCgroupDir checks the file system itself: on a v1 host a path of v2 can be an ordinary folder.
func isCgroupDir(dir string, v2 bool) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	if v2 {
		return st.Type == unix.CGROUP2_SUPER_MAGIC
	}
	return st.Type == unix.CGROUP_SUPER_MAGIC
}

func readWords(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

// readCounter returns the number after key, or the whole file when key is empty; false when there is none.
func readCounter(path, key string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	text := strings.TrimSpace(string(data))
	if key != "" {
		found := false
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == key {
				text, found = value, true
				break
			}
		}
		if !found {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil
}
