package bubblewrap

import (
	"regexp"
	"slices"
	"strings"
)

var absolutePath = regexp.MustCompile(`(^|[\s"'(=])(/[^\s:;,"'()]+)`)

// withoutPaths hides where this host keeps things. A reason reaches callers and the audit trail by way of the isolation gate;
// what every Linux host has stays, because it says what went wrong.
func withoutPaths(reason string) string {
	public := []string{"newroot", "oldroot", "proc", "sys", "dev", "usr", "etc", "bin", "sbin", "lib", "lib32", "lib64"}
	return absolutePath.ReplaceAllStringFunc(reason, func(match string) string {
		at := strings.IndexByte(match, '/')
		before, path := match[:at], match[at:]
		top, _, _ := strings.Cut(path[1:], "/")
		if slices.Contains(public, top) {
			return match
		}
		return before + "a place of this host"
	})
}
