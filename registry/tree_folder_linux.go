package registry

import (
	"os"

	"golang.org/x/sys/unix"
)

// specialFileSystems hold no files of people: what is read there is made up by the kernel, sometimes without an end.
var specialFileSystems = map[int64]string{
	unix.PROC_SUPER_MAGIC: "proc", unix.SYSFS_MAGIC: "sysfs", unix.CGROUP_SUPER_MAGIC: "cgroup", unix.CGROUP2_SUPER_MAGIC: "cgroup2",
	unix.DEBUGFS_MAGIC: "debugfs", unix.TRACEFS_MAGIC: "tracefs", unix.SECURITYFS_MAGIC: "securityfs", unix.DEVPTS_SUPER_MAGIC: "devpts",
	unix.PSTOREFS_MAGIC: "pstore", unix.BPF_FS_MAGIC: "bpf", unix.EFIVARFS_MAGIC: "efivarfs", unix.BINFMTFS_MAGIC: "binfmt_misc",
	unix.SELINUX_MAGIC: "selinuxfs", unix.NSFS_MAGIC: "nsfs", unix.HUGETLBFS_MAGIC: "hugetlbfs", unix.RDTGROUP_SUPER_MAGIC: "resctrl",
}

// specialFileSystem names the special file system that a directory is of, empty for any other.
func specialFileSystem(directory *os.File) string {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(directory.Fd()), &stat); err != nil {
		return ""
	}
	return specialFileSystems[int64(stat.Type)] //nolint:unconvert // other processors have another type
}
