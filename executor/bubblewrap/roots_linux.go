//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxRootMounts bounds what one root folder has mounted, because each takes its time at every start of a run.
const maxRootMounts = 512

// ownDirs are the top folders that a root folder has no say in: the sandbox makes them, or they say something about a machine.
func ownDirs() []string {
	return []string{
		"proc", "sys", "dev", "tmp", "run", "var", "etc", "home", "root", "boot", "mnt", "media", "lost+found",
		strings.TrimPrefix(pathSkill, "/"),
	}
}

// ownFiles are the parts of /etc that a root folder has no say in: made-up ones, and those that hold accounts or name a machine.
func ownFiles() []string {
	return []string{
		"passwd", "passwd-", "group", "group-", "shadow", "shadow-", "gshadow", "gshadow-", "subuid", "subuid-", "subgid", "subgid-",
		"hosts", "hostname", "resolv.conf", "nsswitch.conf", "machine-id", "mtab", "fstab", "adjtime", "sudoers", "sudoers.d", "ssh",
		".pwd.lock",
	}
}

// rootSystem are the options that put the content of a root folder in place of the host's system, read-only: every folder at its top and
// every file and folder of its etc. A link stays a link, which leads wherever it does inside; devices, pipes and sockets are left out. The
// folder must be one that only root or this user can change.
func rootSystem(root string) ([]string, error) {
	if fault := rootFault(root); fault != "" {
		return nil, errors.New(fault)
	}
	args, mounts, err := rootFolder(root, "/", ownDirs(), false)
	if err != nil {
		return nil, err
	}
	etc := filepath.Join(root, "etc")
	if info, err := os.Lstat(etc); err == nil && info.IsDir() {
		more, n, err := rootFolder(etc, "/etc", ownFiles(), true)
		if err != nil {
			return nil, err
		}
		args, mounts = append(args, more...), mounts+n
	}
	if mounts > maxRootMounts {
		return nil, fmt.Errorf("the root folder has more than %d folders at its top and in its etc", maxRootMounts)
	}
	return append(args, "--symlink", "../tmp", "/var/tmp"), nil
}

// rootFolder lists one folder of a root.
func rootFolder(dir, inside string, own []string, files bool) (args []string, mounts int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, errors.New("the root folder cannot be read")
	}
	for _, e := range entries {
		source, target := filepath.Join(dir, e.Name()), path.Join(inside, e.Name())
		switch {
		case slices.Contains(own, e.Name()):
			continue
		case e.IsDir(), files && e.Type().IsRegular():
			args, mounts = append(args, "--ro-bind", source, target), mounts+1
		case e.Type() == fs.ModeSymlink:
			link, err := os.Readlink(source)
			if err != nil {
				return nil, 0, errors.New("the root folder cannot be read")
			}
			args = append(args, "--symlink", link, target)
		}
	}
	return args, mounts, nil
}

// hostSystem are the options that show the host's own system, read-only.
func hostSystem() []string {
	args := []string{"--dir", "/etc/ssl"}
	for _, dir := range systemDirs() {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink == 0 {
			args = append(args, "--ro-bind", dir, dir)
			continue
		}
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		}
	}
	for _, file := range systemFiles() {
		args = append(args, "--ro-bind-try", file, file)
	}
	// Where programs look for the name of the system, and for a second place for temporary files.
	return append(args, "--symlink", "../usr/lib/os-release", "/etc/os-release", "--symlink", "../tmp", "/var/tmp")
}

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
