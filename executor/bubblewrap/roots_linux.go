//go:build amd64 || arm64

package bubblewrap

import (
	"os"
	"path/filepath"
	"syscall"
)

// rootFault says why a root folder cannot be used; empty when it can. No path is in it: a caller may read it.
func rootFault(root string) string {
	if !filepath.IsAbs(root) || filepath.Clean(root) != root || root == "/" {
		return "the root folder is not an absolute path below the host's own"
	}
	info, err := os.Lstat(root)
	if err != nil {
		return "the root folder is not there"
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "the root folder can be changed by others than this user"
	}
	return ""
}
